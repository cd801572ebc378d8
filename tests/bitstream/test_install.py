"""`vitral bitstream install`: folders that it takes, and that it keeps what was there."""

import hashlib
from pathlib import Path

import pytest
from board_programs import write_manifest

from vitral import overlay
from vitral.cli import main

pytestmark = pytest.mark.board


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the package's folder."""
    folder = tmp_path / "package"
    folder.mkdir()
    monkeypatch.setattr(overlay, "_folder", lambda: folder)
    return folder


def bitstream(folder: Path, bits: bytes = b"bits") -> Path:
    folder.mkdir()
    (folder / "vitral.bit").write_bytes(bits)
    (folder / "vitral.hwh").write_text("handoff")
    write_manifest(folder / "vitral.bit", sha256=hashlib.sha256(bits).hexdigest())
    return folder


def test_a_whole_folder_is_kept(place: Path, tmp_path: Path) -> None:
    assert overlay.installed() is None
    for name in ("first", "second"):
        assert main(["bitstream", "install", str(bitstream(tmp_path / name, name.encode()))]) == 0
        assert overlay.installed() == place / "vitral.bit"
        assert (place / "vitral.bit").read_bytes() == name.encode()
    assert {path.name for path in place.iterdir()} == {"vitral.bit", "vitral.hwh", "vitral.json"}


@pytest.mark.parametrize("missing", ["vitral.bit", "vitral.hwh", "vitral.json"])
def test_a_file_is_missing(
    missing: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bitstream(tmp_path / "b")
    (folder / missing).unlink()
    assert main(["bitstream", "install", str(folder)]) == 2
    assert f"{missing}: no such file; a bitstream for PYNQ is vitral.bit" in capsys.readouterr().err
    assert list(place.iterdir()) == []


def test_another_bitstream_than_the_manifest_s(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bitstream(tmp_path / "b")
    (folder / "vitral.bit").write_bytes(b"cut off")
    assert main(["bitstream", "install", str(folder)]) == 2
    assert "not the bitstream of its manifest; copy it again" in capsys.readouterr().err
    assert list(place.iterdir()) == []


def test_a_package_that_cannot_be_written(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.rmdir()
    assert main(["bitstream", "install", str(bitstream(tmp_path / "b"))]) == 2
    assert "install as the user who owns it" in capsys.readouterr().err
