"""What the passes share: a new graph made from an old one, operator by operator."""

from dataclasses import replace

import numpy as np

from vitral.compiler.ir import Call, Graph, GraphBuilder
from vitral.compiler.ir.ops import Op
from vitral.compiler.passes.eliminate_dead import eliminate_dead
from vitral.compiler.passes.rename import rename_value
from vitral.errors import CompileError

__all__ = ["Rewriter", "call_of", "scalar"]


def call_of(op: Op) -> Call:
    """The operator as a call."""
    if not isinstance(op, Call):
        raise CompileError(
            f"node {op.name!r} ({op.kind}): needs a graph of calls, as vitral.ir gives; this one"
            " has been lowered"
        )
    return op


def scalar(value: float, dtype: str = "float32") -> np.ndarray:
    """An array of rank 0."""
    return np.array(value, dtype)


class Rewriter:
    """A graph with the inputs and constants of `graph`, to which operators are appended."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        inputs = {name: graph.types[name] for name in graph.inputs}
        self.build = GraphBuilder(inputs, reserved=graph.outputs)
        for name, array in graph.constants.items():
            self.build.constant(array, name)

    def forward(self, op: Call, inputs: tuple[str, ...], **attrs: object) -> str:
        """The same operator on other arguments; its result's name."""
        return self.build.append(
            replace(
                op,
                inputs=inputs,
                output=self.build.fresh(op.output),
                attrs={**op.attrs, **attrs},
            )
        )

    def finish(self, results: tuple[str, ...]) -> Graph:
        """The graph whose outputs, under their old names, are `results`."""
        outputs = self._graph.outputs
        built = {op.output for op in self.build.ops}
        names: list[str] = []
        for name in results:
            taken = name in names or (name not in built and name not in outputs)
            names.append(self.build.call("copy", name) if taken else name)
        graph = replace(
            self._graph,
            outputs=tuple(names),
            types=dict(self.build.types),
            ops=tuple(self.build.ops),
            constants=dict(self.build.constants),
        )
        for old, new in zip(names, outputs, strict=True):
            if old != new:
                graph = rename_value(graph, old, new)
        return eliminate_dead(replace(graph, outputs=outputs))
