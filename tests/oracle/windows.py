"""Sliding windows over N spatial dimensions: pads, output sizes and views."""

from dataclasses import dataclass

import numpy as np

from oracle.graph import Node
from oracle.values import Array

__all__ = ["Geometry", "geometry"]


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Window geometry; every tuple has one entry per spatial dimension.

    `tail` is the end padding that the attributes ask for; ceil mode adds `excess` behind it.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    head: tuple[int, ...]
    tail: tuple[int, ...]
    excess: tuple[int, ...]

    def view(self, x: Array, fill: int | float, excess_fill: int | float | None = None) -> Array:
        """Windows of x (N, C, *in) as (N, C, *out, *kernel); padding holds `fill`."""
        padded = _pad(x, self.head, self.tail, fill)
        nothing = (0,) * len(self.kernel)
        behind = fill if excess_fill is None else excess_fill
        padded = _pad(padded, nothing, self.excess, behind)
        extent = tuple(_extent(k, d) for k, d in zip(self.kernel, self.dilations, strict=True))
        axes = tuple(range(2, x.ndim))
        full = np.lib.stride_tricks.sliding_window_view(padded, extent, axis=axes)
        steps = [slice(None, None, s) for s in (*self.strides, *self.dilations)]
        return full[(slice(None), slice(None), *steps)]


def geometry(
    node: Node,
    in_shape: tuple[int, ...],
    kernel: tuple[int, ...],
    *,
    ceil_mode: bool = False,
) -> Geometry:
    """Read strides, dilations, pads and auto_pad of `node` for spatial sizes `in_shape`."""
    rank = len(kernel)
    if len(in_shape) != rank:
        raise node.fail(f"needs an input with {rank} spatial dimensions, got {len(in_shape)}")
    declared = tuple(node.get("kernel_shape", kernel))
    if declared != kernel:
        raise node.fail(f"needs kernel_shape {kernel} as the weights have, got {declared}")
    strides = tuple(node.get("strides", [1] * rank))
    dilations = tuple(node.get("dilations", [1] * rank))
    extent = tuple(_extent(k, d) for k, d in zip(kernel, dilations, strict=True))
    head, tail = _pads(node, in_shape, extent, strides)
    excess = tuple(
        _excess(node, n + h + t, e, s, n + h, ceil_mode)
        for n, h, t, e, s in zip(in_shape, head, tail, extent, strides, strict=True)
    )
    return Geometry(
        kernel=kernel, strides=strides, dilations=dilations, head=head, tail=tail, excess=excess
    )


def _extent(kernel: int, dilation: int) -> int:
    return (kernel - 1) * dilation + 1


def _pads(
    node: Node, in_shape: tuple[int, ...], extent: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank, mode = len(in_shape), node.get("auto_pad", "NOTSET")
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        # A stride beyond the kernel would make this negative; it is clamped, never cropped.
        total = [
            max((-(-n // s) - 1) * s + e - n, 0)
            for n, e, s in zip(in_shape, extent, strides, strict=True)
        ]
        less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        return (less, more) if mode == "SAME_UPPER" else (more, less)
    if mode != "NOTSET":
        raise node.fail(f"needs auto_pad NOTSET, VALID or SAME_*, got {mode!r}")
    pads = tuple(node.get("pads", [0] * (2 * rank)))
    if len(pads) != 2 * rank or min(pads) < 0:
        raise node.fail(f"needs {2 * rank} pads >= 0, got {list(pads)}")
    return pads[:rank], pads[rank:]


def _excess(node: Node, size: int, extent: int, stride: int, start_limit: int, ceil: bool) -> int:
    """End padding that ceil mode adds; the last window must start before `start_limit`."""
    room = size - extent
    if room < 0:
        raise node.fail(f"needs a padded input of at least {extent}, got {size}")
    last = -(-room // stride) if ceil else room // stride
    if ceil and last * stride >= start_limit:
        last -= 1
    return max(last * stride - room, 0)


def _pad(x: Array, head: tuple[int, ...], tail: tuple[int, ...], fill: int | float) -> Array:
    if not any((*head, *tail)):
        return x
    widths = [(0, 0), (0, 0), *zip(head, tail, strict=True)]
    return np.pad(x, widths, constant_values=fill)
