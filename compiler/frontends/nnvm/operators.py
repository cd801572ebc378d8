"""NNVM's operators as calls of the registry: one function each."""

from collections.abc import Callable, Sequence

import numpy as np

from vitral.compiler.frontends.nnvm.attributes import Attributes
from vitral.compiler.ir.build import GraphBuilder
from vitral.errors import CompileError

__all__ = ["OPERATORS", "Translate"]

Translate = Callable[[GraphBuilder, str, Sequence[str], Attributes], str]
"""Appends calls that compute a node, the last one under its name; returns the result's name."""


def _conv(op: str) -> Translate:
    def translate(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
        attrs.only("layout", "NCHW")
        attrs.only("kernel_layout", "OIHW")
        attrs.only("out_layout", "__undef__", "NCHW")
        attrs.only("out_dtype", "same", "-1", "float32")
        bias = attrs.flag("use_bias", True)
        more = {}
        if op.endswith("transpose"):
            more["output_padding"] = attrs.wholes("output_padding", (0, 0))
        made = graph.call(
            op,
            *_taken(attrs, args, 3 if bias else 2)[:2],
            name=name,
            output=_sums(graph, name) if bias else name,
            channels=attrs.whole("channels"),
            kernel_size=attrs.wholes("kernel_size"),
            strides=attrs.wholes("strides", (1, 1)),
            padding=attrs.wholes("padding", (0, 0)),
            dilation=attrs.wholes("dilation", (1, 1)),
            groups=attrs.whole("groups", 1),
            **more,
        )
        return _biased(graph, made, args[2], name) if bias else made

    return translate


def _dense(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    bias = attrs.flag("use_bias", True)
    x, weight = _taken(attrs, args, 3 if bias else 2)[:2]
    if len(graph.types[x].shape) != 2:
        raise CompileError(f"{attrs.where}: needs rows of inputs (N, C), got {graph.types[x]}")
    units = attrs.whole("units")
    output = _sums(graph, name) if bias else name
    made = graph.call("nn.dense", x, weight, name=name, output=output, units=units)
    return _biased(graph, made, args[2], name) if bias else made


def _sums(graph: GraphBuilder, name: str) -> str:
    return graph.fresh(f"{name}.sums")


def _biased(graph: GraphBuilder, sums: str, bias: str, name: str) -> str:
    return graph.call("nn.bias_add", sums, bias, name=f"{name}.bias", output=name)


def _batch_norm(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    x, gamma, beta, mean, variance = _taken(attrs, args, 5)
    axis, rank = attrs.whole("axis", 1), len(graph.types[x].shape)
    if not -rank <= axis < rank:
        raise attrs.misfit("axis", f"an axis of {graph.types[x]}", axis)
    return graph.call(
        "nn.batch_norm",
        x,
        gamma,
        beta,
        mean,
        variance,
        name=name,
        axis=axis % rank,
        epsilon=attrs.real("epsilon", 1e-5),
        center=attrs.flag("center", True),
        scale=attrs.flag("scale", True),
    )


def _pool(op: str) -> Translate:
    def translate(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
        attrs.only("layout", "NCHW")
        more = {}
        if op == "nn.avg_pool2d":
            more["count_include_pad"] = attrs.flag("count_include_pad", False)
        return graph.call(
            op,
            *_taken(attrs, args, 1),
            name=name,
            pool_size=attrs.wholes("pool_size"),
            strides=attrs.wholes("strides", (1, 1)),
            padding=attrs.wholes("padding", (0, 0)),
            ceil_mode=attrs.flag("ceil_mode", False),
            **more,
        )

    return translate


def _global_pool(op: str) -> Translate:
    def translate(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
        attrs.only("layout", "NCHW")
        return graph.call(op, *_taken(attrs, args, 1), name=name)

    return translate


def _plain(op: str, arity: int) -> Translate:
    def translate(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
        return graph.call(op, *_taken(attrs, args, arity), name=name)

    return translate


def _elementwise(op: str) -> Translate:
    """Of two values of one shape."""

    def translate(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
        a, b = _taken(attrs, args, 2)
        if graph.types[a] != graph.types[b]:
            raise CompileError(
                f"{attrs.where}: needs values of one type, got {graph.types[a]} and"
                f" {graph.types[b]}"
            )
        return graph.call(op, a, b, name=name)

    return translate


def _scalar(op: str, reverse: bool = False) -> Translate:
    def translate(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
        (x,) = _taken(attrs, args, 1)
        value = np.dtype(graph.types[x].dtype).type(attrs.real("scalar"))
        return graph.call(op, *((value, x) if reverse else (x, value)), name=name)

    return translate


def _leaky(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    alpha = attrs.real("alpha", 0.01)
    return graph.call("nn.leaky_relu", *_taken(attrs, args, 1), name=name, alpha=alpha)


def _prelu(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    return graph.call("nn.prelu", *_taken(attrs, args, 2), name=name, axis=attrs.whole("axis", 1))


def _clip(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    low, high = attrs.real("a_min"), attrs.real("a_max")
    return graph.call("clip", *_taken(attrs, args, 1), name=name, a_min=low, a_max=high)


def _concatenate(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    if not args:
        raise CompileError(f"{attrs.where}: needs at least one input, got none")
    return graph.call("concatenate", *args, name=name, axis=attrs.whole("axis", 1))


def _upsampling(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    attrs.only("layout", "NCHW")
    attrs.only("method", "NEAREST_NEIGHBOR")
    scale = attrs.whole("scale")
    return graph.call("nn.upsampling", *_taken(attrs, args, 1), name=name, scale=scale)


def _reshape(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    (x,) = _taken(attrs, args, 1)
    given, had = attrs.wholes("shape"), graph.types[x].shape
    if min(given, default=0) < -1 or any(v == 0 and i >= len(had) for i, v in enumerate(given)):
        raise attrs.misfit("shape", "sizes, 0 to keep one, or one -1", given)
    shape = tuple(had[i] if size == 0 else size for i, size in enumerate(given))
    return graph.call("reshape", x, name=name, newshape=shape)


def _softmax(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    return graph.call(
        "nn.softmax", *_taken(attrs, args, 1), name=name, axis=attrs.whole("axis", -1)
    )


def _dropout(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    rate = attrs.real("rate", 0.5)
    return graph.call("nn.dropout", *_taken(attrs, args, 1), name=name, rate=rate)


def _pad(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    (x,) = _taken(attrs, args, 1)
    widths = tuple(side for pair in attrs.pairs("pad_width") for side in pair)
    value = attrs.real("pad_value", 0.0)
    return graph.call("nn.pad", x, name=name, pad_width=widths, pad_value=value)


def _transpose(graph: GraphBuilder, name: str, args: Sequence[str], attrs: Attributes) -> str:
    (x,) = _taken(attrs, args, 1)
    axes = attrs.wholes("axes", ()) or tuple(reversed(range(len(graph.types[x].shape))))
    return graph.call("transpose", x, name=name, axes=axes)


def _taken(attrs: Attributes, args: Sequence[str], count: int) -> Sequence[str]:
    """The arguments, as many as the operator has."""
    if len(args) != count:
        raise CompileError(f"{attrs.where}: needs {count} inputs, got {len(args)}")
    return args


_TWO = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}

OPERATORS: dict[str, Translate] = {
    "conv2d": _conv("nn.conv2d"),
    "conv2d_transpose": _conv("nn.conv2d_transpose"),
    "dense": _dense,
    "batch_norm": _batch_norm,
    "relu": _plain("nn.relu", 1),
    "leaky_relu": _leaky,
    "prelu": _prelu,
    "sigmoid": _plain("sigmoid", 1),
    "tanh": _plain("tanh", 1),
    "exp": _plain("exp", 1),
    "copy": _plain("copy", 1),
    "clip": _clip,
    "max_pool2d": _pool("nn.max_pool2d"),
    "avg_pool2d": _pool("nn.avg_pool2d"),
    "global_max_pool2d": _global_pool("nn.global_max_pool2d"),
    "global_avg_pool2d": _global_pool("nn.global_avg_pool2d"),
    **{f"elemwise_{word}": _elementwise(op) for word, op in _TWO.items()},
    **{f"broadcast_{word}": _plain(op, 2) for word, op in _TWO.items()},
    **{f"__{word}_scalar__": _scalar(op) for word, op in _TWO.items()},
    "__rsub_scalar__": _scalar("subtract", reverse=True),
    "__rdiv_scalar__": _scalar("divide", reverse=True),
    "concatenate": _concatenate,
    "upsampling": _upsampling,
    "flatten": _plain("nn.batch_flatten", 1),
    "reshape": _reshape,
    "softmax": _softmax,
    "dropout": _dropout,
    "pad": _pad,
    "transpose": _transpose,
}
"""NNVM name to what translates it."""
