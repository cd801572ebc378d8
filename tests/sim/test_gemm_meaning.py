"""GEMM against Python integers, one multiplication at a time."""

import random

import numpy as np
import pytest
from engines import ENGINES, engine
from programs import CONFIGS, assembled

from vitral.config import CoreConfig
from vitral.isa import Gemm, InstructionSet, Uop
from vitral.program import OnChip


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def expected(insn: Gemm, uops: list[Uop], onchip: OnChip) -> np.ndarray:
    """ACC after the instruction, in the order that defines it."""
    acc = onchip.acc.astype(object)
    batch, block = acc.shape[1:]
    for i in range(insn.iter_out):
        for j in range(insn.iter_in):
            for uop in uops:
                dst = uop.dst + i * insn.dst_factor_out + j * insn.dst_factor_in
                src = uop.src + i * insn.src_factor_out + j * insn.src_factor_in
                wgt = uop.wgt + i * insn.wgt_factor_out + j * insn.wgt_factor_in
                for b in range(batch):
                    for o in range(block):
                        x, w = onchip.inp[src, b].tolist(), onchip.wgt[wgt, o].tolist()
                        dot = sum(x[n] * w[n] for n in range(block))
                        before = 0 if insn.overwrite else int(acc[dst, b, o])
                        acc[dst, b, o] = 0 if insn.reset else wrapped(before + dot)
    return acc.astype(np.int32)


def check(name: str, config: CoreConfig, insn: Gemm, uops: list[Uop], onchip: OnChip) -> None:
    isa = InstructionSet.of(config)
    onchip.uop[: len(uops)] = [isa.encode_uop(uop) for uop in uops]
    want = expected(insn, uops, onchip)
    case = assembled([isa.encode(insn), 3], config=config)
    outcome = engine(name, config).run(case.launch, case.dram, onchip=onchip)
    assert outcome.ok, outcome.message
    assert np.array_equal(onchip.acc, want)


FORMS = {
    "one": ((1, 1), (0, 0), (0, 0), (0, 0)),
    "weights shared inside": ((2, 7), (7, 1), (1, 2), (3, 0)),
    "weights shared outside": ((9, 2), (1, 0), (1, 3), (0, 1)),
    "everything in one sum": ((3, 5), (0, 0), (1, 4), (2, 1)),
    "interleaved sums": ((4, 6), (1, 1), (2, 1), (0, 1)),
    "sources repeat": ((2, 8), (8, 1), (0, 0), (1, 0)),
    "rows outside, sums inside": ((13, 3), (1, 0), (1, 13), (0, 1)),
    "rows inside, sums outside": ((3, 15), (0, 1), (15, 1), (1, 0)),
    "rows in both, the outer ones nearer": ((3, 5), (1, 3), (1, 3), (0, 0)),
    "rows that meet between the loops": ((3, 4), (2, 1), (3, 1), (0, 0)),
    "many rows with micro-ops far apart": ((1, 23), (0, 5), (0, 1), (0, 0)),
    "weights of their own": ((3, 4), (4, 1), (1, 1), (4, 1)),
    "sums in both": ((3, 4), (0, 0), (4, 1), (4, 1)),
}


@pytest.mark.parametrize("mode", ["add", "reset", "overwrite"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("config", ["block4", "batch2", "block32"])
@pytest.mark.parametrize("name", ENGINES)
def test_loops(name: str, config: str, form: str, mode: str) -> None:
    rng = random.Random(f"{config} {form} {mode}")
    onchip = OnChip.random(CONFIGS[config], np.random.default_rng(rng.getrandbits(32)))
    (outer, inner), dst, src, wgt = FORMS[form]
    insn = Gemm(
        uop_end=4,
        iter_out=outer,
        iter_in=inner,
        dst_factor_out=dst[0],
        dst_factor_in=dst[1],
        src_factor_out=src[0],
        src_factor_in=src[1],
        wgt_factor_out=wgt[0],
        wgt_factor_in=wgt[1],
        reset=mode == "reset",
        overwrite=mode == "overwrite",
    )
    uops = [Uop(rng.choice((3, 3, 4)), rng.randrange(5), rng.randrange(5)) for _ in range(4)]
    check(name, CONFIGS[config], insn, uops, onchip)


@pytest.mark.parametrize("value", [(-128, -128), (-128, 127), (127, 127)])
@pytest.mark.parametrize("name", ENGINES)
def test_extreme_operands_wrap_at_32_bits(name: str, value: tuple[int, int]) -> None:
    config = CONFIGS["block32"]
    onchip = OnChip.zeros(config)
    onchip.inp[:], onchip.wgt[:] = value
    onchip.acc[0] = 2**31 - 5
    onchip.acc[1] = -(2**31) + 5
    insn = Gemm(uop_end=2, iter_out=9, iter_in=9)
    check(name, config, insn, [Uop(0, 1, 2), Uop(1, 0, 0)], onchip)
