"""The host's end of a serial line: lost and changed bytes, against a bridge in Python."""

import dataclasses
import random
from collections.abc import Callable

import numpy as np
import pytest

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.registers import MAGIC, register
from vitral.runtime.device import open_device
from vitral.runtime.devices.ulx3s import Ulx3sDevice
from vitral.runtime.serial.board import LinkedMemory
from vitral.runtime.serial.link import TRIES, SerialLink
from vitral.runtime.serial.port import open_port
from vitral.serial_frames import HELLO_MAGIC, Op, Reply, crc16
from vitral.targets import find_target

MEMORY = 8192
Change = Callable[[bytes], bytes]


def same(data: bytes) -> bytes:
    return data


class Bridge:
    """The other end as the frames' page describes it: registers that only keep what is written.

    `to_board` and `to_host` may change what goes over the line.
    """

    def __init__(self, *, to_board: Change = same, to_host: Change = same) -> None:
        self.to_board, self.to_host = to_board, to_host
        self.memory = bytearray(b"\xaa" * MEMORY)
        self.registers: dict[int, int] = {}
        self.writes: list[tuple[int, int]] = []
        self.ops: list[Op] = []
        self.magic = HELLO_MAGIC
        self.closed = False
        self._out = bytearray()
        self._last_tag: int | None = None

    def write(self, data: bytes) -> None:
        assert not self.closed
        self._out += self.to_host(self._answer(self.to_board(data)))

    def read(self, size: int) -> bytes:
        found = bytes(self._out[:size])
        del self._out[:size]
        return found

    def reset_input_buffer(self) -> None:
        self._out.clear()

    def close(self) -> None:
        self.closed = True

    def _answer(self, frame: bytes) -> bytes:
        start = frame.find(0xA5)
        header = frame[start : start + 10]
        if start < 0 or len(header) < 10 or crc16(header[:8]) != header[8:]:
            return b""
        op, tag, words = Op(header[1]), header[2], header[3] + 1
        address = int.from_bytes(header[4:8], "little")
        rest = frame[start + 10 :]
        if op in (Op.WRITE_REGISTER, Op.WRITE_MEMORY):
            size = 4 if op is Op.WRITE_REGISTER else 8 * words
            if len(rest) < size + 2:
                return b""
            if crc16(header + rest[:size]) != rest[size : size + 2]:
                return self._frame(Reply.DAMAGED, tag)
        self.ops.append(op)
        status, payload = self._do(op, tag, address, words, rest)
        return self._frame(status, tag, payload)

    def _do(self, op: Op, tag: int, at: int, words: int, data: bytes) -> tuple[Reply, bytes]:
        memory = op in (Op.READ_MEMORY, Op.WRITE_MEMORY, Op.CLEAR_MEMORY)
        if memory and (at % 8 or at + 8 * words > MEMORY):
            return Reply.REFUSED, b""
        if op is Op.HELLO:
            self._last_tag = None
            return Reply.OK, self.magic.to_bytes(4, "little") + MEMORY.to_bytes(4, "little")
        if op is Op.READ_REGISTER:
            return Reply.OK, self.registers.get(at, 0).to_bytes(4, "little")
        if op is Op.READ_MEMORY:
            return Reply.OK, bytes(self.memory[at : at + 8 * words])
        if op is Op.WRITE_REGISTER:
            if tag != self._last_tag:
                self.writes.append((at, int.from_bytes(data[:4], "little")))
                self.registers[at] = self.writes[-1][1]
            self._last_tag = tag
        else:
            zeros = bytes(8 * words)
            self.memory[at : at + 8 * words] = zeros if op is Op.CLEAR_MEMORY else data[:-2]
        return Reply.OK, b""

    @staticmethod
    def _frame(status: Reply, tag: int, payload: bytes = b"") -> bytes:
        whole = bytes([0x5A, status, tag]) + payload
        return whole + crc16(whole)


def once(number: int, change: Change) -> Change:
    """`change` for the message of that number, counted from 0."""
    seen = iter(range(1 << 30))
    return lambda data: change(data) if next(seen) == number else data


def flip(place: int) -> Change:
    return lambda data: bytes(byte ^ (place == at) for at, byte in enumerate(data))


def test_memory_crosses_the_line_in_frames_of_2_kib() -> None:
    bridge = Bridge()
    link = SerialLink("ulx3s", bridge)
    assert link.memory_bytes == MEMORY
    data = np.random.default_rng(1).bytes(5000)
    link.write_memory(1024, data)
    assert bytes(bridge.memory[1024:6024]) == data
    assert link.read_memory(1024, 5000) == data
    assert bridge.ops == [Op.HELLO] + 3 * [Op.WRITE_MEMORY] + 3 * [Op.READ_MEMORY]


def test_zeros_do_not_cross_it() -> None:
    bridge = Bridge()
    SerialLink("ulx3s", bridge).write_memory(0, bytes(MEMORY))
    assert bytes(bridge.memory) == bytes(MEMORY)
    assert set(bridge.ops) == {Op.HELLO, Op.CLEAR_MEMORY}


def test_flush_and_invalidate_move_whole_lines() -> None:
    bridge = Bridge()
    memory = LinkedMemory(SerialLink("ulx3s", bridge), MEMORY)
    memory.data[:] = 1
    memory.flush(13, 6)
    assert bytes(bridge.memory[:32]) == b"\xaa" * 8 + b"\x01" * 16 + b"\xaa" * 8
    memory.invalidate(7, 1)
    assert memory.data[:16].tolist() == [0xAA] * 8 + [1] * 8


