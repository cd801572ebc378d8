"""Serial ports: what the link needs of one, and pyserial's."""

from contextlib import suppress
from typing import Protocol

from vitral.errors import DeviceError
from vitral.serial_frames import IDLE_SECONDS

__all__ = ["BAUD", "READ_SECONDS", "SerialPort", "open_port"]

BAUD = 1_000_000
"""Bits per second of the boards' bridges."""
READ_SECONDS = 10 * IDLE_SECONDS
"""A read that waits for so long without a byte ends; longer than the bridge remembers a request
that stopped, and than USB adapters keep bytes back."""


class SerialPort(Protocol):
    """A line of bytes. An OSError of these means that the port is gone."""

    def write(self, data: bytes, /) -> object:
        """Send all of it, or start to."""
        ...

    def read(self, size: int, /) -> bytes:
        """`size` bytes, or fewer when they do not come within `READ_SECONDS`."""
        ...

    def reset_input_buffer(self) -> None:
        """Forget what came and was not read."""
        ...

    def close(self) -> None: ...


def open_port(name: str, baud: int = BAUD) -> SerialPort:
    """Open a port by pyserial's name for it (``/dev/ttyUSB0``, ``COM3``) or URL.

    Raises
    ------
    DeviceError
        When pyserial is missing, or the port cannot be opened.
    """
    try:
        import serial
    except ModuleNotFoundError:
        raise DeviceError("a serial port needs pyserial; pip install 'vitral[serial]'") from None
    try:
        port = serial.serial_for_url(name, baudrate=baud, timeout=READ_SECONDS, write_timeout=5.0)
    except (OSError, ValueError) as error:
        raise DeviceError(
            f"serial port {name}: {error}; check port=, and that you may open it (group dialout)"
        ) from None
    low_latency = getattr(port, "set_low_latency_mode", None)
    if low_latency is not None:
        with suppress(OSError, ValueError, NotImplementedError, AttributeError):
            low_latency(True)  # FTDI chips else keep a short reply back for 16 ms
    return port
