"""The page about TFLite names every operator and every rounding, and no others."""

import re
from pathlib import Path

from vitral.compiler.frontends.tflite import OPERATORS
from vitral.compiler.frontends.tflite.scope import ROUNDINGS

PAGE = (Path(__file__).parents[2] / "docs" / "tflite.md").read_text()


def test_operators_of_the_page_are_those_of_the_importer():
    table = PAGE.split("## Operators")[1].split("## Layout")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| ")][1:]
    named = {name for cell in first_cells for name in re.findall(r"[A-Z][A-Z0-9_]{2,}", cell)}
    assert named == set(OPERATORS)


def test_roundings_of_the_page_are_those_of_the_importer():
    table = PAGE.split("## Whose bytes")[1].split("LiteRT's third set")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE)[1:] == list(ROUNDINGS)
