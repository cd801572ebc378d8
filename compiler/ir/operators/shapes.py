"""Parts that the type relations of several operators share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vitral.compiler.ir.operators.operator import FLOATS, Attrs, Types, need
from vitral.compiler.ir.types import TensorType

__all__ = [
    "axis_of",
    "broadcast",
    "four_pads",
    "need_float",
    "need_rank4",
    "same",
    "two",
    "windows",
]


def same(attrs: Attrs, args: Types) -> TensorType:
    """The first argument's type."""
    return args[0]


def need_float(*args: TensorType) -> None:
    """Misfit unless all are floats of one type."""
    kinds = dict.fromkeys(arg.dtype for arg in args)
    good = len(kinds) == 1 and args[0].dtype in FLOATS
    need(good, f"needs floats of one type, got {', '.join(kinds)}")


def need_rank4(x: TensorType) -> None:
    need(len(x.shape) == 4, f"needs a rank 4 input, got {x}")


def broadcast(args: Types) -> TensorType:
    """numpy's broadcasting of arguments of one element type."""
    kinds = dict.fromkeys(arg.dtype for arg in args)
    need(len(kinds) == 1, f"needs arguments of one element type, got {', '.join(kinds)}")
    try:
        shape = np.broadcast_shapes(*(arg.shape for arg in args))
    except ValueError:
        shape = None
    shown = " and ".join(str(arg) for arg in args)
    need(shape is not None, f"needs shapes that broadcast, got {shown}")
    return replace(args[0], shape=shape)


def axis_of(axis: int, rank: int) -> int:
    """A possibly negative axis as 0..rank-1."""
    need(-rank <= axis < rank, f"needs an axis in {-rank}..{rank - 1}, got {axis}")
    return axis % rank


def two(values: Sequence[int], name: str, least: int = 1) -> tuple[int, int]:
    """A value for rows and one for columns; one value stands for both."""
    pair = tuple(values) * 2 if len(values) == 1 else tuple(values)
    good = len(pair) == 2 and min(pair) >= least
    need(good, f"needs {name} of two numbers from {least}, got {list(values)}")
    return pair[0], pair[1]


def four_pads(values: Sequence[int]) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) of one, two (rows, columns) or four numbers."""
    pads = tuple(values)
    pads = pads * (4 // len(pads)) if len(pads) in (1, 2) else pads
    good = len(pads) == 4 and min(pads) >= 0
    need(good, f"needs padding of 1, 2 or 4 numbers from 0, got {list(values)}")
    return pads[0], pads[1], pads[2], pads[3]


def windows(
    size: Sequence[int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilations: tuple[int, int] = (1, 1),
    ceil: bool = False,
) -> tuple[int, int]:
    """Rows and columns of windows; with `ceil` windows may end behind the padded input.

    A window that starts behind the input and its leading padding does not count.
    """
    result: list[int] = []
    for i in range(2):
        extent = (kernel[i] - 1) * dilations[i] + 1
        room = size[i] + pads[i] + pads[2 + i] - extent
        need(room >= 0, f"needs a padded input of at least {extent}, got {room + extent}")
        steps = -(-room // strides[i]) if ceil else room // strides[i]
        if ceil and steps * strides[i] >= size[i] + pads[i]:
            steps -= 1
        result.append(steps + 1)
    return result[0], result[1]
