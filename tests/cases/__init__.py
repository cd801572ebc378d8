"""Cases from the field with known right answers, and ONNX models of them.

    for case in conv_rows():
        for build in (build_qoperator, build_qdq):
            case.check(run(build(case), {"x": case.x})["y"])

Nothing here computes an expected value: they are data, in tests/data/cases.
"""

from cases.conv import ConvCase, Expected, conv_rows, read_rows, small_convs
from cases.fill import crc32, fill_b, fill_w, fill_x, w_scales
from cases.forms import (
    CLIP_FORMS,
    accepted_forms,
    clip_in_form,
    refused_forms,
    unsigned_output_form,
)
from cases.models import ModelBuilder, build_qdq, build_qoperator, conv_attributes

__all__ = [
    "CLIP_FORMS",
    "ConvCase",
    "Expected",
    "ModelBuilder",
    "accepted_forms",
    "build_qdq",
    "build_qoperator",
    "clip_in_form",
    "conv_attributes",
    "conv_rows",
    "crc32",
    "fill_b",
    "fill_w",
    "fill_x",
    "read_rows",
    "refused_forms",
    "small_convs",
    "unsigned_output_form",
    "w_scales",
]
