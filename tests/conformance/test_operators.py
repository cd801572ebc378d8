"""docs/operators.md says where each operator runs, and says it of every one."""

import numpy as np
import oracle
import pytest

import vitral
from conformance.operators import OPERATORS_PAGE, operators_page, place
from conformance.samples import float_sample, quantized_sample
from vitral.compiler.frontends.onnx import OPERATORS


def test_the_page_is_current() -> None:
    wanted = operators_page()
    assert OPERATORS_PAGE.read_text() == wanted, "run make docs"
    rows = [line for line in wanted.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(OPERATORS)


@pytest.mark.parametrize(
    ("op", "behind", "wanted"),
    [
        ("Conv", False, "accelerator"),
        ("QLinearConv", True, "accelerator"),
        ("Relu", True, "accelerator"),
        ("Relu", False, "CPU"),
        ("Transpose", True, "CPU"),
        ("Flatten", False, "no work"),
        ("Softmax", True, "float island"),
    ],
)
def test_places_are_told_apart(op: str, behind: bool, wanted: str) -> None:
    assert place(quantized_sample(op, "", behind=behind)) == wanted


def test_what_is_unknown_is_refused() -> None:
    assert place(float_sample("Loop")) == "refused"
    assert place(quantized_sample("LogSoftmax", "nowhere", behind=True)) == "refused"


@pytest.mark.parametrize(("domain", "op"), sorted(OPERATORS))
def test_samples_give_the_bytes_of_the_oracle(domain: str, op: str) -> None:
    """Behind a layer; so the page is not about results that are wrong."""
    model = quantized_sample(op, domain, behind=True)
    if (domain, op) not in oracle.OPERATORS:
        pytest.skip(f"the oracle has no law for {op}")
    feeds = {
        info.name: np.random.default_rng(3)
        .integers(-128, 128, [d.dim_value for d in info.type.tensor_type.shape.dim])
        .astype(np.int8)
        for info in model.graph.input
    }
    expected = oracle.evaluate(model, feeds, outputs_only=True)
    with vitral.Session(vitral.compile(model)) as session:
        got = dict(zip(expected, session.run(list(expected), feeds), strict=True))
    if op == "Softmax":
        np.testing.assert_allclose(
            got["y_codes"].astype(int), expected["y_codes"].astype(int), atol=1
        )
        return
    oracle.compare(expected, got, allow_collapsed=True)
