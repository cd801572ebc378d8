"""BatchNormalization in inference.

On a tensor: s = scale / sqrt(variance + epsilon), t = bias - mean * s, x * s + t, step by step in
float32. On the unrounded sums of a convolution: the sums change their unit by |s|, their sign by
that of s, and get rne(t / unit) added, as a float bias would be; s = 0 leaves t alone.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from oracle.accumulate import bias_steps
from oracle.graph import Node
from oracle.values import Accumulated, Array, Value, materialise

__all__ = ["OPERATORS"]


def _batch_normalization(node: Node, args: Sequence[Value | None]) -> Value:
    if node.get("training_mode", 0):
        raise node.fail("needs training_mode 0, got 1")
    x = args[0]
    scale, bias, mean, variance = (_vector(node, args, i) for i in range(1, 5))
    s = scale / np.sqrt(variance + np.float32(node.get("epsilon", 1e-5)))
    t = bias - mean * s
    if x is None:
        raise node.fail("needs an input, got an empty name")
    per_row = isinstance(x, Accumulated) and x.scale.ndim == 1 and x.total.ndim > 2
    if isinstance(x, Accumulated) and not x.bounds and not per_row:
        return _on_sums(node, x, s, t)
    array = materialise(x)
    shape = (-1, *[1] * (array.ndim - 2))
    return array * s.reshape(shape) + t.reshape(shape)


def _on_sums(node: Node, x: Accumulated, s: Array, t: Array) -> Value:
    shape = (-1, *[1] * (x.total.ndim - 2))
    gain = np.where(s == 0, np.float32(1), np.abs(s)).reshape(shape)
    unit = gain * np.broadcast_to(x.scale, (1, s.size, *[1] * (x.total.ndim - 2)))[0]
    steps = bias_steps(node, t, unit.reshape(-1)).reshape(shape)
    total = x.total * np.sign(s).astype(np.int64).reshape(shape) + steps
    return replace(x, total=total, scale=unit[None])


def _vector(node: Node, args: Sequence[Value | None], index: int) -> Array:
    value = args[index]
    if value is None:
        raise node.fail(f"needs input {index}, got an empty name")
    return materialise(value)


OPERATORS = {("", "BatchNormalization"): _batch_normalization}
