"""Boxes from output maps, against values worked out by hand."""

import math

import numpy as np
import pytest

from vitral.runtime.detection import Box, Head, decode, suppress


def _head(**changes: object) -> Head:
    given = {"value": "y", "anchors": ((0.5, 0.25), (0.1, 0.2)), "classes": 3, "exclusive": True}
    return Head(**{**given, **changes})  # type: ignore[arg-type]


def _quiet() -> np.ndarray:
    """Two anchors, three classes, 2 x 4 cells; nothing anywhere."""
    maps = np.zeros((1, 16, 2, 4), np.float32)
    maps[0, [4, 12]] = -20.0
    return maps


def test_one_box_of_a_region_layer() -> None:
    maps = _quiet()
    maps[0, 8:16, 1, 2] = [0.0, math.log(3), math.log(2), 0.0, math.log(4), 0.0, math.log(6), 0.0]
    (box,) = decode(maps, _head())
    # sigmoid(0) = 1/2, sigmoid(ln 3) = 3/4, sigmoid(ln 4) = 4/5, softmax(0, ln 6, 0) = 6/8
    assert (box.x, box.y) == pytest.approx((2.5 / 4, 1.75 / 2))
    assert (box.width, box.height) == pytest.approx((2 * 0.1, 0.2))
    assert box.label == 1
    assert box.score == pytest.approx(0.8 * 0.75)


def test_classes_of_a_yolo_layer_are_independent() -> None:
    maps = _quiet()
    maps[0, 4:8, 0, 0] = [math.log(4), math.log(9), -20.0, math.log(3)]
    boxes = decode(maps, _head(exclusive=False))
    assert [(box.label, round(box.score, 6)) for box in boxes] == [(0, 0.72), (2, 0.6)]


def test_threshold_is_a_limit() -> None:
    maps = _quiet()
    maps[0, 4, 0, 0] = 30.0
    maps[0, 5, 0, 0] = 30.0
    assert len(decode(maps, _head(), threshold=0.99)) == 1
    assert decode(maps, _head(), threshold=1.0) == []


def test_huge_values_give_no_warning_and_no_nan() -> None:
    maps = np.full((1, 16, 2, 4), 1e4, np.float32)
    boxes = decode(maps, _head())
    assert boxes
    assert all(math.isfinite(box.x) and math.isfinite(box.score) for box in boxes)


def test_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"needs an output \(1, 16, rows, columns\)"):
        decode(np.zeros((1, 15, 2, 4), np.float32), _head())


def _box(x: float, score: float, label: int = 0, size: float = 0.2) -> Box:
    return Box(x=x, y=0.5, width=size, height=0.2, label=label, score=score)


def test_suppression() -> None:
    best, near, other, far = _box(0.5, 0.9), _box(0.55, 0.8), _box(0.5, 0.7, 1), _box(0.8, 0.6)
    # best and near share 0.15 of 0.25: 0.6 of what they cover
    assert suppress([far, near, other, best]) == [best, other, far]
    assert suppress([far, near, other, best], overlap=0.61) == [best, near, other, far]


def test_boxes_without_area() -> None:
    flat = _box(0.5, 0.5, size=0.0)
    assert suppress([flat, _box(0.5, 0.4, size=0.0)]) == [flat, _box(0.5, 0.4, size=0.0)]
