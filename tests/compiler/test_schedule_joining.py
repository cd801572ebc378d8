"""Layers that run among each other's steps: which do, in what order, and with the same bytes."""

import numpy as np
import pytest
from convs import (
    Compiled,
    add_layer,
    compile_layers,
    conv_layer,
    network,
    pool_layer,
    run_exact,
    small_configs,
)
from engines import engine

from vitral.compiler.cycles import predict
from vitral.compiler.schedule import joining
from vitral.compiler.schedule.layer import AccelLayer
from vitral.compiler.schedule.order import order_steps
from vitral.compiler.schedule.plan import LayerPlan, plan_layers
from vitral.compiler.schedule.trial import trial_cycles
from vitral.config import CoreConfig
from vitral.program import Dram, Launch, OnChip, Outcome
from vitral.sim.reference import Reference

CONFIG = CoreConfig()


@pytest.fixture(autouse=True)
def _small_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_LEAST_GAIN", 100)


def _pool_after_conv(size: int = 56) -> list[AccelLayer]:
    shape = (1, 64, size, size)
    return [
        conv_layer(np.random.default_rng(0), shape=(1, 160, size, size), outs=64, result="t"),
        pool_layer(shape=shape, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), source="t"),
    ]


def _conv_after_depthwise() -> list[AccelLayer]:
    rng = np.random.default_rng(1)
    first = conv_layer(
        rng, shape=(1, 60, 70, 74), outs=60, kernel=(3, 3), strides=(2, 2), pads=(0, 0, 1, 1),
        group=60, pad_value=-3, name="dw", result="t",
    )  # fmt: skip
    return [first, conv_layer(rng, shape=first.out_shape, outs=120, source="t")]


def _residual() -> list[AccelLayer]:
    """The shortcut is dead after the addition, which runs while the convolution reads on."""
    rng = np.random.default_rng(2)
    shape = (1, 32, 30, 30)
    same = {"shape": shape, "outs": 32, "kernel": (3, 3), "pads": (1, 1, 1, 1)}
    return [
        conv_layer(rng, shape=shape, outs=32, name="a", result="s"),
        conv_layer(rng, **same, name="b", source="s", result="t"),
        add_layer(rng, shape=shape, multipliers=(5, 9), sources=("t", "s"), result="u"),
        conv_layer(rng, shape=shape, outs=32, name="c", source="u", result="y"),
    ]


NETS = {
    "pool-after-conv": _pool_after_conv,
    "conv-after-depthwise": _conv_after_depthwise,
    "residual": _residual,
}


def _plans(layers: list[AccelLayer]) -> list[LayerPlan]:
    return plan_layers(layers, CONFIG, trial_cycles)


def _check(compiled: Compiled, layers: list[AccelLayer], engines: tuple[str, ...]) -> None:
    config = compiled.config
    assert compiled.verify().ok, compiled.verify().message
    rng = np.random.default_rng(4)
    inputs = {
        tensor.name: rng.integers(-128, 128, tensor.shape).astype(np.int8)
        for tensor in compiled.segment.inputs
    }
    wanted = run_exact(layers, inputs)

    def shuffled(launch: Launch, dram: Dram, onchip: OnChip) -> Outcome:
        return Reference(config).run(launch, dram, onchip=onchip, order_seed=4)

    def on(name: str, launch: Launch, dram: Dram, onchip: OnChip) -> Outcome:
        return engine(name, config).run(launch, dram, onchip=onchip)

    runs = {"shuffled": shuffled}
    runs |= {name: lambda *args, name=name: on(name, *args) for name in engines}
    for name, run in runs.items():
        for value, got in compiled.run(run, inputs).items():
            np.testing.assert_array_equal(got, wanted[value], f"{name}, {value}")


@pytest.mark.parametrize("name", NETS)
def test_joined_layers_give_exact_results(name: str) -> None:
    layers = NETS[name]()
    assert sum(plan.joined for plan in _plans(layers)) == 1
    _check(compile_layers(layers, CONFIG), layers, ("fsim",))


