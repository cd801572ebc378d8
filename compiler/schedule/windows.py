"""Layers that work lane by lane, in the units of the window instruction.

A depthwise convolution, a pooling or an addition has no products between channels: each output
channel block reads the input channel block of the same number. An operation takes `taps` elements
of INP, `distance` apart, and one weight element with a row of lanes for each.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from vitral.compiler.schedule.geometry import LOAD_PAD_MAX, Axis, Geometry, blocks_of
from vitral.compiler.schedule.layer import AccelLayer, AddLayer, ConvLayer, PoolLayer
from vitral.compiler.schedule.shapes import check_shapes
from vitral.config import CoreConfig
from vitral.errors import CompileError

__all__ = [
    "ADD_SHIFT",
    "TAPS_MAX",
    "WindowGeometry",
    "WindowKind",
    "add_digits",
    "is_window",
    "tap_groups",
]

TAPS_MAX = 4
"""Most elements that one operation of the window instruction reads."""

ADD_SHIFT = 8
"""Multipliers beyond int8 are 2**8 · high + low; the core shifts between the two passes."""

_SMALLEST, _LARGEST = -128 * 257, 127 * 257  # with both digits int8


class WindowKind(Enum):
    SUM = auto()
    MAXIMUM = auto()
    ADD = auto()


@dataclass(frozen=True)
class WindowGeometry:
    """All sizes that scheduling depends on; equal for layers that can share a schedule.

    `batches` counts elements along N, `blocks` those along C. `planes` are the int8 parts of each
    weight: their sum is the weight, or the digits of an addition's multipliers. `shared`: all
    channel blocks have the same weights, as those of an average.
    """

    kind: WindowKind
    batches: int
    blocks: int
    y: Axis
    x: Axis
    planes: int = 1
    shared: bool = True

    @staticmethod
    def of(layer: AccelLayer, config: CoreConfig) -> "WindowGeometry":
        """The geometry of a layer for which `is_window` holds.

        Raises
        ------
        CompileError
            When the layer's shapes contradict each other, or a multiplier is too large.
        """
        match layer:
            case AddLayer():
                return _of_add(layer, config)
            case PoolLayer():
                return _of_pool(layer, config)
            case ConvLayer():
                plain = Geometry.of(layer, config)
                blocks = blocks_of(layer.in_shape[1], config.block)
                return WindowGeometry(
                    WindowKind.SUM,
                    plain.batches,
                    blocks,
                    plain.y,
                    plain.x,
                    plain.planes,
                    shared=bool((layer.weight == layer.weight[:1]).all()),
                )

    @property
    def pads_in_memory(self) -> bool:
        """Whether the input's padding must lie in DRAM."""
        sides = (self.y.before, self.y.after, self.x.before, self.x.after)
        return max(sides) > LOAD_PAD_MAX

    def in_memory(self) -> "WindowGeometry":
        """The same layer on an input whose padding lies in DRAM."""
        return replace(self, y=self.y.in_memory(), x=self.x.in_memory())

    @property
    def taps(self) -> int:
        """Elements that an operation reads."""
        if self.kind is WindowKind.ADD:
            return 2
        if self.x.dilation % 2 == 0:
            return 1
        return blocks_of(self.x.kernel, blocks_of(self.x.kernel, TAPS_MAX))

    @property
    def groups(self) -> tuple[int, ...]:
        """The first kernel column of each operation of a kernel row."""
        return (0,) if self.kind is WindowKind.ADD else tap_groups(self.x.kernel, self.taps)

    @property
    def row_operations(self) -> int:
        """Operations for one kernel row of an output."""
        return len(self.groups) * self.planes

    @property
    def row_weights(self) -> int:
        """Weight elements of one kernel row of a channel block."""
        return 0 if self.kind is WindowKind.MAXIMUM else self.row_operations

    @property
    def block_weights(self) -> int:
        """Weight elements between those of one channel block and the next: 0 when shared."""
        return 0 if self.shared else self.row_weights * self.y.kernel

    @property
    def sources(self) -> int:
        return 2 if self.kind is WindowKind.ADD else 1


def is_window(layer: AccelLayer) -> bool:
    """Whether a layer works lane by lane."""
    if isinstance(layer, ConvLayer):
        return layer.group == layer.in_shape[1] == layer.out_shape[1]
    return True


def tap_groups(kernel: int, taps: int) -> tuple[int, ...]:
    """The first of `taps` kernel columns for each group; the last one may repeat columns."""
    return tuple(min(first, kernel - taps) for first in range(0, kernel, taps))


def add_digits(multipliers: tuple[int, int]) -> list[tuple[int, int]]:
    """int8 multipliers of one or two passes; between two, the sum is shifted by `ADD_SHIFT`."""
    if all(-128 <= m <= 127 for m in multipliers):
        return [multipliers]
    low = [((m + 128) & 255) - 128 for m in multipliers]
    high = [(m - digit) >> ADD_SHIFT for m, digit in zip(multipliers, low, strict=True)]
    return [(high[0], high[1]), (low[0], low[1])]


def _of_add(layer: AddLayer, config: CoreConfig) -> WindowGeometry:
    n, channels, height, width = layer.shape
    if min(layer.shape) < 1:
        raise CompileError(f"{layer.name}: all sizes must be positive, got {layer.shape}")
    if min(layer.multipliers) < _SMALLEST or max(layer.multipliers) > _LARGEST:
        raise CompileError(
            f"{layer.name}: multipliers must be {_SMALLEST}..{_LARGEST}, got {layer.multipliers}"
        )
    return WindowGeometry(
        WindowKind.ADD,
        blocks_of(n, config.batch),
        blocks_of(channels, config.block),
        Axis(height, height, 1, 1, 1, 0),
        Axis(width, width, 1, 1, 1, 0),
        len(add_digits(layer.multipliers)),
    )


def _of_pool(layer: PoolLayer, config: CoreConfig) -> WindowGeometry:
    n, channels, _, _ = layer.in_shape
    check_shapes(layer, (channels, 1, *layer.kernel), channels)
    return WindowGeometry(
        WindowKind.MAXIMUM,
        blocks_of(n, config.batch),
        blocks_of(channels, config.block),
        Axis.of(layer, 0, layer.kernel[0]),
        Axis.of(layer, 1, layer.kernel[1]),
    )
