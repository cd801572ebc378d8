"""Devices that the user names for operators, noted in the graph before it is lowered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Bounds, Conv2d, Op, Table
from vitral.compiler.passes.law import code_bounds
from vitral.compiler.passes.rename import unused_name
from vitral.compiler.placement.kernels import kernels
from vitral.errors import CompileError

__all__ = ["DEVICES", "Rules", "annotate"]

DEVICES = ("accelerator", "cpu")


@dataclass(frozen=True)
class Rules:
    """Devices for operators.

    Parameters
    ----------
    on_device : mapping
        A node's name, an operator's name in the text form ("nn.relu"), or a pattern of either
        with ``*`` and ``?``, to a device of `DEVICES`. Of several that fit the last one counts.
    fallback_device : str or None
        Device of all others; None leaves them to `place`.

    Raises
    ------
    CompileError
        For a device that is none.
    """

    on_device: Mapping[str, str] = field(default_factory=dict)
    fallback_device: str | None = None

    def __post_init__(self) -> None:
        for what, device in (*self.on_device.items(), ("fallback", self.fallback_device)):
            if device not in DEVICES and not (what == "fallback" and device is None):
                raise CompileError(f"{what}: device must be {' or '.join(DEVICES)}, got {device!r}")

    def __bool__(self) -> bool:
        return bool(self.on_device) or self.fallback_device is not None

    def device_of(self, names: Iterable[str]) -> str | None:
        """The device of an operator that has these names."""
        found = self.fallback_device
        listed = list(names)
        for pattern, device in self.on_device.items():
            if any(fnmatchcase(name, pattern) for name in listed):
                found = device
        return found

    def check(self, names: Iterable[str]) -> None:
        """Refuse patterns that fit none of the names."""
        listed = sorted(set(names))
        for pattern in self.on_device:
            if not any(fnmatchcase(name, pattern) for name in listed):
                shown = ", ".join(listed[:20]) + (", ..." if len(listed) > 20 else "")
                raise CompileError(f"on_device {pattern!r}: fits no operator; there are {shown}")


def annotate(graph: Graph, rules: Rules) -> Graph:
    """The graph with each operator's device noted, where the rules name one.

    A clamp that an operator ends in, and that belongs elsewhere, becomes an operator of its own.
    """
    if not rules:
        return graph
    split = _split_clamps(graph, rules)
    rules.check(name for op in split.ops for name in _names(op, split))
    ops = tuple(replace(op, device=rules.device_of(_names(op, split))) for op in split.ops)
    return replace(split, ops=ops)


def _names(op: Op, graph: Graph) -> list[str]:
    """The node's, and the one of what it computes first."""
    return [op.name, kernels(op, graph)[0]]


def _split_clamps(graph: Graph, rules: Rules) -> Graph:
    types = dict(graph.types)
    ops: list[Op] = []
    for op in graph.ops:
        parts = _parts(op, graph, rules)
        if len(parts) > 1:
            types[parts[0].output] = types[op.output]
        ops += parts
    return replace(graph, ops=tuple(ops), types=types)


def _parts(op: Op, graph: Graph, rules: Rules) -> list[Op]:
    """A convolution and its clamps, when they are to run on different devices.

    QuantizeLinear is monotone, so clamping codes equals quantizing the clamped real value.
    """
    if not isinstance(op, Conv2d) or not op.bounds or op.y_quant is None or op.fixed is not None:
        return [op]
    first, *clamps = kernels(op, graph)
    here = rules.device_of([op.name, first])
    if all(rules.device_of([clamp]) in (None, here) for clamp in clamps):
        return [op]
    inner = unused_name(f"{op.output}.unclamped", graph.types)
    low, high = code_bounds(op.y_quant, op.bounds)
    codes = op.y_quant.codes()
    table = Table(
        name=f"{op.name}.{clamps[0].removeprefix('nn.')}",
        inputs=(inner,),
        output=op.output,
        table=np.clip(codes, low, high).astype(codes.dtype),
        label=clamps[0],
    )
    open_ended: Bounds = ()
    return [replace(op, output=inner, bounds=open_ended), table]
