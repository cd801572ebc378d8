"""WINDOW against Python integers, one lane and one tap at a time."""

import random
from typing import Any

import numpy as np
import pytest
from engines import ENGINES, EVERY, engine
from programs import CONFIGS, assembled

from vitral.config import CoreConfig
from vitral.isa import (
    Cause,
    Config,
    Instruction,
    InstructionSet,
    Stage,
    Uop,
    Window,
    window_value,
)
from vitral.program import OnChip, Outcome

OPERANDS = ("dst", "src", "wgt")
MODES = {
    "add": {},
    "overwrite": {"overwrite": True},
    "maximum": {"maximum": True},
    "maximum overwrite": {"maximum": True, "overwrite": True},
}


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def expected(insn: Window, uops: list[Uop], onchip: OnChip, taps: int, distance: int) -> np.ndarray:
    """ACC after the instruction, in the order that defines it."""
    acc = onchip.acc.astype(object)
    batch, block = acc.shape[1:]
    for i in range(insn.iter_out):
        for j in range(insn.iter_in):
            for uop in uops:
                dst, src, wgt = (
                    getattr(uop, name)
                    + i * getattr(insn, f"{name}_factor_out")
                    + j * getattr(insn, f"{name}_factor_in")
                    for name in OPERANDS
                )
                for b in range(batch):
                    for lane in range(block):
                        x = [int(onchip.inp[src + n * distance, b, lane]) for n in range(taps)]
                        old = int(acc[dst, b, lane])
                        if insn.maximum:
                            new = max(x) if insn.overwrite else max(old, *x)
                        else:
                            w = [int(onchip.wgt[wgt, n, lane]) for n in range(taps)]
                            new = sum(a * c for a, c in zip(x, w, strict=True))
                            new += 0 if insn.overwrite else old
                        acc[dst, b, lane] = wrapped(new)
    return acc.astype(np.int32)


def configure(taps: int, distance: int) -> Config:
    return Config(stage=Stage.COMPUTE, register=1, value=window_value(taps, distance))


def run(
    name: str, config: CoreConfig, insns: list[Instruction], uops: list[Uop], onchip: OnChip
) -> Outcome:
    isa = InstructionSet.of(config)
    onchip.uop[: len(uops)] = [isa.encode_uop(uop) for uop in uops]
    case = assembled([*(isa.encode(insn) for insn in insns), 3], config=config)
    return engine(name, config).run(case.launch, case.dram, onchip=onchip)


FORMS = {
    "one": ((1, 1), (0, 0), (0, 0), (0, 0)),
    "rows of a plane": ((3, 4), (4, 1), (2, 1), (0, 0)),
    "everything in one element": ((3, 5), (0, 0), (1, 4), (2, 1)),
    "sums come back later": ((4, 6), (1, 1), (2, 1), (0, 1)),
}

