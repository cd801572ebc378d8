"""Random graphs of integers, as quantization with a global scale leaves them."""

import numpy as np

from vitral.compiler.ir import Graph, GraphBuilder, TensorType

__all__ = ["random_graph"]

Shape = tuple[int, ...]


def random_graph(seed: int, layers: int = 4, most: int = 12) -> Graph:
    """Convolutions, pools, sums and concatenations of int8 images, and perhaps a dense layer."""
    return _Maker(np.random.default_rng(seed), most).graph(layers)


class _Maker:
    def __init__(self, rng: np.random.Generator, most: int) -> None:
        self._rng = rng
        shape = (int(rng.integers(1, 4)), int(rng.integers(1, 40)), *rng.integers(1, most + 1, 2))
        first = TensorType(tuple(map(int, shape)), "int8")
        self._build = GraphBuilder({"data": first})
        self._values = ["data"]

    def graph(self, layers: int) -> Graph:
        kinds = [self._conv, self._pool, self._sum, self._joined]
        for number in range(layers):
            kind = kinds[self._int(0, 3) if number else 0]
            self._values.append(kind(self._values[-1]))
        result = self._values[-1]
        if self._rng.random() < 0.5:
            result = self._dense(result)
        return self._build.graph(result)

    def _shape(self, name: str) -> Shape:
        return self._build.types[name].shape

    def _int(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))

    def _maybe(self) -> bool:
        return bool(self._rng.random() < 0.5)

    def _int8(self, *shape: int) -> np.ndarray:
        return self._rng.integers(-128, 128, shape).astype(np.int8)

    def _window(self, shape: Shape) -> tuple[list[int], dict]:
        """A kernel with attributes so that there is a result."""
        while True:
            kernel = [self._int(1, 4), self._int(1, 4)]
            dilation = [self._int(1, 2), self._int(1, 2)]
            padding = [self._int(0, 3) for _ in range(4)]
            extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
            room = [shape[2 + i] + padding[i] + padding[2 + i] - extents[i] for i in range(2)]
            if min(room) >= 0:
                strides = [self._int(1, 3), self._int(1, 3)]
                return kernel, {"strides": strides, "padding": padding, "dilation": dilation}

    def _conv(self, name: str) -> str:
        channels = self._shape(name)[1]
        groups = int(self._rng.choice([g for g in range(1, channels + 1) if channels % g == 0]))
        outs = groups * self._int(1, max(1, 40 // groups))
        kernel, attrs = self._window(self._shape(name))
        weight = self._int8(outs, channels // groups, *kernel)
        sums = self._build.call(
            "nn.conv2d", name, weight, groups=groups, out_dtype="int32", **attrs
        )
        return self._behind(sums, self._int(3, 12))

    def _dense(self, name: str) -> str:
        flat = self._build.call("nn.batch_flatten", name)
        weight = self._int8(self._int(1, 20), self._shape(flat)[1])
        sums = self._build.call("nn.dense", flat, weight, out_dtype="int32")
        return self._behind(sums, self._int(3, 12))

    def _pool(self, name: str) -> str:
        kernel, attrs = self._window(self._shape(name))
        return self._build.call(
            "nn.max_pool2d", name, pool_size=kernel, ceil_mode=self._maybe(), **attrs
        )

    def _sum(self, name: str) -> str:
        wide = self._build.call("cast", name, dtype="int32")
        if self._maybe():
            wide = self._build.call("left_shift", wide, np.int32(self._int(0, 6)))
        return self._behind(wide, self._int(0, 6), sums=True)

    def _joined(self, name: str) -> str:
        like = [other for other in self._values if self._fits(name, other)]
        parts = [name, *self._rng.choice(like, self._int(1, 2))]
        return self._build.call("concatenate", *map(str, parts), axis=1)

    def _fits(self, name: str, other: str) -> bool:
        shape, its = self._shape(name), self._shape(other)
        return len(its) == 4 and (shape[0], *shape[2:]) == (its[0], *its[2:])

    def _behind(self, name: str, shift: int, *, sums: bool = False) -> str:
        """Bias, sums with other values, ReLU, rounding, shift, limits and the cast, in part."""
        build, shape = self._build, self._shape(name)
        if self._maybe():
            bias = self._rng.integers(-(1 << 14), 1 << 14, shape[1])
            column = bias.reshape(-1, *(1,) * (len(shape) - 2)).astype(np.int32)
            name = build.call("add", name, column)
        others = [other for other in self._values if self._shape(other) == shape]
        for _ in range(self._int(int(sums), 2) if others else 0):
            other = build.call("cast", str(self._rng.choice(others)), dtype="int32")
            if self._maybe():
                other = build.call("left_shift", other, np.int32(self._int(1, 9)))
            name = build.call("add", *((name, other) if self._maybe() else (other, name)))
        if self._maybe():
            name = build.call("nn.relu", name)
        if self._maybe():
            name = build.call("add", name, np.int32(1 << shift >> 1))
        name = build.call("right_shift", name, np.int32(shift))
        if self._rng.random() < 0.8:
            limit = (1 << self._int(2, 7)) - 1
            name = build.call("clip", name, a_min=-limit, a_max=limit)
        return build.call("cast", name, dtype="int8")
