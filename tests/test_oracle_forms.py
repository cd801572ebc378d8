"""Every way to write one convolution gives the same bytes; what no law covers is refused."""

import ast
import sys
from pathlib import Path

import numpy as np
import onnx
import oracle
import pytest
from cases import (
    CLIP_FORMS,
    ModelBuilder,
    accepted_forms,
    build_qdq,
    clip_in_form,
    conv_rows,
    crc32,
    refused_forms,
    small_convs,
    unsigned_output_form,
)

V2 = next(case for case in conv_rows() if case.name == "V2")
ACCEPTED = accepted_forms()
REFUSED = refused_forms()


@pytest.mark.parametrize("form", ACCEPTED)
def test_form_gives_the_bytes_of_v2(form: str) -> None:
    y = oracle.evaluate(ACCEPTED[form], {"x": V2.x})["y"]
    assert crc32(y) == "de67c82f"


def test_model_may_be_bytes_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "v2.onnx"
    onnx.save(ACCEPTED["qdq opset 13"], path)
    for model in (path, str(path), ACCEPTED["qdq opset 13"].SerializeToString()):
        V2.check(oracle.evaluate(model, {"x": V2.x})["y"])


def test_quantizer_without_zero_point_gives_uint8() -> None:
    y = oracle.evaluate(unsigned_output_form(), {"x": V2.x})["y"]
    signed = oracle.evaluate(ACCEPTED["qdq opset 13"], {"x": V2.x})["y"]
    assert y.dtype == np.uint8
    np.testing.assert_array_equal(y, np.maximum(signed, 0))


@pytest.mark.parametrize("fault", REFUSED)
def test_fault_is_refused_in_one_line_naming_the_node(fault: str) -> None:
    with pytest.raises(oracle.OracleError, match=r"^node '\w+' \(\w+\): [^\n]+$"):
        oracle.evaluate(REFUSED[fault], {"x": V2.x})


def test_unknown_operator_is_refused_by_name() -> None:
    b = ModelBuilder()
    b.node("Det", ["x"], "y")
    model = b.model({"x": (np.float32, (2, 2))}, {"y": (np.float32, ())})
    with pytest.raises(oracle.OracleError, match=r"y_Det.*ai\.onnx::Det"):
        oracle.evaluate(model, {"x": np.eye(2, dtype=np.float32)})


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (V2.x.astype(np.uint8), "needs int8, got uint8"),
        (V2.x[:, :16], r"needs \[1, 17, 5, 7\], got \[1, 16, 5, 7\]"),
    ],
    ids=["type", "shape"],
)
def test_input_that_does_not_fit_is_refused(x: np.ndarray, text: str) -> None:
    with pytest.raises(oracle.OracleError, match=text):
        oracle.evaluate(ACCEPTED["qdq opset 13"], {"x": x})


def test_missing_and_unknown_inputs_are_refused() -> None:
    with pytest.raises(oracle.OracleError, match="'x': needs int8, got none"):
        oracle.evaluate(ACCEPTED["qdq opset 13"], {})
    with pytest.raises(oracle.OracleError, match="'z': the model has"):
        oracle.evaluate(ACCEPTED["qdq opset 13"], {"x": V2.x, "z": V2.x})


@pytest.mark.parametrize("name", ["N", -1])
def test_symbolic_batch_takes_any_size_but_zero(name: str | int) -> None:
    case = next(c for c in conv_rows() if c.name == "V11")
    model = build_qdq(case)
    for info in (model.graph.input[0], model.graph.output[0]):
        batch = info.type.tensor_type.shape.dim[0]
        if isinstance(name, str):
            batch.dim_param = name
        else:
            batch.dim_value = name
    case.check(oracle.evaluate(model, {"x": case.x})["y"])
    single = oracle.evaluate(model, {"x": case.x[1:2]})["y"]
    np.testing.assert_array_equal(single, oracle.evaluate(model, {"x": case.x})["y"][1:2])
    with pytest.raises(oracle.OracleError, match="input 'x'"):
        oracle.evaluate(model, {"x": case.x[:0]})


def test_oracle_imports_nothing_of_the_product() -> None:
    allowed = {"numpy", "onnx", "oracle", *sys.stdlib_module_names}
    sources = sorted(Path(oracle.__file__).parent.glob("*.py"))
    assert len(sources) >= 10
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "."]
            assert {name.split(".")[0] for name in names} <= allowed, source


def test_sum_beyond_int32_is_refused() -> None:
    """131,072 products of -128 * -128 make 2^31; one fewer fits."""

    def run(k: int) -> float:
        b = ModelBuilder()
        names = [b.dequantize("x", "x_real", 1.0, None)]
        w = np.full((k, 1), -128, np.int8)
        names.append(b.dequantize(b.constant("w", w), "w_real", 1.0, None))
        b.node("MatMul", names, "y")
        model = b.model({"x": (np.int8, (1, k))}, {"y": (np.float32, (1, 1))})
        return oracle.evaluate(model, {"x": np.full((1, k), -128, np.int8)})["y"].item()

    assert run(131_071) == float(np.float32(131_071 * 16_384))
    with pytest.raises(oracle.OracleError, match="fits int32, got 2147483648"):
        run(131_072)


@pytest.mark.parametrize("form", CLIP_FORMS)
def test_clip_bounds_may_be_written_in_any_form(form: str) -> None:
    case = next(c for c in small_convs() if c.name == "CLIP6-B")
    case.check(oracle.evaluate(clip_in_form(case, form), {"x": case.x})["y"])


def test_dequantize_per_axis_table() -> None:
    """DQ int8 [[1,1,1],[4,4,4]], scales [.5,2,10], zero points [0,1,-1] on axis 1."""
    b = ModelBuilder()
    b.dequantize("x", "y", [0.5, 2, 10], np.array([0, 1, -1], np.int8), axis=1)
    model = b.model({"x": (np.int8, (2, 3))}, {"y": (np.float32, (2, 3))})
    x = np.array([[1, 1, 1], [4, 4, 4]], np.int8)
    y = oracle.evaluate(model, {"x": x})["y"]
    assert y.tolist() == [[0.5, 0, 20], [2, 6, 50]]


def test_transposed_convolution_scales_along_axis_1() -> None:
    """x [1,2;3,4], W channel 0 all 1 and channel 1 all 2 with scales 1 and .5, stride 2."""
    b = ModelBuilder()
    w = np.array([1] * 4 + [2] * 4, np.int8).reshape(1, 2, 2, 2)
    names = [b.dequantize("x", "x_real", 1.0, None)]
    names.append(b.dequantize(b.constant("w", w), "w_real", [1, 0.5], None, axis=1))
    b.node("ConvTranspose", names, "sum", strides=[2, 2])
    b.quantize("sum", "y", 1.0, np.array(0, np.int8))
    x = np.array([[[[1, 2], [3, 4]]]], np.int8)
    y = oracle.evaluate(b.model({"x": (np.int8, x.shape)}, {}), {"x": x})["y"]
    repeated = [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    assert y.tolist() == [[repeated, repeated]]
