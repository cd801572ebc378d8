"""`vitral zoo run`: networks compiled, run, and compared with the oracle and with plain numpy."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import oracle
import pytest
from onnx import TensorProto, helper

from vitral.cli import main
from vitral.errors import VitralError
from vitral.zoo import build, sample_input
from vitral.zoo.count import count_macs
from vitral.zoo.golden import numpy_tensors
from vitral.zoo.packages import PACKAGED
from vitral.zoo.run import is_collapsed, load_judge, run_network
from vitral.zoo.subjects import Subject, subject, subjects

Array = npt.NDArray[Any]
ORACLE = "oracle:evaluate"
MACS = {"resnet8": 12_501_632, "ds-cnn": 2_656_768, "autoencoder": 264_192}


@pytest.mark.parametrize("name", MACS)
def test_a_network_gives_the_tensors_of_the_oracle(name: str) -> None:
    run = run_network(subject(name), judge=ORACLE)
    assert run.macs == MACS[name]
    assert run.accelerator_share == 1
    assert run.tensors >= 3
    assert (run.differing_bytes, run.collapsed) == (0, ())
    assert run.passed


def test_plain_numpy_gives_the_tensors_of_the_oracle() -> None:
    """Every tensor that both have, those inside programs among them."""
    model = build("resnet8")
    feeds = {"input": sample_input((1, 3, 32, 32), 5)}
    wanted, got = oracle.evaluate(model, feeds), numpy_tensors(model, feeds)
    common = [name for name in wanted if name in got and name not in feeds]
    assert len(common) >= 14
    oracle.compare(wanted, got, names=common, clamps=oracle.clamp_values(model))


def test_a_judge_of_another_opinion_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    right = oracle.evaluate

    def off_by_one(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        tensors = {name: np.array(array) for name, array in right(model, feeds).items()}
        tensors["fc_QuantizeLinear_Output"].flat[3] ^= 1
        return tensors

    monkeypatch.setattr(oracle, "evaluate", off_by_one)
    run = run_network(subject("ds-cnn"), judge=ORACLE)
    assert run.differing_bytes == 1
    assert not run.passed


def test_a_collapsed_tensor_does_not_pass() -> None:
    """A network fed with zeros: one constant all over."""
    net = subject("autoencoder")
    still = Subject(
        name="still",
        source="a test",
        build=lambda seed: _constant(build("autoencoder", seed)),
        inputs=net.inputs,
    )
    run = run_network(still)
    assert run.differing_bytes == 0
    assert run.collapsed
    assert not run.passed


def _constant(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with all weights 0."""
    for constant in model.graph.initializer:
        if constant.name.endswith(("weight_quantized", "bias_quantized")):
            constant.raw_data = bytes(len(constant.raw_data))
    return model


@pytest.mark.parametrize(
    ("values", "zero", "collapsed"),
    [
        ([7] * 99, None, True),
        ([7] * 15, None, False),
        ([0] * 30 + [5] * 60 + [9] * 9, None, True),
        ([0] * 30 + [5] * 60 + [9] * 9, 5, False),
        ([0] * 60 + [5] * 30 + [9] * 9, None, False),
        (list(range(99)), None, False),
    ],
)
def test_a_tensor_of_one_value_is_collapsed(
    values: list[int], zero: int | None, collapsed: bool
) -> None:
    """Unless the value is where activations pile up."""
    assert is_collapsed(np.array(values, np.int8), zero) == collapsed


def test_every_whole_network_is_named_and_layers_are_not() -> None:
    names = [chosen.name for chosen in subjects()]
    assert names[0] == "resnet18"
    assert {"vgg16", "autoencoder", "ppocr-cls"} <= set(names)
    assert "c2" not in names
    assert subject("c2").name == "c2"
    with pytest.raises(VitralError, match=r"no 'resnet19'.*resnet18"):
        subject("resnet19")


@pytest.mark.parametrize("name", ["nothing:at_all", "oracle:nothing", "oracle"])
def test_an_unknown_judge_is_refused(name: str) -> None:
    with pytest.raises(VitralError, match="MODULE:FUNCTION"):
        load_judge(name)


