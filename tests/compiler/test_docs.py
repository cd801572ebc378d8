"""The compiler's page names exactly the operators and passes that exist."""

import re
from pathlib import Path

from vitral.compiler.frontends.onnx import OPERATORS
from vitral.compiler.passes.strip_edges import strip_edges
from vitral.compiler.pipeline import PASSES

PAGE = (Path(__file__).parents[2] / "docs" / "compiler.md").read_text()


def test_operators_of_the_page_are_those_of_the_frontend() -> None:
    listed = {
        (domain, op)
        for domain, row in re.findall(r"^\| (ai\.onnx|com\.microsoft) \| (.*) \|$", PAGE, re.M)
        for op in row.split()
    }
    assert listed == {(domain or "ai.onnx", op) for domain, op in OPERATORS}


def test_passes_of_the_page_are_those_of_the_pipeline() -> None:
    table = PAGE[PAGE.index("| pass |") :]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.M)
    order = list(dict.fromkeys(p.__name__ for p in PASSES))
    order.insert(1, strip_edges.__name__)
    assert listed == order
