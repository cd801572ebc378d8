"""The comparison helper fails when it should."""

import numpy as np
import oracle
import pytest
from cases import ModelBuilder

VARIED = np.arange(64, dtype=np.int8).reshape(4, 16)


def test_equal_tensors_are_counted() -> None:
    ends = VARIED.copy()
    ends[0, :2] = (-128, 127)
    report = oracle.compare({"a": VARIED, "b": ends}, {"a": VARIED, "b": ends.copy()})
    assert (report.bytes, report.differing_bytes) == (128, 0)
    assert [t.distinct for t in report.tensors] == [64, 64]
    assert report.tensors[1].saturated == 2 / 64
    assert str(report).splitlines()[-1] == "total: 128 bytes, 0 differ"


def test_one_differing_byte_fails_with_its_tensor() -> None:
    other = VARIED.copy()
    other[3, 3] += 1
    with pytest.raises(AssertionError, match=r"^tensor 'b': 1 of 64 elements differ \(1 of 64"):
        oracle.compare({"a": VARIED, "b": VARIED}, {"a": VARIED, "b": other})


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        ({}, "needs tensor 'a' in actual"),
        ({"a": VARIED.astype(np.uint8)}, "needs type int8, got uint8"),
        ({"a": VARIED.reshape(-1)}, r"needs shape \(4, 16\), got \(64,\)"),
    ],
    ids=["missing", "type", "shape"],
)
def test_tensor_that_cannot_be_compared_fails(actual: dict[str, np.ndarray], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        oracle.compare({"a": VARIED}, actual)


def test_nothing_to_compare_fails() -> None:
    for expected in ({}, {"a": VARIED[:0]}):
        with pytest.raises(AssertionError, match="at least one element"):
            oracle.compare(expected, expected)
    with pytest.raises(AssertionError, match="needs tensor 'b' in expected"):
        oracle.compare({"a": VARIED}, {"a": VARIED}, names=["a", "b"])


def test_collapsed_tensor_fails_unless_allowed() -> None:
    flat = np.where(VARIED < 48, np.int8(7), VARIED).astype(np.int8)
    with pytest.raises(AssertionError, match=r"'a': 75% of its values are 7"):
        oracle.compare({"a": flat}, {"a": flat})
    assert oracle.compare({"a": flat}, {"a": flat}, allow_collapsed={"a"}).tensors[0].collapsed
    oracle.compare({"a": flat}, {"a": flat}, allow_collapsed=True)


def test_small_tensors_are_not_called_collapsed() -> None:
    oracle.compare({"a": np.zeros(15, np.int8)}, {"a": np.zeros(15, np.int8)})


def test_clamped_elements_do_not_count_but_all_clamped_is_collapsed() -> None:
    relu = np.where(VARIED < 40, np.int8(-128), VARIED).astype(np.int8)
    report = oracle.compare({"a": relu}, {"a": relu}, clamps={"a": -128})
    assert report.tensors[0].mode_share == 1 / 24
    dead = np.full(64, -128, np.int8)
    with pytest.raises(AssertionError, match="100%"):
        oracle.compare({"a": dead}, {"a": dead}, clamps={"a": -128})


def test_floats_are_compared_as_bytes() -> None:
    zero, minus = np.zeros(4, np.float32), np.array([0, 0, 0, -0.0], np.float32)
    with pytest.raises(AssertionError, match="1 of 4 elements differ"):
        oracle.compare({"a": zero}, {"a": minus})


def test_clamp_values_follow_a_relu_through_moves() -> None:
    b = ModelBuilder()
    zero = np.array(-3, np.int8)
    b.quantize(b.node("Relu", ["x"], "r"), "q", 0.1, zero)
    b.quantize(b.node("MaxPool", [b.dequantize("q", "d", 0.1, zero)], "p"), "pq", 0.1, zero)
    b.quantize(b.node("Add", ["p", "p"], "s"), "sq", 0.1, zero)
    b.quantize("s", "low", 0.1, np.array(-128, np.int8))
    b.node("MaxPool", ["pq"], "integers")
    model = b.model({"x": (np.float32, (1, 1, 8, 8))}, {})
    assert oracle.clamp_values(model) == {"q": -3, "pq": -3, "low": -128, "integers": -3}
