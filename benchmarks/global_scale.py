"""Plain VTA programs of quantized networks: cycles on tsim, bytes against the interpreter.

    python benchmarks/global_scale.py layer layer-no-bias layer-sum resnet18 --device tsim

`layer` is ResNet-18's 3x3 convolution of 64 channels. `resnet18` has seeded weights and batch
norms; its first convolution and pool stay float, as one convolution is skipped.
"""

import argparse

import numpy as np

import vitral
from vitral.compiler.ir import Graph, GraphBuilder, TensorType, evaluate
from vitral.compiler.quantize.global_scale import QConfig, quantize

STAGES = (64, 128, 256, 512)


def main() -> int:
    parser = argparse.ArgumentParser(description="Cycles of plain VTA programs.")
    parser.add_argument("cases", nargs="+", choices=CASES)
    parser.add_argument("--device", default="tsim", choices=("tsim", "fsim"))
    options = parser.parse_args()
    return max(_measure(name, options.device) for name in options.cases)


def _measure(name: str, device: str) -> int:
    """Prints a case; 1 when a byte differs."""
    graph = CASES[name]()
    module = vitral.compile(graph, profile="vta")
    (value,) = graph.inputs
    data = _input(graph.types[value])
    with vitral.Session(module, device=device) as session:
        (result,) = session.run(None, {value: data})
        layers = [layer for layer in session.profile() if layer.cycles]
    equal = np.array_equal(result, evaluate(graph, {value: data})[0])
    cycles = sum(layer.cycles or 0 for layer in layers)
    macs = sum(layer.macs for segment in module.segments for layer in segment.layers)
    share = macs / module.config.layout.macs_per_cycle / cycles if cycles else 0
    print(f"{name}: {cycles:,} cycles, {share:.1%} of peak, {'equal' if equal else 'DIFFERENT'}")
    return int(not equal)


def _input(type_: TensorType) -> np.ndarray:
    rng = np.random.default_rng(1)
    if type_.dtype == "int8":
        return rng.integers(-128, 128, type_.shape).astype(np.int8)
    return rng.normal(size=type_.shape).astype(np.float32)


def layer(*, bias: bool = True, added: bool = False) -> Graph:
    """A layer of integers: 56x56, 64 channels in and out."""
    rng = np.random.default_rng(0)
    build = GraphBuilder({"data": TensorType((1, 64, 56, 56), "int8")})
    weight = rng.integers(-127, 128, (64, 64, 3, 3)).astype(np.int8)
    x = build.call("nn.conv2d", "data", weight, padding=[1, 1], out_dtype="int32")
    if bias:
        x = build.call("add", x, rng.integers(-1000, 1000, (64, 1, 1)).astype(np.int32))
    if added:
        other = build.call("left_shift", build.call("cast", "data", dtype="int32"), np.int32(7))
        x = build.call("add", x, other)
    x = build.call("add", build.call("nn.relu", x), np.int32(64))
    x = build.call("clip", build.call("right_shift", x, np.int32(7)), a_min=-127, a_max=127)
    return build.graph(build.call("cast", x, dtype="int8"))


def resnet18() -> Graph:
    """ResNet-18 for 224x224, quantized with the defaults."""
    net = _Float(np.random.default_rng(0))
    build = net.build
    x = net.conv("data", 3, 64, 7, 2, 3)
    x = build.call("nn.relu", x)
    x = build.call("nn.max_pool2d", x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1])
    channels = 64
    for outs in STAGES:
        for stride in (1 if outs == channels else 2, 1):
            x = net.block(x, channels, outs, stride)
            channels = outs
    x = build.call("nn.batch_flatten", build.call("nn.global_avg_pool2d", x))
    x = build.call("nn.dense", x, net.normal(1000, channels, deviation=0.05))
    return quantize(build.graph(x), qconfig=QConfig())


class _Float:
    """Float layers with seeded weights."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.build = GraphBuilder({"data": TensorType((1, 3, 224, 224), "float32")})

    def normal(self, *shape: int, deviation: float, mean: float = 0) -> np.ndarray:
        return self._rng.normal(mean, deviation, shape).astype(np.float32)

    def conv(self, x: str, ins: int, outs: int, kernel: int, stride: int, pad: int) -> str:
        deviation = (2 / (ins * kernel * kernel)) ** 0.5
        weight = self.normal(outs, ins, kernel, kernel, deviation=deviation)
        x = self.build.call("nn.conv2d", x, weight, strides=[stride] * 2, padding=[pad] * 2)
        shift, mean = (self.normal(outs, deviation=0.1) for _ in range(2))
        scale, variance = (
            np.abs(self.normal(outs, deviation=0.1, mean=1)) + np.float32(1e-3) for _ in range(2)
        )
        return self.build.call("nn.batch_norm", x, scale, shift, mean, variance)

    def block(self, x: str, ins: int, outs: int, stride: int) -> str:
        y = self.build.call("nn.relu", self.conv(x, ins, outs, 3, stride, 1))
        y = self.conv(y, outs, outs, 3, 1, 1)
        x = x if stride == 1 else self.conv(x, ins, outs, 1, stride, 0)
        return self.build.call("nn.relu", self.build.call("add", y, x))


CASES = {
    "layer": layer,
    "layer-no-bias": lambda: layer(bias=False),
    "layer-sum": lambda: layer(added=True),
    "resnet18": resnet18,
}

if __name__ == "__main__":
    raise SystemExit(main())
