"""Turns a calibrated graph into one that computes with integers."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from vitral.compiler.ir import Call, Graph
from vitral.compiler.ir.operators import attributes_of
from vitral.compiler.ir.operators.arithmetic import round_away
from vitral.compiler.quantize.global_scale.annotate import MOVED, PRODUCTS, SAME, SIMULATED
from vitral.compiler.quantize.global_scale.codes import INT32_MAX, Coder, Codes
from vitral.compiler.quantize.global_scale.qconfig import QConfig
from vitral.compiler.quantize.global_scale.rewriter import Rewriter, call_of
from vitral.errors import CompileError

__all__ = ["realize"]

_Value = str | Codes


def realize(graph: Graph, qconfig: QConfig | None = None) -> Graph:
    """The integer graph of a calibrated one.

    Activations that products read are int8, sums int32. A change of scale is an addition of half a
    unit, a right shift, which rounds down, and a clip to the limits; of two summands that with the
    larger scale is shifted left. No int32 wraps around: sums that could are refused.

    Raises
    ------
    CompileError
        In one line naming the operator, when int32 does not hold a sum, or an annotation has no
        scale.
    """
    return _Realizer(graph, qconfig or QConfig()).run()


class _Realizer:
    def __init__(self, graph: Graph, config: QConfig) -> None:
        self._graph = graph
        self._config = config
        self._new = Rewriter(graph)
        self._coder = Coder(self._new.build, config)
        self._values: dict[str, _Value] = {name: name for name in (*graph.inputs, *graph.constants)}

    def run(self) -> Graph:
        for op in map(call_of, self._graph.ops):
            args = [self._values[name] for name in op.inputs]
            codes = [value for value in args if isinstance(value, Codes)]
            rule = _RULES.get(op.op)
            if op.op == SIMULATED:
                self._values[op.output] = self._simulated(op, args)
            elif rule is not None and len(codes) == len(args):
                self._values[op.output] = rule(self, op, codes)
            else:
                names = tuple(map(self._real, args))
                self._values[op.output] = self._new.forward(op, names)
        outputs = [self._values[name] for name in self._graph.outputs]
        return self._new.finish(tuple(map(self._real, outputs)))

    def _real(self, value: _Value) -> str:
        return self._coder.real(value) if isinstance(value, Codes) else value

    def _simulated(self, op: Call, args: list[_Value]) -> Codes:
        if len(args) != 4:
            raise CompileError(f"node {op.name!r}: needs a scale and limits; calibrate the graph")
        value = args[0]
        scale, _, limit = (float(self._graph.constants[name]) for name in op.inputs[1:])
        if op.attrs["kind"] != "input":
            return self._constant(op, scale, min(int(limit), INT32_MAX))
        if isinstance(value, Codes):
            return self._coder.lowered(value, scale)
        return self._coder.from_real(value, scale)

    def _constant(self, op: Call, scale: float, limit: int) -> Codes:
        """Codes of a weight, or of a constant summand in units of the sum."""
        values = self._graph.constants[op.inputs[0]].astype(np.float64)
        codes = round_away(values / scale)
        weight = op.attrs["kind"] == "weight"
        if not weight and np.abs(codes).max(initial=0) > limit:
            raise CompileError(
                f"constant {op.inputs[0]!r}: needs magnitudes up to {limit * scale:g}, got"
                f" {np.abs(values).max():g}; int32 holds no more of the sum's units"
            )
        dtype = self._config.dtype_weight if weight else self._config.dtype_activation
        held = np.clip(codes, -limit, limit).astype(dtype)
        name = self._new.build.constant(held)
        return Codes(name, scale, dtype, int(np.abs(held.astype(np.int64)).max(initial=0)))

    def _product(self, op: Call, codes: list[Codes]) -> Codes:
        data, weight = self._coder.stored(codes[0]), codes[1]
        held = self._new.build.constants[weight.name].astype(np.int64)
        bound = data.bound * int(np.abs(held).reshape(len(held), -1).sum(axis=1).max(initial=0))
        dtype = self._config.dtype_activation
        name = self._new.forward(op, (data.name, weight.name), out_dtype=dtype)
        return self._bounded(op, Codes(name, data.scale * weight.scale, dtype, bound))

    def _add(self, op: Call, codes: list[Codes]) -> Codes:
        if sum(self._common(codes)) > INT32_MAX:
            codes = [self._narrowed(one) for one in codes]
        scale = min(one.scale for one in codes)
        parts = [self._summand(one, scale) for one in codes]
        bound = sum(part.bound for part in parts)
        name = self._new.forward(op, tuple(part.name for part in parts))
        return self._bounded(op, Codes(name, scale, self._config.dtype_activation, bound))

    @staticmethod
    def _common(codes: list[Codes]) -> list[int]:
        """Bounds of the summands in units of the smaller scale."""
        least = min(one.scale for one in codes)
        return [int(one.bound * (one.scale / least)) for one in codes]

    def _narrowed(self, codes: Codes) -> Codes:
        """A summand with as few bits as it can have."""
        if codes.low or codes.name in self._new.build.constants:
            return codes
        return self._coder.lowered(codes, float(np.float32(self._config.input_scale)))

    def _summand(self, codes: Codes, scale: float) -> Codes:
        """Shifted to the common scale; a constant at once."""
        values = self._new.build.constants.get(codes.name)
        if values is None:
            return self._coder.shifted(codes, scale)
        factor = round(codes.scale / scale)
        bound = codes.bound * factor
        if bound > INT32_MAX:
            raise CompileError(f"constant {codes.name!r}: needs int32 in units of {scale:g}")
        dtype = self._config.dtype_activation
        name = self._new.build.constant(values.astype(dtype) * np.array(factor, dtype))
        return Codes(name, scale, dtype, bound)

    def _bounded(self, op: Call, codes: Codes) -> Codes:
        if codes.bound > INT32_MAX:
            raise CompileError(
                f"node {op.name!r} ({op.op}): needs sums that int32 holds, got up to {codes.bound};"
                " use fewer bits of weights or inputs, or leave it out"
            )
        return codes

    def _relu(self, op: Call, codes: list[Codes]) -> Codes:
        return replace(codes[0], name=self._new.forward(op, (codes[0].name,)))

    def _clip(self, op: Call, codes: list[Codes]) -> Codes:
        """Limits in units of the codes, to the nearest."""
        (one,) = codes
        attrs = attributes_of(op.op, op.attrs)
        low, high = (
            round(min(max(attrs[name] / one.scale, -one.bound), one.bound))
            for name in ("a_min", "a_max")
        )
        name = self._new.forward(op, (one.name,), a_min=low, a_max=high)
        return replace(one, name=name, bound=min(one.bound, max(abs(low), abs(high))))

    def _moved(self, op: Call, codes: list[Codes]) -> Codes:
        held = [self._coder.stored(one) for one in codes]
        name = self._new.forward(op, tuple(one.name for one in held))
        return replace(held[0], name=name, bound=max(one.bound for one in held))


_RULES: Mapping[str, Callable[[_Realizer, Call, list[Codes]], Codes]] = {
    **dict.fromkeys(PRODUCTS, _Realizer._product),
    "add": _Realizer._add,
    **dict.fromkeys(SAME, _Realizer._relu),
    "clip": _Realizer._clip,
    **dict.fromkeys(MOVED, _Realizer._moved),
}
