"""Finds a vendor's tool and runs it; what it says goes to a log, its first error to one line."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from vitral.errors import BitstreamError

__all__ = ["Tool", "run_tool"]

_ERROR = re.compile(r"^\s*(?:ERROR|Error|CRITICAL ERROR)\b[:\s]")
LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program and where it may be.

    Parameters
    ----------
    program : str
        Its file name.
    product, version : str
        What it comes with, and the oldest version that will do.
    variables : tuple
        Variables of the environment that name its installation, with the place of the program in
        it.
    folders : tuple
        Patterns of folders where installers put it, ~ for the user's; of several the last by name.
    """

    program: str
    product: str
    version: str
    variables: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()

    def find(self, target: str) -> Path:
        """The program; BitstreamError, with all places looked at, when there is none."""
        found = shutil.which(self.program) or self._installed()
        if found:
            return Path(found)
        places = ["PATH", *(f"${name}" for name, _ in self.variables), *self.folders]
        raise BitstreamError(
            f"building {target} needs {self.product} {self.version} or later; no {self.program} in"
            f" {', '.join(places)}; install it, or run the folder that 'vitral bitstream plan"
            f" --target {target} -o DIR' writes where it is"
        )

    def _installed(self) -> str | None:
        for name, inside in self.variables:
            root = os.environ.get(name)
            if root and (path := Path(root, inside, self.program)).is_file():
                return str(path)
        for pattern in self.folders:
            places = sorted(glob(os.path.expanduser(f"{pattern}/{self.program}")))
            if places:
                return places[-1]
        return None


def run_tool(command: Sequence[str], folder: Path, log: str) -> None:
    """Run a command in a folder, with all that it says in a log there.

    Raises
    ------
    BitstreamError
        When it cannot be started, or ends with an error: its first one, and where the log is.
    """
    name = Path(command[0]).name
    path = folder / log
    try:
        with path.open("w", encoding="utf-8") as file:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )
    except OSError as error:
        raise BitstreamError(f"{command[0]}: cannot be run: {error.strerror}") from None
    if done.returncode:
        raise BitstreamError(f"{name} failed: {_first_error(path)}; all of it in {path}")


def _first_error(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    wrong = [line for line in lines if _ERROR.match(line)]
    last = [line for line in lines if line.strip()][-1:]
    return " ".join((wrong or last or ["it said nothing"])[0].split())[:LONGEST]
