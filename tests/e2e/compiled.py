"""The cases' modules, compiled once per process."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import onnx
from cases import ConvCase, build_qdq, build_qoperator, conv_rows, small_convs

import vitral

__all__ = ["CASES", "FORMS", "case_named", "compiled", "same_programs"]

CASES = (*conv_rows(), *small_convs())
FORMS: dict[str, Callable[[ConvCase], onnx.ModelProto]] = {
    "qdq": build_qdq,
    "qoperator": build_qoperator,
}


def case_named(name: str) -> ConvCase:
    return next(case for case in CASES if case.name == name)


@lru_cache(maxsize=8)
def compiled(name: str, form: str) -> vitral.Module:
    """The module of a case in one of the `FORMS`, for the default core."""
    return vitral.compile(FORMS[form](case_named(name)))


def same_programs(a: vitral.Module, b: vitral.Module) -> bool:
    """Whether two modules put the same bytes (instructions, weights, parameters) into memory."""
    if a.image.keys() != b.image.keys() or len(a.segments) != len(b.segments):
        return False
    same_launches = all(
        (x.insn_offset, x.insn_count) == (y.insn_offset, y.insn_count)
        for x, y in zip(a.segments, b.segments, strict=True)
    )
    return same_launches and all(np.array_equal(a.image[at], b.image[at]) for at in a.image)