CHANGES = {
    "lost": lambda data: b"",
    "cut": lambda data: data[:-1],
    "cut in the head": lambda data: data[:2],
    **{f"byte {place}": flip(place) for place in (0, 1, 2, 3, 4, 5, 9, 10, 15)},
    "noise in front": lambda data: b"\x00\x77" + data,
}


@pytest.mark.parametrize("way", ["to_board", "to_host"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_message_is_sent_again_and_a_register_written_once(change: str, way: str) -> None:
    bridge = Bridge()
    link = SerialLink("ulx3s", bridge)
    setattr(bridge, way, once(0, CHANGES[change]))
    link.write_register(0x20, 0x12345678)
    assert bridge.writes == [(0x20, 0x12345678)]
    setattr(bridge, way, once(0, CHANGES[change]))
    assert link.read_register(0x20) == 0x12345678
    data = np.random.default_rng(2).bytes(64)
    setattr(bridge, way, once(0, CHANGES[change]))
    link.write_memory(64, data)
    setattr(bridge, way, once(0, CHANGES[change]))
    assert link.read_memory(64, 64) == data


def test_a_line_that_errs_often_still_carries_every_byte() -> None:
    rng = random.Random(7)

    def sometimes(data: bytes) -> bytes:
        return flip(rng.randrange(len(data)))(data) if data and rng.random() < 0.08 else data

    bridge = Bridge(to_board=sometimes, to_host=sometimes)
    link = SerialLink("ulx3s", bridge)
    for seed in range(20):
        data = np.random.default_rng(seed).bytes(256)
        link.write_memory(8 * seed, data)
        assert link.read_memory(8 * seed, 256) == data, f"seed {seed}"


def refusal(**changes: Change) -> str:
    bridge = Bridge()
    link = SerialLink("ulx3s", bridge)
    for way, change in changes.items():
        setattr(bridge, way, change)
    with pytest.raises(DeviceError) as caught:
        link.read_register(8)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("no answer", lambda data: b""),
        ("the answer stopped", lambda data: data[:5]),
        ("the answer came damaged", flip(4)),
        ("the answer begins with 5b0002", flip(0)),
    ],
)
def test_what_keeps_failing_is_one_line(text: str, change: Change) -> None:
    assert refusal(to_host=change) == (
        f"ulx3s: {text}, {TRIES} times (READ_REGISTER, 0x8); check port=, cable and bitstream"
    )


def test_a_line_that_never_stops_is_left() -> None:
    class Babble(Bridge):
        def read(self, size: int) -> bytes:
            return b"\x00" * size

    with pytest.raises(DeviceError, match="the line does not stop talking; check port= and baud="):
        SerialLink("ulx3s", Babble())


def test_another_bridge_is_refused() -> None:
    bridge = Bridge()
    bridge.magic = 0x31425457
    with pytest.raises(DeviceError, match="says 0x31425457, needs 0x31425456; load the bitstream"):
        SerialLink("ulx3s", bridge)


def test_a_port_that_fails_is_one_line() -> None:
    def gone(data: bytes) -> bytes:
        raise OSError("device disconnected")

    assert refusal(to_board=gone) == "ulx3s: the serial port failed: device disconnected"


def test_refusals_are_not_repeated() -> None:
    bridge = Bridge()
    link = SerialLink("ulx3s", bridge)
    with pytest.raises(DeviceError, match=r"no such register or memory \(READ_MEMORY, 0x2000\)"):
        link.read_memory(MEMORY, 8)
    assert bridge.ops == [Op.HELLO, Op.READ_MEMORY]


def core(bridge: Bridge, config: CoreConfig) -> Bridge:
    """With the registers by which a core is known."""
    for name, value in (("id", MAGIC), ("version", 2), ("digest", config.digest32)):
        bridge.registers[register(name).offset] = value
    return bridge


def test_device_checks_the_core_and_the_size() -> None:
    config = CoreConfig()
    device = Ulx3sDevice(config, port=core(Bridge(), config))
    with pytest.raises(
        DeviceError, match=r"the module needs 12288 bytes of memory, the board has 8192 on chip"
    ):
        device.allocate(MEMORY + 1)
    assert device.allocate(100) == 0
    device.write(3, np.arange(9, dtype=np.uint8))
    assert device.read(3, 9).tolist() == list(range(9))
    device.close()


def test_device_of_another_core_is_refused_and_the_port_closed() -> None:
    other = dataclasses.replace(CoreConfig(), block=8)
    bridge = core(Bridge(), other)
    with pytest.raises(DeviceError, match="compile for this core"):
        Ulx3sDevice(CoreConfig(), port=bridge)
    assert bridge.closed


def test_a_port_that_is_not_there_is_one_line() -> None:
    pytest.importorskip("serial", reason="pyserial is an extra")
    with pytest.raises(DeviceError, match=r"^serial port /dev/none: .*check port="):
        open_port("/dev/none")


def test_device_is_in_the_table() -> None:
    with pytest.raises(DeviceError, match="ulx3s needs a serial port; give port="):
        open_device("ulx3s", CoreConfig())
    assert find_target("ulx3s-85f").device == "ulx3s"
