"""The device protocol on a board: memory kept coherent by hand, programs run by the driver."""

import os
from collections.abc import Callable, Collection
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Opcode
from vitral.program import PAGE, Launch, Outcome
from vitral.registers import BASE_ALIGN
from vitral.runtime.boards.driver import WATCHDOG_CYCLES, CoreDriver
from vitral.runtime.boards.interfaces import Board, SharedMemory
from vitral.runtime.boards.recorder import Recorder

__all__ = ["COMMON_OPTIONS", "BoardDevice"]

COMMON_OPTIONS = ("watchdog", "axi_attributes", "record")
"""Options of every board's device, passed on to `BoardDevice`."""

RUN_SECONDS = 60.0
"""Time limit of a program when the caller sets none: nothing waits for ever on a board."""
INSN_BYTES = 16
OPCODE_MASK = 7


class BoardDevice:
    """A core on a board, real or simulated, behind `vitral.runtime.device.Device`.

    Between its methods no cache line of the region is dirty: `write` flushes what it wrote, and
    starts with the lines at both ends as the core left them; `read` invalidates first. So a line
    that holds an input's end and a result's start is right for both.

    Parameters
    ----------
    config : CoreConfig
        The core's.
    board : Board
        Owned from now on.
    watchdog, axi_attributes
        See `CoreDriver`.
    record : path or None
        File to keep what the board says, for `vitral.sim.board.replay`.

    Raises
    ------
    DeviceError
        When the core is not the one of the configuration, or does not answer.
    """

    name: str = "board"
    OPTIONS: ClassVar[tuple[str, ...]] = COMMON_OPTIONS

    def __init__(
        self,
        config: CoreConfig,
        board: Board,
        *,
        watchdog: int = WATCHDOG_CYCLES,
        axi_attributes: int | None = None,
        record: "str | os.PathLike[str] | None" = None,
    ) -> None:
        self.config = config
        self.board: Board = board if record is None else Recorder(board, config, record)
        self._memory: SharedMemory | None = None
        self._closed = False
        self.driver = CoreDriver(
            board.name,
            self.board.registers,
            config,
            interrupt=self.board.interrupt,
            watchdog=watchdog,
            axi_attributes=axi_attributes,
        )
        try:
            self.driver.identify()
            self.driver.soft_reset()
        except DeviceError:
            self.board.close()
            raise

    @property
    def memory(self) -> SharedMemory:
        """The region; DeviceError when none is allocated."""
        if self._memory is None:
            raise DeviceError(f"{self.name}: no memory; allocate some, or the device is closed")
        return self._memory

    def allocate(self, nbytes: int) -> int:
        if self._closed:
            raise DeviceError(f"{self.name}: the device is closed; open another one")
        if self._memory is not None:
            raise DeviceError(f"{self.name}: memory is allocated already; open a second device")
        memory = self.board.allocate(-(-max(nbytes, 1) // PAGE) * PAGE)
        try:
            self._check_address(memory)
        except DeviceError:
            memory.close()
            raise
        self._memory = memory
        memory.data[:] = 0
        memory.flush(0, memory.data.size)
        return memory.address

    def _check_address(self, memory: SharedMemory) -> None:
        end = memory.address + memory.data.size
        if memory.address % BASE_ALIGN:
            raise DeviceError(
                f"{self.name}: memory at {memory.address:#x}, needs a multiple of {BASE_ALIGN}"
            )
        if end > 1 << self.config.addr_bits:
            raise DeviceError(
                f"{self.name}: memory {memory.address:#x}..{end:#x} lies beyond the core's"
                f" {self.config.addr_bits} address bits; reserve memory below them"
            )

    def write(self, offset: int, array: npt.NDArray) -> None:
        memory = self.memory
        window = self._window(offset, array.nbytes)
        if not array.nbytes:
            return
        line = memory.line_bytes
        for edge in {offset, offset + array.nbytes}:
            if edge % line:  # the rest of this line may be the core's
                memory.invalidate(edge - edge % line, line)
        window.view(array.dtype).reshape(array.shape)[...] = array
        memory.flush(offset, array.nbytes)

    def read(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        window = self._window(offset, nbytes)
        if nbytes:
            self.memory.invalidate(offset, nbytes)
        return window

    def _window(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        data = self.memory.data
        if offset < 0 or offset + nbytes > data.size:
            raise DeviceError(
                f"{self.name}: {nbytes} bytes at offset {offset} of a region of {data.size} bytes"
            )
        return data[offset : offset + nbytes]

    def run(
        self, launch: Launch, *, timeout: float | None = None, marks: Collection[int] = ()
    ) -> Outcome:
        """As the protocol says; without a `timeout` it is 60 s, and `marks` are not seen."""
        memory = self.memory
        low, high = memory.address, memory.address + memory.data.size
        if not (low <= launch.limit_low and launch.limit_high <= high):
            raise DeviceError(
                f"{self.name}: limits {launch.limit_low:#x}..{launch.limit_high:#x} reach beyond"
                f" the region {low:#x}..{high:#x}; the core may touch nothing else on a board"
            )
        seconds = RUN_SECONDS if timeout is None else timeout
        return self.driver.run(launch, seconds, self._finder(launch))

    def _finder(self, launch: Launch) -> Callable[[int], bool]:
        first = launch.insn_base - self.memory.address

        def is_finish(index: int) -> bool:
            at = first + index * INSN_BYTES
            data = self.memory.data
            return 0 <= at < data.size and int(data[at]) & OPCODE_MASK == Opcode.FINISH

        return is_finish

    def reset(self) -> None:
        self.driver.soft_reset()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self.driver.stop()
        except DeviceError:
            # the core may still write there: better lost than used by somebody else
            self._memory = None
            raise
        finally:
            if self._memory is not None:
                self._memory.close()
            self._memory = None
            self.board.close()
