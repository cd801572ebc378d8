"""GEMM: right for any order of accumulators, at one tile product per cycle."""

import random
from typing import Any

import pytest
from bench.execute import SMALL, ExecuteBench, small_config

from vitral.config import CoreConfig
from vitral.isa import Cause, Gemm, Uop

ORDERS = {
    "same": [3] * 12,
    "all different": list(range(12)),
    "pairs": [0, 0, 1, 1, 2, 2, 0, 0],
    "two in turn": [0, 1] * 6,
    "two in turn, one bank": [8, 9] * 6,
    "three in turn": [0, 1, 2] * 4,
    "four in turn": [0, 1, 2, 3] * 3,
    "back after one": [5, 5, 6, 5, 5, 7, 6, 5],
}


def _uops(order: list[int]) -> list[Uop]:
    return [Uop(dst=dst, src=(5 * n) % 16, wgt=(7 * n + 3) % 16) for n, dst in enumerate(order)]


def _whole(order: list[int], **flags: Any) -> Gemm:
    return Gemm(uop_end=len(order), iter_out=1, iter_in=1, **flags)


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("flags", [{}, {"overwrite": True}, {"reset": True}], ids=str)
def test_any_order_of_accumulators(order: list[int], flags: dict[str, bool]) -> None:
    bench = ExecuteBench(SMALL, _uops(order))
    program = [_whole(order, **flags)]
    result = bench.run(program)
    assert result.acc == bench.expected(program)
    if "reset" not in flags:
        first = result.gemm_cycles[0]
        assert result.gemm_cycles == list(range(first, first + len(order)))


@pytest.mark.parametrize(
    "config",
    [
        small_config(block=8),
        small_config(block=16),
        small_config(block=4, batch=2),
        small_config(block=8, batch=2, acc_banks=1),
        small_config(block=4, acc_banks=2, batch=4),
    ],
    ids=lambda config: f"{config.batch}x{config.block}, {config.acc_banks} banks",
)
def test_shapes(config: CoreConfig) -> None:
    order = ORDERS["back after one"]
    bench = ExecuteBench(config, _uops(order), seed=4)
    program = [_whole(order)]
    assert bench.run(program).acc == bench.expected(program)


def test_loops_add_their_factors() -> None:
    bench = ExecuteBench(SMALL, [Uop(dst=1, src=2, wgt=3), Uop(dst=2, src=0, wgt=1)])
    program = [
        Gemm(
            uop_end=2,
            iter_out=3,
            iter_in=4,
            dst_factor_out=8,
            dst_factor_in=2,
            src_factor_out=4,
            src_factor_in=1,
            wgt_factor_out=1,
            wgt_factor_in=3,
        )
    ]
    assert bench.run(program).acc == bench.expected(program)


def test_no_bubble_between_instructions() -> None:
    order = [0, 1, 0, 1, 1, 0]
    bench = ExecuteBench(SMALL, _uops(order))
    program = [
        _whole(order),
        Gemm(uop_end=1, iter_out=1, iter_in=1),
        Gemm(uop_end=1, iter_out=1, iter_in=1, overwrite=True),
        Gemm(uop_bgn=1, uop_end=2, iter_out=1, iter_in=3, dst_factor_in=1),
        _whole(order),
    ]
    result = bench.run(program)
    assert result.acc == bench.expected(program)
    assert len(result.gemm_cycles) == 17
    assert result.gemm_cycles[-1] - result.gemm_cycles[0] == 16
    assert len(result.retired) == len(program)


def test_retires_soon_after_the_last_product() -> None:
    bench = ExecuteBench(SMALL, _uops([0]))
    result = bench.run([_whole([0])])
    assert result.retired[0] - result.gemm_cycles[0] <= 4


