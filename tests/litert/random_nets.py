"""Random TFLite networks of every operator that takes images, with ties provoked."""

from collections.abc import Callable

from litert.layers import Layers
from litert.writer import Tensor

__all__ = ["random_net"]

_LARGEST = 600
"""Elements of an image beyond which it is not made larger."""


def random_net(seed: int) -> bytes:
    """An input, four to nine random operators, and all images that nothing reads as outputs."""
    m = Layers(seed)
    rng = m.rng
    height, width, channels = (int(v) for v in (*rng.integers(3, 11, 2), rng.integers(1, 20)))
    scale = float(rng.choice([0.5, 0.25, 0.02, rng.uniform(0.005, 0.1)]))
    images = [m.input((int(rng.integers(1, 3)), height, width, channels), scale, _zero(m))]
    unread: list[Tensor] = []
    for _ in range(int(rng.integers(4, 10))):
        x = images[int(rng.integers(len(images)))]
        kind = _KINDS[int(rng.integers(len(_KINDS)))]
        y = kind(m, x, images)
        unread = [image for image in unread if image is not x] + [y]
        images.append(y)
    last = images[-1]
    head = m.softmax(m.dense(last, 10, per_channel=bool(rng.integers(2))))
    return m.model(head, *unread)


def _zero(m: Layers) -> int:
    return int(m.rng.choice([-128, 0, 127, int(m.rng.integers(-128, 128))]))


def _result_scale(m: Layers, x: Tensor) -> float | None:
    """One for which sums often lie half-way between two codes, or what spreads the results."""
    return x.scale / (40 * 1.7) * float(2 ** m.rng.integers(4, 9)) if m.rng.integers(2) else None


def _conv(m: Layers, x: Tensor, _: list[Tensor]) -> Tensor:
    rng = m.rng
    kernel = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    return m.conv(
        x,
        int(rng.integers(1, 24)),
        kernel,
        strides=(1, 1) if x.shape[1] < 4 else (int(rng.integers(1, 3)), 1),
        padding=int(min(kernel) <= min(x.shape[1:3]) and max(kernel) == 1),
        activation=int(rng.choice([0, 0, 1, 3])),
        per_channel=bool(rng.integers(2)),
        scale=_result_scale(m, x),
        zero=_zero(m),
    )


def _depthwise(m: Layers, x: Tensor, _: list[Tensor]) -> Tensor:
    small = x.shape[3] < 10
    return m.depthwise(
        x,
        (int(m.rng.integers(1, 4)), int(m.rng.integers(1, 4))),
        multiplier=int(m.rng.integers(1, 4)) if small else 1,
        per_channel=bool(m.rng.integers(2)),
        activation=int(m.rng.choice([0, 1, 3])),
        scale=_result_scale(m, x),
        zero=_zero(m),
    )


def _binary(m: Layers, x: Tensor, images: list[Tensor]) -> Tensor:
    others = [image for image in images if image.shape == x.shape]
    other = others[int(m.rng.integers(len(others)))]
    name = str(m.rng.choice(["ADD", "SUB", "MUL"]))
    plain = max(x.scale, other.scale) * float(m.rng.choice([1, 2]))
    scale = plain if name != "MUL" and m.rng.integers(2) else None
    return m.binary(name, x, other, activation=int(m.rng.choice([0, 1])), scale=scale)


def _pool(m: Layers, x: Tensor, _: list[Tensor]) -> Tensor:
    name = str(m.rng.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
    kernel = (min(2, x.shape[1]), min(int(m.rng.integers(1, 4)), x.shape[2]))
    return m.pool(name, x, kernel, padding=int(m.rng.integers(2)))


def _mean(m: Layers, x: Tensor, _: list[Tensor]) -> Tensor:
    same = bool(m.rng.integers(2))
    return m.mean(x, None if same else x.scale * 0.7, None if same else _zero(m), keep=True)


def _unary(m: Layers, x: Tensor, _: list[Tensor]) -> Tensor:
    name = str(m.rng.choice([*_UNARY]))
    if name in ("LOGISTIC", "TANH"):
        return m.unary(name, x, *((1 / 256, -128) if name == "LOGISTIC" else (1 / 128, 0)))
    options, fields = _UNARY[name]
    factor = float(m.rng.choice([1, 2, m.rng.uniform(0.5, 2)]))
    return m.unary(name, x, x.scale * factor, _zero(m), options, **fields)


_UNARY = {
    "RELU": ("", {}),
    "RELU6": ("", {}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.25}),
    "HARD_SWISH": ("HardSwishOptions", {}),
    "QUANTIZE": ("QuantizeOptions", {}),
    "LOGISTIC": ("", {}),
    "TANH": ("", {}),
}


def _pad(m: Layers, x: Tensor, _: list[Tensor]) -> Tensor:
    if x.shape[1] * x.shape[2] * x.shape[3] > _LARGEST:
        return _pool(m, x, _)
    widths = [(0, 0), *((int(a), int(b)) for a, b in m.rng.integers(0, 3, (2, 2))), (0, 0)]
    return m.pad(x, widths, fill=int(m.rng.integers(-128, 128)) if m.rng.integers(2) else None)


def _concat(m: Layers, x: Tensor, _: list[Tensor]) -> Tensor:
    if x.shape[1] * x.shape[2] * x.shape[3] > _LARGEST:
        return _mean(m, x, _)
    return m.concat([x, m.unary("RELU", x, x.scale, x.zero)], int(m.rng.integers(1, 4)))


_KINDS: tuple[Callable[[Layers, Tensor, list[Tensor]], Tensor], ...] = (
    _conv,
    _conv,
    _depthwise,
    _binary,
    _pool,
    _mean,
    _unary,
    _pad,
    _concat,
)
