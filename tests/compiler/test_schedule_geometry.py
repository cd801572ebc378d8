"""Windows along an axis, channel blocks of groups, slots, and the tilings on offer."""

import random
from dataclasses import replace

import numpy as np
import pytest
from convs import conv_layer, random_layer, small_configs

from vitral.compiler.schedule.candidates import candidates
from vitral.compiler.schedule.geometry import LOAD_PAD_MAX, Axis, Geometry, Span, Task, split
from vitral.compiler.schedule.search import choose_tiling
from vitral.compiler.schedule.slots import assign_slots
from vitral.compiler.schedule.tiling import Tiling, buffers_of
from vitral.compiler.schedule.trial import trial_cycles
from vitral.compiler.schedule.unroll import Placement, unroll
from vitral.config import CoreConfig
from vitral.errors import CompileError

SMALL = small_configs()["block4"]


@pytest.mark.parametrize(
    ("axis", "where", "wanted"),
    [
        # out, size, kernel, stride, dilation, before; first out, outs, first tap, taps, step
        (Axis(8, 8, 3, 1, 1, 1), (0, 8, 0, 3, 1), Span(0, 8, 1, 1)),
        (Axis(8, 8, 3, 1, 1, 1), (2, 3, 0, 3, 1), Span(1, 5)),
        (Axis(4, 8, 1, 2, 1, 0), (1, 3, 0, 1, 2), Span(2, 3)),
        (Axis(4, 8, 3, 2, 1, 1), (3, 1, 0, 3, 1), Span(5, 3)),
        # windows that lie in the padding bring in one real position, before or behind them
        (Axis(5, 1, 1, 1, 1, 2), (0, 2, 0, 1, 1), Span(0, 1, before=2)),
        (Axis(5, 1, 1, 1, 1, 2), (3, 2, 0, 1, 1), Span(0, 1, after=2, skip=1)),
        (Axis(4, 3, 3, 1, 2, 3), (0, 4, 2, 1, 1), Span(1, 2, after=2)),
    ],
)
def test_span(axis: Axis, where: tuple[int, int, int, int, int], wanted: Span) -> None:
    assert axis.span(*where) == wanted


def _axis(rng: random.Random) -> Axis:
    kernel, dilation, before = rng.randint(1, 5), rng.randint(1, 4), rng.randint(0, 9)
    return Axis(
        out=rng.randint(1, 9),
        size=rng.randint(1, 12),
        kernel=kernel,
        stride=rng.randint(1, 4),
        dilation=dilation,
        before=before,
    )


@pytest.mark.parametrize("seed", range(200))
def test_span_has_every_position_that_windows_read(seed: int) -> None:
    rng = random.Random(seed)
    axis = _axis(rng)
    part, taps = rng.randint(1, axis.out), rng.randint(1, axis.kernel)
    step = axis.step(part, taps)
    for first, outs in split(axis.out, part):
        for tap, count in split(axis.kernel, taps):
            span = axis.span(first, outs, tap, count, step)
            assert span.real >= 1
            assert span.first >= 0
            assert span.first + (span.real - 1) * step < axis.size
            loaded = [None] * span.before
            loaded += [span.first + n * step for n in range(span.real)]
            loaded += [None] * span.after
            for o in range(outs):
                for k in range(count):
                    place = (o * axis.stride + k * axis.dilation) // step + span.skip
                    position = (first + o) * axis.stride - axis.before
                    position += (tap + k) * axis.dilation
                    wanted = position if 0 <= position < axis.size else None
                    assert loaded[place] == wanted, f"seed {seed}"


@pytest.mark.parametrize(
    ("outs", "ins", "group", "tasks"),
    [
        (8, 8, 1, (Task(0, 2, 0, 2),)),
        (8, 8, 8, (Task(0, 1, 0, 1), Task(1, 1, 1, 1))),
        (16, 16, 2, (Task(0, 2, 0, 2), Task(2, 2, 2, 2))),
        (6, 6, 2, (Task(0, 2, 0, 2),)),  # blocks that straddle the groups read everything
        (12, 24, 2, (Task(0, 1, 0, 3), Task(1, 1, 0, 6), Task(2, 1, 3, 3))),
    ],
)
def test_tasks_join_blocks_with_equal_inputs(
    outs: int, ins: int, group: int, tasks: tuple[Task, ...]
) -> None:
    layer = conv_layer(np.random.default_rng(0), shape=(1, ins, 2, 2), outs=outs, group=group)
    assert Geometry.of(layer, SMALL).tasks == tasks


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"out_shape": (1, 3, 5, 6)}, r"conv: input .* give an output of \(1, 3, 6, 6\), got"),
        ({"group": 2}, r"conv: weight .* with group 2 needs 8 input channels, got 4"),
        ({"dilations": (0, 1)}, "conv: pads must be 0 or more and dilations and group positive"),
        ({"strides": (1, 0)}, "conv: all sizes must be positive"),
    ],
)
def test_contradictions_are_refused(change: dict[str, object], text: str) -> None:
    layer = conv_layer(np.random.default_rng(0), shape=(1, 4, 6, 6), outs=3)
    with pytest.raises(CompileError, match=text):
        Geometry.of(replace(layer, **change), SMALL)  # pyright: ignore[reportArgumentType]  # by name


