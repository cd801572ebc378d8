"""What quantization did to a model, layer by layer."""

from dataclasses import asdict, dataclass
from typing import Any

from vitral.compiler.quantize.measure import Outcome

__all__ = ["LayerReport", "Report", "Suggestion"]


@dataclass(frozen=True, kw_only=True)
class LayerReport:
    """A rounded tensor: the node that makes it and how well its codes hold it.

    `low` and `high` are what the codes reach, `least` and `most` what calibration saw. `sqnr_db`
    is the power of the float tensor over that of its difference from the quantized model's, all
    errors of the layers before it included; None where one of them is 0. `saturated` is the share
    of float values beyond the codes.
    """

    tensor: str
    node: str
    op: str
    scale: float
    zero_point: int
    low: float
    high: float
    least: float
    most: float
    sqnr_db: float | None
    saturated: float


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A node to keep float: the SQNR of the first output without and with it, in dB."""

    node: str
    op: str
    sqnr_db: float
    sqnr_db_if_float: float
    gain_db: float


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it; `float_nodes` were not quantized, each as name and operator."""

    method: str
    samples: int
    layers: tuple[LayerReport, ...]
    float_nodes: tuple[tuple[str, str], ...]
    equalized_pairs: int
    corrected_biases: int
    sqnr_db: float | None
    outcome: Outcome
    suggestions: tuple[Suggestion, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)