@pytest.mark.parametrize("name", NETS)
def test_every_step_runs_once_and_in_the_order_of_its_layer(name: str) -> None:
    plans = _plans(NETS[name]())
    order = order_steps(plans)
    for number, plan in enumerate(plans):
        assert [step for layer, step in order if layer == number] == list(range(len(plan.steps)))
    joined = next(n for n, plan in enumerate(plans) if plan.joined)
    last = max(place for place, (layer, _) in enumerate(order) if layer == joined - 1)
    second = [place for place, (layer, _) in enumerate(order) if layer == joined]
    assert second[0] < last, "the second layer begins before the first one ends"


@pytest.mark.parametrize("name", NETS)
def test_joined_layers_share_no_element(name: str) -> None:
    plans = _plans(NETS[name]())
    joined = next(n for n, plan in enumerate(plans) if plan.joined)

    def used(plan: LayerPlan) -> set[tuple[str, int]]:
        found: set[tuple[str, int]] = set()
        for step in plan.steps:
            for chunk in step.inputs:
                where = chunk.elements(0, chunk.ins[1])
                found.update(("inp", n) for n in range(where.start, where.stop))
            weight = step.weight
            found.update(("wgt", n) for n in range(weight.base, weight.base + weight.count))
            found.update(("acc", n) for n in range(step.summed.start, step.summed.stop))
        return found

    assert not used(plans[joined - 1]) & used(plans[joined])


@pytest.mark.parametrize("name", ["pool-after-conv", "conv-after-depthwise"])
def test_joined_layers_are_faster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = NETS[name]()
    joined = predict(compile_layers(layers, CONFIG).instructions, CONFIG).cycles
    monkeypatch.setattr(joining, "_LEAST_GAIN", 1 << 30)
    assert not any(plan.joined for plan in _plans(layers))
    apart = predict(compile_layers(layers, CONFIG).instructions, CONFIG).cycles
    assert joined < 0.95 * apart


def test_one_record_for_two_joined_layers() -> None:
    compiled = compile_layers(_pool_after_conv(), CONFIG)
    (record,) = compiled.segment.layers
    assert (record.name, record.op) == ("conv + pool", "conv + maxpool")
    assert record.macs == 160 * 64 * 56 * 56
    assert (record.first, record.last) == (0, compiled.segment.insn_count - 2)


def test_layers_that_both_compute_stay_apart() -> None:
    rng = np.random.default_rng(3)
    shape = (1, 32, 20, 20)
    same = {"shape": shape, "outs": 32, "kernel": (3, 3), "pads": (1, 1, 1, 1)}
    layers: list[AccelLayer] = [
        conv_layer(rng, **same, name="a", result="t"),
        conv_layer(rng, **same, name="b", source="t"),
    ]
    assert not any(plan.joined for plan in _plans(layers))


def test_memories_without_halves_join_nothing() -> None:
    smallest = CoreConfig(block=4, inp_buffer=32, wgt_buffer=128, acc_buffer=128)
    assert joining.half_of(smallest) is None
    layers = [conv_layer(np.random.default_rng(0), shape=(1, 4, 3, 3), outs=4, result="t")]
    layers += [conv_layer(np.random.default_rng(0), shape=(1, 4, 3, 3), outs=4, source="t")]
    assert not any(plan.joined for plan in plan_layers(layers, smallest, trial_cycles))


@pytest.mark.parametrize(
    ("name", "seed"), [("default", 1), ("block8-batch2", 1), ("block16-one-token", 1)]
)
def test_any_neighbours_can_be_joined(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it costs time: with two samples, one token, and all kinds of layers."""
    monkeypatch.setattr(joining, "_LEAST_GAIN", -(1 << 40))
    rng = np.random.default_rng(seed)
    layers = network(rng, channels=int(rng.integers(3, 40)), size=int(rng.integers(5, 14)))
    compiled = compile_layers(layers, small_configs()[name], ("t4", "y"))
    assert sum("+" in record.name for record in compiled.segment.layers) >= 4
    _check(compiled, layers, ("fsim",))
