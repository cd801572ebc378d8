"""Inputs for requantisation that sit where implementations differ: ties, edges, saturation."""

import numpy as np
import numpy.typing as npt

from vitral.isa import Rounding

__all__ = ["FIELDS", "vectors"]

FIELDS = ("acc", "bias", "mult", "shift", "zero_point", "low", "high")

Columns = dict[str, npt.NDArray[np.int64]]

INT32 = (
    -(1 << 31),
    -(1 << 31) + 1,
    -1,
    0,
    1,
    (1 << 31) - 1,
    1 << 24,
    (1 << 24) + 1,
    -(1 << 24) - 1,
)
INT16 = (-(1 << 15), -129, -128, -1, 0, 1, 3, 127, 255, (1 << 15) - 1)


def vectors(rounding: Rounding, count: int, seed: int) -> Columns:
    """`count` rows of each of four kinds; mult fits the rounding mode."""
    rng = np.random.default_rng(seed)
    mult_bits = 24 if rounding is Rounding.FLOAT32 else 31
    kinds = [
        _uniform(rng, count, mult_bits),
        _edges(rng, count, mult_bits),
        _near_ties(rng, count, mult_bits),
        _useful(rng, count, mult_bits),
    ]
    return {name: np.concatenate([kind[name] for kind in kinds]) for name in FIELDS}


def _outputs(rng: np.random.Generator, count: int) -> Columns:
    """Zero points and bounds, some with low above high."""
    return {
        "zero_point": rng.choice(np.array(INT16), count),
        "low": rng.choice(np.array(INT16), count),
        "high": rng.choice(np.array(INT16), count),
    }


def _log_uniform(rng: np.random.Generator, count: int, bits: int) -> npt.NDArray[np.int64]:
    return rng.integers(0, 1 << bits, count) >> rng.integers(0, bits, count)


def _uniform(rng: np.random.Generator, count: int, mult_bits: int) -> Columns:
    return {
        "acc": rng.integers(-(1 << 31), 1 << 31, count) >> rng.integers(0, 32, count),
        "bias": rng.integers(-(1 << 31), 1 << 31, count) >> rng.integers(0, 32, count),
        "mult": _log_uniform(rng, count, mult_bits),
        "shift": rng.integers(0, 80, count),
        **_outputs(rng, count),
    }


def _edges(rng: np.random.Generator, count: int, mult_bits: int) -> Columns:
    mults = [0, 1, 2, 3, (1 << mult_bits) - 1, 1 << (mult_bits - 1), (1 << 24) - 1, 1 << 23]
    shifts = [0, 1, 2, 22, 23, 24, 25, 30, 31, 32, 33, 47, 61, 62, 63, 64, 65, 86, 87, 88, 128, 255]
    return {
        "acc": rng.choice(np.array(INT32), count),
        "bias": rng.choice(np.array(INT32), count),
        "mult": rng.choice(np.array(mults), count),
        "shift": rng.choice(np.array(shifts), count),
        **_outputs(rng, count),
    }


def _near_ties(rng: np.random.Generator, count: int, mult_bits: int) -> Columns:
    """acc = (n + 1/2) * 2**shift / mult, and neighbours."""
    mult = np.maximum(_log_uniform(rng, count, mult_bits), 1)
    wanted = rng.integers(0, 300, count) * 2 + 1
    shift = rng.integers(1, 50, count)
    quotient = (wanted.astype(object) << (shift - 1).astype(object)) // mult.astype(object)
    acc = np.array([min(int(q), (1 << 31) - 8) for q in quotient], np.int64)
    return {
        "acc": (acc + rng.integers(-1, 3, count)) * rng.choice(np.array([-1, 1]), count),
        "bias": np.zeros(count, np.int64),
        "mult": mult,
        "shift": shift,
        "zero_point": rng.integers(-3, 4, count),
        "low": np.full(count, -(1 << 15)),
        "high": np.full(count, (1 << 15) - 1),
    }


def _useful(rng: np.random.Generator, count: int, mult_bits: int) -> Columns:
    """As in networks: a normalised multiplier and results of a few hundred."""
    acc = rng.integers(-(1 << 22), 1 << 22, count)
    return {
        "acc": acc,
        "bias": rng.integers(-(1 << 14), 1 << 14, count),
        "mult": rng.integers(1 << (mult_bits - 1), 1 << mult_bits, count),
        "shift": mult_bits + rng.integers(10, 18, count),
        "zero_point": rng.integers(-128, 128, count),
        "low": np.full(count, -128),
        "high": np.full(count, 127),
    }
