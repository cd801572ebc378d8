"""Calls as nodes of ONNX: one function for each operator that has a form there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from onnx import helper

from vitral.compiler.ir import Call, TensorType
from vitral.compiler.ir.operators.operator import Attrs, need
from vitral.compiler.ir.operators.shapes import four_pads, two

__all__ = ["FUSED", "WRITERS", "Writer"]


class Writer(Protocol):
    """Where nodes go."""

    def node(
        self, kind: str, inputs: Sequence[str], output: str | None = None, **attrs: Any
    ) -> str:
        """Append a node; its result's name, made up when it is None."""
        ...

    def array(self, value: npt.NDArray[Any]) -> str:
        """An initializer's name."""
        ...

    def type(self, name: str) -> TensorType:
        """Type of a value of the graph."""
        ...


Write = Callable[[Writer, Call, Attrs], None]


def _ints(values: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


def _plain(kind: str) -> Write:
    return _with(kind)


def _with(kind: str, **names: str) -> Write:
    """Attributes under ONNX's names."""

    def write(w: Writer, op: Call, attrs: Attrs) -> None:
        w.node(kind, op.inputs, op.output, **{new: attrs[old] for new, old in names.items()})

    return write


def window(attrs: Attrs) -> dict[str, Any]:
    return {
        "strides": two(attrs["strides"], "strides"),
        "pads": four_pads(attrs["padding"]),
        "dilations": two(attrs["dilation"], "dilation"),
    }


def _sums(kind: str, **fixed: Any) -> Write:
    """A convolution or matrix product of floats."""

    def write(w: Writer, op: Call, attrs: Attrs) -> None:
        dtype = w.type(op.output).dtype
        need(dtype.startswith("float"), f"has a form in ONNX for floats only, got {dtype}")
        more = dict(fixed)
        if kind in ("Conv", "ConvTranspose"):
            more = {**window(attrs), "group": attrs["groups"]}
        if kind == "ConvTranspose":
            more["output_padding"] = two(attrs["output_padding"], "output_padding", 0)
        _check_rank(w, kind, op)
        w.node(kind, op.inputs, op.output, **more)

    return write


def _check_rank(w: Writer, kind: str, op: Call) -> None:
    ranks = [len(w.type(name).shape) for name in op.inputs[:2]]
    need(kind != "Gemm" or ranks == [2, 2], f"needs matrices for ONNX's Gemm, got ranks {ranks}")


def _pool(kind: str) -> Write:
    def write(w: Writer, op: Call, attrs: Attrs) -> None:
        more = window(attrs)
        if kind == "AveragePool":
            more["count_include_pad"] = int(attrs["count_include_pad"])
        more["kernel_shape"] = two(attrs["pool_size"], "pool_size")
        w.node(kind, op.inputs, op.output, ceil_mode=int(attrs["ceil_mode"]), **more)

    return write


def _bias_add(w: Writer, op: Call, attrs: Attrs) -> None:
    x = w.type(op.inputs[0])
    behind = len(x.shape) - 1 - attrs["axis"] % len(x.shape)
    if not behind:
        w.node("Add", op.inputs, op.output)
        return
    shape = w.array(_ints([-1] + [1] * behind))
    w.node("Add", [op.inputs[0], w.node("Reshape", [op.inputs[1], shape])], op.output)


def _clip(w: Writer, op: Call, attrs: Attrs) -> None:
    dtype = w.type(op.output).dtype
    edges = [w.array(np.array(attrs[name], dtype)) for name in ("a_min", "a_max")]
    w.node("Clip", [*op.inputs, *edges], op.output)


def _round(w: Writer, op: Call, attrs: Attrs) -> None:
    """Halves away from zero, of exact parts: ONNX's Round takes them to even."""
    (x,), dtype = op.inputs, w.type(op.output).dtype
    size = w.node("Abs", [x])
    whole = w.node("Floor", [size])
    half = w.array(np.array(0.5, dtype))
    below = w.node("Less", [w.node("Sub", [size, whole]), half])
    up = w.node("Where", [below, w.array(np.array(0, dtype)), w.array(np.array(1, dtype))])
    w.node("Mul", [w.node("Sign", [x]), w.node("Add", [whole, up])], op.output)


def _cast(w: Writer, op: Call, attrs: Attrs) -> None:
    w.node(
        "Cast", op.inputs, op.output, to=helper.np_dtype_to_tensor_dtype(np.dtype(attrs["dtype"]))
    )


def _prelu(w: Writer, op: Call, attrs: Attrs) -> None:
    x = w.type(op.inputs[0])
    shape = w.array(_ints([-1] + [1] * (len(x.shape) - 1 - attrs["axis"])))
    w.node("PRelu", [op.inputs[0], w.node("Reshape", [op.inputs[1], shape])], op.output)


def _batch_norm(w: Writer, op: Call, attrs: Attrs) -> None:
    good = attrs["axis"] == 1 and attrs["center"] and attrs["scale"]
    need(good, "has a form in ONNX for axis=1 with center and scale only")
    w.node("BatchNormalization", op.inputs, op.output, epsilon=attrs["epsilon"])


def _reshape(w: Writer, op: Call, attrs: Attrs) -> None:
    shape = w.array(_ints(w.type(op.output).shape))
    w.node("Reshape", [*op.inputs, shape], op.output)


def _axes_behind(kind: str) -> Write:
    """Axes as a second input."""

    def write(w: Writer, op: Call, attrs: Attrs) -> None:
        axes = attrs["axis"]
        more = [] if axes is None else [w.array(_ints(axes))]
        keep = {"keepdims": int(attrs["keepdims"])} if "keepdims" in attrs else {}
        w.node(kind, [*op.inputs, *more], op.output, **keep)

    return write


def _argmax(w: Writer, op: Call, attrs: Attrs) -> None:
    axis, keep = attrs["axis"], int(attrs["keepdims"])
    need(axis is not None, "has a form in ONNX with an axis only")
    found = w.node("ArgMax", op.inputs, axis=axis[0], keepdims=keep)
    w.node("Cast", [found], op.output, to=6)


def _transpose(w: Writer, op: Call, attrs: Attrs) -> None:
    axes = attrs["axes"]
    rank = len(w.type(op.output).shape)
    order = tuple(reversed(range(rank))) if axes is None else tuple(a % rank for a in axes)
    w.node("Transpose", op.inputs, op.output, perm=order)


def _expand_dims(w: Writer, op: Call, attrs: Attrs) -> None:
    rank = len(w.type(op.inputs[0]).shape)
    first = attrs["axis"] % (rank + 1)
    axes = range(first, first + attrs["num_newaxis"])
    w.node("Unsqueeze", [*op.inputs, w.array(_ints(list(axes)))], op.output)


def _slice(w: Writer, op: Call, attrs: Attrs) -> None:
    begin, end, steps = attrs["begin"], attrs["end"], attrs["strides"]
    axes = range(len(begin)) if attrs["axes"] is None else attrs["axes"]
    parts = [begin, end, list(axes), steps or [1] * len(begin)]
    w.node("Slice", [*op.inputs, *(w.array(_ints(part)) for part in parts)], op.output)


def _split(w: Writer, op: Call, attrs: Attrs) -> None:
    """A slice: what `split` gives is one part."""
    from vitral.compiler.ir.operators.shaping import part_of

    axis, first, last = part_of(attrs, w.type(op.inputs[0]).shape)
    parts = [w.array(_ints([n])) for n in (first, last, axis)]
    w.node("Slice", [*op.inputs, *parts], op.output)


def _pad(w: Writer, op: Call, attrs: Attrs) -> None:
    width = attrs["pad_width"]
    value = w.array(np.array(attrs["pad_value"], w.type(op.output).dtype))
    pads = w.array(_ints([*width[0::2], *width[1::2]]))
    w.node("Pad", [*op.inputs, pads, value], op.output, mode=attrs["pad_mode"])


def _upsampling(w: Writer, op: Call, attrs: Attrs) -> None:
    before, behind = w.type(op.inputs[0]).shape, w.type(op.output).shape
    factors = np.array([b / a for a, b in zip(before, behind, strict=True)], np.float32)
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    w.node("Resize", [*op.inputs, "", w.array(factors)], op.output, mode="nearest", **modes)


def _maps(kind: str) -> Write:
    def write(w: Writer, op: Call, attrs: Attrs) -> None:
        codes = w.type(op.output if kind == "QuantizeLinear" else op.inputs[0]).dtype
        good = codes in ("int8", "uint8", "int32")
        need(good, f"has a form in ONNX for int8, uint8 and int32, got {codes}")
        rank = len(w.type(op.inputs[0]).shape)
        axes = {} if not w.type(op.inputs[1]).shape else {"axis": attrs["axis"] % rank}
        w.node(kind, op.inputs, op.output, **axes)

    return write


WRITERS: Mapping[str, Write] = {
    "add": _plain("Add"),
    "subtract": _plain("Sub"),
    "multiply": _plain("Mul"),
    "divide": _plain("Div"),
    "maximum": _plain("Max"),
    "minimum": _plain("Min"),
    "power": _plain("Pow"),
    "negative": _plain("Neg"),
    "abs": _plain("Abs"),
    "floor": _plain("Floor"),
    "ceil": _plain("Ceil"),
    "exp": _plain("Exp"),
    "log": _plain("Log"),
    "sqrt": _plain("Sqrt"),
    "erf": _plain("Erf"),
    "tanh": _plain("Tanh"),
    "sigmoid": _plain("Sigmoid"),
    "nn.relu": _plain("Relu"),
    "nn.leaky_relu": _with("LeakyRelu", alpha="alpha"),
    "nn.prelu": _prelu,
    "nn.softmax": _with("Softmax", axis="axis"),
    "nn.dropout": _plain("Identity"),
    "copy": _plain("Identity"),
    "device_copy": _plain("Identity"),
    "round": _round,
    "clip": _clip,
    "cast": _cast,
    "nn.conv2d": _sums("Conv"),
    "nn.conv2d_transpose": _sums("ConvTranspose"),
    "nn.dense": _sums("Gemm", transB=1),
    "matmul": _sums("MatMul"),
    "nn.bias_add": _bias_add,
    "nn.batch_norm": _batch_norm,
    "nn.max_pool2d": _pool("MaxPool"),
    "nn.avg_pool2d": _pool("AveragePool"),
    "nn.global_max_pool2d": _plain("GlobalMaxPool"),
    "nn.global_avg_pool2d": _plain("GlobalAveragePool"),
    "nn.upsampling": _upsampling,
    "reshape": _reshape,
    "nn.batch_flatten": _with("Flatten"),
    "squeeze": _axes_behind("Squeeze"),
    "expand_dims": _expand_dims,
    "transpose": _transpose,
    "concatenate": _with("Concat", axis="axis"),
    "strided_slice": _slice,
    "split": _split,
    "nn.pad": _pad,
    "sum": _axes_behind("ReduceSum"),
    "mean": _axes_behind("ReduceMean"),
    "max": _axes_behind("ReduceMax"),
    "min": _axes_behind("ReduceMin"),
    "argmax": _argmax,
    "qnn.quantize": _maps("QuantizeLinear"),
    "qnn.dequantize": _maps("DequantizeLinear"),
}
"""Operator to what writes its nodes, the last one giving the call's result."""

FUSED: Mapping[str, int] = {"nn.conv2d": 1, "nn.conv2d_transpose": 1, "nn.dense": -1, "matmul": -1}
"""Operators whose nodes take the bias of a `nn.bias_add` behind them, and its axis there."""
