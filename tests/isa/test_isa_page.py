"""The generated pages are up to date and say what the published facts say."""

from pathlib import Path

import pytest
from vta_table import WORDS

from vitral.isa import Profile
from vitral.isa_page import EXAMPLES, PAGES, isa_page, main, write_pages

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_fresh(name: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "stale: run python -m vitral.isa_page"


def test_examples_show_the_published_encodings() -> None:
    page = isa_page()
    shown = [text for profile, text in EXAMPLES if profile is Profile.VTA]
    assert len(shown) > 10
    for text in shown:
        low, high = WORDS[text]
        assert f"| `{text}` | `{low:016x}` | `{high:016x}` |" in page


def test_writing_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)
    assert main([str(tmp_path / "missing")]) == 1
    assert "is not a folder" in capsys.readouterr().err
