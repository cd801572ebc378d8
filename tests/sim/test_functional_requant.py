"""Native requantisation against its definition, at the edges of every operand."""

import numpy as np
import pytest
from programs import CONFIGS, assembled

from vitral.arithmetic import requantize
from vitral.config import CoreConfig
from vitral.isa import Advance, InstructionSet, Rounding, Store
from vitral.program import OnChip
from vitral.sim.functional import FunctionalSimulator

LANE = np.dtype(
    [
        ("bias", "<i4"),
        ("mult", "<u4"),
        ("shift", "u1"),
        ("spare", "u1"),
        ("zero_point", "<i2"),
        ("low", "<i2"),
        ("high", "<i2"),
    ]
)
NAMES = ("bias", "mult", "shift", "zero_point", "low", "high")
MIN, MAX = -(2**31), 2**31 - 1
ACC_EDGES = np.array(
    [0, 1, -1, 2, 3, 5, 7, 127, 128, 255, MIN, MIN + 1, MAX, MAX - 1]
    + [sign * (2**k + d) for k in (22, 23, 24, 25, 30) for d in (-1, 0, 1) for sign in (-1, 1)]
)
MULT_EDGES = (0, 1, 2, 3, 2**23, 2**23 + 1, 2**24 - 1, 0xAAAAAB)
WIDE_MULTS = (2**24, 2**24 + 1, 2**30, 2**31 - 1)
SHIFTS = (0, 1, 2, 8, 22, 23, 24, 25, 30, 31, 32, 33, 40, 47, 48, 55, 62, 63, 64, 65, 100, 125, 126,
          127, 128, 149, 150, 255)  # fmt: skip


def lanes_of(config: CoreConfig, rng: np.random.Generator, mults: tuple[int, ...]) -> np.ndarray:
    """(depth, block) lanes: edges mixed with random numbers.

    In half of the entries no sum wraps in most lanes, and all shifts are those of float32 numbers.
    """
    shape = (config.param_depth, config.block)
    lanes = np.frombuffer(rng.bytes(config.param_depth * config.block * 16), LANE).copy()
    lanes = lanes.reshape(shape)
    lanes["bias"] = np.where(rng.random(shape) < 0.5, rng.choice((0, 1, -1, MIN, MAX), shape),
                             lanes["bias"])  # fmt: skip
    random_mult = rng.integers(0, max(mults) + 1, shape)
    lanes["mult"] = np.where(rng.random(shape) < 0.5, rng.choice(mults, shape), random_mult)
    lanes["shift"] = rng.choice(SHIFTS, shape)
    calm = rng.random(shape[0]) < 0.5
    lanes["bias"][calm] >>= rng.choice((1, 2, 8, 24))
    lanes["shift"][calm] = rng.choice([s for s in SHIFTS if s <= 126], (calm.sum(), shape[1]))
    lanes["zero_point"] = rng.choice((0, 0, 3, -128, 127, -32768, 32767), shape)
    whole = rng.random(shape) < 0.7
    lanes["low"] = np.where(whole, -32768, lanes["low"])
    lanes["high"] = np.where(whole, 32767, lanes["high"])
    return lanes


def check(config: CoreConfig, rounding: Rounding, mults: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    onchip = OnChip.random(config, rng)
    lanes = lanes_of(config, rng, mults)
    onchip.param[:] = lanes.view(np.uint8).reshape(onchip.param.shape)
    edges = rng.choice(ACC_EDGES, onchip.acc.shape)
    onchip.acc[:] = np.where(rng.random(onchip.acc.shape) < 0.5, edges, onchip.acc)
    onchip.acc[::2] >>= 2
    count = min(config.param_depth, 64)
    insn = Store(
        y_size=1,
        x_size=count,
        requant=True,
        rounding=rounding,
        advance=Advance.ELEMENT,
        param_base=config.param_depth - count,
    )
    case = assembled([InstructionSet.of(config).encode(insn), 3], config=config)
    assert FunctionalSimulator(config).run(case.launch, case.dram, onchip=onchip).ok
    entry = lanes[config.param_depth - count :][:, None, :]
    want = requantize(
        onchip.acc[:count],
        **{name: entry[name].astype(np.int64) for name in NAMES},
        rounding=rounding,
    ).astype(np.int8)
    got = case.out(want.size).reshape(want.shape)
    wrong = np.argwhere(got != want)
    shown = [(onchip.acc[tuple(w)], entry[w[0], 0, w[2]]) for w in wrong[:3]]
    assert not shown, f"seed {seed}: {shown}"


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("name", ["default", "batch2", "block32"])
def test_edges(name: str, rounding: Rounding) -> None:
    for seed in range(20):
        check(CONFIGS[name], rounding, MULT_EDGES, seed)


@pytest.mark.parametrize("rounding", Rounding)
def test_wide_multipliers(rounding: Rounding) -> None:
    for seed in range(20):
        check(CONFIGS["default"], rounding, MULT_EDGES + WIDE_MULTS, seed)
