"""Concatenations along channels: by address where parts are whole blocks; the model's bytes."""

from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder
from plans import run_model

import vitral
from vitral.compiler.assemble import plan
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.pipeline import lower
from vitral.compiler.place import Group
from vitral.compiler.schedule.regions import Join, Region, regions_of
from vitral.config import CoreConfig
from vitral.runtime.module import CpuStep

SIZE = (7, 9)
SHAPE = (1, 32, *SIZE)
SCALE, ZERO = 0.375, -5


class Net:
    """Convolutions and concatenations whose tensors all have one scale."""

    def __init__(self) -> None:
        self.b = ModelBuilder()
        self.rng = np.random.default_rng(5)
        self.count = 0

    def real(self, name: str) -> str:
        self.count += 1
        return self.b.dequantize(name, f"r{self.count}", SCALE, np.array(ZERO, np.int8))

    def codes(self, real: str, name: str) -> str:
        return self.b.quantize(real, name, SCALE, np.array(ZERO, np.int8))

    def conv(self, x: str, name: str, outs: int, ins: int, kernel: int = 1) -> str:
        weight = self.rng.integers(-127, 128, (outs, ins, kernel, kernel)).astype(np.int8)
        w = self.b.dequantize(self.b.constant(f"{name}_w", weight), f"{name}_wr", 1 / 512, None)
        self.b.node("Conv", [self.real(x), w], f"{name}_sum", pads=[kernel // 2] * 4)
        return self.codes(f"{name}_sum", name)

    def concat(self, name: str, *parts: str, axis: int = 1) -> str:
        self.b.node("Concat", [self.real(part) for part in parts], f"{name}_real", axis=axis)
        return self.codes(f"{name}_real", name)

    def model(self, **outputs: Any) -> onnx.ModelProto:
        results = {name: (np.int8, (1, channels, *SIZE)) for name, channels in outputs.items()}
        return self.b.model({"x": (np.int8, SHAPE)}, results)


def fire() -> onnx.ModelProto:
    """SqueezeNet's block: two convolutions side by side, and a reader of both."""
    net = Net()
    net.conv("x", "s", 16, 32)
    net.conv("s", "a", 32, 16)
    net.conv("s", "b", 48, 16, 3)
    net.concat("c", "a", "b")
    net.conv("c", "y", 16, 80, 3)
    return net.model(y=16)


def dense() -> onnx.ModelProto:
    """DenseNet's block: every layer reads all before it, joined anew each time."""
    net = Net()
    net.conv("x", "a", 32, 32)
    net.conv("a", "b", 16, 32, 3)
    net.concat("ab", "a", "b")
    net.conv("ab", "c", 16, 48, 3)
    net.concat("abc", "a", "b", "c")
    net.conv("abc", "d", 20, 64, 3)
    net.concat("abcd", "a", "b", "c", "d")
    net.conv("abcd", "y", 16, 84)
    return net.model(y=16)


def nested() -> onnx.ModelProto:
    net = Net()
    net.conv("x", "a", 16, 32)
    net.conv("x", "b", 16, 32)
    net.concat("ab", "a", "b")
    net.conv("ab", "c", 16, 32, 3)
    net.concat("abc", "c", "ab")
    net.conv("abc", "y", 16, 48, 3)
    return net.model(y=16)


def with_the_input() -> onnx.ModelProto:
    """A part that the host writes."""
    net = Net()
    net.conv("x", "a", 16, 32, 3)
    net.concat("c", "a", "x")
    net.conv("c", "y", 16, 48, 3)
    return net.model(y=16)


def outputs() -> onnx.ModelProto:
    """The whole and a part are results of the network."""
    net = Net()
    net.conv("x", "a", 16, 32, 3)
    net.conv("x", "b", 24, 32)
    net.concat("y", "a", "b")
    return net.model(y=40, b=24)


def tangle(seed: int) -> onnx.ModelProto:
    """Convolutions and concatenations of any earlier values, most of them of whole blocks."""
    net, rng = Net(), np.random.default_rng([seed, 77])
    channels = {"x": 32}
    for number in range(9):
        names = list(channels)
        if number % 3 == 2:
            picked = rng.choice(names, min(len(names), int(rng.integers(2, 4))), replace=False)
            channels[f"c{number}"] = sum(channels[name] for name in picked)
            net.concat(f"c{number}", *picked)
            continue
        source = names[-1] if rng.integers(2) else str(rng.choice(names))
        outs = int(rng.choice([16, 16, 32, 48, 20]))
        net.conv(source, f"t{number}", outs, channels[source], int(rng.choice([1, 3])))
        channels[f"t{number}"] = outs
    last = list(channels)[-1]
    net.conv(last, "y", 16, channels[last], 3)
    return net.model(y=16)


def run(model: onnx.ModelProto, **options: Any) -> list[Group]:
    """Compile, compare numpy's plan and the simulator with the oracle; the programs."""
    x = np.random.default_rng(3).integers(-128, 128, SHAPE).astype(np.int8)
    want = oracle.evaluate(model, {"x": x}, outputs_only=True)
    planned = run_model(model, {"x": x})
    with vitral.Session(vitral.compile(model, **options), device="fsim") as session:
        results = session.run(None, {"x": x})
    for (name, codes), result in zip(want.items(), results, strict=True):
        assert len(np.unique(codes)) > 50, f"{name} says little"
        np.testing.assert_array_equal(planned[name], codes)
        np.testing.assert_array_equal(result, codes)
    return [s for s in plan(lower(import_onnx(model))).steps if isinstance(s, Group)]


def concats_on_cpu(model: onnx.ModelProto) -> int:
    steps = plan(lower(import_onnx(model))).steps
    return sum(isinstance(step, CpuStep) and step.op == "concat" for step in steps)


@pytest.mark.parametrize("build", [fire, dense, nested, with_the_input, outputs])
def test_whole_blocks_are_joined_in_one_program(build: Any) -> None:
    model = build()
    (group,) = run(model)
    assert concats_on_cpu(model) == 0
    assert len(group.joins) == sum(node.op_type == "Concat" for node in model.graph.node)
    assert len(group.layers) == sum(node.op_type == "Conv" for node in model.graph.node)


@pytest.mark.parametrize("seed", range(6))
def test_any_tangle_has_the_bytes_of_the_model(seed: int) -> None:
    run(tangle(seed))


CORES = {
    "block 32": CoreConfig(block=32),
    "block 8": CoreConfig(block=8, inp_buffer=8192, wgt_buffer=65536, acc_buffer=32768),
    "batch 2": CoreConfig(batch=2, inp_buffer=65536, acc_buffer=262144),
}


@pytest.mark.parametrize("core", CORES)
def test_blocks_are_those_of_the_core(core: str) -> None:
    run(fire(), target=CORES[core])


def test_parts_that_end_inside_a_block_are_joined_by_the_cpu() -> None:
    net = Net()
    net.conv("x", "a", 20, 32)
    net.conv("x", "b", 16, 32)
    net.concat("c", "a", "b")
    net.conv("c", "y", 16, 36)
    model = net.model(y=16)
    assert len(run(model)) == 2
    assert concats_on_cpu(model) == 1


def test_rows_are_joined_by_the_cpu() -> None:
    net = Net()
    net.conv("x", "a", 16, 32)
    net.conv("x", "b", 16, 32)
    net.concat("y", "a", "b", axis=2)
    model = net.b.model({"x": (np.int8, SHAPE)}, {"y": (np.int8, (1, 16, 2 * SIZE[0], SIZE[1]))})
    run(model)
    assert concats_on_cpu(model) == 1


def test_a_part_of_two_concatenations_is_copied_for_one() -> None:
    net = Net()
    net.conv("x", "a", 16, 32)
    net.conv("x", "b", 16, 32)
    net.concat("ab", "a", "b")
    net.conv("ab", "c", 16, 32)
    net.concat("ba", "b", "a", "c")
    net.conv("ba", "y", 16, 48)
    model = net.model(y=16)
    run(model)
    assert concats_on_cpu(model) == 1


def test_a_value_twice_in_a_concatenation_is_copied() -> None:
    net = Net()
    net.conv("x", "a", 16, 32)
    net.concat("aa", "a", "a")
    net.conv("aa", "y", 16, 32)
    model = net.model(y=16)
    run(model)
    assert concats_on_cpu(model) == 1


def _join(result: str, *parts: str) -> Join:
    return Join(result, (1, 16 * len(parts), 4, 4), tuple((part, 16) for part in parts))


def test_a_run_of_parts_lies_where_the_longer_run_has_it() -> None:
    regions = regions_of([_join("bc", "b", "c"), _join("abc", "a", "b", "c")], 16)
    assert regions == {
        "a": Region("abc", 0),
        "b": Region("abc", 1),
        "bc": Region("abc", 1),
        "c": Region("abc", 2),
    }


@pytest.mark.parametrize(
    "joins",
    [
        [_join("ad", "a", "d"), _join("abc", "a", "b", "c")],
        [_join("cb", "c", "b"), _join("abc", "a", "b", "c")],
        [_join("db", "d", "b"), _join("abc", "a", "b", "c")],
        [_join("aa", "a", "a")],
    ],
)
def test_no_value_lies_in_two_places(joins: list[Join]) -> None:
    assert regions_of(joins, 16) is None
