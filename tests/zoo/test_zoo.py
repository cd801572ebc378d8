"""The zoo's networks: sizes that everybody knows, codes that are used, onnxruntime's bytes."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest

from vitral.bench.layers import RESNET18
from vitral.errors import VitralError
from vitral.zoo import NETWORKS, build, sample_input
from vitral.zoo.__main__ import main as command

PUBLISHED = {
    "resnet18": 1_814_073_344,
    "resnet50": 4_089_184_256,
    "mobilenetv1": 568_740_352,
    "mobilenetv2": 300_774_272,
    "tiny-yolov2": 3_485_520_896,
    "yolov3-tiny": 2_782_480_896,
    "squeezenet11": 349_151_936,
    "vgg16": 15_470_264_320,
    "resnet8": 12_501_632,
    "ds-cnn": 2_656_768,
    "vww": 7_489_664,
    "autoencoder": 264_192,
    "c1": 118_013_952,
    **dict.fromkeys(("c2", "c5", "c8", "c11"), 115_605_504),
    **dict.fromkeys(("c3", "c6", "c9"), 57_802_752),
    **dict.fromkeys(("c4", "c7", "c10"), 6_422_528),
}
"""Multiply-accumulates of one input."""
ADDS = {"resnet18": 8, "resnet50": 16, "mobilenetv2": 10, "resnet8": 3}
QUICK = ("resnet18", "mobilenetv1", "resnet8", "ds-cnn", "vww", "autoencoder", "c4")
LONG = ("resnet50", "mobilenetv2", "tiny-yolov2", "yolov3-tiny", "squeezenet11", "vgg16")
every = pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)]
)


@cache
def model(name: str) -> onnx.ModelProto:
    return build(name)


def count_macs(graph: onnx.GraphProto) -> int:
    """From shapes that onnx infers, so that nothing of the builder counts."""
    shapes = {
        info.name: [d.dim_value for d in info.type.tensor_type.shape.dim]
        for info in (*graph.value_info, *graph.output)
    }
    shapes |= {c.name: list(c.dims) for c in graph.initializer}
    source = {node.output[0]: node.input[0] for node in graph.node}
    total = 0
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm"):
            _, channels, *spatial = shapes[node.output[0]]
            weight = shapes[source[node.input[1]]]
            assert weight[0] == channels
            total += int(np.prod(weight)) * int(np.prod(spatial))
    return total


@every
def test_has_the_published_size(name: str) -> None:
    onnx.checker.check_model(model(name), full_check=True)
    graph = onnx.shape_inference.infer_shapes(model(name), strict_mode=True).graph
    assert count_macs(graph) == PUBLISHED[name]
    assert sum(node.op_type == "Add" for node in graph.node) == ADDS.get(name, 0)


def test_every_network_has_a_published_size() -> None:
    assert set(PUBLISHED) == set(NETWORKS)
    assert {*QUICK, *LONG} | {f"c{number}" for number in range(1, 12)} == set(NETWORKS)


def codes(name: str, seeds: Iterable[int]) -> dict[str, npt.NDArray[np.int8]]:
    """onnxruntime's (seeds, ...) of every tensor between QuantizeLinear and DequantizeLinear."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model(name))
    names = [node.output[0] for node in copy.graph.node if node.op_type == "QuantizeLinear"]
    for wanted in names:
        copy.graph.output.append(
            onnx.helper.make_tensor_value_info(wanted, onnx.TensorProto.INT8, None)
        )
    session = ort.InferenceSession(copy.SerializeToString())
    shape = tuple(session.get_inputs()[0].shape)
    runs = [session.run(names, {"input": sample_input(shape, seed)}) for seed in seeds]
    return {name: np.stack(list(values)) for name, *values in zip(names, *runs, strict=True)}


@every
def test_no_tensor_collapses(name: str) -> None:
    """On inputs that no scale was calibrated on: spread, not clamped, not constant."""
    for tensor, values in codes(name, seeds=range(3, 6)).items():
        used = len(np.unique(values))
        assert used >= min(100, values.size // 8), f"{tensor}: {used} codes"
        reach = int(values.max()) - int(values.min())
        assert reach >= 100, f"{tensor}: codes reach over {reach} of 255"
        clamped = np.mean(values == 127)
        assert clamped < 0.1, f"{tensor}: {clamped:.1%} at the upper end"
        zeros = np.mean(values == values.min())
        assert zeros < 0.75, f"{tensor}: {zeros:.1%} at the lower end"


def test_the_seed_decides_the_weights() -> None:
    first, again, other = (build("c4", seed).SerializeToString() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_weights_of_a_layer_differ_from_channel_to_channel_in_scale() -> None:
    scales = next(c for c in model("c4").graph.initializer if c.name == "c4.weight_scale")
    values = onnx.numpy_helper.to_array(scales)
    assert values.shape == (128,)
    assert values.max() > 1.3 * values.min()


def test_the_page_names_every_network_with_its_size() -> None:
    page = Path("docs/zoo.md").read_text()
    for name, macs in PUBLISHED.items():
        if name not in ("c1", *RESNET18):
            assert f"| `{name}` |" in page
            assert f"| {macs:,} |" in page, name


def test_command_writes_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c4.onnx"
    monkeypatch.setattr("sys.argv", ["zoo", "c4", "--seed", "1", "-o", str(path)])
    assert command() == 0
    assert path.read_bytes() == build("c4", 1).SerializeToString()


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(VitralError, match=r"no 'resnet19'.*resnet18"):
        build("resnet19")
