"""Requests over a serial port, repeated until they arrive whole."""

from vitral.errors import DeviceError
from vitral.runtime.serial.port import SerialPort
from vitral.serial_frames import (
    BURST_WORDS,
    HELLO_MAGIC,
    MEMORY_WORD,
    REGISTER_WORD,
    REPLY_SYNC,
    Op,
    Reply,
    crc16,
    encode_request,
)

__all__ = ["SerialLink"]

TRIES = 4
HEAD_BYTES = 3
CRC_BYTES = 2
DRAIN_BYTES = 1 << 16
"""What a line may say at most before it must be quiet."""


class SerialLink:
    """The bridge at the other end of a port.

    Every method sends what it must up to four times, until a whole reply comes; a register is
    written once all the same.

    Parameters
    ----------
    name : str
        The device, for messages.
    port : SerialPort
        Owned from now on.

    Attributes
    ----------
    memory_bytes : int
        Memory behind the bridge, from address 0 on.

    Raises
    ------
    DeviceError
        Here and from every method, when nobody answers, or what answers is no bridge.
    """

    def __init__(self, name: str, port: SerialPort) -> None:
        self.name = name
        self._port = port
        self._tag = 0
        self._failures: list[str] = []
        reply = self._request(Op.HELLO, 0, reply_bytes=2 * REGISTER_WORD)
        magic = int.from_bytes(reply[:REGISTER_WORD], "little")
        if magic != HELLO_MAGIC:
            raise DeviceError(
                f"{name}: the bridge says {magic:#010x}, needs {HELLO_MAGIC:#010x}; load the"
                " bitstream of this release"
            )
        self.memory_bytes = int.from_bytes(reply[REGISTER_WORD:], "little")

    def read_register(self, offset: int) -> int:
        reply = self._request(Op.READ_REGISTER, offset, reply_bytes=REGISTER_WORD)
        return int.from_bytes(reply, "little")

    def write_register(self, offset: int, value: int) -> None:
        payload = value.to_bytes(REGISTER_WORD, "little")
        self._request(Op.WRITE_REGISTER, offset, payload=payload)

    def read_memory(self, address: int, nbytes: int) -> bytes:
        """Bytes from a byte address on; both multiples of 8."""
        parts = []
        for start in range(0, nbytes, BURST_WORDS * MEMORY_WORD):
            size = min(nbytes - start, BURST_WORDS * MEMORY_WORD)
            parts.append(
                self._request(
                    Op.READ_MEMORY, address + start, words=size // MEMORY_WORD, reply_bytes=size
                )
            )
        return b"".join(parts)

    def write_memory(self, address: int, data: bytes) -> None:
        """Write from a byte address on, a multiple of 8, as is the length."""
        for start in range(0, len(data), BURST_WORDS * MEMORY_WORD):
            part = data[start : start + BURST_WORDS * MEMORY_WORD]
            words = len(part) // MEMORY_WORD
            if any(part):
                self._request(Op.WRITE_MEMORY, address + start, words=words, payload=part)
            else:
                self._request(Op.CLEAR_MEMORY, address + start, words=words)

    def close(self) -> None:
        self._port.close()

    def _request(
        self, op: Op, address: int, *, words: int = 1, payload: bytes = b"", reply_bytes: int = 0
    ) -> bytes:
        self._tag = (self._tag + 1) % 256
        frame = encode_request(op, self._tag, address, words=words, payload=payload)
        failure = ""
        try:
            for _ in range(TRIES):
                self._port.reset_input_buffer()
                self._port.write(frame)
                status, reply, failure = self._reply(reply_bytes)
                if status is Reply.OK:
                    return reply
                if status not in (None, Reply.DAMAGED):
                    raise DeviceError(f"{self.name}: {_REFUSALS[status]} ({op.name}, {address:#x})")
                self._wait_for_silence()
        except OSError as error:
            raise DeviceError(f"{self.name}: the serial port failed: {error}") from None
        raise DeviceError(
            f"{self.name}: {failure}, {TRIES} times ({op.name}, {address:#x}); check port=, cable"
            " and bitstream"
        )

    def _reply(self, nbytes: int) -> tuple[Reply | None, bytes, str]:
        """(status, payload, what was wrong); no status unless the reply came whole."""
        head = self._port.read(HEAD_BYTES)
        if len(head) < HEAD_BYTES:
            return None, b"", "no answer" if not head else "the answer stopped"
        if head[0] != REPLY_SYNC or head[2] != self._tag or head[1] not in set(Reply):
            return None, b"", f"the answer begins with {head.hex()}"
        status = Reply(head[1])
        rest = (nbytes if status is Reply.OK else 0) + CRC_BYTES
        tail = self._port.read(rest)
        if len(tail) < rest:
            return None, b"", "the answer stopped"
        if crc16(head + tail[:-CRC_BYTES]) != tail[-CRC_BYTES:]:
            return None, b"", "the answer came damaged"
        return status, tail[:-CRC_BYTES], "the request arrived damaged" if status else ""

    def _wait_for_silence(self) -> None:
        """Until both sides have forgotten what was going on."""
        for _ in range(DRAIN_BYTES):
            if not self._port.read(1):
                return
        raise DeviceError(f"{self.name}: the line does not stop talking; check port= and baud=")


_REFUSALS = {
    Reply.REFUSED: "the bridge has no such register or memory",
    Reply.SILENT: "the core does not answer on its register port; load the bitstream again",
}
