"""One convolution in every form an exporter may choose; forms and models that are refused."""

import numpy as np
import onnx
import pytest
from cases import ModelBuilder, accepted_forms, build_qdq, build_qoperator, refused_forms
from cases import unsigned_output_form as unsigned_form
from e2e.compiled import case_named
from e2e.guarded import GuardedDevice

import vitral
from vitral.errors import CompileError

V2 = case_named("V2")
FORMS = accepted_forms()
REFUSED = refused_forms()
ON_TSIM = ("qoperator opset 10", "qdq opset 21", "weights as int32", "float bias")


def run(model: onnx.ModelProto, device: str = "fsim") -> np.ndarray:
    module = vitral.compile(model)
    with vitral.Session(module, device=GuardedDevice(device, module)) as session:
        return session.run(None, {"x": V2.x})[0]


@pytest.mark.parametrize("form", FORMS)
def test_accepted(form: str) -> None:
    V2.check(run(FORMS[form]))


@pytest.mark.parametrize("form", ON_TSIM)
def test_accepted_on_the_core(form: str) -> None:
    V2.check(run(FORMS[form], "tsim"))


@pytest.mark.parametrize("device", ["fsim", "tsim"])
def test_quantizer_without_zero_point_gives_uint8(device: str) -> None:
    y = run(unsigned_form(), device)
    assert y.dtype == np.uint8
    np.testing.assert_array_equal(y, np.maximum(run(FORMS["qdq opset 13"]), 0))


@pytest.mark.parametrize("fault", REFUSED)
def test_refused_in_one_line_that_names_the_node(fault: str) -> None:
    with pytest.raises(CompileError, match=r"^node '\w+' \(\w+\)") as caught:
        vitral.compile(REFUSED[fault])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("device", ["fsim", "tsim"])
@pytest.mark.parametrize("build", [build_qdq, build_qoperator])
def test_bias_absent_or_of_an_empty_name(build, device: str) -> None:
    case = case_named("V11")
    model = build(case)
    node = next(n for n in model.graph.node if n.op_type in ("Conv", "QLinearConv"))
    node.input.append("")
    module = vitral.compile(model)
    with vitral.Session(module, device=GuardedDevice(device, module)) as session:
        case.check(session.run(None, {"x": case.x})[0])


def with_symbolic_batch(name: str = "V11") -> onnx.ModelProto:
    model = build_qdq(case_named(name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    return model


@pytest.mark.parametrize("device", ["fsim", "tsim"])
@pytest.mark.parametrize("shapes", [{"N": 3}, {"x": (3, 16, 6, 6)}])
def test_a_symbolic_batch_is_bound(shapes: dict, device: str) -> None:
    case = case_named("V11")
    module = vitral.compile(with_symbolic_batch(), shapes=shapes)
    with vitral.Session(module, device=GuardedDevice(device, module)) as session:
        case.check(session.run(None, {"x": case.x})[0])


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_images_of_a_batch_are_independent(batch: int) -> None:
    """Image n of any batch has the bytes that it has alone; the case's own three are known."""
    case = case_named("V11")
    images = np.concatenate([case.x, case.x[::-1]])[:batch]
    module = vitral.compile(with_symbolic_batch(), shapes={"N": batch})
    alone = vitral.compile(with_symbolic_batch(), shapes={"N": 1})
    with vitral.Session(module) as session, vitral.Session(alone) as single:
        (together,) = session.run(None, {"x": images})
        apart = [single.run(None, {"x": image[None]})[0] for image in images]
    np.testing.assert_array_equal(together, np.concatenate(apart))


@pytest.mark.parametrize("shapes", [None, {"N": 0}, {"x": (0, 16, 6, 6)}, {"N": -1}])
def test_no_batch_or_an_empty_one_is_refused(shapes: dict | None) -> None:
    with pytest.raises(CompileError, match=r"'x'|\bN\b") as caught:
        vitral.compile(with_symbolic_batch(), shapes=shapes)
    assert "\n" not in str(caught.value)


def reshaped(shape: list[int]) -> onnx.ModelProto:
    """int8 (2, 16, 4, 4) through a 1x1 convolution, then a Reshape to a constant shape."""
    b = ModelBuilder()
    one = b.constant("w", np.eye(16, dtype=np.int8).reshape(16, 16, 1, 1))
    names = [b.dequantize("x", "x_real", 1.0, np.array(0, np.int8))]
    names.append(b.dequantize(one, "w_real", 1.0, None))
    b.quantize(b.node("Conv", names, "sum"), "h", 1.0, np.array(0, np.int8))
    b.node("Reshape", ["h", b.constant("shape", np.array(shape, np.int64))], "y")
    return b.model({"x": (np.int8, (2, 16, 4, 4))}, {"y": (np.int8, (2, 256))})


def test_reshape_keeps_the_batch_or_is_refused_by_name() -> None:
    x = np.random.default_rng(3).integers(-128, 128, (2, 16, 4, 4)).astype(np.int8)
    with vitral.Session(vitral.compile(reshaped([2, -1]))) as session:
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x.reshape(2, 256))
    with pytest.raises(CompileError, match=r"node 'y_Reshape'.*512"):
        vitral.compile(reshaped([1, 256]))


@pytest.mark.parametrize("device", ["fsim", "tsim"])
def test_rank_three_equals_the_same_data_with_height_one(device: str) -> None:
    rng = np.random.default_rng(10)
    x = rng.integers(-128, 128, (1, 16, 32)).astype(np.int8)
    w = rng.integers(-127, 128, (16, 16, 5)).astype(np.int8)
    flat, high = conv_of(x, w, [2, 2]), conv_of(x[:, :, None], w[:, :, None], [0, 2, 0, 2])
    results = []
    for model, feed in ((flat, x), (high, x[:, :, None])):
        module = vitral.compile(model)
        with vitral.Session(module, device=GuardedDevice(device, module)) as session:
            results.append(session.run(None, {"x": feed})[0])
    assert results[0].shape == (1, 16, 32)
    assert np.unique(results[0]).size > 50
    np.testing.assert_array_equal(results[0], results[1][:, :, 0])


def conv_of(x: np.ndarray, w: np.ndarray, pads: list[int]) -> onnx.ModelProto:
    b = ModelBuilder()
    names = [b.dequantize("x", "x_real", 1.0, np.array(0, np.int8))]
    names.append(b.dequantize(b.constant("w", w), "w_real", 1.0, None))
    b.quantize(b.node("Conv", names, "sum", pads=pads), "y", 1000.0, np.array(0, np.int8))
    return b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, x.shape)})
