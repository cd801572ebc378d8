"""The folder of built code: absent, or not to be written."""

from pathlib import Path

import pytest

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.sim.functional import FunctionalSimulator, jit
from vitral.sim.rtl.cache import cache_folder, locked


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder, as in containers that run under any number."""

    def missing(path: str) -> str:
        return path

    monkeypatch.delenv("VITRAL_CACHE", raising=False)
    monkeypatch.setattr("os.path.expanduser", missing)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lock = tmp_path / "file" / "rtl" / "key.lock"
    with pytest.raises(DeviceError, match=r"file/rtl: cannot .*; set VITRAL_CACHE"):
        with locked(lock, lambda: False):
            pass


@pytest.mark.usefixtures("homeless")
def test_without_a_home_tsim_asks_for_a_folder() -> None:
    with pytest.raises(DeviceError, match="set VITRAL_CACHE to a folder"):
        cache_folder()


@pytest.mark.usefixtures("homeless")
def test_without_a_home_fsim_does_without() -> None:
    assert jit.cache_folder() is None
    jit.load.cache_clear()
    assert FunctionalSimulator(CoreConfig()).config == CoreConfig()
