"""Placement in the text form: `device_copy` where a value goes from one device to another."""

from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.call import Call
from vitral.compiler.ir.ops import Op
from vitral.compiler.passes.rename import unused_name
from vitral.compiler.placement.kernels import kernels
from vitral.compiler.placement.rules import Rules

__all__ = ["place_calls"]

_FALLBACK = "accelerator"


def place_calls(graph: Graph, rules: Rules) -> Graph:
    """The graph with each operator's device noted and its copies made visible.

    Inputs, outputs and constants are where they are needed; a value that several operators of
    another device read is copied once. Results are the same.
    """
    names = {op.output: [op.name, *kernels(op, graph)] for op in graph.ops}
    rules.check(name for listed in names.values() for name in listed)
    devices = {output: rules.device_of(listed) or _FALLBACK for output, listed in names.items()}
    types = dict(graph.types)
    ops: list[Op] = []
    copies: dict[tuple[str, str], str] = {}
    for op in graph.ops:
        here = devices[op.output]
        inputs = []
        for value in op.inputs:
            there = devices.get(value, here)
            if there != here and (value, here) not in copies:
                copy = _copy(value, there, here, types)
                types[copy.output] = types[value]
                copies[value, here] = copy.output
                ops.append(copy)
            inputs.append(copies[value, here] if there != here else value)
        ops.append(replace(op, inputs=tuple(inputs), device=here))
    return replace(graph, ops=tuple(ops), types=types)


def _copy(value: str, source: str, target: str, types: dict) -> Call:
    name = unused_name(f"{value}.{target}", types)
    return Call(
        name=name,
        inputs=(value,),
        output=name,
        op="device_copy",
        attrs={"source": source, "target": target},
        device=target,
    )
