"""Blocks of networks as quantizers write them, on both simulators, with the oracle's bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder

import vitral

pytestmark = pytest.mark.xdist_group("tsim")
DEVICES = ("fsim", "tsim")
SHAPE = (2, 12, 7, 6)


class Block:
    """Grows a model; every quantized tensor is int8 with a scale and a zero point of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(77)
        self.b = ModelBuilder(opset=19, contrib=True)
        self.params: dict[str, tuple[float, Any]] = {"x": (0.05, np.array(-11, np.int8))}

    def real(self, name: str) -> str:
        scale, zero = self.params[name]
        return self.b.dequantize(name, f"{name}_real{len(self.params)}", scale, zero)

    def rounded(self, source: str, name: str, scale: float, zero: int = 5) -> str:
        self.params[name] = (scale, np.array(zero, np.int8))
        self.b.quantize(source, name, *self.params[name])
        return name

    def conv(self, x: str, name: str, shape: tuple[int, ...], **how: Any) -> str:
        """The float result of a convolution with random weights."""
        w = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = (0.004 * np.exp2(self.rng.uniform(-1, 1, shape[0]))).astype(np.float32)
        real = self.b.dequantize(self.b.constant(f"{name}_w", w), f"{name}_wr", scales, None, 0)
        return self.b.node("Conv", [self.real(x), real], name, **how)

    def triple(self, name: str) -> list[str]:
        scale, zero = self.params[name]
        stem = f"{name}_t{len(self.params)}"
        return [name, self.b.scale(f"{stem}s", scale), self.b.constant(f"{stem}z", zero)]

    def pair(self, name: str, scale: float, zero: int = 5) -> list[str]:
        self.params[name] = (scale, np.array(zero, np.int8))
        return self.triple(name)[1:]


def squeeze_and_excite(n: Block) -> None:
    """Global pool, convolution, Relu, convolution, HardSigmoid, product of (N, C, H, W)."""
    n.rounded(n.b.node("Relu", [n.conv("x", "c0", (16, 12, 3, 3))], "r0"), "h", 0.04, -100)
    n.rounded(n.b.node("GlobalAveragePool", [n.real("h")], "p"), "pooled", 0.03)
    n.rounded(n.b.node("Relu", [n.conv("pooled", "c1", (4, 16, 1, 1))], "r1"), "small", 0.02, -128)
    n.rounded(n.conv("small", "c2", (16, 4, 1, 1)), "wide", 0.03)
    gate = n.b.node("HardSigmoid", [n.real("wide")], "g", alpha=0.2, beta=0.5)
    n.rounded(gate, "gate", 1 / 255, -128)
    n.rounded(n.b.node("Mul", [n.real("h"), n.real("gate")], "product"), "y", 0.03, -90)


def squeeze_and_excite_with_a_float_gate(n: Block) -> None:
    """The same without a quantizer between HardSigmoid and the product."""
    n.rounded(n.conv("x", "c0", (16, 12, 3, 3)), "h", 0.06)
    n.rounded(n.b.node("ReduceMean", [n.real("h"), _spatial(n)], "p"), "pooled", 0.03)
    n.rounded(n.conv("pooled", "c1", (16, 16, 1, 1)), "wide", 0.03)
    gate = n.b.node("HardSigmoid", [n.real("wide")], "g")
    n.rounded(n.b.node("Mul", [n.real("h"), gate], "product"), "y", 0.03, -10)


def _spatial(n: Block) -> str:
    return n.b.constant("spatial", np.array([2, 3], np.int64))


