"""A simulated board as a device of the pynq package, whose own code then runs unchanged."""

# pyright: reportMissingImports=false
# (pynq needs numpy < 2, so it cannot be where pyright runs)

from pathlib import Path
from typing import Any

import numpy as np
from pynq.buffer import PynqBuffer
from pynq.pl_server.device import Device
from pynqmetadata.frontends import Metadata
from pynqmetadata.views.runtime.runtime_metadata_parser import RuntimeMetadataParser

from vitral.sim.board.board import Region, SimulatedBoard
from vitral.sim.board.handoff import CORE_ADDRESS

__all__ = ["SimulatedPynq"]

WORD = 4


class _Memory:
    """What `pynq.allocate` asks: buffers on the processor's view of a region."""

    def __init__(self, device: "SimulatedPynq") -> None:
        self._device = device
        self._regions: dict[int, Region] = {}

    def allocate(self, shape: Any, dtype: Any, **_: Any) -> PynqBuffer:
        count = int(np.prod(shape))
        nbytes = max(1, count * np.dtype(dtype).itemsize)
        board = self._device.board
        if nbytes > board.free_bytes:
            raise RuntimeError("Failed to allocate Memory!")  # as XRT says it
        region = board.reserve(nbytes)
        buffer = PynqBuffer(
            shape,
            dtype,
            buffer=region.data,
            device=self._device,
            device_address=region.address,
            coherent=False,
            bo=region,
        )
        buffer.memory = self  # as pynq's own memories do
        buffer.pointer = region.address
        buffer.return_to = self
        self._regions[region.address] = region
        return buffer

    def return_pointer(self, address: int) -> None:
        self._regions.pop(address).close()


class SimulatedPynq(Device):
    """The active device of pynq, with a `SimulatedBoard` behind it.

    Attributes
    ----------
    downloads : list of str
        Bitstreams that the FPGA was configured with.
    """

    _probe_priority_ = 1
    board: SimulatedBoard

    @classmethod
    def _probe_(cls) -> "list[SimulatedPynq]":
        return []  # made by `attach`, not found

    @classmethod
    def attach(cls, board: SimulatedBoard) -> "SimulatedPynq":
        """A device with this board, the active one from now on."""
        device = cls("vitral-simulated")
        device.board = board
        Device.active_device = device
        return device

    def __init__(self, tag: str) -> None:
        super().__init__(tag)
        self.name = "simulated"
        self.arch = "armv7l"
        self.capabilities = {"REGISTER_RW": True}
        self.default_memory = _Memory(self)
        self.bitfile_name = None
        self.timestamp = None
        self.downloads: list[str] = []

    def read_registers(self, address: int, length: int) -> bytes:
        read = self.board.registers.read
        words = [read(at - CORE_ADDRESS) for at in range(address, address + length, WORD)]
        return b"".join(word.to_bytes(WORD, "little") for word in words)

    def write_registers(self, address: int, data: Any) -> None:
        raw = bytes(data)
        if len(raw) % WORD:
            raise MemoryError("Unaligned write: data length must be multiple of 4.")
        for at in range(0, len(raw), WORD):
            word = int.from_bytes(raw[at : at + WORD], "little")
            self.board.registers.write(address + at - CORE_ADDRESS, word)

    def flush(self, bo: Region, offset: int, _address: int, nbytes: int) -> None:
        bo.flush(offset, nbytes)

    def invalidate(self, bo: Region, offset: int, _address: int, nbytes: int) -> None:
        bo.invalidate(offset, nbytes)

    def get_bitfile_metadata(self, bitfile_name: str, partial: bool = False) -> Any:
        parser = RuntimeMetadataParser(Metadata(input=Path(bitfile_name).with_suffix(".hwh")))
        parser.clock_dict = {}  # there is no clock generator to set
        return parser

    def download(self, bitstream: Any, parser: Any = None) -> None:
        self.downloads.append(bitstream.bitfile_name)
        self.post_download(bitstream, parser, self.name)

    def gen_cache(self, bitstream: Any, parser: Any = None) -> None:
        """pynq keeps parsed metadata on disk; there is no need here."""
