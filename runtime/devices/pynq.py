"""PYNQ: the core in an overlay of the pynq package, on Zynq-7000 and Zynq UltraScale+ boards."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# (pynq needs numpy < 2, so it cannot be where pyright runs)

import os
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pynq

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.overlay import installed
from vitral.registers import ADDRESS_BITS
from vitral.runtime.boards.bitfile import VLNV, check_manifest, need_file, read_handoff
from vitral.runtime.boards.device import COMMON_OPTIONS, BoardDevice
from vitral.runtime.boards.driver import WATCHDOG_CYCLES
from vitral.runtime.boards.event_loop import EventLoopThread, LoopInterrupt
from vitral.runtime.boards.interfaces import Interrupt, RegisterWindow, SharedMemory

__all__ = ["PynqBoard", "PynqDevice", "VitralCore"]

WINDOW_BYTES = 1 << ADDRESS_BITS
LINE_BYTES = 64
"""At least the cache line of every processor in use: 32 on the A9, 64 on the A53."""
IRQ = "irq"
BITSTREAM = "VITRAL_BITSTREAM"
"""Variable of the environment that names the .bit where no option can."""
MEMORY_INFO = "/proc/meminfo"


class VitralCore(pynq.DefaultIP):
    """What an overlay has for the core's instance: bound by vendor, library, name and version."""

    bindto = (VLNV,)  # the name and form that pynq looks for


class _Window:
    """Registers through pynq's MMIO."""

    def __init__(self, mmio: Any) -> None:
        self._mmio = mmio

    def read(self, offset: int) -> int:
        self._check(offset)
        return int(self._mmio.read(offset))

    def write(self, offset: int, value: int) -> None:
        self._check(offset)
        self._mmio.write(offset, int(value))

    def _check(self, offset: int) -> None:
        if offset % 4 or not 0 <= offset < self._mmio.length:
            raise DeviceError(
                f"register offset {offset:#x}: needs a multiple of 4 below {self._mmio.length:#x}"
            )


class _Memory:
    """A buffer of `pynq.allocate`; parts of it know their place in it."""

    def __init__(self, buffer: Any) -> None:
        self._buffer: Any = buffer
        self.address = int(buffer.device_address)
        self.data: npt.NDArray[np.uint8] = buffer.view(np.ndarray)
        self.line_bytes = 1 if buffer.coherent else LINE_BYTES

    def flush(self, offset: int, nbytes: int) -> None:
        self._buffer[offset : offset + nbytes].flush()

    def invalidate(self, offset: int, nbytes: int) -> None:
        self._buffer[offset : offset + nbytes].invalidate()

    def close(self) -> None:
        # pynq frees a buffer when its last reference goes; freeing it by name as well, and then
        # letting it go, frees it twice in some of its releases
        self.data = np.zeros(0, np.uint8)
        self._buffer = None


class PynqBoard:
    """The board of `vitral.runtime.boards.interfaces`, through the pynq package.

    The overlay's files are checked before the FPGA is configured.

    Parameters
    ----------
    bitstream : Path
        The .bit, its .hwh beside.
    config : CoreConfig
        The core that it must have.
    download : bool
        Whether to configure the FPGA; False when it is already.

    Raises
    ------
    DeviceError
        When a file is missing, broken or another core's, or pynq cannot use it.
    """

    name = "pynq"

    def __init__(self, bitstream: Path, config: CoreConfig, *, download: bool) -> None:
        path = need_file(bitstream, "build it, or copy it to the board")
        handoff = need_file(path.with_suffix(".hwh"), f"it must lie beside {path.name}")
        core = read_handoff(handoff)
        if core.nbytes < WINDOW_BYTES:
            raise DeviceError(
                f"{handoff}: {core.instance} has {core.nbytes} bytes of registers, needs"
                f" {WINDOW_BYTES}; widen its range in the address editor"
            )
        check_manifest(path, config)
        self._loop = EventLoopThread()
        try:
            self._overlay = pynq.Overlay(str(path), download=download)
            self.core = self._loop.call(lambda: _find_core(self._overlay))
        except Exception as error:  # pynq raises whatever its parsers and the kernel do
            self._loop.close()
            if isinstance(error, DeviceError):
                raise
            raise DeviceError(f"{path}: pynq cannot use it: {_one_line(error)}") from error
        self.registers: RegisterWindow = _Window(self.core.mmio)
        line = getattr(self.core, IRQ, None)
        self.interrupt: Interrupt | None = (
            None if line is None else LoopInterrupt(self._loop, line.wait)
        )

    def allocate(self, nbytes: int) -> SharedMemory:
        try:
            return _Memory(pynq.allocate(shape=(nbytes,), dtype=np.uint8))
        except (MemoryError, OSError, RuntimeError) as error:
            raise DeviceError(
                f"{self.name}: needs {nbytes} bytes of contiguous memory, {_free_memory()} free"
                f" ({_one_line(error)}); free other buffers, or boot with a larger cma="
            ) from None

    def close(self) -> None:
        if self.interrupt is not None:
            self.interrupt.close()
        self._loop.close()


class PynqDevice(BoardDevice):
    """A PYNQ board, as `BoardDevice` with these options besides its own.

    Parameters
    ----------
    bitstream : path or None
        The .bit, its .hwh beside it, and the manifest (.json) where there is one. None: the one
        that ``VITRAL_BITSTREAM`` names, else the one that `vitral.overlay` has.
    download : bool
        Whether to configure the FPGA with it.
    """

    name = "pynq"
    OPTIONS = ("bitstream", "download", *COMMON_OPTIONS)

    def __init__(
        self,
        config: CoreConfig,
        *,
        bitstream: "str | os.PathLike[str] | None" = None,
        download: bool = True,
        watchdog: int = WATCHDOG_CYCLES,
        axi_attributes: int | None = None,
        record: "str | os.PathLike[str] | None" = None,
    ) -> None:
        bitstream = bitstream or os.environ.get(BITSTREAM) or installed()
        if not bitstream:
            raise DeviceError(
                f"pynq: needs bitstream= (or ${BITSTREAM}), the .bit file with its .hwh beside, or"
                " one installed by 'vitral bitstream install DIR'"
            )
        super().__init__(
            config,
            PynqBoard(Path(bitstream), config, download=download),
            watchdog=watchdog,
            axi_attributes=axi_attributes,
            record=record,
        )


def _find_core(overlay: Any) -> VitralCore:
    """The driver of the one core; its interrupt belongs to the loop of the calling thread."""
    vln = VLNV.rpartition(":")[0]
    for name, entry in overlay.ip_dict.items():
        if str(entry.get("type", "")).rpartition(":")[0] == vln:
            core = reduce(getattr, name.split("/"), overlay)
            if not isinstance(core, VitralCore):
                raise DeviceError(f"{name}: bound to {type(core).__name__}, needs VitralCore")
            return core
    raise DeviceError(f"the overlay has no {VLNV}")


def _free_memory() -> str:
    try:
        lines = Path(MEMORY_INFO).read_text(encoding="ascii").splitlines()
    except OSError:
        return "unknown"
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    kilobytes = values.get("CmaFree", "").removesuffix("kB").strip()
    return f"{1024 * int(kilobytes)} bytes" if kilobytes.isdigit() else "unknown"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
