"""What a board gives to the driver: a register window, memory that the core reaches, an interrupt.

Everything above these four is the same on every board, and on the simulated one.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Board", "Interrupt", "RegisterWindow", "SharedMemory"]


class RegisterWindow(Protocol):
    """The core's registers, 32 bits each, at byte offsets that are multiples of 4.

    Accesses reach the core in program order and are complete when they return.
    """

    def read(self, offset: int) -> int: ...

    def write(self, offset: int, value: int) -> None: ...


class SharedMemory(Protocol):
    """One physically contiguous region that processor and core both reach.

    The core does not see what lies in the processor's caches, nor the processor what the core
    wrote behind them; `flush` and `invalidate` act on whole cache lines.

    Attributes
    ----------
    address : int
        Byte address of the region on the core's memory port.
    data : numpy.ndarray
        uint8 (nbytes,), the processor's view.
    line_bytes : int
        Size of a cache line; 1 when the view is not cached, or the caches are coherent.
    """

    address: int
    data: npt.NDArray[np.uint8]
    line_bytes: int

    def flush(self, offset: int, nbytes: int) -> None:
        """Have the core see what the processor wrote; ordered before any later register write."""
        ...

    def invalidate(self, offset: int, nbytes: int) -> None:
        """Have the processor see what the core wrote; forgets unflushed writes of these lines."""
        ...

    def close(self) -> None:
        """Give the region back; `data` must not be used afterwards."""
        ...


class Interrupt(Protocol):
    """The core's interrupt line, as the processor gets it."""

    def arm(self) -> None:
        """Let the next interrupt through; one that came before is forgotten."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait for the armed interrupt; False when it does not come in time."""
        ...

    def close(self) -> None: ...


class Board(Protocol):
    """A configured board with one core.

    Attributes
    ----------
    name : str
        For messages.
    registers : RegisterWindow
        The core's.
    interrupt : Interrupt or None
        None when the core must be polled.
    """

    name: str
    registers: RegisterWindow
    interrupt: Interrupt | None

    def allocate(self, nbytes: int) -> SharedMemory:
        """Memory for the core.

        Raises
        ------
        DeviceError
            When there is not enough; says how much is needed and free, where that is known.
        """
        ...

    def close(self) -> None:
        """Give registers and interrupt back; a second call does nothing."""
        ...
