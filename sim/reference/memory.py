"""The memory port as the reference sees it: addresses, limits, and the bytes behind them."""

import numpy as np
import numpy.typing as npt

from vitral.config import INSN_BYTES, CoreConfig
from vitral.isa import Cause, Memory
from vitral.program import Dram, Launch

__all__ = ["Fault", "MemoryPort"]

Bytes = npt.NDArray[np.uint8]


class Fault(Exception):
    """The instruction being executed stops the core with `cause`."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.text)
        self.cause = cause


class MemoryPort:
    """Reads and writes of one launch, checked against its limits and the memory's extent."""

    def __init__(self, config: CoreConfig, launch: Launch, dram: Dram) -> None:
        layout = config.layout
        self.launch = launch
        self.dram = dram
        self.end = min(launch.limit_high, 1 << config.addr_bits)
        self.element_bytes = {
            Memory.UOP: layout.uop_bytes,
            Memory.WGT: layout.wgt_bytes,
            Memory.INP: layout.inp_bytes,
            Memory.ACC: layout.acc_bytes,
            Memory.OUT: layout.out_bytes,
            Memory.ACC_8BIT: layout.acc8_bytes,
            Memory.PARAM: layout.param_bytes,
        }

    def instruction(self, index: int) -> int:
        """The 128-bit word of instruction `index`; faults DRAM_BOUNDS or BUS_READ."""
        (window,) = self._windows(
            self.launch.insn_base + index * INSN_BYTES, 1, INSN_BYTES, INSN_BYTES, Cause.BUS_READ
        )
        return int.from_bytes(window.tobytes(), "little")

    def rows(
        self, memory: Memory, first: int, rows: int, columns: int, stride: int, cause: Cause
    ) -> list[Bytes]:
        """The bytes of each of `rows` rows of `columns` elements, as windows on the DRAM itself.

        `first` and `stride` count elements of `memory`. Faults DRAM_BOUNDS when any byte is
        outside the limits, else `cause` when any is outside the memory.
        """
        size = self.element_bytes[memory]
        start = self.launch.base(memory) + first * size
        return self._windows(start, rows, columns * size, stride * size, cause)

    def _windows(self, start: int, rows: int, size: int, stride: int, cause: Cause) -> list[Bytes]:
        last = start + (rows - 1) * stride
        if start < self.launch.limit_low or last + size > self.end:
            raise Fault(Cause.DRAM_BOUNDS)
        if not (self.dram.holds(start, size) and self.dram.holds(last, size)):
            raise Fault(cause)
        return [self.dram.view(start + row * stride, size) for row in range(rows)]
