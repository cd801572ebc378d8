"""Marks where values become integers: `annotation.simulated_quantize` in a float graph."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from vitral.compiler.ir import Call, Graph
from vitral.compiler.ir.operators import attributes_of
from vitral.compiler.quantize.global_scale.qconfig import QConfig
from vitral.compiler.quantize.global_scale.rewriter import Rewriter, call_of

__all__ = ["MOVED", "PRODUCTS", "SAME", "SIMULATED", "annotate"]

SIMULATED = "annotation.simulated_quantize"

PRODUCTS = ("nn.conv2d", "nn.dense")
"""What turns codes of few bits into sums."""

SAME = ("nn.relu", "clip")
"""What goes on with the codes that it gets."""

MOVED = (
    "nn.max_pool2d",
    "concatenate",
    "nn.batch_flatten",
    "reshape",
    "squeeze",
    "expand_dims",
    "transpose",
    "strided_slice",
    "nn.pad",
)
"""What chooses or moves elements."""

Kind = Literal["input", "weight", "activation"]


@dataclass(frozen=True)
class _Value:
    """A value of the new graph: codes of `kind`, or float when that is None.

    "input" codes have few bits and the global scale, "activation" codes are sums.
    """

    name: str
    kind: Kind | None = None


def annotate(graph: Graph, qconfig: QConfig | None = None) -> Graph:
    """The float graph with `annotation.simulated_quantize` where quantization rounds.

    Convolutions and dense layers read input and weight codes and give activations. Sums, ReLU and
    clip go on with what they get; pools, concatenations and views want input codes. Any other
    operator ends the integers.
    """
    return _Annotator(graph, qconfig or QConfig()).run()


class _Annotator:
    def __init__(self, graph: Graph, config: QConfig) -> None:
        self._graph = graph
        self._config = config
        self._new = Rewriter(graph)
        self._readers = graph.consumers()
        self._products = 0
        self._marks: dict[tuple[str, Kind], str] = {}
        self._values = {name: _Value(name) for name in (*graph.inputs, *graph.constants)}

    def run(self) -> Graph:
        for op in map(call_of, self._graph.ops):
            rule = _RULES.get(op.op, _Annotator._float)
            args = [self._values[name] for name in op.inputs]
            self._values[op.output] = rule(self, op, args)
        outputs = [self._values[name] for name in self._graph.outputs]
        return self._new.finish(tuple(map(self._real, outputs)))

    def _constant(self, value: _Value) -> bool:
        return value.name in self._new.build.constants

    def _as_input(self, value: _Value) -> str:
        return value.name if value.kind == "input" else self._marked(value.name, "input")

    def _marked(self, name: str, kind: Kind) -> str:
        """The value's simulated codes, made once, unless each reader has a scale of its own."""
        if kind == "activation" or (name, kind) not in self._marks:
            self._marks[name, kind] = self._new.build.call(SIMULATED, name, kind=kind)
        return self._marks[name, kind]

    def _real(self, value: _Value) -> str:
        """What an operator outside the integers, or the caller, reads."""
        if value.kind == "activation" and self._config.store_lowbit_output:
            return self._marked(value.name, "input")
        return value.name

    def _float(self, op: Call, args: list[_Value]) -> _Value:
        return _Value(self._new.forward(op, tuple(map(self._real, args))))

    def _conv2d(self, op: Call, args: list[_Value]) -> _Value:
        self._products += 1
        return self._product(op, args, self._products > self._config.skip_k_conv)

    def _dense(self, op: Call, args: list[_Value]) -> _Value:
        rank2 = len(self._graph.types[op.output].shape) == 2
        return self._product(op, args, rank2 and self._products >= self._config.skip_k_conv)

    def _product(self, op: Call, args: list[_Value], wanted: bool) -> _Value:
        data, weight = args[0], args[-1]
        float32 = self._graph.types[op.output].dtype == "float32"
        if not wanted or not float32 or not self._constant(weight) or self._constant(data):
            return self._float(op, args)
        inputs = self._as_input(data), self._marked(weight.name, "weight")
        return _Value(self._new.forward(op, inputs), "activation")

    def _add(self, op: Call, args: list[_Value]) -> _Value:
        """Of two activations one becomes input codes: the second, or the first where that has
        other readers, which want such codes, and the second has none."""
        kinds = [value.kind for value in args]
        if kinds == [None, None]:
            return self._float(op, args)
        shared = [len(self._readers[name]) > 1 for name in op.inputs]
        narrow = 0 if shared == [True, False] else 1
        names = [
            self._summand(value, other, narrow=n == narrow)
            for n, (value, other) in enumerate(zip(args, args[::-1], strict=True))
        ]
        return _Value(self._new.forward(op, tuple(names)), "activation")

    def _summand(self, value: _Value, other: _Value, *, narrow: bool) -> str:
        if self._constant(value):
            return self._marked(
                value.name, "activation" if other.kind == "activation" else "weight"
            )
        if value.kind is None:
            return self._marked(value.name, "input")
        both = value.kind == other.kind == "activation"
        return self._as_input(value) if both and narrow else value.name

    def _same(self, op: Call, args: list[_Value]) -> _Value:
        (value,) = args
        if value.kind is None:
            return self._float(op, args)
        return _Value(self._new.forward(op, (value.name,)), value.kind)

    def _moved(self, op: Call, args: list[_Value]) -> _Value:
        """Operators that only choose or move elements; padding adds real zeros."""
        if all(value.kind is None for value in args) or not _moves(op):
            return self._float(op, args)
        names = tuple(map(self._as_input, args))
        return _Value(self._new.forward(op, names), "input")


def _moves(op: Call) -> bool:
    return op.op != "nn.pad" or attributes_of(op.op, op.attrs)["pad_value"] == 0


_RULES: Mapping[str, Callable[[_Annotator, Call, list[_Value]], _Value]] = {
    "nn.conv2d": _Annotator._conv2d,
    "nn.dense": _Annotator._dense,
    "add": _Annotator._add,
    **dict.fromkeys(SAME, _Annotator._same),
    **dict.fromkeys(MOVED, _Annotator._moved),
}
