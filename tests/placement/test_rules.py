"""Devices by name or pattern, and copies where values cross, in the text form."""

from pathlib import Path

import numpy as np
import pytest

from vitral.cli.main import main
from vitral.compiler.ir import Call, Graph, GraphBuilder, TensorType, evaluate, to_text
from vitral.compiler.placement import Rules, place_calls
from vitral.errors import CompileError

GOLDEN = """\
fn (%data: Tensor[(1, 1, 16, 16), float32]) {
  %0 = meta[relay.Constant][0] # ty=Tensor[(1, 1, 1, 1), float32]
  %1 = nn.conv2d(%data, %0) # ty=Tensor[(1, 1, 16, 16), float32]
  %2 = device_copy(%1, meta[relay.attrs.DeviceCopyAttrs][0]) # ty=Tensor[(1, 1, 16, 16), float32]
  %3 = nn.relu(%2) # ty=Tensor[(1, 1, 16, 16), float32]
  %3
}
"""


def _conv_relu() -> Graph:
    build = GraphBuilder({"data": TensorType((1, 1, 16, 16), "float32")})
    conv = build.call("nn.conv2d", "data", np.full((1, 1, 1, 1), 0.75, np.float32), name="conv")
    return build.graph(build.call("nn.relu", conv, name="act"))


def _copies(graph: Graph) -> list[Call]:
    return [op for op in graph.ops if isinstance(op, Call) and op.op == "device_copy"]


@pytest.mark.parametrize(
    "rules",
    [
        Rules({"nn.conv2d": "accelerator", "nn.relu": "cpu"}),
        Rules({"conv": "accelerator"}, fallback_device="cpu"),
        Rules({"*": "cpu", "co*": "accelerator"}),
        Rules({"a?t": "cpu"}),
    ],
)
def test_golden_text(rules: Rules) -> None:
    graph = _conv_relu()
    placed = place_calls(graph, rules)
    assert to_text(placed, types=True).split("\nMETADATA")[0] == GOLDEN
    x = np.random.default_rng(0).normal(size=(1, 1, 16, 16)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(placed, {"data": x}), evaluate(graph, {"data": x}))
    (copy,) = _copies(placed)
    assert dict(copy.attrs) == {"source": "accelerator", "target": "cpu"}


def test_one_device_needs_no_copies() -> None:
    graph = _conv_relu()
    for device in ("cpu", "accelerator"):
        placed = place_calls(graph, Rules(fallback_device=device))
        assert [op.output for op in placed.ops] == [op.output for op in graph.ops]


def test_a_value_is_copied_once_for_each_device() -> None:
    build = GraphBuilder({"x": TensorType((4,), "float32")})
    start = build.call("exp", "x", name="start")
    left = build.call("nn.relu", start, name="left")
    right = build.call("tanh", start, name="right")
    back = build.call("add", left, right, name="back")
    placed = place_calls(build.graph(back), Rules({"left": "cpu", "right": "cpu"}))
    assert [op.inputs[0] for op in _copies(placed)] == ["start", "left", "right"]
    x = np.array([-1, 0, 0.5, 2], np.float32)
    (result,) = evaluate(placed, {"x": x})
    grown = np.exp(x.astype(np.float64)).astype(np.float32)
    expected = grown + np.tanh(grown.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(result, expected)


def test_devices_and_patterns_that_are_none() -> None:
    with pytest.raises(CompileError, match="'gpu'"):
        Rules({"conv": "gpu"})
    with pytest.raises(CompileError, match=r"fallback: device must be accelerator or cpu, got 'x'"):
        Rules(fallback_device="x")
    with pytest.raises(
        CompileError, match=r"on_device 'nn.dense': fits no operator; there are act"
    ):
        place_calls(_conv_relu(), Rules({"nn.dense": "cpu"}))


def test_the_command_shows_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.ir"
    path.write_text(to_text(_conv_relu()))
    assert main(["show", str(path), "--types", "--on-device", "nn.relu=cpu"]) == 0
    assert capsys.readouterr().out == GOLDEN
    assert main(["show", str(path), "--on-device", "nn.dense=cpu"]) != 0
    assert "fits no operator" in capsys.readouterr().err
    assert main(["show", str(path), "--on-device", "act=cpu", "--after", "prove"]) != 0
    assert "leave out --after" in capsys.readouterr().err
