"""How much a server gives to its clients, and how long it waits for them."""

from dataclasses import dataclass, fields

from vitral.errors import DeviceError

__all__ = ["Limits"]

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of a server; every wait and every buffer has one.

    Parameters
    ----------
    clients : int
        Connections that are let in at one time.
    pending : int
        Connections that have not shown yet who they are; the oldest gives way to a new one.
    waiting : int
        Requests that wait for the device; one more is refused.
    memory_bytes : int
        Device memory, shared out among the clients.
    store_bytes : int
        Images kept in the host's memory; also the largest one.
    frame_bytes : int
        Arrays in one frame.
    metadata_bytes : int
        JSON in one frame.
    handshake_seconds : float
        From the connection to the end of the handshake.
    frame_seconds : float
        From a frame's first byte to its last, plus its bytes at `bytes_per_second`.
    bytes_per_second : int
        What a client must at least send or take.
    idle_seconds : float
        Between two requests of a client.
    queue_seconds : float
        That a request may wait for the device.
    run_seconds : float
        That a program may run.

    Raises
    ------
    DeviceError
        When a bound is not more than 0.
    """

    clients: int = 16
    pending: int = 16
    waiting: int = 32
    memory_bytes: int = 256 * MIB
    store_bytes: int = 256 * MIB
    frame_bytes: int = 8 * MIB
    metadata_bytes: int = MIB
    handshake_seconds: float = 5.0
    frame_seconds: float = 10.0
    bytes_per_second: int = 64 << 10
    idle_seconds: float = 600.0
    queue_seconds: float = 60.0
    run_seconds: float = 60.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not value > 0:
                raise DeviceError(f"limit {item.name} must be more than 0, got {value!r}")

    def body_seconds(self, nbytes: int) -> float:
        """The time within which a frame with so many bytes of arrays must have passed."""
        return self.frame_seconds + nbytes / self.bytes_per_second
