"""Compiled networks with operators on either side: equal bytes, and who ran what."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vitral
from vitral.compiler.ir.ops import AccelOp
from vitral.compiler.pipeline import import_model, lower
from vitral.compiler.placement.auto import PLACES, Rates, estimate, on_host, place_graph
from vitral.compiler.placement.costs import COPY, LAUNCH, CpuTable, default_table
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.runtime.profile import LayerProfile

CHANNELS = 16


def _model(relu: bool = True) -> onnx.ModelProto:
    """x -> Q -> DQ -> Conv -> [Relu] -> Q -> DQ, symmetric int8."""
    rng = np.random.default_rng(3)
    weight = rng.integers(-127, 128, (CHANNELS, CHANNELS, 3, 3)).astype(np.int8)
    constants = {
        "w": weight,
        "xs": np.float32(0.02),
        "ws": np.float32(0.004),
        "ys": np.float32(0.11),
        "zero": np.int8(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "zero"], ["xq"], "q"),
        helper.make_node("DequantizeLinear", ["xq", "xs", "zero"], ["xd"], "dq"),
        helper.make_node("DequantizeLinear", ["w", "ws", "zero"], ["wd"], "dqw"),
        helper.make_node("Conv", ["xd", "wd"], ["c"], "conv", pads=[1, 1, 1, 1]),
        *([helper.make_node("Relu", ["c"], ["r"], "relu")] if relu else []),
        helper.make_node("QuantizeLinear", ["r" if relu else "c", "ys", "zero"], ["yq"], "qy"),
        helper.make_node("DequantizeLinear", ["yq", "ys", "zero"], ["y"], "dqy"),
    ]
    shape = [1, CHANNELS, 7, 6]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _codes() -> np.ndarray:
    return np.random.default_rng(1).integers(-128, 128, (1, CHANNELS, 7, 6)).astype(np.int8)


def _ran(module: vitral.Module, device: str = "fsim") -> tuple[np.ndarray, list[LayerProfile]]:
    with vitral.Session(module, device) as session:
        (y,) = session.run(None, {session.get_inputs()[0].name: _codes()})
        return y, list(session.profile())


def _shown(profile: list[LayerProfile]) -> list[tuple[str, str]]:
    return [(entry.kernel, entry.direction or entry.device) for entry in profile]


def test_unplaced_is_one_fused_kernel() -> None:
    _, profile = _ran(vitral.compile(_model(), io="quantized"))
    assert _shown(profile) == [("fused_nn_conv2d_nn_relu", "fsim")]


@pytest.mark.parametrize("device", ["reference", "fsim", "tsim"])
def test_relu_on_the_cpu(device: str) -> None:
    plain, _ = _ran(vitral.compile(_model(), io="quantized"))
    rules = {"nn.conv2d": "accelerator", "nn.relu": "cpu"}
    placed, profile = _ran(vitral.compile(_model(), io="quantized", on_device=rules), device)
    np.testing.assert_array_equal(placed, plain)
    assert (plain == 0).any()
    assert (plain > 0).any()
    assert _shown(profile) == [
        ("nn_conv2d", device),
        ("device_copy", f"{device} -> cpu"),
        ("nn_relu", "cpu"),
    ]
    assert profile[1].write_bytes == CHANNELS * 42
    assert (profile[0].cycles is not None) == (device == "tsim")


@pytest.mark.parametrize(
    "options",
    [
        {"place": "cpu"},
        {"fallback_device": "cpu"},
        {"on_device": {"conv": "cpu"}},
        {"on_device": {"*": "accelerator", "co?v": "cpu"}},
    ],
)
def test_all_on_the_cpu(options: dict) -> None:
    plain, _ = _ran(vitral.compile(_model(), io="quantized"))
    placed, profile = _ran(vitral.compile(_model(), io="quantized", **options))
    np.testing.assert_array_equal(placed, plain)
    assert {entry.device for entry in profile} == {"cpu"}


def test_copies_of_values_between_steps() -> None:
    x = _codes().astype(np.float32) * np.float32(0.02)
    with vitral.Session(vitral.compile(_model()), "fsim") as session:
        session.run(None, {"x": x})
        shown = _shown(list(session.profile()))
    assert shown == [
        ("qnn_quantize", "cpu"),
        ("device_copy", "cpu -> fsim"),
        ("fused_nn_conv2d_nn_relu", "fsim"),
        ("device_copy", "fsim -> cpu"),
        ("qnn_dequantize", "cpu"),
    ]


def test_kernels_are_kept_in_the_file(tmp_path: Path) -> None:
    module = vitral.compile(_model(), io="quantized", on_device={"nn.relu": "cpu"})
    module.save(tmp_path / "net.vitral")
    _, profile = _ran(vitral.Module.load(tmp_path / "net.vitral"))
    assert [entry.kernel for entry in profile] == ["nn_conv2d", "device_copy", "nn_relu"]


def _table(conv: float, copy: float = 0.0) -> CpuTable:
    lines = dict(default_table().lines)
    return CpuTable({**lines, "conv": (conv, 0.0), COPY: (copy, 0.0), LAUNCH: (0.0, 0.0)})


@pytest.mark.parametrize(
    ("table", "programs"),
    [(_table(1.0), 1), (_table(1e-9), 0), (_table(1e-3, copy=1.0), 0), (_table(1.0, 0.4), 1)],
)
def test_auto_takes_what_costs_least(table: CpuTable, programs: int) -> None:
    lowered = lower(import_model(_model()))
    built = []

    def build(graph):
        from vitral.compiler.assemble import assemble

        module = assemble(graph, CoreConfig(), lambda doing: None)
        built.append((graph, module))
        return module

    rates = Rates(table, 100e6)
    module = place_graph(lowered, CoreConfig(), "auto", rates, build)
    assert len(module.segments) == programs
    totals = [estimate(graph, made, rates).total for graph, made in built]
    assert len(totals) >= 2
    chosen = next(total for (_, made), total in zip(built, totals, strict=True) if made is module)
    assert chosen == min(totals)


def test_forced_operators_stay() -> None:
    lowered = lower(import_model(_model()))
    assert [op.on_cpu for op in on_host(lowered).ops if isinstance(op, AccelOp)] == [True]
    module = vitral.compile(_model(), place="cpu", on_device={"conv": "accelerator"})
    assert len(module.segments) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"place": "gpu"}, f"place must be {' or '.join(PLACES)}, got 'gpu'"),
        ({"on_device": {"conv": "gpu"}}, "conv: device must be accelerator or cpu, got 'gpu'"),
        ({"on_device": {"cnv": "cpu"}}, "on_device 'cnv': fits no operator"),
        ({"cpu_table": "no/such.json"}, "no/such.json: needs a table"),
    ],
)
def test_refused(options: dict, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        vitral.compile(_model(), **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[]", '{"lines": {}}', '{"lines": {"other": [1, -1]}}', "x"])
def test_tables_that_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(CompileError, match=r"needs a table of cpu_table\.py"):
        CpuTable.load(path)


def _integers() -> vitral.ir.Graph:
    build = vitral.ir.GraphBuilder({"x": vitral.ir.TensorType((1, 3, 6, 5), "int8")})
    weight = np.arange(-13, 14, dtype=np.int8).reshape(1, 3, 3, 3)
    sums = build.call("nn.conv2d", "x", weight, out_dtype="int32")
    moved = build.call("right_shift", build.call("nn.relu", sums), np.int32(4))
    return build.graph(
        build.call("cast", build.call("clip", moved, a_min=-127, a_max=127), dtype="int8")
    )


def test_graphs_of_integers_are_placed_as_a_whole() -> None:
    x = np.random.default_rng(0).integers(-128, 128, (1, 3, 6, 5)).astype(np.int8)
    (expected,) = vitral.ir.evaluate(_integers(), {"x": x})
    for place, programs in (("accelerator", 1), ("cpu", 0)):
        module = vitral.compile(_integers(), place=place)
        assert len(module.segments) == programs
        with vitral.Session(module, "fsim") as session:
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)
    with pytest.raises(CompileError, match="placed as a whole"):
        vitral.compile(_integers(), on_device={"nn.relu": "cpu"})
