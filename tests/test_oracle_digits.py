"""The digits network by the oracle: accuracy, lively tensors, and how onnxruntime differs."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
import oracle
from digits import INT8_MODEL, load_images, model_input

MODEL = onnx.load(INT8_MODEL)
QUANTIZED = [n.output[0] for n in MODEL.graph.node if n.op_type == "QuantizeLinear"]
ACCURACY = 0.98
NEAR_TIE = 2.0**-10
"""Float32 sums of a few hundred terms of up to 2^14 steps are off by less than this many steps."""


def test_accuracy_on_held_out_images() -> None:
    images = load_images("held_out")
    assert len(images) >= 1000
    right = 0
    for pixels, label in zip(images.pixels, images.labels, strict=True):
        logits = oracle.evaluate(MODEL, {"image": model_input(pixels)}, outputs_only=True)
        right += int(logits["logits"].argmax()) == label
    print(f"accuracy {right / len(images):.4f}")
    assert right / len(images) >= ACCURACY


def test_test_images_are_all_different_and_of_every_class() -> None:
    parts = [load_images("held_out"), load_images("demo")]
    everything = [image.tobytes() for part in parts for image in part.pixels]
    assert len(set(everything)) == len(everything)
    for part in parts:
        counts = Counter(part.labels.tolist())
        assert counts == dict.fromkeys(range(10), len(part) // 10)


def test_every_multiply_is_in_a_quantized_group() -> None:
    """Each Conv, Gemm and Add reads DequantizeLinear and is read by QuantizeLinear alone."""
    producers = {n.output[0]: n.op_type for n in MODEL.graph.node}
    heavy = [n for n in MODEL.graph.node if n.op_type in ("Conv", "Gemm", "MatMul", "Add")]
    assert len(heavy) == 7
    for node in heavy:
        assert {producers.get(name) for name in node.input} == {"DequantizeLinear"}
        readers = [n.op_type for n in MODEL.graph.node if node.output[0] in n.input]
        assert readers == ["QuantizeLinear"]


def test_network_is_large_enough_to_mean_something() -> None:
    shapes = onnx.shape_inference.infer_shapes(MODEL)
    dims = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in [*shapes.graph.value_info, *shapes.graph.output]
    }
    macs = 0
    for node in MODEL.graph.node:
        if node.op_type in ("Conv", "Gemm"):
            weights = dims[node.input[1]]
            macs += int(np.prod(dims[node.output[0]])) * int(np.prod(weights[1:]))
    assert macs == 5_532_544


def test_no_quantized_tensor_is_collapsed() -> None:
    """Over ten images. Only the image itself, mostly paper, needs its zero left out."""
    paper = {QUANTIZED[0]: oracle.clamp_values(MODEL)[QUANTIZED[0]]}
    for pixels in load_images("demo").pixels[:10]:
        values = oracle.evaluate(MODEL, {"image": model_input(pixels)})
        chosen = {name: values[name] for name in QUANTIZED}
        oracle.compare(chosen, chosen, clamps=paper)


@dataclass
class Differences:
    """Elements that differ between onnxruntime and the oracle, by tensor."""

    elements: int = 0
    differing: Counter[str] = field(default_factory=Counter)
    first: list[tuple[str, float]] = field(default_factory=list)
    """(tensor, distance from a tie in steps) where everything before was still equal."""
    digits: int = 0


def test_unoptimised_onnxruntime_differs_only_at_near_ties() -> None:
    """It sums convolutions in float32; every quantized tensor is made a graph output."""
    probe = onnx.ModelProto()
    probe.CopyFrom(MODEL)
    for name in QUANTIZED:
        info = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT8, None)
        probe.graph.output.append(info)
    found = _differences(_session(probe, optimised=False), QUANTIZED)
    _print(found)
    assert all(distance <= NEAR_TIE for _, distance in found.first)
    assert found.differing.total() <= found.elements * 1e-4
    assert found.digits == 0


def test_optimised_onnxruntime_gives_the_same_logits_but_for_few() -> None:
    """It runs QLinearConv, which follows the law, and its own QLinearAdd, which rounds ties apart.

    The session may not be asked for inner tensors: that would keep it from fusing.
    """
    found = _differences(_session(MODEL, optimised=True), ["logits"])
    _print(found)
    assert found.differing.total() <= found.elements * 0.01
    assert found.digits == 0


def _differences(session: onnxruntime.InferenceSession, names: list[str]) -> Differences:
    """The 100 demo images through session and oracle."""
    found = Differences()
    outputs = [output.name for output in session.get_outputs()]
    for pixels in load_images("demo").pixels:
        x = model_input(pixels)
        unrounded: dict[str, np.ndarray] = {}
        expected = oracle.evaluate(MODEL, {"image": x}, unrounded=unrounded)
        results = [np.asarray(result) for result in session.run(None, {"image": x})]
        actual = dict(zip(outputs, results, strict=True))
        _count(found, names, expected, actual, unrounded)
        found.digits += int(expected["logits"].argmax() != actual["logits"].argmax())
    return found


def _count(
    found: Differences,
    names: list[str],
    expected: dict[str, np.ndarray],
    actual: dict[str, np.ndarray],
    unrounded: dict[str, np.ndarray],
) -> None:
    """Add one image; later tensors inherit differences, so only the first is held to a tie."""
    inherited = False
    for name in names:
        differs = expected[name] != actual[name]
        found.elements += differs.size
        if not differs.any():
            continue
        found.differing[name] += int(differs.sum())
        if not inherited and name in unrounded:
            rests = np.abs(unrounded[name][differs] % 1 - 0.5)
            found.first += [(name, float(rest)) for rest in rests]
        inherited = True


def _print(found: Differences) -> None:
    print(f"\n{found.differing.total()} of {found.elements} differ: {dict(found.differing)}")
    for name, distance in found.first:
        print(f"first difference in {name}: {distance:.2e} steps from a tie")


def _session(model: onnx.ModelProto, *, optimised: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    )
    # Without it the optimised session may add products in 16 bits with saturation.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
