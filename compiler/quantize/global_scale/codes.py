"""Integer values while a graph is realized: `Codes`, and how they change their scale."""

import math
from dataclasses import dataclass, replace

import numpy as np

from vitral.compiler.ir import GraphBuilder
from vitral.compiler.quantize.global_scale.qconfig import QConfig
from vitral.compiler.quantize.global_scale.rewriter import scalar
from vitral.errors import CompileError

__all__ = ["INT32_MAX", "Codes", "Coder"]

INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True)
class Codes:
    """Value `name` holds integers of real value code · scale, of magnitude up to `bound`.

    `low` codes have nbit_input bits. They may still be held in int32 or float32, as `dtype` tells.
    """

    name: str
    scale: float
    dtype: str
    bound: int
    low: bool = False


class Coder:
    """Appends what changes codes to a graph; each change of a value is made once."""

    def __init__(self, build: GraphBuilder, config: QConfig) -> None:
        self._build = build
        self._config = config
        self._casts: dict[tuple[str, str], str] = {}

    def cast(self, codes: Codes, dtype: str) -> Codes:
        """The codes as another element type that holds them."""
        if codes.dtype == dtype:
            return codes
        key = codes.name, dtype
        if key not in self._casts:
            self._casts[key] = self._build.call("cast", codes.name, dtype=dtype)
        return replace(codes, name=self._casts[key], dtype=dtype)

    def stored(self, codes: Codes) -> Codes:
        """Low codes as int8, the form in which they lie in memory."""
        return self.cast(codes, self._config.dtype_input)

    def real(self, codes: Codes) -> str:
        """The float32 value."""
        held = self.stored(codes) if codes.low else codes
        floats = self.cast(held, "float32")
        return self._build.call("multiply", floats.name, scalar(codes.scale))

    def from_real(self, name: str, scale: float) -> Codes:
        """Low codes of a float32 value, halves away from zero."""
        scaled = self._build.call("multiply", name, scalar(1 / scale))
        rounded = self._build.call("round", scaled)
        return Codes(self._clip(rounded), scale, "float32", self._config.input_limit, low=True)

    def lowered(self, codes: Codes, scale: float) -> Codes:
        """Sums as low codes of another scale: a shift, and the limits."""
        name, shift = codes.name, exponent(scale, codes.scale)
        if shift > 0:
            name = self._right(codes, shift)
        elif shift < 0:
            name = self._left(self._clip(name), -shift)
        return Codes(self._clip(name), scale, codes.dtype, self._config.input_limit, low=True)

    def _right(self, codes: Codes, shift: int) -> str:
        """floor(code / 2**shift + 1/2), or without the half unless `round_for_shift`."""
        if not self._config.round_for_shift:
            return self._int("right_shift", codes.name, shift)
        half = 1 << (shift - 1)
        if codes.bound + half <= INT32_MAX:
            return self._int("right_shift", self._int("add", codes.name, half), shift)
        doubled = self._int("right_shift", codes.name, shift - 1)
        return self._int("right_shift", self._int("add", doubled, 1), 1)

    def _left(self, name: str, shift: int) -> str:
        """Clipped codes times 2**shift; every code but 0 is at a limit from nbit_input on."""
        return self._int("left_shift", name, min(shift, self._config.nbit_input))

    def shifted(self, codes: Codes, scale: float) -> Codes:
        """int32 codes of a scale that is not above their own: a left shift."""
        held = self.cast(self.stored(codes) if codes.low else codes, self._config.dtype_activation)
        shift = exponent(codes.scale, scale)
        bound = codes.bound << shift
        if shift == 0:
            return replace(held, bound=bound, low=False)
        name = self._int("left_shift", held.name, shift)
        return Codes(name, scale, held.dtype, bound)

    def _clip(self, name: str) -> str:
        limit = self._config.input_limit
        return self._build.call("clip", name, a_min=-limit, a_max=limit)

    def _int(self, op: str, name: str, value: int) -> str:
        return self._build.call(op, name, scalar(value, self._config.dtype_activation))


def exponent(large: float, small: float) -> int:
    """log2(large / small), which is a whole number.

    Raises
    ------
    CompileError
        When it is not, or beyond what a shift can do.
    """
    fraction, power = math.frexp(large / small)
    if fraction != 0.5 or abs(power) > 64:
        raise CompileError(
            f"scales {np.float32(large)} and {np.float32(small)}: needs a quotient that is a power"
            " of two; quantize with one global scale"
        )
    return power - 1