def qlinear_block(n: Block) -> None:
    """The com.microsoft operators of onnxruntime's quantizer in a row."""
    n.rounded(n.conv("x", "c0", (16, 12, 3, 3)), "h", 0.06)
    domain = "com.microsoft"
    n.b.node(
        "QLinearLeakyRelu", [*n.triple("h"), *n.pair("l", 0.05)], "l", domain=domain, alpha=0.1
    )
    n.b.node("QLinearSigmoid", [*n.triple("h"), *n.pair("s", 1 / 256, -128)], "s", domain=domain)
    n.b.node("QLinearMul", [*n.triple("l"), *n.triple("s"), *n.pair("m", 0.05)], "m", domain=domain)
    pool = {"kernel_shape": [2, 2], "strides": [2, 1], "domain": domain}
    n.b.node("QLinearAveragePool", [*n.triple("m"), *n.pair("a", 0.04)], "a", **pool)
    n.b.node("QLinearAdd", [*n.triple("a"), *n.triple("a"), *n.pair("d", 0.07)], "d", domain=domain)
    joined = [*n.pair("j", 0.06), *n.triple("a"), *n.triple("d")]
    n.b.node("QLinearConcat", joined, "j", domain=domain, axis=1)
    n.b.node("QLinearGlobalAveragePool", [*n.triple("j"), *n.pair("y", 0.02)], "y", domain=domain)


def silu_and_upsampling(n: Block) -> None:
    """As in detectors: x · sigmoid(x), nearest and linear Resize, Concat, Split, convolution."""
    n.rounded(n.conv("x", "c0", (16, 12, 3, 3), pads=[1, 1, 1, 1]), "h", 0.06)
    real = n.real("h")
    n.rounded(n.b.node("Mul", [real, n.b.node("Sigmoid", [real], "s")], "m"), "silu", 0.04)
    scales = n.b.constant("scales", np.array([1, 1, 2, 2], np.float32))
    n.rounded(n.b.node("Resize", [n.real("silu"), "", scales], "n"), "near", 0.04)
    how = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    n.rounded(n.b.node("Resize", [n.real("silu"), "", scales], "l", **how), "line", 0.03, -8)
    n.rounded(n.b.node("Concat", [n.real("near"), n.real("line")], "j", axis=1), "joined", 0.04)
    n.rounded(n.conv("joined", "c1", (5, 32, 1, 1)), "y", 0.06)


def attention(n: Block) -> None:
    """Batched products of two activations with a Softmax between them."""
    n.rounded(n.conv("x", "c0", (16, 12, 1, 1)), "h", 0.06)
    rows = n.b.constant("rows", np.array([2, 16, -1], np.int64))
    a = n.b.node("Reshape", [n.real("h"), rows], "a")
    turned = n.b.node("Transpose", [a], "t", perm=[0, 2, 1])
    n.rounded(n.b.node("MatMul", [turned, a], "scores"), "quantized_scores", 0.2)
    soft = n.b.node("Softmax", [n.real("quantized_scores")], "soft", axis=-1)
    n.rounded(soft, "weights", 1 / 255, -128)
    n.rounded(n.b.node("MatMul", [n.real("weights"), turned], "mixed"), "y", 0.05)


BLOCKS = (
    squeeze_and_excite,
    squeeze_and_excite_with_a_float_gate,
    qlinear_block,
    silu_and_upsampling,
    attention,
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.__name__)
def test_block_has_the_bytes_of_the_oracle(block: Callable[[Block], None], device: str) -> None:
    model, x = built(block)
    want = oracle.evaluate(model, {"x": x})["y"]
    assert np.unique(want).size > 10
    module = vitral.compile(model)
    with vitral.Session(module, device=device) as session:
        (got,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(got, want)
    convs = sum(layer.macs for segment in module.segments for layer in segment.layers)
    assert convs == (module.macs if block is not attention else 2 * 42 * 16 * 12)


def built(block: Callable[[Block], None]) -> tuple[onnx.ModelProto, np.ndarray]:
    n = Block()
    block(n)
    x = n.rng.integers(-128, 128, SHAPE).astype(np.int8)
    return n.b.model({"x": (np.int8, SHAPE)}, {"y": (np.int8, ())}), x
