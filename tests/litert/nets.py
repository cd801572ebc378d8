"""Whole TFLite networks with seeded weights, of the shapes that microcontrollers run."""

from litert.layers import Layers
from litert.writer import Tensor

__all__ = ["NETS", "ds_cnn", "mobile_block", "resnet8"]

VALID = 1
RELU, RELU6 = 1, 3


def ds_cnn(seed: int) -> bytes:
    """Keyword spotting: 49 x 10 features, a 10x4 convolution, four depthwise separable blocks."""
    m = Layers(seed)
    x = m.input((1, 49, 10, 1), 0.58, 83)
    x = m.conv(x, 64, (10, 4), strides=(2, 2), activation=RELU)
    for _ in range(4):
        x = m.depthwise(x, (3, 3), activation=RELU)
        x = m.conv(x, 64, activation=RELU)
    x = m.pool("AVERAGE_POOL_2D", x, (25, 5), strides=(25, 5), padding=VALID)
    logits = m.dense(m.reshape(x, (1, 64)), 12)
    return m.model(m.softmax(logits), logits, x)


def resnet8(seed: int) -> bytes:
    """CIFAR-10: three residual stages of 16, 32 and 64 channels."""
    m = Layers(seed)
    x = m.conv(m.input((1, 32, 32, 3), 1 / 255, -128), 16, (3, 3), activation=RELU)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        strides = (stride, stride)
        y = m.conv(x, channels, (3, 3), strides=strides, activation=RELU)
        y = m.conv(y, channels, (3, 3))
        if stride > 1:
            x = m.conv(x, channels, strides=strides)
        x = m.binary("ADD", x, y, activation=RELU)
    last = x
    x = m.pool("AVERAGE_POOL_2D", x, (8, 8), strides=(8, 8), padding=VALID)
    logits = m.dense(m.reshape(x, (1, 64)), 10)
    return m.model(m.softmax(logits), logits, last)


def mobile_block(seed: int) -> bytes:
    """An inverted residual with squeeze-and-excite and hard swish, behind padding and a pool."""
    m = Layers(seed)
    x = m.pad(m.input((1, 14, 14, 8), 0.03, -5), ((0, 0), (1, 1), (1, 1), (0, 0)))
    x = m.conv(x, 16, (3, 3), padding=VALID)
    y = m.unary("HARD_SWISH", m.conv(x, 40), 0.6 * x.scale * 1.3, -90, "HardSwishOptions")
    y = m.depthwise(y, (5, 5), activation=RELU6)
    y = m.binary("MUL", y, _gate(m, y))
    y = m.binary("ADD", x, m.conv(y, 16))
    y = m.pool("MAX_POOL_2D", y, (2, 2), strides=(2, 2))
    return m.model(m.dense(m.mean(y), 10), y)


def _gate(m: Layers, x: Tensor) -> Tensor:
    """One factor for each channel, in 0..1."""
    y = m.conv(m.mean(x, keep=True), 12, activation=RELU)
    return m.unary("LOGISTIC", m.conv(y, x.shape[3], scale=0.03), 1 / 256, -128)


NETS = {"ds_cnn": ds_cnn, "resnet8": resnet8, "mobile_block": mobile_block}
"""Name to a function from seed to model."""
