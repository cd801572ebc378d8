"""Element-wise operators, reductions and quantization of ONNX as calls."""

from collections.abc import Callable

import numpy as np
import onnx

from vitral.compiler.frontends.relay.scope import Argument, NodeScope, Unfit

__all__ = ["OPERATORS"]


def _plain(op: str, count: int = 1) -> Callable[[NodeScope], str]:
    def plain(scope: NodeScope) -> str:
        scope.unfit_unless(len(scope.args) == count)
        return scope.call(op, *(scope.need(i) for i in range(count)))

    return plain


def _floats(op: str) -> Callable[[NodeScope], str]:
    def floats(scope: NodeScope) -> str:
        scope.unfit_unless(scope.type(0).dtype.startswith("float"))
        return scope.call(op, scope.need(0))

    return floats


def _clip(scope: NodeScope) -> str:
    low, high = _edge(scope, 1, "min", -np.inf), _edge(scope, 2, "max", np.inf)
    scope.unfit_unless(scope.type(0).dtype.startswith("float"))
    return scope.call("clip", scope.need(0), a_min=low, a_max=high)


def _edge(scope: NodeScope, index: int, name: str, default: float) -> float:
    if scope.optional(index) is not None:
        return float(scope.known(index).reshape(())[()])
    return scope.real(name, default)


def _leaky(scope: NodeScope) -> str:
    return scope.call("nn.leaky_relu", scope.need(0), alpha=scope.real("alpha", 0.01))


def _prelu(scope: NodeScope) -> str:
    x, slope = scope.type(0), scope.type(1)
    rank = len(x.shape)
    sizes = [1] * (rank - len(slope.shape)) + list(slope.shape)
    wanted = [size if i == 1 else 1 for i, size in enumerate(x.shape)]
    scope.unfit_unless(rank >= 2 and sizes == wanted)
    given = scope.need(1)
    if isinstance(given, str):
        given = scope.inner("reshape", given, newshape=(x.shape[1],))
    else:
        given = given.reshape(x.shape[1])
    return scope.call("nn.prelu", scope.need(0), given)


def _softmax(scope: NodeScope) -> str:
    """Before opset 13 the axes behind `axis` were flattened."""
    rank = len(scope.type(0).shape)
    modern = scope.node.opset >= 13
    axis = scope.axis("axis", -1 if modern else 1, rank)
    scope.unfit_unless(modern or axis == rank - 1)
    return scope.call("nn.softmax", scope.need(0), axis=-1 if axis == rank - 1 else axis)


def _cast(scope: NodeScope) -> str:
    number = scope.integer("to", 0)
    try:
        dtype = str(onnx.helper.tensor_dtype_to_np_dtype(number))
    except KeyError:
        raise scope.node.fail(f"needs an element type as attribute to, got {number}") from None
    from vitral.compiler.ir.operators.operator import FLOATS, INTEGERS

    scope.unfit_unless(dtype in ("bool", *FLOATS, *INTEGERS))
    return scope.call("cast", scope.need(0), dtype=dtype)


def _reduce(op: str) -> Callable[[NodeScope], str]:
    def reduce(scope: NodeScope) -> str:
        axes = scope.numbers(1, "axes")
        scope.unfit_unless(not (scope.integer("noop_with_empty_axes", 0) and not axes))
        if op == "mean":
            scope.unfit_unless(scope.type(0).dtype.startswith("float"))
        keep = bool(scope.integer("keepdims", 1))
        return scope.call(op, scope.need(0), axis=tuple(axes) if axes else None, keepdims=keep)

    return reduce


def _argmax(scope: NodeScope) -> str:
    scope.unfit_unless(not scope.integer("select_last_index", 0))
    axis, keep = scope.integer("axis", 0), bool(scope.integer("keepdims", 1))
    found = scope.inner("argmax", scope.need(0), axis=(axis,), keepdims=keep)
    return scope.call("cast", found, dtype="int64")


def _maps(scope: NodeScope, dtype: str) -> tuple[Argument, Argument]:
    """Scale and zero point; one of a single element is a scalar."""
    scope.unfit_unless(not scope.integer("block_size", 0))
    scale, zero = scope.single(1), scope.optional(2)
    if zero is None:
        return scale, np.zeros(() if scope.type(1).size == 1 else scope.type(1).shape, dtype)
    return scale, scope.single(2)


def _axis(scope: NodeScope) -> int:
    """Of maps along an axis; -1 where there is none, as the registry's default."""
    rank, maps = len(scope.type(0).shape), scope.type(1)
    if maps.size == 1:
        return -1
    axis = scope.axis("axis", 1, rank)
    return -1 if axis == rank - 1 else axis


def _quantize(scope: NodeScope) -> str:
    default = "uint8"
    if scope.optional(2) is not None:
        default = scope.type(2).dtype
    elif scope.integer("output_dtype", 0):
        raise Unfit
    scale, zero = _maps(scope, default)
    scope.unfit_unless(default in ("int8", "uint8", "int16", "uint16"))
    scope.unfit_unless(scope.type(0).dtype == "float32")
    return scope.call(
        "qnn.quantize", scope.need(0), scale, zero, axis=_axis(scope), out_dtype=default
    )


def _dequantize(scope: NodeScope) -> str:
    scale, zero = _maps(scope, scope.type(0).dtype)
    scope.unfit_unless(scope.type(1).dtype == "float32")
    return scope.call("qnn.dequantize", scope.need(0), scale, zero, axis=_axis(scope))


OPERATORS: dict[str, Callable[[NodeScope], str]] = {
    "Add": _plain("add", 2),
    "Sub": _plain("subtract", 2),
    "Mul": _plain("multiply", 2),
    "Div": _plain("divide", 2),
    "Max": _plain("maximum", 2),
    "Min": _plain("minimum", 2),
    "Pow": _plain("power", 2),
    "Neg": _plain("negative"),
    "Abs": _plain("abs"),
    "Floor": _plain("floor"),
    "Ceil": _plain("ceil"),
    "Exp": _floats("exp"),
    "Log": _floats("log"),
    "Sqrt": _floats("sqrt"),
    "Erf": _floats("erf"),
    "Tanh": _floats("tanh"),
    "Sigmoid": _floats("sigmoid"),
    "Relu": _plain("nn.relu"),
    "LeakyRelu": _leaky,
    "PRelu": _prelu,
    "Clip": _clip,
    "Softmax": _softmax,
    "Cast": _cast,
    "ReduceMean": _reduce("mean"),
    "ReduceSum": _reduce("sum"),
    "ReduceMax": _reduce("max"),
    "ReduceMin": _reduce("min"),
    "ArgMax": _argmax,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
}
"""ONNX operator to its import function, which gives the result's name or raises Unfit."""
