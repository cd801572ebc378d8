"""Types of values: shape with element type, and the affine map of integers to real numbers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vitral.runtime.cpu.convert import dequantize_array, quantize_array

__all__ = ["QUANTIZED", "Quant", "TensorType"]

QUANTIZED = ("int8", "uint8")
"""Element types of quantized activations."""


@dataclass(frozen=True)
class TensorType:
    """Shape and numpy name of the element type of a value."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"Tensor[{tuple(self.shape)}, {self.dtype}]"


@dataclass(frozen=True, kw_only=True)
class Quant:
    """real = (code - zero_point) * scale, codes of `dtype`.

    `scale` holds float32 values, `zero_point` integers; both have one entry, or one for each
    index along `axis`.
    """

    dtype: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None

    @property
    def low(self) -> int:
        """Lowest code."""
        return int(np.iinfo(self.dtype).min)

    @property
    def high(self) -> int:
        """Highest code."""
        return int(np.iinfo(self.dtype).max)

    @property
    def tensor_scale(self) -> float:
        """The scale of a per-tensor map."""
        (scale,) = self.scale
        return scale

    @property
    def tensor_zero(self) -> int:
        """The zero point of a per-tensor map."""
        (zero,) = self.zero_point
        return zero

    @cached_property
    def scales(self) -> npt.NDArray[np.float32]:
        """float32, shape () or (C,)."""
        return self._array(self.scale, np.float32)

    @cached_property
    def zeros(self) -> npt.NDArray[np.int32]:
        """int32, shape () or (C,)."""
        return self._array(self.zero_point, np.int32)

    def _array(self, values: tuple[float, ...], dtype: type) -> npt.NDArray:
        return np.array(values if self.axis is not None else values[0], dtype)

    def real(self, codes: npt.NDArray) -> npt.NDArray[np.float32]:
        """DequantizeLinear in IEEE float32."""
        return dequantize_array(codes, self.scales, self.zeros, self.axis)

    def code(self, reals: npt.NDArray[np.float32]) -> npt.NDArray:
        """QuantizeLinear: sat(rne(fl32(v / scale)) + zero point), in `dtype`."""
        return quantize_array(reals, self.scales, self.zeros, np.dtype(self.dtype), self.axis)

    def nearest(self, reals: Iterable[Fraction]) -> npt.NDArray:
        """sat(rne(v / scale) + zero point) of real numbers, one rounding; per-tensor maps only."""
        scale, zero = Fraction(self.tensor_scale), self.tensor_zero
        steps = (min(max(round(real / scale) + zero, self.low), self.high) for real in reals)
        return np.array(list(steps), self.dtype)

    def codes(self) -> npt.NDArray:
        """All 256 codes in ascending order."""
        return np.arange(self.low, self.high + 1).astype(self.dtype)

    def real_table(self) -> npt.NDArray[np.float32]:
        """Real values of all 256 codes in ascending order; per-tensor maps only."""
        return self.real(self.codes())

    def __str__(self) -> str:
        if self.axis is None:
            return f"{self.dtype}({self.tensor_scale:.9g}, {self.tensor_zero})"
        return f"{self.dtype}({len(self.scale)} scales, axis {self.axis})"
