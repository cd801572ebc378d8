"""Random graphs and broken models: a fixed number here, thousands by `make fuzz-graphs`."""

import os
import time
from pathlib import Path

import numpy as np
import onnx
import oracle
import pytest

from fuzz import random_sample
from fuzz.band import deviation
from fuzz.check import differs, find_failure, minimise
from fuzz.keep import check_seed, replay
from fuzz.malformed import BREAKS, broken_model, check_broken, refusal
from fuzz.workers import run_all

GRAPHS, BATCH = 60, 20
MODELS = 120


@pytest.mark.parametrize("first", range(0, GRAPHS, BATCH))
def test_random_graphs_give_the_bytes_of_the_oracle(first: int) -> None:
    """And the oracle's own are onnxruntime's, within the band of float32."""
    for seed in range(first, first + BATCH):
        failure = find_failure(seed)
        assert failure is None, failure.text


@pytest.mark.parametrize("seed", [2535, 3850])
def test_graphs_that_failed_once(seed: int) -> None:
    """Layers lowered from operators whose inputs had another name by then."""
    failure = find_failure(seed, judge=False)
    assert failure is None, failure.text


@pytest.mark.parametrize("seed", [1083, 1380])
def test_broken_models_that_failed_once(seed: int) -> None:
    """A name with a control character that ends lines; padding that no memory holds."""
    assert check_broken(seed) is None


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_on_the_core(seed: int) -> None:
    failure = find_failure(seed, "tsim", judge=False)
    assert failure is None, failure.text


def test_broken_models_are_refused_in_one_line() -> None:
    results = list(run_all(check_broken, range(MODELS), jobs=1, timeout=30))
    failed = [text for _, text in results if text is not None]
    assert not failed, "\n".join(failed)
    assert len(results) == MODELS


def test_every_way_to_break_a_model_is_taken() -> None:
    broken = dict(broken_model(seed) for seed in range(MODELS))
    assert set(broken) == set(BREAKS)
    whole = {random_sample(seed, operators=4).model.SerializeToString() for seed in range(40)}
    assert not whole & set(broken.values())


def test_a_seed_always_gives_the_same_graph() -> None:
    first, again, other = (random_sample(seed) for seed in (3, 3, 4))
    assert first.model.SerializeToString() == again.model.SerializeToString()
    assert first.model.SerializeToString() != other.model.SerializeToString()


def test_graphs_hold_ties_odd_zero_points_and_both_types() -> None:
    ties = rounded = 0
    types, operators = set(), set()
    for seed in range(40):
        sample = random_sample(seed)
        unrounded: dict[str, np.ndarray] = {}
        values = oracle.evaluate(sample.model, sample.feeds, unrounded=unrounded)
        steps = np.concatenate([np.ravel(array) for array in unrounded.values()])
        ties += int(np.count_nonzero(np.abs(steps) % 1 == 0.5))
        rounded += steps.size
        types |= {value.dtype.name for value in values.values()}
        operators |= {node.op_type for node in sample.model.graph.node}
    assert ties > 100
    assert ties < rounded / 10
    assert types >= {"int8", "uint8"}
    assert operators >= {"QLinearConv", "Conv", "QLinearConcat", "Mul", "MaxPool", "Resize"}


def _values(seed: int) -> tuple[onnx.ModelProto, dict, dict, dict]:
    sample, plain = random_sample(seed), random_sample(seed, qdq_only=True)
    unrounded: dict[str, np.ndarray] = {}
    codes = oracle.evaluate(sample.model, sample.feeds, unrounded=unrounded)
    return plain.model, {**codes, **sample.feeds}, unrounded, dict(plain.slack)


def test_the_band_finds_a_code_that_is_off_by_one() -> None:
    model, codes, unrounded, slack = _values(2)
    assert deviation(model, codes, unrounded, slack) is None
    name = next(iter(unrounded))
    distance = np.abs(unrounded[name] - np.rint(unrounded[name]))
    at = np.unravel_index(int(distance.argmin()), distance.shape)  # far from any tie
    wrong = codes[name].copy()
    wrong[at] ^= 1
    text = deviation(model, {**codes, name: wrong}, unrounded, slack)
    assert text is not None
    assert f"at {[int(i) for i in at]}" in text


def test_a_failure_is_cut_down_and_replayed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An oracle that is wrong about QLinearConv: one such node is left, and runs again."""
    right = oracle.OPERATORS["", "QLinearConv"]

    def wrong(node, args):  # type: ignore[no-untyped-def]
        return np.asarray(right(node, args)) ^ 1

    seed = next(s for s in range(99) if len(_convs(s)) == 2)
    sample = random_sample(seed)
    assert len(sample.model.graph.node) > 8
    with monkeypatch.context() as patch:
        patch.setitem(oracle.OPERATORS, ("", "QLinearConv"), wrong)
        model, feeds = minimise(sample.model, sample.feeds, "fsim")
        assert [node.op_type for node in model.graph.node] == ["QLinearConv"]
        assert len(feeds) == len(model.graph.output) == 1
        assert "elements differ" in str(differs(model, feeds, "fsim"))
        text = check_seed(seed, device="fsim", out=tmp_path, judge=False)
        path = tmp_path / f"seed{seed}.onnx"
        assert str(text).endswith(f"--replay {path}")
        assert replay(path, "fsim") == 1
    assert replay(path, "fsim") == 0
    assert "no byte differs" in capsys.readouterr().out


def _convs(seed: int) -> list[onnx.NodeProto]:
    return [node for node in random_sample(seed).model.graph.node if node.op_type == "QLinearConv"]


def test_refusal_tells_tracebacks_from_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(b"nothing") is None
    monkeypatch.setattr("vitral.compile", lambda data: 1 // 0)
    assert str(refusal(b"nothing")).startswith("ZeroDivisionError")


def _task(seed: int) -> str | None:
    if seed == 1:
        time.sleep(99)
    if seed == 2:
        os._exit(3)
    if seed == 3:
        raise ValueError("three")
    if seed == 4:
        return f"{len(bytearray(5 << 30))} bytes"
    return None


def test_workers_tell_of_what_hangs_dies_or_raises() -> None:
    results = dict(run_all(_task, range(6), jobs=1, timeout=2))
    assert results[0] is None
    assert results[1] == "no end after 2 s"
    assert results[2] == "died with exit code 3"
    assert results[3] == "ValueError: three"
    assert str(results[4]).startswith("MemoryError")
    assert results[5] is None
