"""The files through which Linux shows a board: sysfs attributes, devices, firmware."""

import os
from pathlib import Path

from vitral.errors import DeviceError
from vitral.runtime.boards.interfaces import RegisterWindow
from vitral.runtime.boards.mapped import MappedWindow, Mapping, map_file
from vitral.runtime.boards.probe import probe_word

__all__ = ["System"]

ROOT_HINT = "run as root, or give yourself access with a udev rule"


class System:
    """Linux's files below a root folder; `/` on a board, any folder in a test.

    Parameters
    ----------
    root : path
        Put in front of every path.
    """

    def __init__(self, root: "str | os.PathLike[str]" = "/") -> None:
        self.root = Path(root)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def exists(self, path: str) -> bool:
        return self.path(path).exists()

    def read(self, path: str) -> str:
        """Text of an attribute without the white space around; DeviceError when it is not there."""
        try:
            return self.path(path).read_text(encoding="ascii", errors="replace").strip()
        except OSError as error:
            raise DeviceError(f"{self.path(path)}: {_reason(error)}") from None

    def read_number(self, path: str) -> int:
        """Number of an attribute, decimal or 0x.

        Raises
        ------
        DeviceError
            When it is not there, or holds something else.
        """
        text = self.read(path)
        try:
            return int(text, 0)
        except ValueError:
            raise DeviceError(f"{self.path(path)}: needs a number, reads {text!r}") from None

    def write(self, path: str, text: str) -> None:
        """Write an attribute, which acts before this returns; DeviceError when it cannot."""
        try:
            file = os.open(self.path(path), os.O_WRONLY | os.O_TRUNC)  # attributes are not made
            try:
                os.write(file, text.encode("ascii"))
            finally:
                os.close(file)
        except OSError as error:
            raise DeviceError(f"{self.path(path)}: {_reason(error)}") from None

    def make_folder(self, path: str) -> None:
        """Make a folder, as configfs asks for; DeviceError when it cannot."""
        try:
            self.path(path).mkdir(exist_ok=True)
        except OSError as error:
            raise DeviceError(f"{self.path(path)}: {_reason(error)}") from None

    def remove_folder(self, path: str) -> None:
        """Remove a folder, if it is there, with what the kernel put into it."""
        try:
            self.path(path).rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            raise DeviceError(f"{self.path(path)}: {_reason(error)}") from None

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing when there is no such folder."""
        try:
            return sorted(entry.name for entry in self.path(folder).iterdir())
        except OSError:
            return []

    def map(
        self, path: str, offset: int, nbytes: int, *, uncached: bool, hint: str = ROOT_HINT
    ) -> Mapping:
        """As `map_file`."""
        return map_file(self.path(path), offset, nbytes, uncached=uncached, hint=hint)

    def probe(self, path: str, offset: int) -> int:
        """As `probe_word`."""
        return probe_word(self.path(path), offset)

    def registers(self, path: str, offset: int, nbytes: int, hint: str) -> RegisterWindow:
        """The window of registers at a byte offset of a device file."""
        return MappedWindow(self.map(path, offset, nbytes, uncached=True, hint=hint))


def _reason(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"no permission; {ROOT_HINT}"
    return (error.strerror or str(error)).lower()
