"""Operators of the text form, as they come from a model and before their arithmetic is settled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from vitral.compiler.ir.ops import Op

__all__ = ["Call"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Call(Op):
    """An operator by its registered name, as in `nn.conv2d(%data, %weight, strides=[2, 2])`.

    Parameters
    ----------
    op : str
        Name in the registry, as "nn.conv2d" or "add".
    attrs : mapping
        Attribute name to a number, string, bool or tuple of these.
    """

    op: str
    attrs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def kind(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The registered name."""
        return self.op
