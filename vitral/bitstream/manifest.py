"""What came out of a build: the JSON file beside a bitstream, or the one that says how to make it.

Boards read it, so it needs nothing but the standard library.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from vitral.errors import DeviceError

__all__ = ["MANIFEST_VERSION", "Manifest", "file_digest"]

MANIFEST_VERSION = 1


def file_digest(path: "str | os.PathLike[str]") -> str:
    """SHA-256 (hex) of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A bitstream and what it was made from.

    Parameters
    ----------
    target : str
        The target's name.
    core : str
        Digest of the core's configuration, which modules name too.
    config : mapping
        That configuration.
    tool, tool_version : str
        What builds it; the version that did, or the oldest that can.
    part : str
        The FPGA, as the tool names it.
    clock_mhz : float
        What the design was constrained to.
    bitstream : str
        File name; "" while there is none, and `build` tells how to make it.
    build : str
        The command.
    sha256 : str
        Of the bitstream; "" while there is none.
    plan : str
        Digest of the plan that it was built from; "" while there is none.
    fmax_mhz : float or None
        What the tool says the design reaches.
    resources : mapping
        What it takes, by the tool's names of them.
    """

    target: str
    core: str
    config: Mapping[str, Any]
    tool: str
    tool_version: str
    part: str
    clock_mhz: float
    build: str
    bitstream: str = ""
    sha256: str = ""
    plan: str = ""
    fmax_mhz: float | None = None
    resources: Mapping[str, int] = field(default_factory=dict)

    @property
    def built(self) -> bool:
        """Whether there is a bitstream."""
        return bool(self.bitstream)

    def to_json(self) -> str:
        """Text of the file, indented, with a newline at its end."""
        return json.dumps({"vitral_manifest": MANIFEST_VERSION, **asdict(self)}, indent=2) + "\n"

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Write the file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def read(cls, path: "str | os.PathLike[str]") -> "Manifest":
        """The manifest in a file.

        Raises
        ------
        DeviceError
            When the file cannot be read, or is no manifest of this version.
        """
        name = os.fspath(path)
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DeviceError(f"{name}: no manifest of a bitstream: {error}") from None
        if not isinstance(record, dict) or "vitral_manifest" not in record:
            raise DeviceError(f"{name}: no manifest of a bitstream: needs 'vitral_manifest'")
        version = record.pop("vitral_manifest")
        if version != MANIFEST_VERSION:
            raise DeviceError(
                f"{name}: a manifest of version {version}, needs {MANIFEST_VERSION}; build again"
            )
        known = {item.name: item.type for item in fields(cls)}
        _check_names(name, record, known)
        return cls(**record)


def _check_names(name: str, record: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    optional = {"bitstream", "sha256", "plan", "fmax_mhz", "resources"}
    for key in sorted(set(known) - optional - set(record)):
        raise DeviceError(f"{name}: a manifest without {key!r}; build the bitstream again")
    for key, value in record.items():
        if key not in known:
            raise DeviceError(f"{name}: unknown entry {key!r} in a manifest")
        if known[key] is str and not isinstance(value, str):
            raise DeviceError(f"{name}: {key!r} must be text, got {value!r}")
