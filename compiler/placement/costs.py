"""What an operator costs on the host, and what moving a tensor does: a table of measured lines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from vitral.compiler.ir import Graph
from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.ops import (
    AccelAdd,
    AccelConv2d,
    AccelMaxPool2d,
    AveragePool,
    Binary,
    ChannelTable,
    Conv2d,
    Dequantize,
    FloatOp,
    Interpolate,
    MatMul,
    MaxPool,
    Op,
    Quantize,
    Table,
)
from vitral.errors import CompileError

__all__ = ["COPY", "LAUNCH", "CpuTable", "default_table", "family", "work"]

COPY = "copy"
"""Family of tensors that are packed for the accelerator, or unpacked; work in bytes."""
LAUNCH = "launch"
"""Family of programs that are started."""
_OTHER = "other"
_FAMILIES: dict[type[Op], str] = {
    AveragePool: "average",
    Binary: "binary",
    ChannelTable: "table",
    Conv2d: "conv",
    Dequantize: "dequantize",
    FloatOp: "float",
    Interpolate: "interpolate",
    MatMul: "matmul",
    MaxPool: "max_pool",
    AccelMaxPool2d: "max_pool",
    Quantize: "quantize",
    Table: "table",
}


@dataclass(frozen=True)
class CpuTable:
    """Seconds by family: a fixed part, and one for each unit of `work`.

    Parameters
    ----------
    lines : mapping
        Family to (seconds of one operator, seconds of one unit of its work).
    """

    lines: Mapping[str, tuple[float, float]]

    def seconds(self, name: str, amount: int = 0) -> float:
        """Of one operator of a family with this much work."""
        fixed, each = self.lines.get(name, self.lines[_OTHER])
        return fixed + each * amount

    def op_seconds(self, op: Op, graph: Graph) -> float:
        """Of an operator on the host."""
        return self.seconds(family(op), work(op, graph))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "CpuTable":
        """A table that `benchmarks/cpu_table.py` wrote; CompileError for another file."""
        try:
            content = json.loads(Path(path).read_text())
            return cls._read(content["lines"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CompileError(f"{path}: needs a table of cpu_table.py, got: {error}") from None

    @classmethod
    def _read(cls, lines: Mapping[str, Any]) -> "CpuTable":
        table = {name: (float(fixed), float(each)) for name, (fixed, each) in lines.items()}
        missing = {_OTHER, COPY, LAUNCH} - table.keys()
        if missing or any(value < 0 for line in table.values() for value in line):
            raise ValueError(f"lines of {', '.join(sorted(missing)) or 'at least 0'} are missing")
        return cls(table)


@cache
def default_table() -> CpuTable:
    """The committed table, measured on a processor of x86-64 with onnxruntime and llvmlite."""
    return CpuTable.load(Path(__file__).with_name("cpu_table.json"))


def family(op: Op) -> str:
    """Which line of the table tells of an operator."""
    if isinstance(op, AccelConv2d | AccelAdd):
        return family(op.origin)
    return _FAMILIES.get(type(op), _OTHER)


def work(op: Op, graph: Graph) -> int:
    """Products of sums of products; elements looked at by windows; else elements of the result."""
    products = macs(op, graph)
    if products:
        return products
    model = op.origin if isinstance(op, AccelConv2d | AccelAdd) else op
    taps = 1
    if isinstance(model, AveragePool | MaxPool | AccelMaxPool2d):
        taps = int(np.prod(model.kernel))
    return graph.types[op.output].size * taps
