"""What a user chooses about quantization."""

from dataclasses import dataclass
from typing import Literal

from vitral.errors import QuantizeError

__all__ = ["ACTIVATIONS", "METHODS", "Activations", "Method", "QuantizeConfig"]

Method = Literal["minmax", "percentile", "entropy", "mse"]
Activations = Literal["affine", "symmetric"]
METHODS: tuple[Method, ...] = ("minmax", "percentile", "entropy", "mse")
ACTIVATIONS: tuple[Activations, ...] = ("affine", "symmetric")


@dataclass(frozen=True, kw_only=True)
class QuantizeConfig:
    """How a float model becomes int8.

    Parameters
    ----------
    method : "minmax", "percentile", "entropy" or "mse"
        What chooses the range of an activation from its values on the calibration set.
    percentile : float
        Part of the values, in per cent, that the range of method "percentile" keeps on each side.
    per_channel : bool
        A scale per output channel of weights, or one per tensor.
    activations : "affine" or "symmetric"
        Any zero point, or zero points 0.
    bias_correction : bool
        Take the mean error that rounded weights and inputs make out of each channel's bias.
    equalize : bool
        Even out the ranges of channels between neighbouring layers before anything is rounded.
    exclude : tuple of str
        Names of nodes that stay float.
    batch : int
        Samples run at once where the model's batch size is open.

    Raises
    ------
    QuantizeError
        For a value that is none of these.
    """

    method: Method = "mse"
    percentile: float = 99.99
    per_channel: bool = True
    activations: Activations = "affine"
    bias_correction: bool = True
    equalize: bool = False
    exclude: tuple[str, ...] = ()
    batch: int = 8

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise QuantizeError(f"method: needs one of {', '.join(METHODS)}, got {self.method!r}")
        if self.activations not in ACTIVATIONS:
            raise QuantizeError(
                f"activations: needs one of {', '.join(ACTIVATIONS)}, got {self.activations!r}"
            )
        if not 50 < self.percentile <= 100:
            raise QuantizeError(
                f"percentile: needs more than 50, at most 100, got {self.percentile}"
            )
        if self.batch < 1:
            raise QuantizeError(f"batch: needs at least 1, got {self.batch}")
