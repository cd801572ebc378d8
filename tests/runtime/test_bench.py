"""The benchmark's own exact result, and that a wrong one shows."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from vitral.arithmetic import requantize
from vitral.bench import BenchLayer, BenchResult, bench_names, networks
from vitral.bench.first_layer import LAYOUTS
from vitral.bench.layers import OCCURRENCES, RESNET18, ConvShape
from vitral.bench.workload import make_layer, make_workload, reference_result
from vitral.bench.yardstick import numpy_workload
from vitral.cli import main
from vitral.config import CoreConfig
from vitral.program import MemoryModel
from vitral.runtime.profile import LayerProfile
from vitral.verify import verify_module
from vitral.zoo import NETWORKS


@pytest.mark.parametrize(
    "shape", [ConvShape(5, 7, 6, 3, 2, 1), ConvShape(3, 6, 4, 1, 2, 0), ConvShape(2, 5, 3, 3, 1, 1)]
)
def test_reference_is_a_convolution(shape: ConvShape) -> None:
    rng = np.random.default_rng(3)
    layer = make_layer("l", shape, rng)
    x = rng.integers(-128, 128, layer.in_shape).astype(np.int8)
    result = reference_result(layer, x)
    params = layer.params
    for o, row, column in product(*map(range, layer.out_shape[1:])):
        total = 0
        for c, i, j in product(range(shape.channels), range(shape.kernel), range(shape.kernel)):
            y, z = row * shape.stride + i - shape.pad, column * shape.stride + j - shape.pad
            if 0 <= y < shape.size and 0 <= z < shape.size:
                total += int(x[0, c, y, z]) * int(layer.weight[o, c, i, j])
        wanted = requantize(
            total,
            bias=params.bias[o],
            mult=params.mult[o],
            shift=params.shift[o],
            zero_point=params.zero_point[o],
            low=params.low[o],
            high=params.high[o],
            rounding=params.rounding,
        )
        assert result[0, o, row, column] == int(wanted)


def test_shapes_are_those_of_resnet18() -> None:
    macs = {
        name: s.channels * s.outputs * s.kernel**2 * s.out_size**2 for name, s in RESNET18.items()
    }
    repeats = {"c2": 4, "c5": 3, "c8": 3, "c11": 3}
    total = sum(macs[name] * repeats.get(name, 1) for name in macs)
    conv1, dense = 118_013_952, 512_000
    assert total + conv1 + dense == 1_814_073_344


@pytest.mark.parametrize("name", ["c4", "c10"])
def test_results_are_spread_and_seeded(name: str) -> None:
    work = make_workload(name, RESNET18[name], CoreConfig())
    again = make_workload(name, RESNET18[name], CoreConfig())
    np.testing.assert_array_equal(work.source, again.source)
    np.testing.assert_array_equal(work.expected, again.expected)
    assert 0.3 < np.mean(work.expected == 0) < 0.6, "ReLU clamps about a half"
    assert np.mean(work.expected == 127) < 0.1
    assert len(np.unique(work.expected)) == 128
    verify_module(work.module)


def test_a_wrong_byte_is_a_mismatch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = make_workload("c7", RESNET18["c7"], CoreConfig())
    other = work.expected.copy()
    other[0, 100, 3, 5] ^= 1
    wrong = replace(work, expected=other)
    monkeypatch.setattr("vitral.bench.run.make_workload", lambda *_: wrong)
    assert main(["bench", "c7", "--device", "fsim", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["layers"][0]["match"] is False


def test_names() -> None:
    convs = tuple(f"c{n}" for n in range(1, 12))
    assert bench_names()[:12] == (*convs, "c2-c11")
    assert set(bench_names()) == {*convs, "c2-c11", *NETWORKS}


def test_a_network_is_compared_tensor_by_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "resnet8", "--device", "fsim", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["network"], result["match"]) == ("resnet8", True)
    assert result["checked_by"] == "reference"
    assert result["compile"]["cpu_s"] > 0
    assert result["compile"]["numpy_workload_s"] > 0
    assert sum(layer["macs"] for layer in result["layers"]) == 12_501_632
    assert result["total_cycles"] is None
    assert all(layer["predicted_cycles"] >= 0.9 * layer["macs"] / 256 for layer in result["layers"])


def test_a_wrong_byte_inside_a_program_is_a_mismatch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No step reads it, but it lies in the accelerator's memory."""
    right = networks._tensors

    def wrong(*arguments: Any) -> dict[str, np.ndarray]:
        values = dict(right(*arguments))
        values[networks.MEMORY][-1] ^= 1
        return values

    monkeypatch.setattr(networks, "_tensors", wrong)
    assert main(["bench", "autoencoder", "--device", "fsim", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["match"] is False


def test_a_wrong_tensor_inside_a_network_is_a_mismatch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = networks._tensors

    def wrong(*arguments: Any) -> dict[str, np.ndarray]:
        values = dict(right(*arguments))
        inner = next(name for name, value in values.items() if value.dtype == np.int8)
        values[inner] = values[inner] ^ (np.arange(values[inner].size) == 7).reshape(
            values[inner].shape
        ).astype(np.int8)
        return values

    monkeypatch.setattr(networks, "_tensors", wrong)
    assert main(["bench", "autoencoder", "--device", "fsim", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["match"] is False


def test_the_first_layer_is_shown_in_every_layout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "c1", "--device", "fsim", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    variants = {variant["layout"]: variant for variant in result["variants"]}
    assert list(variants) == list(LAYOUTS)
    assert all(variant["match"] for variant in variants.values())
    assert variants["windows"]["predicted_cycles"] == result["layers"][0]["predicted_cycles"]
    cycles = [variant["predicted_cycles"] for variant in variants.values()]
    assert cycles == sorted(cycles, reverse=True)
    assert variants["windows"]["host_bytes"] == 112 * 112 * 160, "147 values in blocks of 16"
    assert variants["channels"]["host_bytes"] == 224 * 224 * 16
    assert variants["windows"]["host_bytes_per_output_pixel"] <= 160
    assert all(variant["host_s"] > 0 for variant in variants.values())


def test_layers_count_as_often_as_the_network_has_them() -> None:
    def layer(name: str, cycles: int, times: int) -> BenchLayer:
        profile = LayerProfile(name=name, op="conv", device="tsim", macs=1, cycles=cycles)
        return BenchLayer(profile, True, 2.0, times)

    result = BenchResult(
        network="both",
        device="tsim",
        layers=(layer("a", 100, 4), layer("b", 1000, 1)),
        config=CoreConfig(),
        memory=MemoryModel(),
        repeat=2,
        checked_by="numpy",
    )
    assert (result.total_cycles, result.weighted_cycles) == (1100, 1400)
    assert result.cycles_per_s == 550
    assert sum(OCCURRENCES.get(name, 1) for name in RESNET18) == 19


def test_the_numpy_workload_takes_processor_time() -> None:
    assert 0.05 < numpy_workload() < 60
