"""Strides, dilations and padding of TFLite's windows."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitral.compiler.frontends.tflite.scope import Scope

__all__ = ["Windows", "read_windows"]

_SAME, _VALID = 0, 1


@dataclass(frozen=True, kw_only=True)
class Windows:
    """(height, width) of strides and dilations; pads (top, left, bottom, right)."""

    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]


def read_windows(scope: Scope, size: Sequence[int], kernel: Sequence[int]) -> Windows:
    """The windows of a node over an image of `size` (height, width).

    SAME gives ceil(size / stride) results; what padding that takes is split evenly, the odd one
    goes behind. VALID pads nothing.
    """
    strides = (scope.integer("StrideH"), scope.integer("StrideW"))
    dilations = (scope.integer("DilationHFactor", 1), scope.integer("DilationWFactor", 1))
    padding = scope.integer("Padding")
    if min(*strides, *dilations, *kernel) < 1:
        raise scope.fail(
            f"needs kernel, strides and dilations of at least 1, got {list(kernel)},"
            f" {list(strides)}, {list(dilations)}"
        )
    if padding not in (_SAME, _VALID):
        raise scope.fail(f"needs padding SAME or VALID, got {padding}")
    for length, taps, gap in zip(size, kernel, dilations, strict=True):
        extent = (taps - 1) * gap + 1
        if padding == _VALID and extent > length:
            raise scope.fail(f"needs an image of at least {extent} for VALID, got {length}")
    ends = [(0, 0), (0, 0)]
    if padding == _SAME:
        ends = [_same(*item) for item in zip(size, kernel, strides, dilations, strict=True)]
    (top, bottom), (left, right) = ends
    return Windows(strides=strides, dilations=dilations, pads=(top, left, bottom, right))


def _same(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    results = -(-size // stride)
    extent = (kernel - 1) * dilation + 1
    total = max(0, (results - 1) * stride + extent - size)
    return total // 2, total - total // 2
