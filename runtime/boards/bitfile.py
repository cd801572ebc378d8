"""What lies beside a bitstream and must fit it: checked before the FPGA is touched."""

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from vitral.bitstream.manifest import Manifest, file_digest
from vitral.config import CoreConfig
from vitral.errors import DeviceError

__all__ = ["VLNV", "HardwareCore", "check_manifest", "need_file", "read_handoff"]

VLNV = "vitral.dev:vitral:vitral_core:1.0"
"""Vendor, library, name and version of the packaged core; drivers are bound by it."""


@dataclass(frozen=True)
class HardwareCore:
    """A core in a block design: instance, and byte address and size of its register window."""

    instance: str
    address: int
    nbytes: int


def need_file(path: Path, what: str) -> Path:
    """The path itself, when there is such a file; DeviceError otherwise."""
    if not path.is_file():
        raise DeviceError(f"{path}: no such file; {what}")
    return path


def check_manifest(bitstream: Path, config: CoreConfig) -> None:
    """Check a bitstream against the manifest beside it (same name, ``.json``), if there is one.

    Raises
    ------
    DeviceError
        When the manifest cannot be read, or is another bitstream's, or another core's.
    """
    path = bitstream.with_suffix(".json")
    if not path.is_file():
        return
    manifest = Manifest.read(path)
    if manifest.core != config.digest:
        raise DeviceError(
            f"{bitstream.name} is built for core {manifest.core[:12]}, the program for"
            f" {config.digest[:12]}; use the bitstream of that core, or compile for this one"
        )
    if not manifest.built:
        raise DeviceError(f"{path}: names no bitstream; make it with: {manifest.build}")
    found = file_digest(bitstream)
    if found != manifest.sha256:
        raise DeviceError(
            f"{bitstream}: SHA-256 {found[:12]}, its manifest says {manifest.sha256[:12]};"
            " copy it again"
        )


def read_handoff(path: Path) -> HardwareCore:
    """The core of a hardware handoff file (.hwh).

    Raises
    ------
    DeviceError
        When the file is not complete, or does not have exactly one core.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise DeviceError(f"{path}: not a complete hardware handoff file: {error}") from None
    names = [
        module.get("INSTANCE", "")
        for module in root.iter("MODULE")
        if module.get("VLNV", "").rpartition(":")[0] == VLNV.rpartition(":")[0]
    ]
    if len(names) != 1:
        raise DeviceError(f"{path}: needs one core {VLNV}, has {len(names)}")
    for entry in root.iter("MEMRANGE"):
        if entry.get("INSTANCE") == names[0] and entry.get("MEMTYPE", "REGISTER") == "REGISTER":
            try:
                low = int(entry.get("BASEVALUE", ""), 0)
                high = int(entry.get("HIGHVALUE", ""), 0)
            except ValueError:
                break
            return HardwareCore(names[0], low, high - low + 1)
    raise DeviceError(f"{path}: no address range of {names[0]}; export the hardware again")
