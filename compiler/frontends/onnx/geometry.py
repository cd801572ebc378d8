"""Strides, dilations, pads and auto_pad of convolutions and pools, in two dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitral.compiler.frontends.onnx.scope import Scope

__all__ = ["LARGEST", "Geometry", "output_size", "positive", "read_geometry"]

LARGEST = 1 << 16
"""Of kernel sizes, strides, dilations and pads; nothing sensible comes near it."""


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Windows over (height, width); one dimension is a height of 1.

    `pads` are (top, left, bottom, right); `excess` (bottom, right) is what ceil mode adds to them.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    excess: tuple[int, int] = (0, 0)

    @property
    def all_pads(self) -> tuple[int, int, int, int]:
        """Pads with ceil mode's excess."""
        top, left, bottom, right = self.pads
        return top, left, bottom + self.excess[0], right + self.excess[1]


def read_geometry(
    scope: Scope, size: Sequence[int], kernel: Sequence[int], *, ceil_mode: bool = False
) -> Geometry:
    """Windows of `kernel` over an input of spatial `size`, one or two dimensions."""
    rank = len(kernel)
    if rank not in (1, 2) or len(size) != rank:
        raise scope.fail(
            f"needs an input of rank 3 or 4 with as many kernel dimensions,"
            f" got {len(size)} and {rank} spatial dimensions"
        )
    declared = scope.integer_list("kernel_shape") or list(kernel)
    if declared != list(kernel):
        raise scope.fail(f"needs kernel_shape {list(kernel)} as the weights have, got {declared}")
    if max(kernel) > LARGEST:
        raise scope.fail(f"needs a kernel of at most {LARGEST}, got {list(kernel)}")
    strides = positive(scope, "strides", rank)
    dilations = positive(scope, "dilations", rank)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    head, tail = _pads(scope, size, extent, strides)
    excess = [0] * rank
    if ceil_mode:
        excess = [
            _excess(n, e, s, h, t)
            for n, e, s, h, t in zip(size, extent, strides, head, tail, strict=True)
        ]
    return Geometry(
        kernel=_pair(kernel, 1),
        strides=_pair(strides, 1),
        dilations=_pair(dilations, 1),
        pads=(*_pair(head, 0), *_pair(tail, 0)),
        excess=_pair(excess, 0),
    )


def output_size(scope: Scope, size: Sequence[int], geometry: Geometry) -> tuple[int, int]:
    """(height, width) of the result for an input of spatial `size` (height, width)."""
    result: list[int] = []
    for i in range(2):
        extent = (geometry.kernel[i] - 1) * geometry.dilations[i] + 1
        room = size[i] + geometry.all_pads[i] + geometry.all_pads[2 + i] - extent
        if room < 0:
            raise scope.fail(f"needs a padded input of at least {extent}, got {room + extent}")
        result.append(room // geometry.strides[i] + 1)
    return result[0], result[1]


def _pair(values: Sequence[int], first: int) -> tuple[int, int]:
    return (first, values[0]) if len(values) == 1 else (values[0], values[1])


def positive(scope: Scope, attribute: str, rank: int) -> list[int]:
    """`rank` numbers from 1 on, all 1 where the node has none."""
    values = scope.integer_list(attribute) or [1] * rank
    if len(values) != rank or min(values) < 1 or max(values) > LARGEST:
        raise scope.fail(f"needs {rank} {attribute} of 1..{LARGEST}, got {values}")
    return values


def _pads(
    scope: Scope, size: Sequence[int], extent: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    rank, mode = len(size), scope.text("auto_pad", "NOTSET") or "NOTSET"
    if mode == "VALID":
        return [0] * rank, [0] * rank
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        # A stride beyond the kernel would make this negative; it is clamped, never cropped.
        total = [
            max((-(-n // s) - 1) * s + e - n, 0)
            for n, e, s in zip(size, extent, strides, strict=True)
        ]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        return (less, more) if mode == "SAME_UPPER" else (more, less)
    if mode != "NOTSET":
        raise scope.fail(f"needs auto_pad NOTSET, VALID or SAME_*, got {mode!r}")
    pads = scope.integer_list("pads") or [0] * (2 * rank)
    if len(pads) != 2 * rank or min(pads) < 0 or max(pads) > LARGEST:
        raise scope.fail(f"needs {2 * rank} pads of 0..{LARGEST}, got {pads}")
    return pads[:rank], pads[rank:]


def _excess(size: int, extent: int, stride: int, head: int, tail: int) -> int:
    """End padding that ceil mode adds; the last window must start before the end padding."""
    room = size + head + tail - extent
    last = -(-room // stride)
    if last * stride >= size + head:
        last -= 1
    return max(last * stride - room, 0)