@pytest.mark.parametrize(
    ("op", "x", "w", "y", "attributes", "macs"),
    [
        ("Conv", (1, 6, 5, 5), (4, 3, 3, 3), (1, 4, 3, 3), {"group": 2}, 36 * 27),
        ("ConvTranspose", (1, 6, 5, 5), (6, 2, 3, 3), (1, 2, 7, 7), {}, 150 * 18),
        ("Gemm", (7, 2), (7, 5), (2, 5), {"transA": 1}, 70),
        ("MatMul", (3, 2, 7), (7, 5), (3, 2, 5), {}, 210),
    ],
)
def test_macs_by_hand(
    op: str, x: tuple, w: tuple, y: tuple, attributes: dict[str, Any], macs: int
) -> None:
    infos = [helper.make_tensor_value_info(*i) for i in (("x", 1, x), ("w", 1, w), ("y", 1, y))]
    node = helper.make_node(op, ["x", "w"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    assert count_macs(helper.make_model(graph)) == macs
    infos[0].type.tensor_type.shape.dim[0].dim_param = "n"
    infos[0].type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph([node], "g", infos[:2], [onnx.ValueInfoProto(name="y")])
    with pytest.raises(VitralError, match="shape of"):
        count_macs(helper.make_model(graph))


def test_command_lists_builds_and_runs(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    assert main(["zoo", "list"]) == 0
    assert "ppocr-det" in capsys.readouterr().out
    path = tmp_path / "c4.onnx"
    assert main(["zoo", "build", "c4", "--seed", "1", "-o", str(path)]) == 0
    assert path.read_bytes() == build("c4", 1).SerializeToString()
    capsys.readouterr()
    assert main(["zoo", "run", "ds-cnn", "--json", "-"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["name"] == "ds-cnn"
    assert record["differing_bytes"] == 0
    assert record["compile_s"] > 0
    assert record["numpy_workload_s"] > 0


@pytest.mark.parametrize("arguments", [[], ["ds-cnn", "--all"], ["resnet19"]])
def test_command_refuses_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zoo", "run", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()[-1:]) == 1


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitral.zoo.packages.find_spec", lambda name: None)
    with pytest.raises(VitralError, match=r"needs rapidocr-onnxruntime; pip install"):
        PACKAGED[0].build(0)


def test_a_judge_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the other networks' results are kept."""
    right = oracle.evaluate

    def moody(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        if model.graph.name == "ds-cnn":
            raise oracle.OracleError("no law")
        return right(model, feeds)

    monkeypatch.setattr(oracle, "evaluate", moody)
    names = ["ds-cnn", "autoencoder"]
    assert main(["zoo", "run", *names, "--judge", ORACLE, "--json", "-"]) == 2
    out, err = capsys.readouterr()
    run, failure = json.loads(out)
    assert run["name"] == "autoencoder"
    assert failure == {"name": "ds-cnn", "error": f"judge {ORACLE!r}: OracleError: no law"}
    assert "vitral: ds-cnn: judge" in err


def test_packages_that_are_missing_are_left_out_of_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = (subject("autoencoder"), *PACKAGED)
    monkeypatch.setattr("vitral.zoo.subjects.subjects", lambda: chosen)
    monkeypatch.setattr("vitral.zoo.packages.find_spec", lambda name: None)
    assert main(["zoo", "run", "--all", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert [run["name"] for run in json.loads(out)] == ["autoencoder"]
    assert err.count("pip install 'vitral[networks]'") == len(PACKAGED)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of onnxruntime's quantizer
@pytest.mark.parametrize("chosen", PACKAGED, ids=lambda chosen: chosen.name)
def test_trained_networks_of_packages(chosen: Subject) -> None:
    for package in ("rapidocr_onnxruntime", "PIL"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed; pip install 'vitral[networks]'")
    run = run_network(chosen, judge="judge:evaluate")  # one has float islands
    assert (run.differing_bytes, run.collapsed) == (0, ())
    assert run.accelerator_share >= 0.99
    assert run.tensors > 10
