"""What a profile says about each layer, from what a device counted."""

import pytest
from hand_made import double_module, mixed_module

from vitral.config import CoreConfig
from vitral.isa import Cause
from vitral.program import Outcome
from vitral.runtime.module import Layer, Segment
from vitral.runtime.profile import layer_marks, roofline_cycles, segment_profile, stalls_of


def layer(name: str = "l", macs: int = 0, read: int = 0, write: int = 0, last: int = 0) -> Layer:
    return Layer(
        name=name, op="conv", macs=macs, first=0, last=last, read_bytes=read, write_bytes=write
    )


def segment(*layers: Layer) -> Segment:
    return Segment(
        name="s", insn_offset=0, insn_count=9, inputs=(), outputs=(), layers=tuple(layers)
    )


@pytest.mark.parametrize(
    ("one", "data_bits", "cycles"),
    [
        (layer(macs=256 * 100), 64, 100),
        (layer(macs=256 * 100 + 1), 64, 101),
        (layer(macs=256, read=801), 64, 101),
        (layer(macs=256, read=801), 128, 51),
        (layer(macs=256, read=8, write=1600), 64, 200),
    ],
)
def test_roofline_is_the_slowest_of_array_and_bus(one: Layer, data_bits: int, cycles: int) -> None:
    assert roofline_cycles(one, CoreConfig(data_bits=data_bits)) == cycles


def test_layers_share_the_cycles_of_a_program() -> None:
    parts = segment(layer("a", 25600, last=3), layer("b", 51200, last=7))
    counters = {"gemm": 5, "load_wait_next": 3, "store_wait_memory": 4, "load_busy": 9}
    outcome = Outcome(Cause.NONE, 0, cycles=500, counters=counters, marks={2: 200, 6: 490})
    first, second = segment_profile(parts, outcome, [2, 6], CoreConfig(), "tsim", 0.5)
    assert (first.cycles, second.cycles) == (200, 300)
    assert first.utilisation == pytest.approx(25600 / 256 / 200)
    assert first.stalls == {"load_wait_next": 3, "store_wait_memory": 4}
    assert (first.seconds, second.seconds) == (0.5, 0.0)


def test_layers_share_what_was_counted() -> None:
    parts = segment(layer("a", last=3), layer("b", last=7), layer("c", last=9))
    marks = [2, 6, 8]
    counted = {
        2: {"load_busy": 10, "load_wait_next": 1, "read_beats": 7},
        6: {"load_busy": 15, "load_wait_next": 5, "read_beats": 7},
    }
    total = {"gemm": 3, "load_busy": 16, "load_wait_next": 9, "read_beats": 8}
    outcome = Outcome(
        Cause.NONE, 0, cycles=500, counters=total, marks={2: 200, 6: 490}, mark_counters=counted
    )
    layers = segment_profile(parts, outcome, marks, CoreConfig(), "tsim", 0.0)
    assert [entry.counters["load_busy"] for entry in layers] == [10, 5, 1]
    assert [entry.stalls for entry in layers] == [{"load_wait_next": n} for n in (1, 4, 4)]
    assert [entry.counters["read_beats"] for entry in layers] == [7, 0, 1]
    assert all("gemm" not in entry.counters for entry in layers), "known for the program only"


def test_unknown_ends_leave_the_cycles_open() -> None:
    parts = segment(layer("a", last=3), layer("b", last=7))
    outcome = Outcome(Cause.NONE, 0, cycles=500, marks={})
    assert [
        entry.cycles for entry in segment_profile(parts, outcome, [2, 6], CoreConfig(), "tsim", 0.0)
    ] == [None, None]
    alone = segment_profile(segment(layer("a")), outcome, [2], CoreConfig(), "tsim", 0.0)
    assert alone[0].cycles == 500
    none = segment_profile(parts, Outcome(Cause.NONE, 0), [2, 6], CoreConfig(), "fsim", 0.0)
    assert [entry.utilisation for entry in none] == [None, None]


def test_a_layer_ends_with_its_last_product() -> None:
    for module in (double_module(), mixed_module()):
        assert layer_marks(module.segments[0], module) == [2]  # ALU, then STORE and FINISH


def test_only_waiting_is_a_stall() -> None:
    assert stalls_of({"cycles": 1, "compute_idle": 2, "compute_wait_push": 3}) == {
        "compute_wait_push": 3
    }
