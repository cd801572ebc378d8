"""Groups that pool, join, cut, move or repeat elements."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from fuzz.network import Network, Operand, Tensor

__all__ = ["argmax", "concat", "global_average", "linear_resize", "mean", "move", "pool", "split"]

_Moved = tuple[str, list[str], dict[str, Any], tuple[int, ...]]
"""Operator, its further inputs, attributes, and the result's shape."""


def pool(net: Network, x: Tensor) -> Tensor:
    """MaxPool or AveragePool with ceil mode and pads; QLinearAveragePool.

    Where ceil mode adds a window that is left out again, for it would start behind the image,
    onnxruntime's shapes disagree with its kernels: there is no ceil mode then.
    """
    op = net.pick("MaxPool", "AveragePool")
    spatial = x.shape[2:]
    kernel = [min(net.number(1, 4), n) for n in spatial]
    strides = [net.number(1, 3) for _ in spatial]
    pads = [net.number(0, (k - 1) // 2) for k in (*kernel, *kernel)]
    before, after = pads[: len(kernel)], pads[len(kernel) :]
    ceil = net.number(0, 1)
    windows = list(zip(spatial, before, after, kernel, strides, strict=True))
    if any(-(-(n + a + b - k) // s) * s >= n + a for n, a, b, k, s in windows):
        ceil = 0  # the last window would start behind the image
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    attributes["ceil_mode"] = ceil
    if op == "AveragePool":
        attributes["count_include_pad"] = net.number(0, 1)
    sizes = [(n + a + b - k + ceil * (s - 1)) // s + 1 for n, a, b, k, s in windows]
    y = net.result(net.fresh("pool"), (*x.shape[:2], *sizes), x.spread / 2)
    if op == "MaxPool" and net.chance(0.3):  # on the codes themselves
        name = net.fresh("maxima")
        net.builder.node(op, [x.name], name, **attributes)
        x = net.like(x, name, y.shape)
        return net.rounded(net.real(x), y)
    if op == "AveragePool" and net.chance(0.3):
        return net.fused("QLinearAveragePool", [Operand(net.triple(x))], y, **attributes)
    return net.rounded(net.node(op, [net.real(x)], **attributes), y)


def global_average(net: Network, x: Tensor) -> Tensor:
    """GlobalAveragePool or QLinearGlobalAveragePool."""
    y = net.result(net.fresh("mean"), (*x.shape[:2], *[1] * (len(x.shape) - 2)), x.spread / 2)
    if net.chance():
        return net.fused("QLinearGlobalAveragePool", [Operand(net.triple(x))], y)
    return net.rounded(net.node("GlobalAveragePool", [net.real(x)]), y)


def mean(net: Network, x: Tensor) -> Tensor:
    """ReduceMean over the image; axes are an attribute up to opset 17."""
    keep = net.number(0, 1)
    source = [net.real(x)]
    attributes: dict[str, Any] = {"keepdims": keep}
    if net.builder.opset < 18:
        attributes["axes"] = net.pick([2, 3], [-1, -2])
    else:
        source.append(net.constant("axes", np.array(net.pick([2, 3], [-2, -1]))))
    shape = (*x.shape[:2], *([1, 1] if keep else []))
    y = net.result(net.fresh("mean"), shape, x.spread / 2)
    return net.rounded(net.node("ReduceMean", source, **attributes), y)


def concat(net: Network, x: Tensor) -> Tensor:
    """Two or three tensors along some axis, or QLinearConcat; scales differ or are one."""
    axis = net.number(1, len(x.shape) - 1)
    rest = [t for t in net.tensors if _fits(t, x, axis)]
    parts = [x, *(net.pick(*rest) for _ in range(net.number(1, 2)))]
    shape = list(x.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    y = net.result(net.fresh("joined"), tuple(shape), max(part.spread for part in parts))
    if net.chance():
        return net.fused("QLinearConcat", [Operand(net.triple(p)) for p in parts], y, axis=axis)
    return net.rounded(net.node("Concat", [net.real(part) for part in parts], axis=axis), y)


def split(net: Network, x: Tensor) -> Tensor:
    """The first of two parts; the other is an output of the graph."""
    axis = len(x.shape) - 1 if x.shape[1] < 2 else 1
    if x.shape[axis] < 2:
        return x
    first = net.number(1, x.shape[axis] - 1)
    sizes = (first, x.shape[axis] - first)
    parts = [
        net.like(x, net.fresh("part"), tuple(n if i == axis else m for i, m in enumerate(x.shape)))
        for n in sizes
    ]
    names = [x.name, net.constant("sizes", np.array(sizes))]
    net.builder.nodes("Split", names, [part.name for part in parts], axis=axis)
    return parts[0]


def move(net: Network, x: Tensor) -> Tensor:
    """An operator that only moves codes, behind a DequantizeLinear or on the codes."""
    kinds = [kind for kind in _MOVES if len(x.shape) == 4 or kind not in _IMAGES]
    found = _MOVES[net.pick(*kinds)](net, x)
    if found is None:
        return x
    op, more, attributes, shape = found
    name = net.fresh("moved")
    if op == "Pad" or net.chance():
        last = net.node(op, [net.real(x), *more], **attributes)
        return net.rounded(last, net.like(x, name, shape))
    net.builder.node(op, [x.name, *more], name, **attributes)
    return net.like(x, name, shape)


def linear_resize(net: Network, x: Tensor) -> Tensor:
    """Resize in mode linear, by whole factors or to sizes."""
    sizes = [net.number(n, 2 * n + 1) for n in x.shape[2:]]
    coordinates = net.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    names = [net.real(x), "", "", net.constant("sizes", np.array([*x.shape[:2], *sizes]))]
    attributes = {"mode": "linear", "coordinate_transformation_mode": coordinates}
    y = net.result(net.fresh("resized"), (*x.shape[:2], *sizes), x.spread)
    return net.rounded(net.node("Resize", names, **attributes), y)


def argmax(net: Network, x: Tensor) -> None:
    """Numbers of the largest elements, an output of the graph."""
    axis, keep = net.number(0, len(x.shape) - 1), net.number(0, 1)
    name = net.fresh("largest")
    names = [net.real(x)]
    last = net.number(0, 1)
    net.builder.node("ArgMax", names, name, axis=axis, keepdims=keep, select_last_index=last)
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape) if keep or i != axis)
    net.others[name] = (np.int64, shape)


def _transpose(net: Network, x: Tensor) -> _Moved:
    perm = [0, *(int(v) + 1 for v in net.rng.permutation(len(x.shape) - 1))]
    return "Transpose", [], {"perm": perm}, tuple(x.shape[i] for i in perm)


def _reshape(net: Network, x: Tensor) -> _Moved:
    if len(x.shape) == 4:
        given, shape = [0, x.shape[1], -1], (*x.shape[:2], prod(x.shape[2:]))
    else:
        given, shape = [x.shape[0], -1, 1], (x.shape[0], prod(x.shape[1:]), 1)
    return "Reshape", [net.constant("shape", np.array(given))], {}, shape


def _flatten(net: Network, x: Tensor) -> _Moved:
    axis = net.number(1, len(x.shape) - 1)
    return "Flatten", [], {"axis": axis}, (prod(x.shape[:axis]), prod(x.shape[axis:]))


def _unsqueeze(net: Network, x: Tensor) -> _Moved | None:
    if len(x.shape) > 3:
        return None
    return "Unsqueeze", [net.constant("axes", np.array([2]))], {}, (*x.shape[:2], 1, *x.shape[2:])


def _squeeze(net: Network, x: Tensor) -> _Moved | None:
    if len(x.shape) < 3 or x.shape[-1] != 1:
        return None
    return "Squeeze", [net.constant("axes", np.array([len(x.shape) - 1]))], {}, x.shape[:-1]


def _slice(net: Network, x: Tensor) -> _Moved:
    axis = net.number(1, len(x.shape) - 1)
    size, step = x.shape[axis], net.pick(1, 1, 2, -1)
    start = net.number(0, size - 1)
    whole = range(size)
    stop = start + net.number(1, size) if step > 0 else -size - 1
    kept = len(whole[start : stop if step > 0 else None : step])
    parts = (start, stop, axis, step)
    more = [net.constant("slice", np.array([value])) for value in parts]
    return "Slice", more, {}, tuple(kept if i == axis else n for i, n in enumerate(x.shape))


def _pad(net: Network, x: Tensor) -> _Moved:
    rank = len(x.shape)
    mode = net.pick("constant", "edge", "reflect")
    pads = [0] * 2 * rank
    for axis in range(2, rank):
        if x.shape[axis] > 2:
            pads[axis], pads[rank + axis] = net.number(0, 2), net.number(0, 2)
    shape = tuple(n + pads[i] + pads[rank + i] for i, n in enumerate(x.shape))
    more = [net.constant("pads", np.array(pads))]
    more += [net.constant("fill", 0, np.float32)] if mode == "constant" else []
    return "Pad", more, {"mode": mode}, shape


def _gather(net: Network, x: Tensor) -> _Moved:
    axis = net.number(1, len(x.shape) - 1)
    index = net.rng.integers(-x.shape[axis], x.shape[axis], net.number(1, 4))
    shape = tuple(index.size if i == axis else n for i, n in enumerate(x.shape))
    return "Gather", [net.constant("index", index)], {"axis": axis}, shape


def _resize(net: Network, x: Tensor) -> _Moved:
    factors = [net.number(1, 3) for _ in x.shape[2:]]
    attributes = {
        "mode": "nearest",
        "coordinate_transformation_mode": net.pick("asymmetric", "half_pixel"),
        "nearest_mode": net.pick("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
    }
    sizes = [n * f for n, f in zip(x.shape[2:], factors, strict=True)]
    if net.chance():
        more = ["", net.constant("scales", [1, 1, *factors], np.float32)]
    else:
        more = ["", "", net.constant("sizes", np.array([*x.shape[:2], *sizes]))]
    return "Resize", more, attributes, (*x.shape[:2], *sizes)


def _depth_to_space(net: Network, x: Tensor) -> _Moved | None:
    n, channels, height, width = x.shape
    if channels % 4:
        return None
    attributes = {"blocksize": 2, "mode": net.pick("DCR", "CRD")}
    return "DepthToSpace", [], attributes, (n, channels // 4, 2 * height, 2 * width)


def _space_to_depth(net: Network, x: Tensor) -> _Moved | None:
    n, channels, height, width = x.shape
    if height % 2 or width % 2:
        return None
    return "SpaceToDepth", [], {"blocksize": 2}, (n, 4 * channels, height // 2, width // 2)


def _fits(t: Tensor, x: Tensor, axis: int) -> bool:
    """Whether `t` can stand beside `x` along an axis."""
    if len(t.shape) != len(x.shape):
        return False
    pairs = zip(t.shape, x.shape, strict=True)
    return all(i == axis or a == b for i, (a, b) in enumerate(pairs))


_MOVES: dict[str, Callable[[Network, Tensor], _Moved | None]] = {
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Slice": _slice,
    "Pad": _pad,
    "Gather": _gather,
    "Resize": _resize,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
_IMAGES = ("Resize", "DepthToSpace", "SpaceToDepth")
