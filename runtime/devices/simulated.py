"""What the devices that live in this process have in common: memory, and giving up in time."""

import threading
from collections.abc import Collection
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import PAGE, Dram, Launch, Outcome

__all__ = ["BASE", "SimulatedDevice"]

BASE = 0x1000_0000
"""Byte address of the region: not 0, so that a program with absolute addresses cannot work."""


class SimulatedDevice:
    """A device whose memory is a numpy array, shared with the simulator and never copied.

    Subclasses make the simulator (`_open`) and run it (`_simulate`).

    Parameters
    ----------
    config : CoreConfig
        The core to simulate.
    """

    name: ClassVar[str]
    OPTIONS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self._dram: Dram | None = None
        self._lost = False
        self._open()

    def _open(self) -> None:
        """Make a fresh simulator."""

    def _simulate(self, launch: Launch, dram: Dram, marks: Collection[int]) -> Outcome:
        raise NotImplementedError

    def _dispose(self) -> None:
        """Give the simulator back."""

    @property
    def dram(self) -> Dram:
        """The region; DeviceError when none is allocated."""
        if self._dram is None:
            raise DeviceError(f"{self.name}: no memory; allocate some, or the device is closed")
        return self._dram

    def allocate(self, nbytes: int) -> int:
        if self._dram is not None:
            raise DeviceError(f"{self.name}: memory is allocated already; open a second device")
        size = -(-max(nbytes, 1) // PAGE) * PAGE
        reach = (1 << self.config.addr_bits) - BASE
        if size > reach:
            raise DeviceError(
                f"{self.name}: asked for {nbytes} bytes, {self.config.addr_bits} address bits"
                f" reach {reach}"
            )
        self._dram = Dram(BASE, np.zeros(size, np.uint8))
        return BASE

    def write(self, offset: int, array: npt.NDArray) -> None:
        window = self.dram.view(BASE + offset, array.nbytes)
        window.view(array.dtype).reshape(array.shape)[...] = array

    def read(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        return self.dram.view(BASE + offset, nbytes)

    def run(
        self, launch: Launch, *, timeout: float | None = None, marks: Collection[int] = ()
    ) -> Outcome:
        if self._lost:
            self.reset()
        if timeout is None:
            return self._simulate(launch, self.dram, marks)
        return self._run_in_time(launch, timeout, marks)

    def _run_in_time(self, launch: Launch, timeout: float, marks: Collection[int]) -> Outcome:
        """Run in a thread; one that takes too long keeps its simulator and memory to itself."""
        result: list[Outcome | BaseException] = []

        def work(dram: Dram) -> None:
            try:
                result.append(self._simulate(launch, dram, marks))
            except BaseException as error:  # handed to the caller below
                result.append(error)

        thread = threading.Thread(target=work, args=(self.dram,), daemon=True)
        thread.start()
        thread.join(timeout)
        if thread.is_alive():
            self._lost = True
            raise DeviceError(
                f"{self.name}: time-out: the program did not end within {timeout:g} seconds"
            )
        if isinstance(result[0], BaseException):
            raise result[0]
        return result[0]

    def reset(self) -> None:
        if not self._lost:
            self._dispose()
        elif self._dram is not None:
            self._dram = Dram(BASE, np.zeros_like(self._dram.data))
        self._lost = False
        self._open()

    def close(self) -> None:
        if self._dram is not None and not self._lost:
            self._dispose()
        self._dram = None
