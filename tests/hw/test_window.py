"""WINDOW: sums of products and maxima over several inputs, at one operation per cycle."""

import random
from dataclasses import replace
from typing import Any

import pytest
from bench.execute import SMALL, ExecuteBench, small_config

from vitral.config import CoreConfig
from vitral.isa import Cause, Gemm, Uop, Window

ORDERS = {
    "same": [3] * 9,
    "all different": list(range(9)),
    "two in turn": [0, 1] * 5,
    "two in turn, one bank": [8, 9] * 5,
    "back after one": [5, 5, 6, 5, 5, 7, 6, 5],
}
FLAGS = {
    "sum": {},
    "maximum": {"maximum": True},
    "sum anew": {"overwrite": True},
    "maximum anew": {"maximum": True, "overwrite": True},
}


def _uops(order: list[int], last: int = 15) -> list[Uop]:
    """Inputs up to element `last`, as weights all."""
    return [
        Uop(dst=dst, src=(5 * n) % (last + 1), wgt=(7 * n + 3) % 16) for n, dst in enumerate(order)
    ]


def _whole(order: list[int], **flags: bool) -> Window:
    return Window(uop_end=len(order), iter_out=1, iter_in=1, **flags)


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_any_order_of_accumulators(order: list[int], flags: dict[str, bool]) -> None:
    bench = ExecuteBench(SMALL, _uops(order, last=6), window=(4, 3))
    program = [_whole(order, **flags)]
    result = bench.run(program)
    assert result.acc == bench.expected(program)
    first = result.gemm_cycles[0]
    assert result.gemm_cycles == list(range(first, first + len(order)))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("taps", [1, 2, 3, 4])
@pytest.mark.parametrize("distance", [1, 5])
def test_taps_and_distance(flags: dict[str, bool], taps: int, distance: int) -> None:
    order = [0, 0, 1, 2, 1]
    last = 15 - (taps - 1) * distance
    bench = ExecuteBench(SMALL, _uops(order, last), window=(taps, distance), seed=taps)
    program = [_whole(order, **flags)]
    assert bench.run(program).acc == bench.expected(program)


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize(
    "config",
    [
        small_config(block=8),
        small_config(block=16),
        small_config(block=4, batch=2),
        small_config(block=8, batch=2, acc_banks=1),
    ],
    ids=lambda config: f"{config.batch}x{config.block}, {config.acc_banks} banks",
)
def test_shapes(config: CoreConfig, flags: dict[str, bool]) -> None:
    order = ORDERS["back after one"]
    bench = ExecuteBench(config, _uops(order, last=6), seed=4, window=(4, 3))
    program = [_whole(order, **flags)]
    assert bench.run(program).acc == bench.expected(program)


def test_extremes() -> None:
    """-128 everywhere: the largest product, and a maximum that no default value may win."""
    bench = ExecuteBench(SMALL, _uops([0, 1, 1], last=6), window=(3, 3))
    bench.inp = [[-128] * len(lanes) for lanes in bench.inp]
    bench.wgt = [[-128] * len(lanes) for lanes in bench.wgt]
    bench.acc = [[-(1 << 31)] * len(lanes) for lanes in bench.acc]
    for flags in FLAGS.values():
        program = [_whole([0, 1, 1], **flags)]
        result = bench.run(program).acc
        assert result == bench.expected(program)
        assert flags != FLAGS["maximum"] or result[1] == [-128] * len(result[1])


def test_no_bubble_between_windows_and_products() -> None:
    order = [0, 1, 0, 1, 1, 0]
    bench = ExecuteBench(SMALL, _uops(order, last=6), window=(2, 9))
    gemm = Gemm(uop_end=len(order), iter_out=1, iter_in=1)
    program = [
        _whole(order),
        gemm,
        _whole(order, maximum=True),
        replace(gemm, reset=True, uop_end=1),
        _whole(order),
    ]
    result = bench.run(program)
    assert result.acc == bench.expected(program)
    spans = [c - result.gemm_cycles[0] for c in result.gemm_cycles]
    assert spans == [*range(18), *range(19, 25)], "only the reset takes its cycle without a product"


OVERFLOWS = {
    "last tap inside": ({"src_factor_in": 1, "iter_in": 7}, (4, 3), True),
    "last tap past": ({"src_factor_in": 1, "iter_in": 8}, (4, 3), False),
    "last of two past": ({"src_factor_in": 1, "iter_in": 16}, (2, 1), False),
    "far past": ({"iter_in": 1}, (4, 32767), False),
    "far past, but one tap": ({"iter_in": 1}, (1, 32767), True),
    "weights": ({"wgt_factor_in": 1, "iter_in": 17}, (1, 1), False),
    "weights of a maximum": ({"wgt_factor_in": 1, "iter_in": 17, "maximum": True}, (1, 1), True),
    "taps of a maximum": ({"src_factor_in": 15, "iter_in": 2, "maximum": True}, (2, 1), False),
    "accumulators": ({"dst_factor_in": 16, "iter_in": 3}, (2, 1), False),
}


@pytest.mark.parametrize(("fields", "window", "legal"), OVERFLOWS.values(), ids=OVERFLOWS)
def test_index_overflow(fields: dict[str, Any], window: tuple[int, int], legal: bool) -> None:
    bench = ExecuteBench(SMALL, [Uop()], window=window)
    program = [Gemm(uop_end=1, iter_out=1, iter_in=1), Window(uop_end=1, iter_out=1, **fields)]
    result = bench.run(program)
    if legal:
        assert result.fault is None
    else:
        assert result.fault == (Cause.INDEX_OVERFLOW, 1)


@pytest.mark.parametrize("seed", range(3))
def test_store_and_load_only_cost_cycles(seed: int) -> None:
    """Reads and writes of other clients in the banks that the windows use."""
    rng = random.Random(seed)
    order = [rng.randrange(6) for _ in range(30)]
    bench = ExecuteBench(SMALL, _uops(order, last=10), seed=seed, window=(2, 5))
    program = [_whole(order, **flags) for flags in FLAGS.values()]
    result = bench.run(
        program,
        store=lambda cycle: rng.choice([None, 6, 7, 6, 14]),
        load=lambda cycle: (30, bench.acc[30]) if rng.random() < 0.3 else None,
    )
    assert result.acc == bench.expected(program), f"seed {seed}"
    assert len(result.retired) == len(program)
