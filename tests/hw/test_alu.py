"""ALU: every operation at its edges, hazards, rates, and turns with GEMM."""

import random
from typing import Any

import pytest
from bench.compute_model import alu_lane
from bench.execute import SMALL, ExecuteBench, small_config

from vitral.config import CoreConfig
from vitral.isa import Alu, AluOp, Cause, Gemm, Uop

LOW, HIGH = -(1 << 31), (1 << 31) - 1

# operation, acc[dst], other operand, result (CASES of the field: shifts beyond 31, wrapping)
LANES = [
    (AluOp.SHR, -5, 1, -3),
    (AluOp.SHR, -5, 16, -1),
    (AluOp.SHR, -1, 31, -1),
    (AluOp.SHR, HIGH, 31, 0),
    (AluOp.SHR, LOW, 31, -1),
    (AluOp.SHR, 123456, 16, 1),
    (AluOp.SHR, 123456, 0, 123456),
    (AluOp.SHR, LOW, 32, -1),
    (AluOp.SHR, HIGH, 32, 0),
    (AluOp.SHR, -7, 32767, -1),
    (AluOp.SHR, 3, -1, 6),
    (AluOp.SHR, 3, -30, -(1 << 30)),
    (AluOp.SHR, 3, -31, LOW),
    (AluOp.SHR, 3, -32, 0),
    (AluOp.SHR, -1, -33, 0),
    (AluOp.SHR, -1, -32768, 0),
    (AluOp.MAX, -200, -128, -128),
    (AluOp.MAX, LOW, -1, -1),
    (AluOp.MAX, HIGH, -1, HIGH),
    (AluOp.MIN, 300, 127, 127),
    (AluOp.MIN, LOW, 5, LOW),
    (AluOp.MIN, 5, -32768, -32768),
    (AluOp.ADD, 0, -32768, -32768),
    (AluOp.ADD, HIGH, 1, LOW),
    (AluOp.ADD, LOW, -1, HIGH),
    (AluOp.MUL, HIGH, 3, HIGH - 2),
    (AluOp.MUL, LOW, -1, LOW),
    (AluOp.MUL, -3, 5, -15),
    (AluOp.MUL, 123456789, -32768, alu_lane(AluOp.MUL, 123456789, -32768)),
]

# only between accumulators: amounts that no immediate holds
WIDE_LANES = [
    (AluOp.SHR, -7, HIGH, -1),
    (AluOp.SHR, 7, LOW, 0),
    (AluOp.SHR, 7, 1 << 16, 0),
    (AluOp.SHR, 7, -(1 << 16), 0),
    (AluOp.MIN, HIGH, LOW, LOW),
    (AluOp.MAX, HIGH, LOW, HIGH),
    (AluOp.ADD, LOW, LOW, 0),
    (AluOp.MUL, HIGH, HIGH, 1),
    (AluOp.MUL, LOW, LOW, 0),
    (AluOp.MUL, 65537, 65537, 131073),
]


def _operation(op: AluOp, uop: int, **fields: Any) -> Alu:
    return Alu(alu_opcode=op, uop_bgn=uop, uop_end=uop + 1, iter_out=1, iter_in=1, **fields)


@pytest.mark.parametrize("use_imm", [True, False])
def test_lanes(use_imm: bool) -> None:
    """All rows of the table in one program, dst 2n and src 2n + 1."""
    rows = LANES if use_imm else LANES + WIDE_LANES
    bench = ExecuteBench(small_config(acc=128), [Uop(2 * n, 2 * n + 1) for n in range(32)])
    for first in range(0, len(rows), 32):
        program = []
        part = rows[first : first + 32]
        for n, (op, x, y, _) in enumerate(part):
            bench.acc[2 * n], bench.acc[2 * n + 1] = [x] * 4, [y] * 4
            program.append(_operation(op, n, use_imm=use_imm, imm=y if use_imm else 0))
        acc = bench.run(program).acc
        for n, row in enumerate(part):
            assert acc[2 * n] == [row[3]] * 4, row
            assert row[3] == alu_lane(*row[:3]), row


@pytest.mark.parametrize("op", AluOp)
@pytest.mark.parametrize("block", [4, 8])
def test_every_lane_has_its_own_operands(op: AluOp, block: int) -> None:
    bench = ExecuteBench(small_config(block=block, batch=2), [Uop(3, 20), Uop(5, 6)], seed=9)
    for row in (20, 6):
        bench.acc[row] = [lane % 70 - 35 for lane in bench.acc[row]]
    program = [_operation(op, 0), _operation(op, 1)]
    assert bench.run(program).acc == bench.expected(program)


