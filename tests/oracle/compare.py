"""Compare tensors byte by byte, and refuse to call a meaningless comparison a success."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from oracle.values import Array

__all__ = ["Report", "TensorReport", "compare"]

_COLLAPSED_SHARE = 0.5
_FEWEST_ELEMENTS = 16


@dataclass(frozen=True, kw_only=True)
class TensorReport:
    """One tensor: bytes, how many differ, and how varied the expected values are.

    `saturated` is the share of elements at the ends of the integer type (0 for floats).
    `mode_share` is the share of the most frequent value among the elements that are not at
    `clamp`, the value a Relu or Clip legitimately piles elements on (None: no such value).
    """

    name: str
    bytes: int
    differing_bytes: int
    elements: int
    differing_elements: int
    distinct: int
    saturated: float
    mode_value: float
    mode_share: float
    clamp: int | None

    @property
    def collapsed(self) -> bool:
        """More than half of at least 16 elements have one value, so equality would say little."""
        return self.elements >= _FEWEST_ELEMENTS and self.mode_share > _COLLAPSED_SHARE


@dataclass(frozen=True, kw_only=True)
class Report:
    """All tensors of one comparison."""

    tensors: tuple[TensorReport, ...]

    @property
    def bytes(self) -> int:
        """Bytes compared."""
        return sum(t.bytes for t in self.tensors)

    @property
    def differing_bytes(self) -> int:
        """Bytes that differ."""
        return sum(t.differing_bytes for t in self.tensors)

    def __str__(self) -> str:
        lines = [
            f"{t.name}: {t.bytes} bytes, {t.differing_bytes} differ, {t.distinct} distinct, "
            f"{t.saturated:.1%} saturated"
            for t in self.tensors
        ]
        total = f"total: {self.bytes} bytes, {self.differing_bytes} differ"
        return "\n".join([*lines, total])


def compare(
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    *,
    names: Collection[str] | None = None,
    clamps: Mapping[str, int] | None = None,
    allow_collapsed: bool | Collection[str] = False,
) -> Report:
    """Compare the tensors `names` (default: all of `expected`) and return the numbers.

    `clamps` gives, by tensor name, the value that a Relu or Clip piles elements on (see
    `oracle.clamp_values`); elements there are left out of the collapse rule.

    Raises AssertionError in one line when there is nothing to compare, a tensor is missing, a
    dtype, a shape or a byte differs, or a tensor is collapsed and not allowed to be.
    """
    chosen = list(expected) if names is None else list(names)
    if not chosen or not sum(expected[n].size for n in chosen if n in expected):
        raise AssertionError("compare: needs at least one element, got none")
    reports: list[TensorReport] = []
    for name in chosen:
        for side, tensors in (("expected", expected), ("actual", actual)):
            if name not in tensors:
                raise AssertionError(f"compare: needs tensor {name!r} in {side}, it has none")
        clamp = None if clamps is None else clamps.get(name)
        reports.append(_compare_tensor(name, expected[name], actual[name], clamp))
    allowed = chosen if allow_collapsed is True else (allow_collapsed or ())
    _raise_when_bad(reports, allowed)
    return Report(tensors=tuple(reports))


def _compare_tensor(name: str, expected: Array, actual: Array, clamp: int | None) -> TensorReport:
    for what, a, b in (
        ("type", expected.dtype, actual.dtype),
        ("shape", expected.shape, actual.shape),
    ):
        if a != b:
            raise AssertionError(f"tensor {name!r}: needs {what} {a}, got {b}")
    left, right = _bytes(expected), _bytes(actual)
    differing = (left != right).reshape(expected.size, -1)
    values, counts = np.unique(
        expected if clamp is None else _free(expected, clamp), return_counts=True
    )
    mode = int(counts.argmax()) if counts.size else 0
    saturated = 0.0
    if expected.dtype.kind in "iu" and expected.size:
        limits = np.iinfo(expected.dtype)
        saturated = float(((expected == limits.min) | (expected == limits.max)).mean())
    return TensorReport(
        name=name,
        bytes=left.size,
        differing_bytes=int(differing.sum()),
        elements=expected.size,
        differing_elements=int(differing.any(axis=1).sum()),
        distinct=int(np.unique(expected).size),
        saturated=saturated,
        mode_value=float(values[mode]) if counts.size else float(clamp or 0),
        mode_share=float(counts[mode] / counts.sum()) if counts.size else 1.0,
        clamp=clamp,
    )


def _free(tensor: Array, clamp: int) -> Array:
    return tensor[tensor != clamp]


def _bytes(tensor: Array) -> Array:
    return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)


def _raise_when_bad(reports: list[TensorReport], allowed: Collection[str]) -> None:
    for r in reports:
        if r.differing_bytes:
            raise AssertionError(
                f"tensor {r.name!r}: {r.differing_elements} of {r.elements} elements differ "
                f"({r.differing_bytes} of {r.bytes} bytes)"
            )
    for r in reports:
        if r.collapsed and r.name not in allowed:
            raise AssertionError(
                f"tensor {r.name!r}: {r.mode_share:.0%} of its values are {r.mode_value:g}, the "
                f"limit is {_COLLAPSED_SHARE:.0%}; give it varied data or allow_collapsed"
            )
