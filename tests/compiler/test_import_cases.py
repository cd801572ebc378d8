"""The known bytes of every case from the field, through frontend, passes and CPU operators."""

from pathlib import Path

import numpy as np
import pytest
from cases import (
    CLIP_FORMS,
    ConvCase,
    accepted_forms,
    build_qdq,
    build_qoperator,
    clip_in_form,
    conv_rows,
    crc32,
    small_convs,
    unsigned_output_form,
)
from cases.rows import ROWS
from plans import run_model

CASES = (*conv_rows(), *small_convs())
FORMS = accepted_forms()
V2 = next(case for case in conv_rows() if case.name == "V2")


@pytest.mark.parametrize("case", [c for c in CASES if c.clip is None], ids=str)
def test_qoperator_form_gives_the_known_bytes(case: ConvCase) -> None:
    case.check(run_model(build_qoperator(case), {"x": case.x})["y"])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_qdq_form_gives_the_known_bytes(case: ConvCase) -> None:
    case.check(run_model(build_qdq(case), {"x": case.x})["y"])


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_one_convolution_gives_its_bytes(form: str) -> None:
    assert crc32(run_model(FORMS[form], {"x": V2.x})["y"]) == "de67c82f"


def test_quantizer_without_zero_point_gives_uint8() -> None:
    y = run_model(unsigned_output_form(), {"x": V2.x})["y"]
    signed = run_model(FORMS["qdq opset 13"], {"x": V2.x})["y"]
    assert y.dtype == np.uint8
    np.testing.assert_array_equal(y, np.maximum(signed, 0))


def test_an_empty_bias_name_means_no_bias() -> None:
    case = next(c for c in conv_rows() if c.name == "V11")
    model = build_qoperator(case)
    model.graph.node[0].input.append("")
    case.check(run_model(model, {"x": case.x})["y"])


@pytest.mark.parametrize("io", ["float", "quantized"])
def test_float_edges_are_quantized_or_stripped(io: str) -> None:
    model = build_qdq(V2, float_edges=True)
    if io == "quantized":
        y = run_model(model, {"x_float": V2.x}, io="quantized")["y_float"]
        V2.check(y)
        return
    real = V2.x.astype(np.float32) * np.float32(V2.x_scale)
    y = run_model(model, {"x_float": real})["y_float"]
    assert y.dtype == np.float32
    V2.check(np.rint(y / np.float32(V2.y_scale)).astype(np.int8))


@pytest.mark.parametrize("form", CLIP_FORMS)
def test_clip_bounds_may_be_written_in_any_form(form: str) -> None:
    case = next(c for c in small_convs() if c.name == "CLIP6-B")
    case.check(run_model(clip_in_form(case, form), {"x": case.x})["y"])


def test_every_row_of_the_cases_names_files_that_exist() -> None:
    here = Path(__file__).parents[1]
    assert len(ROWS) == 18
    assert [f for row in ROWS.values() for f in row if not (here / f).is_file()] == []
