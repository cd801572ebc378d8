"""Memory contents that random programs start from, and where in DRAM they may read and write."""

import random
from dataclasses import dataclass

import numpy as np

from vitral.config import CoreConfig
from vitral.isa import Memory, Profile
from vitral.program import PAGE, Dram, OnChip
from vitral.registers import BASE_ALIGN

__all__ = ["FLOAT_MULT_BITS", "HOT", "Image", "make_image"]

HOT = 24
"""Elements at either end of a memory that most accesses go to."""

FLOAT_MULT_BITS = 24
NEAR_TIES = 0.6
PARAM_PAGES = 2
FIXED_PAGES = 3
WORK_PAGES = 8
CODE_PAGES = 4


@dataclass(frozen=True)
class Image:
    """Initial contents; areas are (first, end) byte offsets from the start of DRAM.

    The parameters in `params`, and those in the lower half of the on-chip memory, have
    multipliers that fit every rounding mode. `fixed` (which includes `params`) is only read,
    `work` read and written.
    """

    dram: Dram
    onchip: OnChip
    bases: dict[Memory, int]
    code: tuple[int, int]
    params: tuple[int, int]
    fixed: tuple[int, int]
    work: tuple[int, int]


def make_image(config: CoreConfig, profile: Profile, rng: random.Random) -> Image:
    """Random memories for a program of that profile."""
    numpy_rng = np.random.default_rng(rng.getrandbits(32))
    starts = np.cumsum([1, CODE_PAGES, PARAM_PAGES, FIXED_PAGES, WORK_PAGES, 1]) * PAGE
    code, params, fixed, work, guard, end = (int(start) for start in starts)
    base = rng.randrange(1, 1 << 16) * PAGE
    data = np.frombuffer(bytearray(numpy_rng.bytes(end)), np.uint8)
    dram = Dram(base, data)
    data[params:fixed] = _param_bytes(fixed - params, FLOAT_MULT_BITS, numpy_rng)
    _write_uops(data[fixed : fixed + PAGE].view(np.uint32), config, numpy_rng)
    onchip = OnChip.random(config, numpy_rng)
    _write_uops(onchip.uop, config, numpy_rng)
    half = config.param_depth // 2
    for entries, bits in ((onchip.param[:half], FLOAT_MULT_BITS), (onchip.param[half:], 31)):
        entries[:] = _param_bytes(entries.size, bits, numpy_rng).reshape(entries.shape)
    acc = onchip.acc[HOT // 2 :]
    acc >>= numpy_rng.integers(0, 32, acc.shape, np.int32)
    return Image(
        dram=dram,
        onchip=onchip,
        bases=_bases(config, profile, base, base + params, rng),
        code=(code, params),
        params=(params, fixed),
        fixed=(params, work),
        work=(work, guard),
    )


def _bases(
    config: CoreConfig, profile: Profile, dram: int, params: int, rng: random.Random
) -> dict[Memory, int]:
    """Base registers: 0, as VTA programs have them, or anything below the DRAM's start."""
    far = profile is Profile.VITRAL or rng.random() < 0.5
    bases = {
        memory: rng.randrange(dram // BASE_ALIGN) * BASE_ALIGN if far and rng.random() < 0.8 else 0
        for memory in Memory
    }
    # parameter entries of the table must stay whole
    bases[Memory.PARAM] = params - rng.randrange(16) * config.layout.param_bytes
    return bases


def _write_uops(words: np.ndarray, config: CoreConfig, rng: np.random.Generator) -> None:
    """Micro-ops of which most name elements near the start of their memory."""
    layout = config.layout
    low = 0
    for bits in (layout.acc_index_bits, layout.inp_index_bits, layout.wgt_index_bits):
        value = rng.integers(0, min(HOT, 1 << bits), words.shape, np.int64)
        wild = rng.integers(0, 1 << bits, words.shape, np.int64)
        value = np.where(rng.random(words.shape) < 0.1, wild, value)
        words[:] = words & ~np.uint32(((1 << bits) - 1) << low) | (value << low).astype(np.uint32)
        low += bits


def _param_bytes(size: int, mult_bits: int, rng: np.random.Generator) -> np.ndarray:
    """uint8 (size,): lanes most of which scale an int32 to the range of an int8 or so.

    Many are made for ties, and results of small accumulators with them are not clamped.
    """
    lanes = np.frombuffer(bytearray(rng.bytes(size)), np.uint32).reshape(-1, 4)
    keep = rng.random(lanes.shape[0])
    lanes[:, 0] = np.where(keep < 0.7, lanes[:, 0] & 0xFFFF, lanes[:, 0])
    lanes[:, 1] &= (1 << mult_bits) - 1
    shift = rng.integers(mult_bits, mult_bits + 26, len(lanes), np.uint32)
    near_tie = rng.random(len(lanes)) < NEAR_TIES
    mult, distance = _near_ties(len(lanes), mult_bits, rng)
    lanes[:, 0] = np.where(near_tie, lanes[:, 0] & 0x7F, lanes[:, 0])
    lanes[:, 1] = np.where(near_tie, mult, lanes[:, 1])
    shift = np.where(near_tie, distance, shift)
    lanes[:, 2] = np.where(keep < 0.8, lanes[:, 2] & 0xFFFFFF00 | shift, lanes[:, 2])
    zero_point = rng.integers(-128, 128, len(lanes)).astype(np.uint32) << 16
    small = rng.random(len(lanes)) < 0.8
    lanes[:, 2] = np.where(small, lanes[:, 2] & 0xFFFF | zero_point, lanes[:, 2])
    full = np.array([127 << 16 | 0xFF80], np.uint32)
    limits = lanes[:, 3].copy()
    lanes[:, 3] = np.where(rng.random(len(lanes)) < 0.75, full, limits)
    return lanes.view(np.uint8).reshape(-1)


def _near_ties(
    count: int, mult_bits: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """uint32 (count,) twice: multipliers and shifts whose products often are ties, or nearly so.

    They stand for 1 / (d * 2**s) with a small odd d: as near as the bits allow, or one off.
    """
    odd = rng.choice((1, 3, 3, 5) if mult_bits == FLOAT_MULT_BITS else (1, 1, 1, 3), count)
    power = mult_bits - 1 + np.array([0, 2, 3])[odd // 2] - rng.choice((0, 0, 0, 1), count)
    mult = ((2 << power) // odd + 1) // 2 + rng.choice((-1, 0, 0, 0, 1), count)
    halvings = rng.choice((1, 1, 2, 3, 5, 8), count)
    return mult.astype(np.uint32), (power + halvings).astype(np.uint32)