def test_nothing_to_do_retires_in_order() -> None:
    order = [0, 1, 2]
    bench = ExecuteBench(SMALL, _uops(order))
    nothing = [
        Gemm(uop_bgn=2, uop_end=2, iter_out=1, iter_in=1),
        Gemm(uop_bgn=3, uop_end=2, iter_out=1, iter_in=1),
        Gemm(uop_end=1, iter_out=0, iter_in=5),
        Gemm(uop_end=1, iter_out=5, iter_in=0),
    ]
    program = [_whole(order), *nothing, None, _whole(order)]
    result = bench.run(program)
    assert result.acc == bench.expected([insn for insn in program if insn])
    assert len(result.retired) == len(program)
    assert result.gemm_cycles == [*range(2, 5), *range(10, 13)]


OVERFLOWS = {
    "dst": (Gemm(uop_end=1, iter_out=1, iter_in=3, dst_factor_in=16), False),
    "dst, far": (Gemm(uop_end=1, iter_out=99, iter_in=1, dst_factor_out=31), False),
    "dst of a reset": (
        Gemm(uop_end=1, iter_out=1, iter_in=3, dst_factor_in=16, reset=True),
        False,
    ),
    "src": (Gemm(uop_end=1, iter_out=1, iter_in=17, src_factor_in=1), False),
    "src of a reset": (Gemm(uop_end=1, iter_out=1, iter_in=17, src_factor_in=1, reset=True), True),
    "wgt": (Gemm(uop_end=1, iter_out=2, iter_in=16, wgt_factor_out=1, wgt_factor_in=1), False),
    "wgt of a reset": (
        Gemm(uop_end=1, iter_out=2, iter_in=16, wgt_factor_in=1, wgt_factor_out=1, reset=True),
        True,
    ),
    "unused step past the end": (Gemm(uop_end=1, iter_out=1, iter_in=1, dst_factor_in=31), True),
    "micro-op": (Gemm(uop_bgn=31, uop_end=33, iter_out=1, iter_in=1), False),
    "last micro-op": (Gemm(uop_bgn=30, uop_end=32, iter_out=1, iter_in=1), True),
    "all legal": (
        Gemm(uop_end=1, iter_out=1, iter_in=16, dst_factor_in=2, src_factor_in=1, wgt_factor_in=1),
        True,
    ),
}


@pytest.mark.parametrize(("insn", "legal"), OVERFLOWS.values(), ids=OVERFLOWS)
def test_index_overflow(insn: Gemm, legal: bool) -> None:
    bench = ExecuteBench(SMALL, [Uop()] * 32)
    program = [_whole([0]), insn]
    result = bench.run(program)
    if legal:
        assert result.fault is None
        assert result.acc == bench.expected(program)
    else:
        assert result.fault == (Cause.INDEX_OVERFLOW, 1)


@pytest.mark.parametrize("seed", range(3))
def test_store_and_load_only_cost_cycles(seed: int) -> None:
    """Reads and writes of other clients in the banks that GEMM uses."""
    rng = random.Random(seed)
    order = [rng.randrange(6) for _ in range(30)]
    bench = ExecuteBench(SMALL, _uops(order), seed=seed)
    program = [_whole(order), _whole(order, overwrite=True), _whole(order)]
    result = bench.run(
        program,
        store=lambda cycle: rng.choice([None, 6, 7, 6, 14]),
        load=lambda cycle: (30, bench.acc[30]) if rng.random() < 0.3 else None,
    )
    assert result.acc == bench.expected(program), f"seed {seed}"
    assert len(result.retired) == 3
    assert len(result.stored) > 20
    assert all(lanes == bench.acc[row] for row, lanes in result.stored), f"seed {seed}"


def test_store_is_not_starved() -> None:
    """GEMM wants bank 0 in every cycle; so does the store stage, for ever."""
    order = list(range(6)) * 5
    bench = ExecuteBench(SMALL, _uops(order))
    result = bench.run([_whole(order)], store=lambda cycle: 7)
    assert result.acc == bench.expected([_whole(order)])
    assert len(result.stored) >= len(order) // 4
    assert result.gemm_cycles[-1] - result.gemm_cycles[0] < 1.5 * len(order)
