"""The search for tilings: what it tries, when it stops, and what its trials measure."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from convs import compile_layers, conv_layer

from vitral.bench.layers import RESNET18
from vitral.bench.workload import compile_layer, make_layer
from vitral.compiler.cycles import layer_cycles, predict, predict_segment
from vitral.compiler.schedule.candidates import candidates, parts
from vitral.compiler.schedule.cost import least_cycles
from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.layer import ConvLayer
from vitral.compiler.schedule.search import choose_tiling, first_good
from vitral.compiler.schedule.tiling import Buffers, Tiling, buffers_of
from vitral.compiler.schedule.trial import trial_cycles
from vitral.compiler.schedule.window_tiling import choose_window_tiling
from vitral.compiler.schedule.windows import WindowGeometry
from vitral.config import CoreConfig

CONFIG = CoreConfig()
LAYERS = {
    "3x3": {"shape": (1, 40, 17, 19), "outs": 50, "kernel": (3, 3), "pads": (1, 1, 1, 1)},
    "1x1 stride 2": {"shape": (1, 64, 24, 24), "outs": 96, "strides": (2, 2)},
    "dense": {"shape": (1, 640, 1, 1), "outs": 128},
    "batch": {"shape": (3, 16, 8, 8), "outs": 16, "kernel": (5, 5)},
    "group": {"shape": (1, 64, 9, 9), "outs": 64, "kernel": (3, 3), "group": 2},
}  # fmt: skip


def _layer(name: str) -> ConvLayer:
    return conv_layer(np.random.default_rng(0), name=name, **LAYERS[name])


def _all_of(geometry: Geometry) -> list[tuple[Tiling, Buffers]]:
    found = candidates(geometry, CONFIG)
    assert found is not None
    return [found[number] for number in range(len(found))]


@pytest.mark.parametrize("name", LAYERS)
def test_the_candidates_are_the_largest_tiles_that_fit(name: str) -> None:
    geometry = Geometry.of(_layer(name), CONFIG)
    outs, ins = (max(getattr(task, n) for task in geometry.tasks) for n in ("outs", "ins"))

    def buffers(tiling: Tiling) -> Buffers | None:
        return buffers_of(geometry, tiling, CONFIG.layout)

    expected = []
    for of_ins in parts(ins):
        shape = {"ins": of_ins, "taps": geometry.y.kernel}
        flat = {"rows": 1, "outs": 1, "outs_outer": False}
        widest = [n for n in parts(geometry.x.out) if buffers(Tiling(cols=n, **shape, **flat))]
        for cols, of_outs in product(widest[:6], parts(outs)):
            shape |= {"cols": cols, "outs": of_outs}
            made = [Tiling(rows=rows, **shape, outs_outer=False) for rows in parts(geometry.y.out)]
            for tiling in [tiling for tiling in made if buffers(tiling)][:6]:
                orders = (False, True) if of_outs < outs else (False,)
                expected += [replace(tiling, outs_outer=order) for order in orders]
    assert _all_of(geometry) == [(tiling, buffers(tiling)) for tiling in expected]


@pytest.mark.parametrize("name", LAYERS)
def test_a_trial_is_the_prediction_of_the_compiled_layer(name: str) -> None:
    layer = _layer(name)
    geometry = Geometry.of(layer, CONFIG)
    tiling, buffers = choose_tiling(geometry, CONFIG, name, trial_cycles)
    compiled = compile_layers([layer], CONFIG)
    whole = predict(compiled.instructions, CONFIG).cycles
    assert trial_cycles(geometry, tiling, buffers, CONFIG) == pytest.approx(whole, rel=0.005)


@pytest.mark.parametrize("name", LAYERS)
def test_no_trial_beats_the_least_cycles(name: str) -> None:
    geometry = Geometry.of(_layer(name), CONFIG)
    found = _all_of(geometry)
    least = least_cycles(geometry, CONFIG)
    for tiling, buffers in found[:: max(1, len(found) // 6)]:
        assert trial_cycles(geometry, tiling, buffers, CONFIG) >= least


@pytest.mark.parametrize("name", LAYERS)
def test_the_rough_estimate_is_of_the_right_size(name: str) -> None:
    geometry = Geometry.of(_layer(name), CONFIG)
    tiling, buffers = choose_tiling(geometry, CONFIG, name, trial_cycles)
    found = candidates(geometry, CONFIG)
    assert found is not None
    estimated = found.cycles[_all_of(geometry).index((tiling, buffers))]
    assert estimated == pytest.approx(trial_cycles(geometry, tiling, buffers, CONFIG), rel=0.35)


def test_the_best_trial_wins() -> None:
    geometry = Geometry.of(_layer("3x3"), CONFIG)
    seen: list[Tiling] = []

    def worse_and_worse(_: Geometry, tiling: Tiling, __: Buffers, ___: CoreConfig) -> int:
        seen.append(tiling)
        return 10_000_000 + len(seen)

    def better_and_better(_: Geometry, tiling: Tiling, __: Buffers, ___: CoreConfig) -> int:
        seen.append(tiling)
        return 10_000_000 - len(seen)

    first, _ = choose_tiling(geometry, CONFIG, "", worse_and_worse)
    assert len(seen) > 1
    assert first == seen[0]
    seen.clear()
    last, _ = choose_tiling(geometry, CONFIG, "", better_and_better)
    assert last == seen[-1] != first


def test_a_tiling_that_nothing_can_beat_ends_the_search() -> None:
    geometry = Geometry.of(_layer("3x3"), CONFIG)
    tilings = _all_of(geometry)[:4]
    costs = [1100, 1003, 900, 800]
    tried: list[int] = []

    def trial(candidate: tuple[Tiling, Buffers]) -> int:
        tried.append(tilings.index(candidate))
        return costs[tried[-1]]

    assert first_good(tilings, trial, 1000) == tilings[1]
    assert tried == [0, 1]


def test_equal_geometries_are_searched_once() -> None:
    calls: list[Tiling] = []

    def trial(_: Geometry, tiling: Tiling, __: Buffers, ___: CoreConfig) -> int:
        calls.append(tiling)
        return 1_000_000

    geometries = [Geometry.of(_layer("1x1 stride 2"), CONFIG) for _ in range(2)]
    choose_tiling(geometries[0], CONFIG, "a", trial)
    count = len(calls)
    choose_tiling(geometries[1], CONFIG, "b", trial)
    assert count > 0
    assert len(calls) == count


def test_window_layers_are_tried_too() -> None:
    layer = conv_layer(
        np.random.default_rng(0), shape=(1, 32, 30, 30), outs=32, kernel=(3, 3), group=32
    )
    geometry = WindowGeometry.of(layer, CONFIG)
    seen: dict[Tiling, int] = {}

    def trial(window: WindowGeometry, tiling: Tiling, buffers: Buffers, config: CoreConfig) -> int:
        seen[tiling] = trial_cycles(window, tiling, buffers, config)
        return seen[tiling]

    tiling, _ = choose_window_tiling(geometry, CONFIG, "", trial)
    assert len(seen) > 1
    assert seen[tiling] == min(seen.values())


def test_cycles_of_layers_add_up_to_those_of_their_program() -> None:
    module = compile_layer(make_layer("c4", RESNET18["c4"], np.random.default_rng(0)), CONFIG)
    (segment,) = module.segments
    prediction = predict_segment(module, segment)
    assert layer_cycles(module, segment, prediction) == [prediction.cycles]
