"""The benchmark's own exact result, and that a wrong one shows."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from vitral.arithmetic import requantize
from vitral.bench import bench_names
from vitral.bench.layers import RESNET18, ConvShape
from vitral.bench.workload import make_layer, make_workload, reference_result
from vitral.cli import main
from vitral.config import CoreConfig
from vitral.verify import verify_module


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
    assert bench_names() == (*(f"c{n}" for n in range(2, 12)), "c2-c11")
