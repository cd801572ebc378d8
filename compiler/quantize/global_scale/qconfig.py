"""What a user chooses about the quantization with one global scale: `QConfig`."""

import math
from dataclasses import dataclass

from vitral.errors import ConfigError

__all__ = ["QConfig"]

_FIXED = {"dtype_input": "int8", "dtype_weight": "int8", "dtype_activation": "int32"}
_FLAGS = ("round_for_shift", "store_lowbit_output")


@dataclass(frozen=True, kw_only=True)
class QConfig:
    """Parameters of TVM 0.5's quantization pass, with its defaults.

    Parameters
    ----------
    nbit_input, nbit_weight : int
        Bits of activations and weights that products read, 2..8; values are ±(2**(n - 1) - 1).
    nbit_activation : int
        Bits of sums, 32.
    dtype_input, dtype_weight, dtype_activation : str
        Element types that hold them: "int8", "int8" and "int32".
    global_scale : float
        Largest magnitude of every activation, more than 0; a code's unit is
        global_scale / 2**(nbit_input - 1).
    skip_k_conv : int
        The first convolutions, which stay float, as do dense layers before them.
    round_for_shift : bool
        Whether half a unit is added before a right shift; a shift alone rounds down.
    store_lowbit_output : bool
        Whether values that leave the integers are brought to `nbit_input` bits before.

    Raises
    ------
    ConfigError
        When a value is out of range; the message has the numbers.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    global_scale: float = 8.0
    skip_k_conv: int = 1
    round_for_shift: bool = True
    store_lowbit_output: bool = True

    def __post_init__(self) -> None:
        for name in ("nbit_input", "nbit_weight"):
            self._need(name, _whole(self, name) and 2 <= getattr(self, name) <= 8, "2..8 bits")
        self._need("nbit_activation", self.nbit_activation == 32, "32 bits")
        for name, dtype in _FIXED.items():
            self._need(name, getattr(self, name) == dtype, f'"{dtype}"')
        scale = self.global_scale
        number = isinstance(scale, int | float) and not isinstance(scale, bool)
        good = number and math.isfinite(scale) and 2.0**-64 <= scale <= 2.0**64
        self._need("global_scale", good, "a number of 2**-64..2**64")
        skip = _whole(self, "skip_k_conv") and self.skip_k_conv >= 0
        self._need("skip_k_conv", skip, "a number of convolutions from 0")
        for name in _FLAGS:
            self._need(name, isinstance(getattr(self, name), bool), "True or False")

    def _need(self, name: str, good: bool, what: str) -> None:
        if not good:
            raise ConfigError(f"{name} must be {what}, got {getattr(self, name)!r}")

    @property
    def input_limit(self) -> int:
        """Largest code of an activation."""
        return (1 << (self.nbit_input - 1)) - 1

    @property
    def weight_limit(self) -> int:
        """Largest code of a weight."""
        return (1 << (self.nbit_weight - 1)) - 1

    @property
    def input_scale(self) -> float:
        """Real value of one unit of an activation."""
        return self.global_scale / 2 ** (self.nbit_input - 1)


def _whole(config: QConfig, name: str) -> bool:
    value = getattr(config, name)
    return isinstance(value, int) and not isinstance(value, bool)
