"""Resize in every coordinate mode: the bytes of the oracle, and the meaning of onnxruntime."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import oracle
import pytest
from cases import ModelBuilder
from onnx.reference import ReferenceEvaluator
from plans import run_model

from vitral.errors import CompileError

SHAPE = (2, 3, 5, 7)
MODES = [
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
]
TARGETS: dict[str, dict[str, Any]] = {
    "twice": {"scales": [1, 1, 2, 2]},
    "three by two": {"scales": [1, 1, 3, 2]},
    "one and a half": {"scales": [1, 1, 1.5, 0.75]},
    "smaller": {"scales": [1, 1, 0.6, 0.5]},
    "sizes": {"sizes": [2, 3, 9, 4]},
    "one element": {"sizes": [2, 3, 1, 7]},
}


def resize(
    mode: str,
    target: dict[str, Any],
    *,
    dtype: Any = np.int8,
    quantized: bool = True,
    y_scale: float = 0.5,
    opset: int = 19,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(11).integers(limits.min, limits.max + 1, SHAPE).astype(dtype)
    b = ModelBuilder(opset=opset)
    zero = np.array(limits.max // 2 - 50, dtype)
    names = [b.dequantize("x", "x_real", 0.5, zero), ""]
    if "sizes" in target:
        names += ["", b.constant("sizes", np.array(target["sizes"], np.int64))]
    else:
        names.append(b.constant("scales", np.array(target["scales"], np.float32)))
    last = b.node("Resize", names, "resized", mode=mode, **attributes)
    if not quantized:
        model = b.model({"x": (dtype, SHAPE)}, {"resized": (np.float32, tuple("nchw"))})
        return model, {"x": x}
    b.quantize(last, "y", y_scale, zero)
    return b.model({"x": (dtype, SHAPE)}, {"y": (dtype, tuple("nchw"))}), {"x": x}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("coordinates", [*MODES, "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_bytes_of_the_oracle(mode: str, coordinates: str, target: str) -> None:
    model, feeds = resize(
        mode,
        TARGETS[target],
        dtype=np.uint8 if target == "twice" else np.int8,
        y_scale=0.5 if target != "sizes" else 0.3,
        coordinate_transformation_mode=coordinates,
    )
    want = oracle.evaluate(model, feeds)["y"]
    np.testing.assert_array_equal(run_model(model, feeds)["y"], want)


WHOLE = ("twice", "three by two", "sizes", "one element")
"""Targets of whole lengths: of others onnxruntime aligns the corners of the rounded length."""


@pytest.mark.parametrize(
    ("coordinates", "target"),
    [(c, t) for c in MODES for t in TARGETS if c != "align_corners" or t in WHOLE],
)
def test_the_oracle_means_the_operator_of_onnxruntime(coordinates: str, target: str) -> None:
    attributes: dict[str, Any] = {"coordinate_transformation_mode": coordinates}
    model, feeds = resize("linear", TARGETS[target], quantized=False, **attributes)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want = np.asarray(session.run(None, feeds)[0])
    got = oracle.evaluate(model, feeds)["resized"]
    np.testing.assert_allclose(got, want, atol=2e-4)
    np.testing.assert_array_equal(run_model(model, feeds)["resized"], got)


def test_a_tie_between_two_neighbours_goes_to_even() -> None:
    """Halfway between codes 10 and 13 (zero point 3) lies 8.5 steps: 8 + 3, not 9 + 3."""
    b = ModelBuilder(opset=19)
    zero = np.array(3, np.int8)
    names = [
        b.dequantize("x", "x_real", 0.25, zero),
        "",
        "",
        b.constant("s", np.array([1, 1, 1, 3])),
    ]
    attributes = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    b.quantize(b.node("Resize", names, "r", **attributes), "y", 0.25, zero)
    x = np.array([10, 13], np.int8).reshape(1, 1, 1, 2)
    model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, (1, 1, 1, 3))})
    assert run_model(model, {"x": x})["y"].reshape(-1).tolist() == [10, 11, 13]


def test_axes_and_aspect_ratio() -> None:
    for policy, sizes in (("not_larger", (6, 9)), ("not_smaller", (7, 9))):
        b = ModelBuilder(opset=19)
        names = ["x", "", "", b.constant("s", np.array([7, 9]))]
        b.node("Resize", names, "y", axes=[-2, 3], keep_aspect_ratio_policy=policy)
        model = b.model({"x": (np.int8, SHAPE)}, {"y": (np.int8, tuple("nchw"))})
        x = np.arange(210).astype(np.int8).reshape(SHAPE)
        got = run_model(model, {"x": x})["y"]
        want = oracle.evaluate(model, {"x": x})["y"]
        np.testing.assert_array_equal(got, want)
        assert got.shape[2:] in (sizes, (7, 10)), policy


def test_upsample_of_an_old_model_with_scales_as_attribute() -> None:
    node = onnx.helper.make_node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0, 3.0])
    info = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT8, s)
        for n, s in (("x", SHAPE), ("y", (2, 3, 10, 21)))
    ]
    graph = onnx.helper.make_graph([node], "old", info[:1], info[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 8)])
    model.ir_version = 4
    x = np.arange(210).astype(np.int8).reshape(SHAPE)
    want = x.repeat(2, axis=2).repeat(3, axis=3)
    np.testing.assert_array_equal(run_model(model, {"x": x})["y"], want)


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("quantized", [False, True])
def test_depth_and_space(op: str, mode: str, quantized: bool) -> None:
    shape = (2, 12, 4, 6)
    x = np.arange(576).astype(np.int8).reshape(shape)
    b = ModelBuilder(opset=28 if op == "SpaceToDepth" else 19)
    zero = np.array(5, np.int8)
    source = b.dequantize("x", "x_real", 0.5, zero) if quantized else "x"
    last = b.node(op, [source], "turned" if quantized else "y", blocksize=2, mode=mode)
    if quantized:
        b.quantize(last, "y", 0.5, zero)
    model = b.model({"x": (np.int8, shape)}, {"y": (np.int8, tuple("nchw"))})
    got = run_model(model, {"x": x})["y"]
    np.testing.assert_array_equal(got, oracle.evaluate(model, {"x": x})["y"])
    results: Any = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(got, results[0])


@pytest.mark.parametrize(
    ("attributes", "scales", "text"),
    [
        ({"mode": "cubic"}, [1, 1, 2, 2], "'cubic'"),
        ({"antialias": 1, "mode": "linear"}, [1, 1, 2, 2], "antialias"),
        ({"mode": "linear"}, [1, 1, 0.1, 1], "at least one element"),
        ({"mode": "linear"}, [1, 2], "needs 4 scales"),
        ({"mode": "linear", "axes": [9]}, [2], "axes of 4"),
    ],
)
def test_what_makes_no_sense_is_refused(
    attributes: dict[str, Any], scales: list[float], text: str
) -> None:
    attributes = dict(attributes)
    mode = attributes.pop("mode")
    model, feeds = resize(mode, {"scales": scales}, **attributes)
    with pytest.raises(CompileError, match=rf"^node 'resized_Resize'[^\n]*{text}"):
        run_model(model, feeds)
