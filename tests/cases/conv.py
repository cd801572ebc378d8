"""Convolution cases: operands, parameters and the right answer, read from tests/data/cases."""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cases.fill import crc32, fill_b, fill_w, fill_x, w_scales

__all__ = ["ConvCase", "Expected", "conv_rows", "read_rows", "small_convs"]

Array = npt.NDArray[Any]
_DATA = Path(__file__).parent.parent / "data" / "cases"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The right output, whole (`values`) or as shape, sum, CRC-32 and first elements.

    `wrong` maps the name of a wrong policy to the CRC or the values that it would give.
    """

    shape: tuple[int, ...]
    values: Array | None = None
    total: int | None = None
    crc: str | None = None
    first: tuple[int, ...] = ()
    wrong: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ConvCase:
    """One quantized convolution; x (N, C, H, W), w (O, I, KH, KW), pads top, left, bottom, right.

    `bias` is int32 (O,) in units of x_scale * w_scale, or None. `w_scale` has shape () or (O,).
    `clip` holds the bounds of a Clip between convolution and rounding, (0, None) being a Relu.
    """

    name: str
    topic: str
    x: Array
    w: Array
    bias: npt.NDArray[np.int32] | None
    x_scale: float
    x_zero: int
    w_scale: npt.NDArray[np.float32]
    w_zero: int
    y_dtype: np.dtype[Any]
    y_scale: float
    y_zero: int
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    group: int
    clip: tuple[float | None, float | None] | None
    expected: Expected

    def __str__(self) -> str:
        return self.name

    @property
    def macs(self) -> int:
        """Multiply-accumulates, padding included."""
        return int(np.prod(self.expected.shape)) * int(np.prod(self.w.shape[1:]))

    def check(self, y: Array) -> None:
        """Raise AssertionError in one line unless `y` is the right output.

        A wrong output that matches a known wrong rounding is named after it.
        """
        want = self.expected
        if y.shape != want.shape or y.dtype != self.y_dtype:
            raise AssertionError(
                f"{self.name}: needs {self.y_dtype} {want.shape}, got {y.dtype} {y.shape}"
            )
        whole = want.values
        if not (crc32(y) == want.crc if whole is None else (y == whole).all()):
            raise AssertionError(f"{self.name}: {self._difference(y)}; {self._policy(y)}")

    def _difference(self, y: Array) -> str:
        want = self.expected
        if want.values is not None:
            return f"needs {want.values.reshape(-1).tolist()}, got {y.reshape(-1).tolist()}"
        first = y.reshape(-1)[: len(want.first)].tolist()
        return (
            f"needs CRC {want.crc}, sum {want.total}, first {list(want.first)}, "
            f"got CRC {crc32(y)}, sum {int(y.sum(dtype=np.int64))}, first {first}"
        )

    def _policy(self, y: Array) -> str:
        for policy, value in self.expected.wrong.items():
            if value == (crc32(y) if isinstance(value, str) else y.reshape(-1).tolist()):
                return f"this is what an implementation gives that {policy}"
        return "no known wrong rounding gives this"


def read_rows(name: str) -> list[dict[str, Any]]:
    """The rows of tests/data/cases/<name>.json."""
    return json.loads((_DATA / f"{name}.json").read_text())["rows"]


@lru_cache(maxsize=1)
def conv_rows() -> tuple[ConvCase, ...]:
    """The rows on generated data (V1, V2, V6 ... V17), with CRC and sum."""
    return tuple(_generated(row) for row in read_rows("conv_rows"))


@lru_cache(maxsize=1)
def small_convs() -> tuple[ConvCase, ...]:
    """Rounding ties, multipliers, extremes, padding with a zero point, fused Relu and Clip."""
    return tuple(_literal(row) for row in read_rows("small_convs"))


def _generated(row: dict[str, Any]) -> ConvCase:
    dtype = np.dtype(row["dtype"])
    outputs = row["w"][0]
    wrong = {"shifts without rounding": row["crc_trunc"]}
    if row["crc_half_up"] != row["crc"]:
        wrong["rounds half up"] = row["crc_half_up"]
    expected = Expected(
        shape=tuple(row["out"]),
        total=row["sum"],
        crc=row["crc"],
        first=tuple(row["first"]),
        wrong=wrong,
    )
    return ConvCase(
        name=row["name"],
        topic=row["topic"],
        x=fill_x(tuple(row["x"]), dtype),
        w=fill_w(tuple(row["w"]), dtype),
        bias=fill_b(outputs) if row["bias"] else None,
        x_scale=2.0**-6,
        x_zero=0,
        w_scale=w_scales(outputs),
        w_zero=0,
        y_dtype=dtype,
        y_scale=2.0 ** (row["shift"] - 15),
        y_zero=0,
        strides=_pair(row["strides"]),
        pads=_quad(row["pads"]),
        dilations=_pair(row["dilations"]),
        group=row["group"],
        clip=None,
        expected=expected,
    )


def _literal(row: dict[str, Any]) -> ConvCase:
    x = _tensor(row["x"], row["x_shape"], row["x_dtype"])
    w = _tensor(row["w"], row["w_shape"], row["w_dtype"])
    pads, dtype = _quad(row["pads"]), np.dtype(row["y_dtype"])
    height = x.shape[2] + pads[0] + pads[2] - w.shape[2] + 1
    width = x.shape[3] + pads[1] + pads[3] - w.shape[3] + 1
    shape = (x.shape[0], w.shape[0], height, width)
    values = np.array(row["expected"], dtype=dtype).reshape(shape)
    clip = row.get("clip")
    return ConvCase(
        name=row["name"],
        topic=row["topic"],
        x=x,
        w=w,
        bias=None,
        x_scale=row["x_scale"],
        x_zero=row["x_zero"],
        w_scale=np.array(row["w_scale"], dtype=np.float32),
        w_zero=row["w_zero"],
        y_dtype=dtype,
        y_scale=row["y_scale"],
        y_zero=row["y_zero"],
        strides=(1, 1),
        pads=pads,
        dilations=(1, 1),
        group=1,
        clip=None if clip is None else (clip[0], clip[1]),
        expected=Expected(shape=shape, values=values, wrong=row.get("wrong", {})),
    )


def _tensor(data: Any, shape: list[int], dtype: str) -> Array:
    values = np.array(data, dtype=dtype)
    return np.broadcast_to(values, shape).copy() if values.size == 1 else values.reshape(shape)


def _pair(values: list[int]) -> tuple[int, int]:
    return values[0], values[1]


def _quad(values: list[int]) -> tuple[int, int, int, int]:
    return values[0], values[1], values[2], values[3]
