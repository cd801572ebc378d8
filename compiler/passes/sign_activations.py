"""Makes all quantized activations int8."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from vitral.compiler.ir import Graph, Quant, TensorType
from vitral.compiler.ir.ops import ChannelTable, FlipSign, Op, Pick, Table
from vitral.compiler.passes.rename import rewired, unused_name

__all__ = ["sign_activations"]


def sign_activations(graph: Graph) -> Graph:
    """uint8 values become int8 values of 128 less, and zero points with them.

    Inputs and outputs keep their type: a flip_sign stands between them and the rest.
    """
    flipped_inputs = [n for n in graph.inputs if graph.types[n].dtype == "uint8"]
    flipped_outputs = [n for n in graph.outputs if graph.types[n].dtype == "uint8"]
    names = {n: unused_name(f"{n}.int8", graph.types) for n in (*flipped_inputs, *flipped_outputs)}
    first = [FlipSign(name=n, inputs=(n,), output=names[n]) for n in flipped_inputs]
    ops = [_signed_op(rewired(_signed_fill(graph, op), names), names) for op in graph.ops]
    last = [
        FlipSign(name=n, inputs=(names[n],), output=n)
        for n in flipped_outputs
        if n not in flipped_inputs
    ]
    types = {names.get(n, n): _signed_type(t) for n, t in graph.types.items()}
    types |= {n: graph.types[n] for n in (*graph.inputs, *graph.outputs)}
    constants = {n: _signed_array(a) for n, a in graph.constants.items()}
    return replace(graph, ops=(*first, *ops, *last), types=types, constants=constants)


def _signed_type(type_: TensorType) -> TensorType:
    return replace(type_, dtype="int8") if type_.dtype == "uint8" else type_


def _signed_op(op: Op, names: dict[str, str]) -> Op:
    changes: dict[str, Any] = {
        item.name: _signed_quant(value)
        for item in fields(op)
        if isinstance(value := getattr(op, item.name), Quant) and value.dtype == "uint8"
    }
    if isinstance(op, Table | ChannelTable):
        changes["table"] = _signed_array(op.table)
    if op.output in names:
        changes["output"] = names[op.output]
    return replace(op, **changes) if changes else op


def _signed_fill(graph: Graph, op: Op) -> Op:
    if isinstance(op, Pick) and graph.types[op.output].dtype == "uint8":
        return replace(op, fill=op.fill - 128)
    return op


def _signed_quant(quant: Quant) -> Quant:
    return replace(quant, dtype="int8", zero_point=tuple(z - 128 for z in quant.zero_point))


def _signed_array(array: np.ndarray) -> np.ndarray:
    if array.dtype != np.uint8:
        return array
    return (array.astype(np.int16) - 128).astype(np.int8)
