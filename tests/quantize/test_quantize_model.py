"""Quantized models: bytes on fsim are the oracle's, all of it runs on the accelerator."""

import numpy as np
import onnx
import onnxruntime
import oracle
import pytest
from float_nets import FLOAT_NETS, FloatNet, float_net, images

import vitral
from vitral.compiler.quantize import QuantizeConfig, quantize_model
from vitral.compiler.quantize.quantize import quantize

CHOICES = {
    "default": QuantizeConfig(),
    "minmax": QuantizeConfig(method="minmax", bias_correction=False),
    "symmetric": QuantizeConfig(activations="symmetric"),
    "per_tensor": QuantizeConfig(per_channel=False),
    "all": QuantizeConfig(equalize=True),
}
FORMS = [(name, "default") for name in FLOAT_NETS] + [("residual", c) for c in CHOICES]


@pytest.mark.parametrize(("name", "choice"), dict.fromkeys(FORMS))
def test_bytes_are_the_oracles_and_results_near_the_float_ones(name: str, choice: str) -> None:
    model = float_net(name)
    int8 = quantize_model(model, images(64), CHOICES[choice])
    module = vitral.compile(int8)
    _only_edges_on_the_host(module)
    x = images(1, seed=5)
    with vitral.Session(module, device="fsim") as session:
        (got,) = session.run(None, {"x": x})
        tensors = {k: np.array(v) for k, v in session.tensors().items()}
    wanted = oracle.evaluate(int8, {"x": x})
    np.testing.assert_array_equal(got, wanted[int8.graph.output[0].name])
    common = tensors.keys() & wanted.keys()
    assert common
    for tensor in common:
        np.testing.assert_array_equal(tensors[tensor], wanted[tensor], err_msg=tensor)
    assert _sqnr(model, int8, images(16, seed=3)) > (24 if choice == "default" else 17)


def _only_edges_on_the_host(module: vitral.Module) -> None:
    """All multiplications on the accelerator, and no float islands: the CPU lays out, changes
    shapes, and makes and reads the edges' codes."""
    placed = sum(layer.macs for segment in module.segments for layer in segment.layers)
    assert placed == module.macs > 0
    text = module.describe()
    steps = [line.split()[-1] for line in text.splitlines() if line.startswith("cpu")]
    assert set(steps) <= {"quantize", "dequantize", "patches", "reshape"}, text
    assert not module.notices


def test_the_form_is_standard_qdq() -> None:
    model = float_net("residual")
    int8 = quantize_model(model, images(8))
    onnx.checker.check_model(int8, full_check=True)
    assert [i.name for i in int8.graph.input] == ["x"]
    assert int8.graph.output == model.graph.output
    kinds = {node.op_type for node in int8.graph.node}
    assert "BatchNormalization" not in kinds
    assert {node.domain for node in int8.graph.node} == {""}
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in int8.graph.initializer}
    read = {name for node in int8.graph.node for name in node.input}
    assert arrays.keys() <= read
    assert {str(a.dtype) for a in arrays.values()} == {"int8", "int32", "float32"}
    assert all(a.ndim <= 1 for a in arrays.values() if a.dtype == np.float32)  # scales only


def test_biases_have_the_scale_of_the_products() -> None:
    int8 = quantize_model(float_net("residual"), images(8))
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in int8.graph.initializer}
    makers = {n.output[0]: n for n in int8.graph.node}
    layers = [n for n in int8.graph.node if n.op_type in ("Conv", "Gemm")]
    assert len(layers) == 7
    for layer in layers:
        x, w, b = (arrays[makers[name].input[1]] for name in layer.input)
        np.testing.assert_array_equal(b, x * w)
        codes = arrays[makers[layer.input[1]].input[0]]
        assert np.abs(codes.reshape(len(codes), -1)).max(axis=1).tolist() == [127] * len(codes)


def test_an_excluded_node_stays_float_with_its_clamp() -> None:
    model = float_net("residual")
    full = quantize(model, images(8))
    layers = [n.name for n in full.graph.nodes if n.op_type == "Conv"]
    part = quantize(model, images(8), QuantizeConfig(exclude=(layers[1],)))
    left = {n.name: n.op_type for n in part.graph.nodes if n.name not in part.selection.nodes}
    assert sorted(left.values()) == ["Conv", "Relu"]
    assert layers[1] in left
    float_weights = [
        t for t in part.model.graph.initializer if t.data_type == 1 and len(t.dims) == 4
    ]
    assert len(float_weights) == 1
    x = images(20, seed=3)
    assert _sqnr(model, part.model, x) > _sqnr(model, full.model, x) - 1


def test_open_batch_size_and_old_opset() -> None:
    net = FloatNet(["n", 3, 16, 16], opset=11)
    model = net.finish(net.op("GlobalAveragePool", net.block("x", 3, 8)))
    int8 = quantize_model(model, images(10), QuantizeConfig(batch=4))
    assert int8.opset_import[0].version == 13
    assert int8.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    one = quantize_model(model, images(10), QuantizeConfig(batch=1))
    x = images(3, seed=1)
    np.testing.assert_allclose(_run(int8, x), _run(one, x), atol=0.1)
    bound = quantize_model(model, images(10), shapes={"n": 1})
    assert bound.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 1


def test_functions_of_one_tensor_become_one_table() -> None:
    """x * Clip(x + 3, 0, 6) / 6: nothing inside is rounded, and the float result is given out."""
    net = FloatNet([1, 3, 16, 16])
    y = net.norm(net.conv("x", 3, 8), 8)
    three, six = net.constant(np.array(3)), net.constant(np.array(6))
    gate = net.op("Clip", net.op("Add", y, three), net.constant(np.array(0)), six)
    product = net.op("Mul", y, gate)
    swish = net.op("Div", product, six)
    end = net.op("Sigmoid", net.norm(net.conv(swish, 8, 4), 4))
    found = quantize(net.finish(end), images(8))
    hidden = {gate, product, end}
    assert not hidden & set(found.selection.tensors)
    assert swish in found.selection.tensors
    x = images(1, seed=2)
    module = vitral.compile(found.model)
    with vitral.Session(module, device="fsim") as session:
        (got,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(got, oracle.evaluate(found.model, {"x": x})[end])


def test_concatenated_tensors_share_their_scale() -> None:
    found = quantize(float_net("fire"), images(8), QuantizeConfig(method="minmax"))
    (concat,) = [n for n in found.graph.nodes if n.op_type == "Concat"]
    codes = {found.codes[name] for name in (*concat.input, *concat.output)}
    assert len(codes) == 1
    seen = [found.seen[name] for name in concat.input]
    (shared,) = codes
    assert shared.ends[1] == pytest.approx(max(high for _, high in seen), rel=1e-6)
    pool = next(n for n in found.graph.nodes if n.op_type == "MaxPool")
    assert found.codes[pool.output[0]] == shared


def _run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    fixed = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1
    rows = [x[i : i + 1] for i in range(len(x))] if fixed else [x]
    return np.concatenate([np.asarray(session.run(None, {"x": row})[0]) for row in rows])


def _sqnr(model: onnx.ModelProto, int8: onnx.ModelProto, x: np.ndarray) -> float:
    wanted, got = _run(model, x).astype(np.float64), _run(int8, x)
    return float(10 * np.log10((wanted**2).sum() / ((wanted - got) ** 2).sum()))
