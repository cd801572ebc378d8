"""Float islands: what onnxruntime runs, what numpy runs, and what is refused."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import oracle
import pytest
from cases import ModelBuilder
from onnx.reference import ReferenceEvaluator
from plans import run_model

import vitral
from vitral.compiler.frontends.onnx import OPERATORS, import_onnx, island_operators
from vitral.errors import CompileError, DeviceError
from vitral.runtime.module import CpuStep

SHAPE = (2, 3, 4)
X = np.random.default_rng(4).normal(size=SHAPE).astype(np.float32)


def floats(op: str, constants: Sequence[Any] = (), outputs: int = 1, **attributes: Any) -> Any:
    """A model of one node on float32 `x`."""
    names = ["x"]
    initializers = []
    for number, value in enumerate(constants):
        names.append(f"c{number}")
        initializers.append(onnx.numpy_helper.from_array(np.asarray(value), f"c{number}"))
    results = [f"y{i}" for i in range(outputs)]
    node = onnx.helper.make_node(op, names, results, name="the_node", **attributes)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)
    ys = [onnx.helper.make_empty_tensor_value_info(name) for name in results]
    graph = onnx.helper.make_graph([node], "island", [x], ys, initializers)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    model.ir_version = 9
    return model


def reference(model: onnx.ModelProto) -> list[np.ndarray]:
    results: Any = ReferenceEvaluator(model).run(None, {"x": X})
    return list(results)


ISLANDS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("LayerNormalization", [np.ones(4, np.float32), np.ones(4, np.float32)], {"axis": -1}),
    ("ReduceMax", [np.array([1], np.int64)], {"keepdims": 0}),
    ("Pow", [np.float32(2)], {}),
    ("CumSum", [np.array(1, np.int64)], {}),
    ("Sin", [], {}),
    ("LogSoftmax", [], {"axis": 1}),
    ("Greater", [np.float32(0.2)], {}),
]


@pytest.mark.parametrize(("op", "constants", "attributes"), ISLANDS, ids=lambda v: str(v)[:12])
def test_onnxruntime_runs_what_numpy_has_no_form_for(
    op: str, constants: list[Any], attributes: dict[str, Any]
) -> None:
    model = floats(op, constants, **attributes)
    (want,) = reference(model)
    got = run_model(model, {"x": X})["y0"]
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    module = vitral.compile(model)
    steps = [s for s in module.steps if isinstance(s, CpuStep) and s.op == "float.onnx"]
    assert [step.exact for step in steps] == [False]
    with vitral.Session(module) as session:
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], got)


def test_all_results_of_a_node() -> None:
    model = floats("TopK", [np.array([2], np.int64)], outputs=2, axis=-1)
    want = reference(model)
    got = run_model(model, {"x": X})
    np.testing.assert_array_equal(got["y0"], want[0])
    np.testing.assert_array_equal(got["y1"], want[1])


def test_a_known_operator_goes_there_with_what_its_function_does_not_take() -> None:
    """A resizing with antialias, and the indices of a maximum."""
    nothing, sizes = np.zeros(0, np.float32), np.array([2, 2, 2], np.int64)
    model = floats("Resize", [nothing, nothing, sizes], mode="linear", antialias=1)
    got = run_model(model, {"x": X})["y0"]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    np.testing.assert_allclose(got, np.asarray(session.run(None, {"x": X})[0]), atol=1e-6)
    model = floats("MaxPool", outputs=2, kernel_shape=[2])
    got = run_model(model, {"x": X})
    np.testing.assert_array_equal(got["y0"], np.maximum(X[..., :-1], X[..., 1:]))
    np.testing.assert_array_equal(X.reshape(-1)[got["y1"]], got["y0"])


def test_a_second_result_of_codes_is_refused() -> None:
    b = ModelBuilder(opset=13)
    b.node("MaxPool", ["x"], "y", kernel_shape=[2, 2])
    model = b.model({"x": (np.int8, (1, 2, 4, 4))}, {"y": (np.int8, (1, 2, 3, 3))})
    model.graph.node[0].output.append("where")
    model.graph.output.append(
        onnx.helper.make_tensor_value_info("where", onnx.TensorProto.INT64, (1, 2, 3, 3))
    )
    with pytest.raises(CompileError, match=r"^node 'y_MaxPool'[^\n]*'where' is a second result"):
        import_onnx(model)


def test_numpy_alone_refuses_it_by_name() -> None:
    model = floats("Sin")
    with pytest.raises(
        CompileError, match=r"^node 'the_node' \(Sin\)[^\n]*ai.onnx::Sin[^\n]*numpy"
    ):
        vitral.compile(model, cpu="numpy")
    with pytest.raises(CompileError, match="cpu must be 'auto' or 'numpy', got 'gpu'"):
        vitral.compile(model, cpu="gpu")


def test_without_onnxruntime_the_operator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = floats("Cos")
    module = vitral.compile(model)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with vitral.Session(module) as session, pytest.raises(DeviceError) as caught:
        session.run(None, {"x": X})
    assert "needs onnxruntime for operator Cos" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_result_whose_shape_hangs_on_data_is_refused() -> None:
    with pytest.raises(CompileError, match=r"^node 'the_node' \(NonZero\)[^\n]*compile time"):
        vitral.compile(floats("NonZero"))


def test_inputs_that_do_not_fit_are_refused_in_one_line() -> None:
    model = floats("LayerNormalization", [np.ones((5, 5), np.float32)], axis=7)
    with pytest.raises(CompileError, match=r"^node 'the_node' \(LayerNormalization\)[^\n]*$"):
        vitral.compile(model)


@pytest.mark.parametrize("op", ["If", "Loop", "RandomNormal", "SequenceAt", "StringConcat"])
def test_what_cannot_be_an_island(op: str) -> None:
    assert op not in island_operators()


def test_operators_that_need_no_island_are_known() -> None:
    names = {name for domain, name in OPERATORS if not domain}
    quantized = {"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"}
    assert len(island_operators() - names) > 40
    assert quantized <= names


def test_an_island_between_quantized_layers() -> None:
    """Codes before and after it are exact; what is between is marked."""
    b = ModelBuilder(opset=18)
    x = b.dequantize("x", "x_real", 0.05, np.array(3, np.int8))
    last = b.node("Cos", [x], "wave")
    b.quantize(last, "y", 1 / 127, np.array(0, np.int8))
    model = b.model({"x": (np.int8, (4, 64))}, {"y": (np.int8, (4, 64))})
    codes = np.arange(-128, 128).astype(np.int8).reshape(4, 64)
    got = run_model(model, {"x": codes})["y"].astype(int)
    want = np.cos((codes.astype(float) - 3) * 0.05) * 127
    assert np.abs(got - want).max() < 0.51


MEANS = [([2, 3], 1), ([2, 3], 0), ([1], 1), ([0, 2], 0), ([-1], 0), ([1, 2, 3], 0), (None, 1)]


@pytest.mark.parametrize(("axes", "keepdims"), MEANS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_mean_over_any_axes_is_the_exact_rational(axes: Any, keepdims: int, dtype: Any) -> None:
    shape = (2, 3, 5, 4)
    x = np.random.default_rng(5).integers(0, 120, shape).astype(dtype)
    b = ModelBuilder(opset=18)
    names = [b.dequantize("x", "x_real", 0.05, np.array(40, dtype))]
    if axes is not None:
        names.append(b.constant("axes", np.array(axes, np.int64)))
    last = b.node("ReduceMean", names, "mean", keepdims=keepdims)
    b.quantize(last, "y", 0.02, np.array(7, dtype))
    model = b.model({"x": (dtype, shape)}, {"y": (dtype, ())})
    want = oracle.evaluate(model, {"x": x})["y"]
    got = run_model(model, {"x": x})["y"]
    np.testing.assert_array_equal(got, want)
    assert got.shape == want.shape


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("source", ["codes", "floats"])
def test_index_of_the_extreme(source: str, last: int, op: str) -> None:
    x = np.random.default_rng(6).integers(0, 9, (3, 20, 2)).astype(np.uint8)
    b = ModelBuilder(opset=13)
    name = b.dequantize("x", "x_real", 0.5, np.array(4, np.uint8)) if source == "codes" else "x"
    b.node(op, [name], "y", axis=-2, select_last_index=last, keepdims=last)
    dtype = np.uint8 if source == "codes" else np.float32
    model = b.model({"x": (dtype, x.shape)}, {"y": (np.int64, ())})
    feeds = {"x": x.astype(dtype)}
    got = run_model(model, feeds)["y"]
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, oracle.evaluate(model, feeds)["y"])
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    np.testing.assert_array_equal(got, session.run(None, feeds)[0])


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0), (2.0, 0.0)])
def test_float_gemm(trans_a: int, trans_b: int, alpha: float, beta: float) -> None:
    rng = np.random.default_rng(7)
    a, right, c = (rng.normal(size=s).astype(np.float32) for s in ((3, 4), (4, 5), (5,)))
    feeds = {"a": a.T.copy() if trans_a else a, "b": right.T.copy() if trans_b else right}
    b = ModelBuilder(opset=13)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": alpha, "beta": beta}
    b.node("Gemm", ["a", "b", b.constant("c", c)], "y", **attributes)
    inputs = {name: (np.float32, value.shape) for name, value in feeds.items()}
    model = b.model(inputs, {"y": (np.float32, (3, 5))})
    want = alpha * (a.astype(np.float64) @ right) + beta * c
    np.testing.assert_allclose(run_model(model, feeds)["y"], want, rtol=1e-5, atol=1e-6)


def test_integers_become_floats_by_a_cast() -> None:
    b = ModelBuilder(opset=13)
    b.node("Cast", ["x"], "y", to=int(onnx.TensorProto.FLOAT))
    b.node("Cast", ["y"], "z", to=int(onnx.TensorProto.INT32))
    x = np.arange(256).astype(np.uint8)
    model = b.model(
        {"x": (np.uint8, x.shape)}, {"y": (np.float32, x.shape), "z": (np.int32, x.shape)}
    )
    got = run_model(model, {"x": x})
    np.testing.assert_array_equal(got["y"], x.astype(np.float32))
    np.testing.assert_array_equal(got["z"], x.astype(np.int32))


def test_a_cast_to_half_precision_is_refused_by_name() -> None:
    b = ModelBuilder(opset=13)
    b.node("Cast", ["x"], "y", to=int(onnx.TensorProto.FLOAT16))
    model = b.model({"x": (np.float32, (2,))}, {"y": (np.float16, (2,))})
    with pytest.raises(CompileError, match=r"^node 'y_Cast'[^\n]*float16"):
        import_onnx(model)


def chain(opset: int = 17) -> onnx.ModelProto:
    """A normalisation in parts, between quantized products, and a sine that leaves it."""
    b = ModelBuilder(opset=opset)
    real = b.dequantize("x", "x_real", 0.05, np.array(3, np.int8))
    weight = b.dequantize(
        b.constant("w", np.random.default_rng(8).integers(-99, 99, (8, 8)), np.int8),
        "w_real",
        0.01,
        np.array(0, np.int8),
    )
    b.quantize(b.node("MatMul", [real, weight], "product"), "p", 0.05, np.array(0, np.int8))
    p = b.dequantize("p", "p_real", 0.05, np.array(0, np.int8))
    top = b.node("ReduceMax", [b.node("Cos", [p], "wave")], "top", axes=[-1])
    centred = b.node("Sub", ["wave", top], "centred")
    power = b.node("Pow", [centred, b.constant("two", np.float32(2))], "power")
    spread = b.node("Sqrt", [b.node("ReduceL2", [power], "variance", axes=[-1])], "spread")
    b.node("Div", [centred, spread], "normal")
    b.quantize("normal", "n", 0.02, np.array(0, np.int8))
    back = b.dequantize("n", "n_real", 0.02, np.array(0, np.int8))
    b.quantize(b.node("MatMul", [back, weight], "last"), "y", 0.02, np.array(1, np.int8))
    b.node("Sin", [b.node("Add", ["n_real", "normal"], "both")], "z")
    return b.model({"x": (np.int8, (4, 8))}, {"y": (np.int8, (4, 8)), "z": (np.float32, (4, 8))})


def test_neighbouring_operators_are_one_step_with_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = chain()
    x = np.random.default_rng(9).integers(-128, 128, (4, 8)).astype(np.int8)
    got = run_model(model, {"x": x})
    module = vitral.compile(model)
    steps = [s for s in module.steps if isinstance(s, CpuStep) and s.op.startswith("float.")]
    kinds = [step.attributes.get("operators") for step in steps]
    first = ["Cos", "ReduceMax", "Sub", "Pow", "ReduceL2", "Sqrt", "Div"]
    assert kinds == [first, ["Add", "Sin"]], "what lies behind a quantizer cannot run with it"
    assert not any(step.exact for step in steps)
    with vitral.Session(module) as session:
        y, z = session.run(None, {"x": x})
        islands = [layer.kernel for layer in session.profile() if layer.op == "float.region"]
        assert not any(layer.exact for layer in session.profile() if layer.op == "float.region")
    assert islands == ["fused_cos_reducemax_sub_pow_reducel2_sqrt_div", "fused_add_sin"]
    monkeypatch.setattr("vitral.compiler.assemble.merge_islands", lambda steps, graph: steps)
    single = vitral.compile(model)
    assert len(single.steps) == len(module.steps) + 7
    with vitral.Session(single) as session:
        for want, merged in zip(session.run(None, {"x": x}), (y, z), strict=True):
            np.testing.assert_array_equal(merged, want)
    np.testing.assert_array_equal(got["z"], z)


def test_both_results_of_a_node_and_a_node_that_comes_twice() -> None:
    """TopK twice on one tensor: all four results, of one session."""
    model = floats("TopK", [np.array([2], np.int64)], outputs=2, axis=-1)
    again = onnx.NodeProto()
    again.CopyFrom(model.graph.node[0])
    again.output[:] = ["y2", "y3"]
    model.graph.node.append(again)
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in ("y2", "y3"))
    module = vitral.compile(model)
    (step,) = (s for s in module.steps if isinstance(s, CpuStep) and s.op.startswith("float."))
    assert set(step.outputs) == {"y0", "y1", "y2", "y3"}
    with vitral.Session(module) as session:
        values, where, values2, where2 = session.run(None, {"x": X})
    np.testing.assert_array_equal(np.take_along_axis(X, where, -1), values)
    np.testing.assert_array_equal(values, values2)
    np.testing.assert_array_equal(where, where2)
