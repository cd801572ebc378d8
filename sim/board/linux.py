"""Files that stand for the Linux of a DE10-Nano, with a simulated board behind them."""

import os
import select
import threading
import time
import tty
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vitral.program import Dram
from vitral.registers import MAGIC
from vitral.runtime.boards.cyclone import BRIDGE_RESETS, OVERLAYS, PORT_RESETS
from vitral.runtime.boards.interfaces import RegisterWindow
from vitral.runtime.boards.system import System
from vitral.sim.board.board import DRAM_BASE, Region, SimulatedBoard
from vitral.sim.board.logic import Logic

__all__ = ["SimulatedLinux"]

REGISTERS = 0xFF20_0000
BUFFER = "/sys/class/u-dma-buf/udmabuf0"
UIO = "/dev/uio0"
WORD = 4
ENABLE_BYTES = 4
PAUSE = 1e-4


class SimulatedLinux(System):
    """A folder with the files of a DE10-Nano; writing an attribute acts as the kernel would.

    /dev/mem is a file as large as the address space, its memory for devices the board's own;
    /dev/udmabuf0 another one, the processor's cached view of that memory; /dev/uio0 a terminal.
    Register windows are the board's: a file cannot tell who reads it.

    Parameters
    ----------
    root : Path
        An empty folder.
    logic : Logic
        The core.
    buffer_bytes : int
        Size of the u-dma-buf, and of all memory for devices.
    configured : bool
        Whether the FPGA has been configured by the boot loader.
    words : mapping of int to int
        Words of /dev/mem by address, instead of those of a board that is ready.
    seed : int or None
        Draws evictions of cache lines.
    """

    def __init__(
        self,
        root: Path,
        logic: Logic,
        *,
        buffer_bytes: int = 1 << 20,
        configured: bool = True,
        words: Mapping[int, int] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(root)
        ready = {BRIDGE_RESETS: 0, PORT_RESETS: 0x3FFF, REGISTERS: MAGIC}
        self._make_memory(buffer_bytes, ready | dict(words or {}))
        data = np.memmap(self.path("/dev/mem"), np.uint8, "r+", DRAM_BASE, (buffer_bytes,))
        self.board = SimulatedBoard(logic, dram=Dram(DRAM_BASE, data.view(np.ndarray)), seed=seed)
        self.region = self._make_buffer(buffer_bytes)
        self._put("/sys/class/fpga_manager/fpga0/state", "operating" if configured else "unknown")
        self.path(OVERLAYS).mkdir(parents=True)
        self.path("/lib/firmware").mkdir(parents=True)
        self._uio = _Uio(self, self.board)

    def close(self) -> None:
        self._uio.close()

    def _put(self, path: str, text: str) -> None:
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(f"{text}\n", encoding="ascii")

    def _make_memory(self, nbytes: int, words: Mapping[int, int]) -> None:
        memory = self.path("/dev/mem")
        memory.parent.mkdir(parents=True)
        with open(memory, "wb") as file:
            file.truncate(1 << 32)  # sparse: takes no room
            file.seek(DRAM_BASE)
            file.write(b"\x5a" * nbytes)
            for address, word in words.items():
                file.seek(address)
                file.write(word.to_bytes(WORD, "little"))

    def _make_buffer(self, nbytes: int) -> Region:
        path = self.path("/dev/udmabuf0")
        path.write_bytes(bytes(nbytes))
        view = np.memmap(path, np.uint8, "r+", 0, (nbytes,)).view(np.ndarray)
        region = self.board.reserve(nbytes, view)
        attributes = {"phys_addr": hex(region.address), "size": str(nbytes), "dma_coherent": "0"}
        for name in ("offset", "size", "direction", "for_cpu", "for_device"):
            attributes[f"sync_{name}"] = "0"
        for name, text in attributes.items():
            self._put(f"{BUFFER}/{name}", text)
        return region

    def write(self, path: str, text: str) -> None:
        super().write(path, text)
        if path.startswith(f"{BUFFER}/sync_for_"):
            self._synchronise(path.rpartition("_")[2])
        elif path.startswith(OVERLAYS) and path.endswith("/path"):
            applied = self.exists(f"/lib/firmware/{text}")
            self._put(f"{path.removesuffix('path')}status", "applied" if applied else "unapplied")
            if applied:
                self._put("/sys/class/fpga_manager/fpga0/state", "operating")

    def _synchronise(self, owner: str) -> None:
        """As the driver does: which way data goes decides which cache operation there is."""
        place, size, direction = (
            self.read_number(f"{BUFFER}/sync_{name}") for name in ("offset", "size", "direction")
        )
        if owner == "device" and direction in (0, 1):
            self.region.flush(place, size)
        elif owner == "cpu" and direction in (0, 2):
            self.region.invalidate(place, size)

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        if path.startswith(OVERLAYS):
            self._put(f"{path}/path", "")
            self._put(f"{path}/status", "unapplied")

    def remove_folder(self, path: str) -> None:
        for name in self.names(path):
            self.path(f"{path}/{name}").unlink()  # configfs' own files go with their folder
        super().remove_folder(path)

    def registers(self, path: str, offset: int, nbytes: int, hint: str) -> RegisterWindow:
        if path == UIO:
            return self.board.registers
        window = super().registers(path, offset, nbytes, hint)
        return self.board.registers if offset == REGISTERS else window

    def probe(self, path: str, offset: int) -> int:
        return self.board.registers.read(offset) if path == UIO else super().probe(path, offset)


class _Uio:
    """The kernel's side of /dev/uio0: once enabled, it counts the next interrupt, then masks it."""

    def __init__(self, linux: SimulatedLinux, board: SimulatedBoard) -> None:
        self._board = board
        self._stop = threading.Event()
        self._kernel, self._user = os.openpty()
        tty.setraw(self._user)
        device = linux.path(UIO)
        device.symlink_to(os.ttyname(self._user))
        name = linux.path("/sys/class/uio/uio0/name")
        name.parent.mkdir(parents=True)
        name.write_text("vitral\n", encoding="ascii")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        count = 0
        while not self._stop.is_set():
            if not select.select([self._kernel], [], [], 0.02)[0]:
                continue
            os.read(self._kernel, ENABLE_BYTES)
            while not self._stop.is_set():
                with self._board.lock:
                    self._board.pass_time()
                    if self._board.logic.irq:
                        break
                time.sleep(PAUSE)
            count += 1
            os.write(self._kernel, count.to_bytes(ENABLE_BYTES, "little"))

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._kernel)
        os.close(self._user)
