"""From a detector's output maps to boxes, as Darknet's [region] and [yolo] layers do it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Box", "Head", "decode", "suppress"]

Array = npt.NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class Head:
    """A [region] or [yolo] layer.

    Parameters
    ----------
    value : str
        The output that it reads, (1, anchors x (5 + classes), rows, columns).
    anchors : tuple of (float, float)
        Width and height of the boxes that it starts from, in parts of the image.
    classes : int
        Number of classes.
    exclusive : bool
        Whether a box has one class (softmax, [region]) or each by itself (sigmoid, [yolo]).
    """

    value: str
    anchors: tuple[tuple[float, float], ...]
    classes: int
    exclusive: bool


@dataclass(frozen=True, kw_only=True)
class Box:
    """A detection: centre and size in parts of the image, class number, score from 0 to 1."""

    x: float
    y: float
    width: float
    height: float
    label: int
    score: float


def decode(output: npt.NDArray[np.generic], head: Head, threshold: float = 0.3) -> list[Box]:
    """Boxes whose score, objectness times probability of a class, is above `threshold`.

    Parameters
    ----------
    output : ndarray
        Real values, (1, anchors x (5 + classes), rows, columns).

    Raises
    ------
    ValueError
        If the output has another shape.
    """
    count = len(head.anchors)
    wanted = count * (5 + head.classes)
    if output.ndim != 4 or output.shape[:2] != (1, wanted):
        raise ValueError(f"needs an output (1, {wanted}, rows, columns), got {output.shape}")
    rows, columns = output.shape[2:]
    maps = output.astype(np.float64).reshape(count, 5 + head.classes, rows, columns)
    objectness = _sigmoid(maps[:, 4:5])
    scores = objectness * (_softmax(maps[:, 5:]) if head.exclusive else _sigmoid(maps[:, 5:]))
    boxes = []
    for anchor, label, row, column in np.argwhere(scores > threshold):
        values = maps[anchor, :4, row, column]
        with np.errstate(over="ignore"):
            width, height = np.exp(values[2:]) * head.anchors[anchor]
        x, y = _sigmoid(values[:2]) + np.array([column, row])
        boxes.append(
            Box(
                x=float(x) / columns,
                y=float(y) / rows,
                width=float(width),
                height=float(height),
                label=int(label),
                score=float(scores[anchor, label, row, column]),
            )
        )
    return boxes


def suppress(boxes: Sequence[Box], overlap: float = 0.45) -> list[Box]:
    """The best boxes first, without those that lie upon a better one of their class.

    Two lie upon each other when the area that both share is more than `overlap` of what they cover.
    """
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda box: -box.score):
        if all(box.label != other.label or _shared(box, other) <= overlap for other in kept):
            kept.append(box)
    return kept


def _shared(a: Box, b: Box) -> float:
    """Intersection over union."""
    width = _common(a.x, a.width, b.x, b.width)
    height = _common(a.y, a.height, b.y, b.height)
    both = width * height
    union = a.width * a.height + b.width * b.height - both
    return both / union if union > 0 else 0.0


def _common(a: float, a_size: float, b: float, b_size: float) -> float:
    low = max(a - a_size / 2, b - b_size / 2)
    high = min(a + a_size / 2, b + b_size / 2)
    return max(high - low, 0.0)


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _softmax(x: Array) -> Array:
    """Along axis 1."""
    grown = np.exp(x - x.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)