RATES = {
    "immediate": (Alu(use_imm=True, imm=1, dst_factor_in=1), 1.0),
    "two banks": (Alu(dst_factor_in=1, src_factor_in=1), 1.0),
    "one bank": (Alu(dst_factor_in=2, src_factor_in=2), 2.0),
}


@pytest.mark.parametrize(("form", "cycles"), RATES.values(), ids=RATES)
def test_rate(form: Alu, cycles: float) -> None:
    src = 1 if cycles == 2 else 8
    bench = ExecuteBench(SMALL, [Uop(0, src)])
    fields = {n: getattr(form, n) for n in ("use_imm", "imm", "dst_factor_in", "src_factor_in")}
    program = [Alu(alu_opcode=AluOp.ADD, uop_end=1, iter_out=1, iter_in=8, **fields)] * 2
    result = bench.run(program)
    assert result.acc == bench.expected(program)
    issued = result.alu_cycles
    assert len(issued) == 16
    assert issued[-1] - issued[0] <= 15 * cycles


HAZARDS = {
    "same dst": [(0, 9), (0, 10), (0, 9)],
    "src is last dst": [(0, 9), (1, 0), (2, 1), (9, 2)],
    "src is dst before last": [(0, 9), (5, 6), (10, 0)],
    "dst is its own src": [(4, 4), (4, 4)],
    "swap-like": [(0, 8), (8, 0), (0, 8)],
}


@pytest.mark.parametrize("op", [AluOp.ADD, AluOp.MUL, AluOp.MIN])
@pytest.mark.parametrize("pairs", HAZARDS.values(), ids=HAZARDS)
def test_hazards(pairs: list[tuple[int, int]], op: AluOp) -> None:
    bench = ExecuteBench(SMALL, [Uop(*pair) for pair in pairs])
    program = [Alu(alu_opcode=op, uop_end=len(pairs), iter_out=1, iter_in=2)] * 2
    result = bench.run(program)
    assert result.acc == bench.expected(program)
    assert len(result.retired) == 2


OVERFLOWS = {
    "dst": (Alu(uop_end=1, iter_out=1, iter_in=33, dst_factor_in=1), False),
    "src": (Alu(uop_end=1, iter_out=1, iter_in=33, src_factor_in=1), False),
    "src with an immediate": (
        Alu(uop_end=1, iter_out=1, iter_in=33, src_factor_in=1, use_imm=True),
        True,
    ),
    "src past INP but not past ACC": (
        Alu(uop_end=1, iter_out=1, iter_in=32, src_factor_in=1),
        True,
    ),
}


@pytest.mark.parametrize(("insn", "legal"), OVERFLOWS.values(), ids=OVERFLOWS)
def test_index_overflow(insn: Alu, legal: bool) -> None:
    bench = ExecuteBench(SMALL, [Uop()] * 32)
    result = bench.run([_operation(AluOp.ADD, 0), insn])
    assert result.fault == (None if legal else (Cause.INDEX_OVERFLOW, 1))


@pytest.mark.parametrize("config", [SMALL, small_config(acc_banks=1)], ids=["4 banks", "1 bank"])
@pytest.mark.parametrize("seed", range(4))
def test_random_turns_of_gemm_and_alu(seed: int, config: CoreConfig) -> None:
    """Micro-ops that both read in their own way, with the store stage and loads in between."""
    rng = random.Random(seed)
    uops = [Uop(rng.randrange(6), rng.randrange(6), 0) for _ in range(8)]
    bench = ExecuteBench(config, uops, seed=seed)
    program = [_random(rng) for _ in range(12)]
    result = bench.run(
        program,
        store=lambda cycle: rng.choice([None, 30, 29, 22]) if seed % 2 else None,
        load=lambda cycle: (31, bench.acc[31]) if seed > 1 and rng.random() < 0.4 else None,
    )
    assert result.acc == bench.expected([insn for insn in program if insn]), f"seed {seed}"
    assert len(result.retired) == len(program)


def _random(rng: random.Random) -> Gemm | Alu | None:
    first = rng.randrange(8)
    loops: dict[str, Any] = {
        "uop_bgn": first,
        "uop_end": rng.randrange(first, 9),
        "iter_out": rng.randrange(3),
        "iter_in": rng.randrange(1, 4),
        "dst_factor_out": rng.randrange(3),
        "dst_factor_in": rng.randrange(3),
        "src_factor_in": rng.randrange(3),
    }
    kind = rng.randrange(8)
    if kind == 0:
        return None
    if kind < 4:
        return Gemm(**loops, wgt_factor_in=1, reset=rng.random() < 0.2, overwrite=kind == 1)
    return Alu(
        **loops,
        alu_opcode=rng.choice(list(AluOp)),
        use_imm=rng.random() < 0.5,
        imm=rng.randrange(-9, 9),
    )
