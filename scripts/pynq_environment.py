"""Makes the environment in which pynq's own code runs against the simulated board.

pynq 3.1.2 needs numpy < 2 and Python 3.10, as its images have, so it cannot live in .venv. The
environment is made once, in the cache folder, and named after its list of packages. Run as a
script it prints the interpreter's path, or one line that says why there is none.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from vitral.errors import DeviceError
from vitral.sim.rtl.cache import cache_folder, locked

__all__ = ["PACKAGES", "find_python", "make_environment"]

PACKAGES = Path(__file__).with_name("pynq-packages.txt")
VERSION = (3, 10)
INSTALL_SECONDS = 900


def find_python() -> str | None:
    """A Python 3.10: ``$VITRAL_PYTHON310``, one on the path, or one that pyenv has."""
    return next((path for path in _candidates() if _is_right(path)), None)


def _candidates() -> Iterator[str]:
    yield from filter(None, (os.environ.get("VITRAL_PYTHON310"), shutil.which("python3.10")))
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(root.glob("versions/3.10.*/bin/python")))


def _is_right(path: str) -> bool:
    command = [path, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.split() == [str(number) for number in VERSION]


def make_environment() -> Path:
    """The interpreter of the environment, which is made when it is not there yet.

    Raises
    ------
    DeviceError
        When there is no Python 3.10, or the packages cannot be installed.
    """
    key = hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / "pynq" / key
    ready = folder / "ready"
    with locked(folder.with_suffix(".lock"), ready.exists) as needed:
        if needed:
            _make(folder)
            ready.touch()
    return folder / "bin" / "python"


def _make(folder: Path) -> None:
    python = find_python()
    if python is None:
        raise DeviceError("pynq's own code needs Python 3.10; name one with VITRAL_PYTHON310")
    _run(python, "-m", "venv", "--clear", str(folder))
    options = ("--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check")
    _run(str(folder / "bin" / "python"), "-m", "pip", "install", *options, "-r", str(PACKAGES))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceError(f"pynq's environment cannot be made: {error}") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise DeviceError(f"pynq's environment cannot be made: {lines[-1]}")


if __name__ == "__main__":
    try:
        print(make_environment())
    except DeviceError as problem:
        print(f"setup: {problem}; tests of pynq's own code are skipped", file=sys.stderr)
