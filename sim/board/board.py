"""The simulated board: logic, physical memory, and processors' caches between them."""

import threading
import time

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.program import PAGE, Dram
from vitral.registers import ADDRESS_BITS, register
from vitral.runtime.boards.interfaces import Interrupt, RegisterWindow, SharedMemory
from vitral.sim.board.cache import CachedMemory
from vitral.sim.board.logic import Logic

__all__ = ["DRAM_BASE", "Region", "SimulatedBoard"]

DRAM_BASE = 0x1000_0000
"""Physical address of the memory kept for devices."""
DRAM_BYTES = 16 << 20
STATUS = register("status").offset
CONTROL = register("control").offset


class Region(CachedMemory):
    """Physically contiguous memory of a `SimulatedBoard`, as a processor has it."""

    def __init__(
        self,
        board: "SimulatedBoard",
        physical: int,
        dram: npt.NDArray[np.uint8],
        *,
        seed: int | None,
        view: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        super().__init__(dram, board.line_bytes, seed=seed, view=view)
        self.address = physical
        self._board = board

    def close(self) -> None:
        self._board.release(self)

    def flush(self, offset: int, nbytes: int) -> None:
        with self._board.lock:
            super().flush(offset, nbytes)

    def invalidate(self, offset: int, nbytes: int) -> None:
        with self._board.lock:
            super().invalidate(offset, nbytes)


class _Window:
    """The register port as the processor reaches it; time passes when `status` is read."""

    def __init__(self, board: "SimulatedBoard") -> None:
        self._board = board

    def read(self, offset: int) -> int:
        self._check(offset)
        with self._board.lock:
            if offset == STATUS:
                self._board.pass_time()
            return self._board.logic.read(offset)

    def write(self, offset: int, value: int) -> None:
        self._check(offset)
        with self._board.lock:
            if offset == CONTROL:
                self._board.evict()
            self._board.logic.write(offset, value)

    def _check(self, offset: int) -> None:
        if offset % 4 or not 0 <= offset < 1 << ADDRESS_BITS:
            raise DeviceError(
                f"register offset {offset:#x}: needs a multiple of 4 below {1 << ADDRESS_BITS:#x}"
            )


class _Line:
    """The interrupt line: an edge counts when it was let through before."""

    def __init__(self, board: "SimulatedBoard") -> None:
        self._board = board
        self._armed = False

    def arm(self) -> None:
        self._armed = True

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self._board.logic.irq:
            if time.monotonic() > deadline:
                return False
            self._board.pass_time()
        came, self._armed = self._armed, False
        return came

    def close(self) -> None:
        self._armed = False


class SimulatedBoard:
    """A board of the `vitral.runtime.boards.interfaces`, all in this process.

    Parameters
    ----------
    logic : Logic
        The core; owned by the caller.
    dram : Dram or None
        Physical memory for devices; 16 MiB at `DRAM_BASE` when None.
    line_bytes : int
        Cache line of the processor: 32 on the Cortex-A9, 64 on the A53.
    seed : int or None
        Draws evictions; None for none.
    interrupt : bool
        Whether the core's interrupt reaches the processor.

    Attributes
    ----------
    lock : threading.RLock
        Held in every access; `pass_time` may be called from other threads.
    """

    def __init__(
        self,
        logic: Logic,
        *,
        dram: Dram | None = None,
        line_bytes: int = 32,
        seed: int | None = None,
        interrupt: bool = False,
    ) -> None:
        self.name = "simulated board"
        self.logic = logic
        self.line_bytes = line_bytes
        self.dram = dram or Dram.filled(DRAM_BASE, DRAM_BYTES, 0x5A)
        self.registers: RegisterWindow = _Window(self)
        self.interrupt: Interrupt | None = _Line(self) if interrupt else None
        self.regions: list[Region] = []
        self.lock = threading.RLock()
        self._seed = seed
        logic.attach(self.dram)

    def allocate(self, nbytes: int) -> SharedMemory:
        return self.reserve(nbytes)

    def reserve(self, nbytes: int, view: npt.NDArray[np.uint8] | None = None) -> Region:
        """First free physical memory that is large enough, whole pages of it."""
        size = -(-nbytes // PAGE) * PAGE
        place = self.dram.base
        for region in sorted(self.regions, key=lambda region: region.address):
            if region.address - place >= size:
                break
            place = region.address + region.data.size
        if place + size > self.dram.end:
            raise DeviceError(
                f"{self.name}: needs {size} bytes of contiguous memory, {self.free_bytes} free"
            )
        seed = None if self._seed is None else self._seed + len(self.regions)
        window = self.dram.view(place, size)
        region = Region(self, place, window, seed=seed, view=view)
        self.regions.append(region)
        return region

    @property
    def free_bytes(self) -> int:
        return self.dram.data.size - sum(region.data.size for region in self.regions)

    def release(self, region: Region) -> None:
        """Take a region back; once more does nothing."""
        self.regions = [other for other in self.regions if other is not region]

    def evict(self) -> None:
        """Let lines fall out of the cache."""
        for region in self.regions:
            region.evict()

    def pass_time(self) -> None:
        """Let the core run on a little, and the cache do what caches do meanwhile."""
        with self.lock:
            self.evict()
            self.logic.advance()
            self.evict()

    def close(self) -> None:
        """Nothing to give back."""