CORES = [
    *((name, "default") for name in EVERY),
    *((name, config) for name in ENGINES for config in ("block4", "batch2", "block32")),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("taps", [1, 2, 3, 4])
@pytest.mark.parametrize(("name", "config"), CORES)
def test_loops(name: str, config: str, taps: int, form: str, mode: str) -> None:
    rng = random.Random(f"{config} {taps} {form} {mode}")
    core = CONFIGS[config]
    onchip = OnChip.random(core, np.random.default_rng(rng.getrandbits(32)))
    onchip.acc[:, :, ::2] = rng.choice((2**31 - 1, -(2**31), 100, -100))  # sums wrap, maxima tie
    (outer, inner), dst, src, wgt = FORMS[form]
    insn = Window(
        uop_end=4,
        iter_out=outer,
        iter_in=inner,
        dst_factor_out=dst[0],
        dst_factor_in=dst[1],
        src_factor_out=src[0],
        src_factor_in=src[1],
        wgt_factor_out=wgt[0],
        wgt_factor_in=wgt[1],
        **MODES[mode],
    )
    uops = [Uop(rng.choice((3, 3, 4)), rng.randrange(5), rng.randrange(5)) for _ in range(4)]
    distance = rng.choice((1, 3, 5, 7, 9))
    want = expected(insn, uops, onchip, taps, distance)
    outcome = run(name, core, [configure(taps, distance), insn], uops, onchip)
    assert outcome.ok, outcome.message
    assert np.array_equal(onchip.acc, want)


@pytest.mark.parametrize("inputs", [-128, 127])
@pytest.mark.parametrize("name", EVERY)
def test_extreme_products(name: str, inputs: int) -> None:
    """Four products of -128 by -128, 2**16, are exact; the sum with ACC wraps."""
    config = CONFIGS["default"]
    onchip = OnChip.zeros(config)
    onchip.inp[:4], onchip.wgt[0, :4] = inputs, -128
    onchip.acc[0] = 2**31 - 1
    insns = [configure(4, 1), Window(uop_end=1, iter_out=1, iter_in=1)]
    assert run(name, config, insns, [Uop()], onchip).ok
    assert set(onchip.acc[0].ravel().tolist()) == {wrapped(2**31 - 1 - 4 * 128 * inputs)}


@pytest.mark.parametrize("name", ENGINES)
def test_rows_of_the_weights_beyond_the_taps_are_not_used(name: str) -> None:
    config = CONFIGS["block4"]
    onchip = OnChip.zeros(config)
    onchip.inp[:4], onchip.wgt[0] = 1, np.array([1, 10, 50, 100])[:, None]
    insns = [configure(3, 1), Window(uop_end=1, iter_out=1, iter_in=1)]
    assert run(name, config, insns, [Uop()], onchip).ok
    assert set(onchip.acc[0].ravel().tolist()) == {61}


@pytest.mark.parametrize("name", EVERY)
def test_one_tap_at_launch_and_each_config_holds_until_the_next(name: str) -> None:
    config = CONFIGS["default"]
    onchip = OnChip.zeros(config)
    onchip.inp[:8] = np.arange(1, 9)[:, None, None]
    onchip.wgt[0] = 1
    step = Window(uop_end=1, iter_out=1, iter_in=1)
    uops = [Uop(dst=n) for n in range(4)]
    insns: list[Instruction] = [
        step,
        configure(2, 3),
        Window(uop_bgn=1, uop_end=2, iter_out=1, iter_in=1),
        configure(4, 1),
        configure(3, 2 * 1 + 1),
        Window(uop_bgn=2, uop_end=3, iter_out=1, iter_in=1),
        Config(stage=Stage.COMPUTE, register=0, value=5),
        Window(uop_bgn=3, uop_end=4, iter_out=1, iter_in=1),
    ]
    assert run(name, config, insns, uops, onchip).ok
    assert onchip.acc[:4, 0, 0].tolist() == [1, 1 + 4, 1 + 4 + 7, 1 + 4 + 7]
    # the register is cleared at launch
    onchip.acc[0] = 0
    assert run(name, config, [step], uops, onchip).ok
    assert onchip.acc[0, 0, 0] == 1


BOUNDS = [
    ("last tap of the last element", 4, 3, {"src": 2038}, {}, True),
    ("one tap past INP", 4, 3, {"src": 2039}, {}, False),
    ("one tap past INP for a maximum", 4, 3, {"src": 2039}, {"maximum": True}, False),
    ("one tap alone", 1, 32767, {"src": 2047}, {}, True),
    ("far tap", 2, 32767, {"src": 0}, {}, False),
    ("far tap that fits", 2, 2047, {"src": 0}, {}, True),
    ("past INP by a factor", 2, 1, {"src": 2045}, {"iter_in": 3, "src_factor_in": 1}, False),
    ("end of INP by a factor", 2, 1, {"src": 2044}, {"iter_in": 3, "src_factor_in": 1}, True),
    ("past ACC", 1, 1, {"dst": 2047}, {"iter_in": 2, "dst_factor_in": 1}, False),
    ("past WGT", 1, 1, {"wgt": 1023}, {"iter_in": 2, "wgt_factor_in": 1}, False),
    ("past WGT, not looked at", 1, 1, {"wgt": 1023},
     {"iter_in": 2, "wgt_factor_in": 1, "maximum": True}, True),
    ("no iterations", 4, 3, {"src": 2047}, {"iter_out": 0}, True),
]  # fmt: skip


@pytest.mark.parametrize(("taps", "distance", "uop", "fields", "fine"), [b[1:] for b in BOUNDS],
                         ids=[b[0] for b in BOUNDS])  # fmt: skip
@pytest.mark.parametrize("name", EVERY)
def test_bounds(name: str, taps: int, distance: int, uop: dict, fields: dict, fine: bool) -> None:
    config = CONFIGS["default"]
    values: dict[str, Any] = {"uop_end": 1, "iter_out": 1, "iter_in": 1} | fields
    insn = Window(**values)
    insns = [configure(taps, distance), insn]
    outcome = run(name, config, insns, [Uop(**uop)], OnChip.zeros(config))
    wanted = (Cause.NONE, 0) if fine else (Cause.INDEX_OVERFLOW, 1)
    assert (outcome.cause, outcome.index) == wanted
