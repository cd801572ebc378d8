"""Collects the operators of a graph and turns symbols into values of it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.symbols import (
    Channeled,
    Const,
    ConstReal,
    Joined,
    Pending,
    Real,
    Symbol,
    Tensor,
)
from vitral.compiler.ir import QUANTIZED, Graph, Quant, TensorType, infer
from vitral.compiler.ir.ops import ChannelTable, Concat, Dequantize, Op, Quantize, Reshape, Table
from vitral.errors import CompileError

__all__ = ["Builder"]


_MOST_ELEMENTS = (1 << 31) - 1


def _check_size(where: str, type_: TensorType) -> None:
    if type_.size > _MOST_ELEMENTS or max(type_.shape, default=1) > _MOST_ELEMENTS:
        raise CompileError(
            f"{where}: needs at most {_MOST_ELEMENTS} elements, got shape {list(type_.shape)}"
        )


class Builder:
    """A graph under construction; `reserved` names are never invented for a new value."""

    def __init__(self, reserved: Collection[str]) -> None:
        self._reserved = set(reserved)
        self._inputs: list[str] = []
        self._ops: list[Op] = []
        self._constants: dict[str, npt.NDArray[Any]] = {}
        self._types: dict[str, TensorType] = {}
        self._notices: list[str] = []
        self._made: dict[int, tuple[Symbol, Tensor]] = {}

    def input(self, name: str, type_: TensorType) -> Tensor:
        """A value that callers feed."""
        _check_size(f"input {name!r}", type_)
        self._inputs.append(name)
        self._types[name] = type_
        return Tensor(name=name, type=type_)

    def emit(self, op: Op) -> Tensor:
        """Append an operator; CompileError when its arguments do not fit."""
        type_ = self.type_of(op)
        _check_size(f"node {op.name!r}, tensor {op.output!r}", type_)
        self._ops.append(op)
        self._types[op.output] = type_
        return Tensor(name=op.output, type=type_)

    def checkpoint(self) -> int:
        """Where `rewind` may go back to."""
        return len(self._ops)

    def rewind(self, checkpoint: int) -> None:
        """Take back all operators since then; constants stay and are dead."""
        for op in self._ops[checkpoint:]:
            del self._types[op.output]
        del self._ops[checkpoint:]
        self._made = {k: v for k, v in self._made.items() if v[1].name in self._types}

    def type_of(self, op: Op) -> TensorType:
        """Type of an operator's result; CompileError when its arguments do not fit."""
        return infer(op, [self._types[name] for name in op.inputs])

    def notice(self, text: str) -> None:
        """Tell the user something, once."""
        if text not in self._notices:
            self._notices.append(text)

    def unique(self, hint: str) -> str:
        """A value name that nothing else has."""
        name, number = hint, 1
        while name in self._reserved or name in self._types:
            number += 1
            name = f"{hint}.{number}"
        return name

    def constant(self, hint: str, array: npt.NDArray[Any]) -> Tensor:
        """A value known at compile time."""
        name = self.unique(hint)
        type_ = TensorType(array.shape, str(array.dtype))
        self._constants[name], self._types[name] = array, type_
        return Tensor(name=name, type=type_)

    def tensor(self, symbol: Symbol, node: str, name: str | None = None) -> Tensor:
        """The value that a symbol stands for, float32 if it is a real number.

        `node` names the operators made for it, `name` the value if it has to be made.
        """
        if isinstance(symbol, Tensor):
            return symbol
        if id(symbol) in self._made:
            return self._made[id(symbol)][1]
        result = self._materialise(symbol, node, name)
        self._made[id(symbol)] = (symbol, result)
        return result

    def _materialise(self, symbol: Symbol, node: str, name: str | None) -> Tensor:
        if isinstance(symbol, Const):
            return self.constant(name or f"{node}.constant", symbol.array)
        if isinstance(symbol, ConstReal):
            return self.constant(name or f"{node}.constant", symbol.real())
        output = name or self.unique(f"{node}.real")
        if isinstance(symbol, Pending):
            return self._rounded(symbol, None, output)
        if isinstance(symbol, Joined):
            parts = tuple(self.tensor(part, node).name for part in symbol.parts)
            return self.emit(Concat(name=node, inputs=parts, output=output, axis=symbol.axis))
        assert isinstance(symbol, Real | Channeled)
        source = (symbol.tensor.name,)
        if isinstance(symbol, Channeled):
            return self._channel_table(symbol, symbol.tables, node, output)
        if symbol.quant is None:
            return self.emit(Table(name=node, inputs=source, output=output, table=symbol.table))
        return self.emit(Dequantize(name=node, inputs=source, output=output, quant=symbol.quant))

    def quantized(self, symbol: Symbol, quant: Quant, node: str, output: str) -> Symbol:
        """Codes of `symbol`; the value is called `output` unless it exists already.

        CompileError in words after "needs" when there is no lowering for it.
        """
        if isinstance(symbol, Const):
            return Const(array=quant.code(symbol.array))
        if isinstance(symbol, ConstReal):
            return Const(array=quant.code(symbol.real()))
        if quant.axis is None and isinstance(symbol, Real):
            return self._quantized_real(symbol, quant, node, output)
        if quant.axis is None and isinstance(symbol, Channeled):
            return self._channel_table(symbol, quant.code(symbol.tables), node, output)
        if quant.axis is None and isinstance(symbol, Pending):
            return self._rounded(symbol, quant, output)
        if quant.axis is None and isinstance(symbol, Joined):
            parts = [
                self._quantized_real(part, quant, node, self.unique(f"{output}.part"))
                for part in symbol.parts
            ]
            names = tuple(part.name for part in parts)
            return self.emit(Concat(name=node, inputs=names, output=output, axis=symbol.axis))
        if isinstance(symbol, Pending):
            raise CompileError(f"needs one output scale, got {len(quant.scale)}")
        source = self.tensor(symbol, node).name
        return self.emit(Quantize(name=node, inputs=(source,), output=output, quant=quant))

    def _rounded(self, pending: Pending, quant: Quant | None, output: str) -> Tensor:
        op = replace(pending.op, output=output, y_quant=quant)
        if pending.finish is None and self.type_of(op).shape == pending.shape:
            return self.emit(op)
        wide = self.emit(replace(op, output=self.unique(f"{output}.wide")))
        if pending.finish is not None:
            return pending.finish(wide, output)
        view = Reshape(name=op.name, inputs=(wide.name,), output=output, shape=pending.shape)
        return self.emit(view)

    def _quantized_real(self, real: Real, quant: Quant, node: str, output: str) -> Tensor:
        """A table of 256 codes, or nothing at all when every code maps to itself."""
        table = quant.code(real.table) if real.exact is None else quant.nearest(real.exact)
        if real.tensor.type.dtype == quant.dtype and np.array_equal(table, quant.codes()):
            return real.tensor
        source = (real.tensor.name,)
        steps = real.table.astype(np.float64) / quant.tensor_scale
        op = Table(name=node, inputs=source, output=output, table=table, steps=steps)
        return self.emit(op)

    def _channel_table(
        self, symbol: Channeled, table: npt.NDArray[Any], node: str, output: str
    ) -> Tensor:
        source = (symbol.tensor.name,)
        op = ChannelTable(name=node, inputs=source, output=output, table=table, axis=symbol.axis)
        return self.emit(op)

    def dequantized(self, symbol: Symbol, quant: Quant, node: str) -> Symbol:
        """The real numbers that codes mean."""
        if isinstance(symbol, Const):
            return ConstReal(codes=symbol.array, quant=quant)
        assert isinstance(symbol, Tensor)
        if quant.axis is None and symbol.type.dtype in QUANTIZED:
            return Real(tensor=symbol, table=quant.real_table(), quant=quant)
        output = self.unique(f"{node}.real")
        op = Dequantize(name=node, inputs=(symbol.name,), output=output, quant=quant)
        return self.emit(op)

    def finish(self, outputs: dict[str, Symbol]) -> Graph:
        """The graph whose outputs are these symbols, under these names."""
        for name, symbol in outputs.items():
            tensor = self.tensor(symbol, name, name)
            if tensor.name != name:
                source, shape = (tensor.name,), tensor.shape
                self.emit(Reshape(name=name, inputs=source, output=name, shape=shape))
        return Graph(
            inputs=tuple(self._inputs),
            outputs=tuple(outputs),
            types=dict(self._types),
            ops=tuple(self._ops),
            constants=dict(self._constants),
            notices=tuple(self._notices),
        )