def test_resident_data_is_loaded_once() -> None:
    assert assign_slots("abcabc", 3) == [
        (0, True), (1, True), (2, True), (0, False), (1, False), (2, False),
    ]  # fmt: skip


def test_streaming_data_takes_slots_in_turn_from_the_first_given() -> None:
    assert [slot for slot, _ in assign_slots("abcdef", 2, 1)] == [1, 0, 1, 0, 1, 0]


def test_the_farthest_next_use_goes_but_never_the_data_just_used() -> None:
    # at d: c was just used, of a and b the one needed later (b) goes
    assert assign_slots("abcdab", 3)[3] == (1, True)
    assert assign_slots("abcdab", 3)[4] == (0, False)


@pytest.mark.parametrize("seed", range(30))
def test_data_is_in_its_slot_when_used(seed: int) -> None:
    rng = random.Random(seed)
    keys = [rng.randrange(6) for _ in range(60)]
    slots: dict[int, int] = {}
    for key, (slot, load) in zip(keys, assign_slots(keys, rng.randint(1, 6)), strict=True):
        if load:
            slots[slot] = key
        assert slots[slot] == key, f"seed {seed}"


@pytest.mark.parametrize("config", small_configs().values(), ids=small_configs())
@pytest.mark.parametrize("seed", range(8))
def test_every_tiling_stays_inside_the_memories(seed: int, config: CoreConfig) -> None:
    layer = random_layer(np.random.default_rng(seed), largest=8)
    geometry = Geometry.of(layer, config)
    if geometry.pads_in_memory:
        geometry = geometry.in_memory()
    rng, layout = random.Random(seed), config.layout
    found = candidates(geometry, config)
    assert found is not None
    for number in rng.sample(range(len(found)), min(len(found), 6)):
        tiling, buffers = found[number]
        stored = 0
        for step in unroll(0, geometry, tiling, buffers, Placement()):
            chunk = step.input
            assert chunk.elements(0, step.chunk.ins[1]).stop <= layout.inp_depth
            assert chunk.rows.loaded * chunk.pitch <= chunk.plane
            assert step.weight.base + step.weight.count <= layout.wgt_depth
            assert step.acc + step.tile.positions <= layout.acc_depth
            pads = chunk.rows.before, chunk.rows.after, chunk.cols.before, chunk.cols.after
            assert max(pads) <= LOAD_PAD_MAX
            stored += step.store_blocks * step.tile.positions
        assert stored == geometry.positions * sum(task.outs for task in geometry.tasks), tiling


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    layer = conv_layer(
        np.random.default_rng(0), shape=(1, 4, 3, 70), outs=4, kernel=(3, 65), name="wide"
    )
    text = r"wide: one output .* needs 65 input and 65 weight elements .* holds 64 and 32"
    with pytest.raises(CompileError, match=text):
        choose_tiling(Geometry.of(layer, SMALL), SMALL, layer.name, trial_cycles)


def test_tall_kernels_are_cut_into_rows() -> None:
    layer = conv_layer(np.random.default_rng(0), shape=(1, 4, 12, 12), outs=4, kernel=(9, 9))
    tiling, _ = choose_tiling(Geometry.of(layer, SMALL), SMALL, layer.name, trial_cycles)
    assert tiling.taps < 9


def test_buffers_refuse_a_tile_larger_than_memory() -> None:
    layer = conv_layer(np.random.default_rng(0), shape=(1, 16, 16, 16), outs=16)
    geometry = Geometry.of(layer, SMALL)
    tile = Tiling(rows=4, cols=4, outs=4, ins=4, taps=1, outs_outer=False)
    assert buffers_of(geometry, tile, SMALL.layout) is not None
    assert buffers_of(geometry, replace(tile, rows=16), SMALL.layout) is None
