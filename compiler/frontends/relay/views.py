"""ONNX operators that move elements as calls."""

from collections.abc import Callable

import numpy as np

from vitral.compiler.frontends.relay.scope import NodeScope

__all__ = ["OPERATORS"]

_FAR = 1 << 62


def _reshape(scope: NodeScope) -> str:
    wanted = [int(size) for size in scope.known(1)]
    if scope.integer("allowzero", 0):
        scope.unfit_unless(0 not in wanted)
    return scope.call("reshape", scope.need(0), newshape=tuple(wanted))


def _flatten(scope: NodeScope) -> str:
    shape = scope.type(0).shape
    axis = scope.integer("axis", 1)
    axis += len(shape) if axis < 0 else 0
    if axis == 1 and shape:
        return scope.call("nn.batch_flatten", scope.need(0))
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    return scope.call(
        "reshape", scope.need(0), newshape=(rows, int(np.prod(shape[axis:], dtype=np.int64)))
    )


def _squeeze(scope: NodeScope) -> str:
    axes = scope.numbers(1, "axes")
    return scope.call("squeeze", scope.need(0), axis=None if axes is None else tuple(axes))


def _unsqueeze(scope: NodeScope) -> str:
    axes = scope.numbers(1, "axes") or []
    rank = len(scope.type(0).shape) + len(axes)
    places = sorted(axis % rank for axis in axes)
    scope.unfit_unless(bool(places))
    value = scope.need(0)
    for axis in places[:-1]:
        value = scope.inner("expand_dims", value, axis=axis)
    return scope.call("expand_dims", value, axis=places[-1])


def _transpose(scope: NodeScope) -> str:
    perm = scope.node.attributes.get("perm")
    return scope.call("transpose", scope.need(0), axes=None if perm is None else tuple(perm))


def _concat(scope: NodeScope) -> str:
    args = [scope.need(i) for i in range(len(scope.args))]
    axis = scope.axis("axis", 1, len(scope.type(0).shape))
    return scope.call("concatenate", *args, axis=axis)


def _slice(scope: NodeScope) -> str:
    begin, end = scope.numbers(1, "starts"), scope.numbers(2, "ends")
    axes, steps = scope.numbers(3, "axes"), scope.numbers(4, "steps")
    scope.unfit_unless(begin is not None and end is not None)
    return scope.call(
        "strided_slice",
        scope.need(0),
        begin=tuple(max(-_FAR, n) for n in begin or ()),
        end=tuple(min(max(n, -_FAR), _FAR) for n in end or ()),
        axes=None if axes is None else tuple(axes),
        strides=None if steps is None or set(steps) == {1} else tuple(steps),
    )


def _split(scope: NodeScope) -> str:
    """One call for each part."""
    rank = len(scope.type(0).shape)
    axis = scope.axis("axis", 0, rank)
    size, parts = scope.type(0).shape[axis], len(scope.node.outputs)
    sizes = scope.numbers(1, "split")
    if sizes is None:
        most = -(-size // parts)
        sizes = [min(most, size - i * most) for i in range(parts)]
    scope.unfit_unless(len(sizes) == parts and sum(sizes) == size and min(sizes) >= 0)
    equal = len(set(sizes)) == 1
    sections = parts if equal else tuple(int(n) for n in np.cumsum(sizes)[:-1])
    for index, output in enumerate(scope.node.outputs):
        scope.builder.call(
            "split",
            scope.need(0),
            name=scope.node.name,
            output=output or scope.builder.fresh("part"),
            indices_or_sections=sections,
            axis=axis,
            index=index,
        )
    return scope.node.outputs[0]


def _pad(scope: NodeScope) -> str:
    pads = scope.numbers(1, "pads") or []
    rank = len(scope.type(0).shape)
    axes = None if scope.optional(3) is None else [int(a) % rank for a in scope.known(3)]
    axes = list(range(rank)) if axes is None else axes
    mode = scope.text("mode", "constant")
    good = len(pads) == 2 * len(axes) and min(pads, default=0) >= 0
    scope.unfit_unless(good and mode in ("constant", "edge", "reflect"))
    width = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        width[2 * axis : 2 * axis + 2] = pads[i], pads[i + len(axes)]
    value = scope.real("value", 0)
    if scope.optional(2) is not None:
        value = float(scope.known(2).reshape(())[()])
    return scope.call(
        "nn.pad", scope.need(0), pad_width=tuple(width), pad_value=value, pad_mode=mode
    )


def _resize(scope: NodeScope) -> str:
    """Nearest neighbours by whole factors, each element repeated."""
    shape = scope.type(0).shape
    scope.unfit_unless(scope.text("mode", "nearest") == "nearest" and len(shape) == 4)
    upsample = scope.node.op == "Upsample"
    where = scope.text("coordinate_transformation_mode", "half_pixel")
    how = scope.text("nearest_mode", "round_prefer_floor")
    centred = where in ("half_pixel", "pytorch_half_pixel") and how.startswith("round_prefer")
    same = centred or (where, how) == ("asymmetric", "floor")
    scope.unfit_unless(upsample or scope.node.opset == 10 or same)
    scope.unfit_unless("axes" not in scope.node.attributes)
    factors = _factors(scope, shape, 1 if upsample or scope.node.opset == 10 else 2)
    scope.unfit_unless(factors[:2] == [1, 1] and min(factors) >= 1)
    high, wide = factors[2:]
    if high == wide:
        return scope.call("nn.upsampling", scope.need(0), scale=high)
    return scope.call("nn.upsampling", scope.need(0), scale_h=high, scale_w=wide)


def _factors(scope: NodeScope, shape: tuple[int, ...], index: int) -> list[int]:
    given = scope.node.attributes.get("scales")
    if given is None and scope.optional(index) is not None:
        given = scope.known(index)
    if given is None or len(given) == 0:
        sizes = [int(n) for n in scope.known(3)]
        given = [n / s for n, s in zip(sizes, shape, strict=True)]
    factors = [float(f) for f in given]
    scope.unfit_unless(len(factors) == 4 and all(f == int(f) for f in factors))
    return [int(f) for f in factors]


def _identity(op: str) -> Callable[[NodeScope], str]:
    def identity(scope: NodeScope) -> str:
        return scope.call(op, scope.need(0))

    return identity


OPERATORS: dict[str, Callable[[NodeScope], str]] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Concat": _concat,
    "Slice": _slice,
    "Split": _split,
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _resize,
    "Dropout": _identity("nn.dropout"),
    "Identity": _identity("copy"),
}
"""ONNX operator to its import function, which gives the result's name or raises Unfit."""
