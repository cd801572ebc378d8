"""What goes into a build, as data: every file's text, the tool, the part; with a digest."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from vitral.config import CoreConfig
from vitral.errors import ConfigError

__all__ = ["PLAN_FILE", "PLAN_VERSION", "Plan", "write_texts"]

PLAN_VERSION = 1
PLAN_FILE = "plan.json"
SCRIPTS = (".tcl", ".qpf", ".qsf", ".sdc", ".xdc", ".lpf", ".dts", ".core")
"""What people read and change; all else is generated from the core."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A complete project for one tool; two plans with one digest build the same thing.

    Parameters
    ----------
    target : str
        The target's name.
    config : CoreConfig
        The core.
    tool, version : str
        What builds it, and the oldest version that can.
    part : str
        The FPGA, as the tool names it.
    clock_mhz : float
        Clock of the core.
    files : mapping
        Text by path, relative, with "/".
    script : str
        Which of them the tool runs.
    products : tuple
        Paths, relative to the folder, that the tool leaves behind; the bitstream first.

    Raises
    ------
    ConfigError
        When a path leads out of the folder, or the script is not among the files.
    """

    target: str
    config: CoreConfig
    tool: str
    version: str
    part: str
    clock_mhz: float
    files: Mapping[str, str]
    script: str
    products: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in (*self.files, *self.products):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or name == PLAN_FILE or not path.parts:
                raise ConfigError(f"a plan's path must be inside its folder, got {name!r}")
        if self.script not in self.files:
            raise ConfigError(f"the plan has no file {self.script!r} to run")

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of everything in the plan."""
        return hashlib.sha256(json.dumps(self._record(), sort_keys=True).encode()).hexdigest()

    @property
    def scripts(self) -> dict[str, str]:
        """The files that say how it is built, without the core itself."""
        return {
            name: text for name, text in self.files.items() if PurePosixPath(name).suffix in SCRIPTS
        }

    def _record(self) -> dict[str, Any]:
        return {
            "vitral_plan": PLAN_VERSION,
            "target": self.target,
            "core": self.config.digest,
            "config": self.config.to_dict(),
            "tool": self.tool,
            "version": self.version,
            "part": self.part,
            "clock_mhz": self.clock_mhz,
            "script": self.script,
            "products": list(self.products),
            "files": {
                name: hashlib.sha256(text.encode()).hexdigest()
                for name, text in sorted(self.files.items())
            },
        }

    def write(self, folder: "str | os.PathLike[str]") -> None:
        """Write all files and `plan.json`, which lists them with their digests, into a folder."""
        write_texts(Path(folder), self.files)
        record = {**self._record(), "digest": self.digest}
        (Path(folder) / PLAN_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def write_texts(root: Path, files: Mapping[str, str]) -> None:
    """Write texts by path, relative to a folder; folders are made."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
