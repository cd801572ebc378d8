"""cocotb: a network on a core, by the host's driver through the pins of the serial line."""

import os
from itertools import groupby
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.task import bridge, resume
from cocotb.triggers import Event, FallingEdge, SimTimeoutError, Timer, with_timeout
from cosim.bench import PERIOD_NS, Clocked

from vitral.errors import DeviceError
from vitral.runtime.devices.ulx3s import Ulx3sDevice
from vitral.runtime.module import Module
from vitral.runtime.session import Session

BIT_NS = PERIOD_NS * int(os.environ["BIT_CYCLES"])
QUIET_NS = 2 * PERIOD_NS * int(os.environ["IDLE_CYCLES"])
"""A read ends after so long without a byte."""
DATA_BITS = 8


class PinPort:
    """The host's serial port; used from a thread of `bridge`.

    `damage` turns a bit of each byte over whose number it has: of those sent (``"sent"``), or those
    that come (``"heard"``).
    """

    def __init__(self, dut: Any, damage: dict[str, set[int]]) -> None:
        self._dut = dut
        self._damage = damage
        self.counts = {"sent": 0, "heard": 0}
        self._buffer = bytearray()
        self._came = Event()
        cocotb.start_soon(self._listen())

    def _through(self, way: str, byte: int) -> int:
        number = self.counts[way]
        self.counts[way] += 1
        return byte ^ 0x04 if number in self._damage.get(way, ()) else byte

    async def _listen(self) -> None:
        tx = self._dut.tx
        while True:
            await FallingEdge(tx)
            await Timer(BIT_NS + BIT_NS // 2, "ns")
            byte = 0
            for bit in range(DATA_BITS):
                byte |= int(tx.value) << bit
                await Timer(BIT_NS, "ns")
            assert int(tx.value) == 1, "a stop bit is high"
            self._buffer.append(self._through("heard", byte))
            self._came.set()

    @resume
    async def write(self, data: bytes) -> None:
        for byte in data:
            frame = (self._through("sent", byte) | 1 << DATA_BITS) << 1
            bits = [frame >> bit & 1 for bit in range(DATA_BITS + 2)]
            for level, run in groupby(bits):
                self._dut.rx.value = level
                await Timer(BIT_NS * len(list(run)), "ns")

    @resume
    async def read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._came.clear()
            try:
                await with_timeout(self._came.wait(), QUIET_NS, "ns")
            except SimTimeoutError:
                break
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    def reset_input_buffer(self) -> None:
        self._buffer.clear()

    def close(self) -> None:
        """Nothing to give back."""


async def start(dut: Any, damage: dict[str, set[int]] | None = None) -> PinPort:
    dut.rx.value = 1
    await Clocked(dut).reset()
    return PinPort(dut, damage or {})


@cocotb.test()
async def a_network_runs(dut: Any) -> None:
    """Every output of every feed, with bytes lost to noise on the way in both directions."""
    port = await start(dut, {"sent": {2, 1500}, "heard": {9, 700}})
    module = Module.load(Path(os.environ["MODULE"]))
    with np.load(os.environ["VALUES"]) as values:
        feeds, wanted = values["feeds"], values["wanted"]

    def run() -> list[np.ndarray]:
        device = Ulx3sDevice(module.config, port=port)
        with Session(module, device) as session:
            name = module.inputs[0].name
            return [session.run(None, {name: feed})[0] for feed in feeds]

    found = await bridge(run)()
    np.testing.assert_array_equal(np.stack(found), wanted)
    assert port.counts["sent"] > 1500, port.counts
    assert port.counts["heard"] > 700, port.counts


@cocotb.test()
async def what_does_not_fit_is_refused(dut: Any) -> None:
    port = await start(dut)
    module = Module.load(Path(os.environ["MODULE"]))

    def run() -> None:
        device = Ulx3sDevice(module.config, port=port)
        with pytest.raises(
            DeviceError, match=r"ulx3s: the module needs 1048576 bytes .* has 65536"
        ):
            device.allocate(1 << 20)
        device.close()

    await bridge(run)()
