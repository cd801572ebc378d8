"""The folder of the bitstream installed on this board: an overlay that PYNQ finds by name.

pynq looks into packages that register under ``pynq.overlays``, so ``Overlay("vitral.bit")`` works
after `vitral bitstream install`, and the device ``pynq`` needs no option.
"""

import shutil
from pathlib import Path

from vitral.bitstream.manifest import Manifest, file_digest
from vitral.errors import DeviceError

__all__ = ["install", "installed"]

NAME = "vitral"
SUFFIXES = (".bit", ".hwh", ".json")


def _folder() -> Path:
    return Path(__file__).parent


def installed() -> Path | None:
    """The installed bitstream, None when there is none."""
    path = _folder() / f"{NAME}.bit"
    return path if path.is_file() else None


def install(folder: Path) -> Path:
    """Copy the bitstream of a folder, with its .hwh and manifest, into this package.

    Raises
    ------
    DeviceError
        When a file is missing or broken, or the package cannot be written; nothing is replaced
        then.
    """
    files = [folder / f"{NAME}{suffix}" for suffix in SUFFIXES]
    for path in files:
        if not path.is_file():
            raise DeviceError(
                f"{path}: no such file; a bitstream for PYNQ is"
                f" {', '.join(file.name for file in files)}"
            )
    manifest = Manifest.read(files[-1])
    if manifest.sha256 != file_digest(files[0]):
        raise DeviceError(f"{files[0]}: not the bitstream of its manifest; copy it again")
    try:
        for path in files:
            shutil.copyfile(path, _folder() / path.name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DeviceError(f"{_folder()}: {reason}; install as the user who owns it") from None
    return _folder() / files[0].name
