"""Which records the text form has: operators of the passes, and what their fields hold."""

from collections.abc import Iterator
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

from vitral.compiler.ir import ops, vta
from vitral.compiler.ir.operators import OPERATORS
from vitral.compiler.ir.ops import Op
from vitral.compiler.ir.rounding import FixedPoint, Thresholds, Weighted
from vitral.compiler.ir.types import Quant
from vitral.compiler.schedule.layer import ChannelParams
from vitral.compiler.schedule.vta_layer import (
    AddBias,
    AddTensor,
    Immediate,
    VtaConv,
    VtaPool,
)
from vitral.isa import AluOp, Rounding

__all__ = ["ENUMS", "OPS", "RECORDS", "op_title", "shown_fields"]

_KINDS = (
    *(ChannelParams, FixedPoint, Quant, Thresholds, Weighted),
    *(AddBias, AddTensor, Immediate, VtaConv, VtaPool),
)

RECORDS: dict[str, type] = {kind.__name__: kind for kind in _KINDS}
"""Name to the record that fields of operators hold."""

ENUMS: dict[str, type[Enum]] = {"AluOp": AluOp, "Rounding": Rounding}

_HIDDEN = {item.name for item in fields(Op)}


def op_title(kind: str) -> str:
    """An operator's name in the text: its kind, marked where the registry has the same name."""
    return f"vitral.{kind}" if kind in OPERATORS else kind


def _concrete() -> Iterator[type[Op]]:
    for name in (*ops.__all__, *vta.__all__):
        item = getattr(ops, name, None) or getattr(vta, name)
        if isinstance(item, type) and issubclass(item, Op) and "kind" in vars(item):
            yield item


OPS: dict[str, type[Op]] = {op_title(item.kind): item for item in _concrete()}
"""Name in the text to the operator's record."""


def shown_fields(record: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of the fields that are not at their default; not name and arguments."""
    for item in fields(record):
        value = getattr(record, item.name)
        if isinstance(record, Op) and item.name in _HIDDEN:
            continue
        if not _is_default(value, _default(item)):
            yield item.name, value


def _is_default(value: Any, default: Any) -> bool:
    plain = isinstance(value, int | float | str | tuple | dict)
    return value is default or (plain and type(value) is type(default) and value == default)


def _default(item: Any) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()
