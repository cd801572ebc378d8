"""DE10-Nano: the core behind the bridges of a Cyclone V SoC, reached through Linux's files."""

import os
from pathlib import Path

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.registers import ADDRESS_BITS, MAGIC, register
from vitral.runtime.boards.bitfile import check_manifest, need_file
from vitral.runtime.boards.cyclone import (
    MEMORY,
    check_bridge,
    check_sdram_ports,
    check_state,
    configure,
)
from vitral.runtime.boards.device import COMMON_OPTIONS, BoardDevice
from vitral.runtime.boards.driver import WATCHDOG_CYCLES
from vitral.runtime.boards.interfaces import Interrupt, RegisterWindow, SharedMemory
from vitral.runtime.boards.mapped import MappedMemory
from vitral.runtime.boards.system import ROOT_HINT, System
from vitral.runtime.boards.udmabuf import Udmabuf
from vitral.runtime.boards.uio import UioInterrupt, find_uio
from vitral.targets.de10_nano import DE10_NANO

__all__ = ["Cyclone5Board", "De10NanoDevice"]

REGISTERS = f"{DE10_NANO.registers:#x}"
"""Physical address of the core's registers in the bitstream of this target."""
WINDOW_BYTES = 1 << ADDRESS_BITS
LINE_BYTES = 32
SDRAM_PORTS = 0x0311
"""Ports of the SDRAM controller that its first AXI port is made of: read data 0, write data 0,
commands 0 and 1."""
ACP_OFFSET = 0x8000_0000
"""Where the FPGA sees memory through the processor's coherency port."""
ACP_ATTRIBUTES = (
    register("axi_attributes")["arcache"].insert(0xF)
    | register("axi_attributes")["awcache"].insert(0xF)
    | register("axi_attributes")["user"].insert(1)
)
"""Cacheable and shared, which the coherency port needs."""
PORTS = ("f2sdram", "acp")


class Cyclone5Board:
    """The board of `vitral.runtime.boards.interfaces`, from Linux's files.

    Parameters
    ----------
    system : System
        The files.
    registers : str
        Physical address of the core's registers (through /dev/mem), or a UIO device by name or
        number, whose interrupt is then used too.
    memory : str
        A u-dma-buf buffer, or ``address:bytes`` of memory that Linux was told to leave alone.
    port : str
        How the core reaches memory: "f2sdram", or "acp".
    check_ports : bool
        Whether bridges and ports are checked through /dev/mem before they are used.

    Raises
    ------
    DeviceError
        When something is missing, in reset, or not allowed.
    """

    name = "de10-nano"

    def __init__(
        self, system: System, *, registers: str, memory: str, port: str, check_ports: bool
    ) -> None:
        if port not in PORTS:
            raise DeviceError(f"port must be {' or '.join(PORTS)}, got {port!r}")
        self._system = system
        self._memory = memory
        self._coherent = port == "acp"
        check_state(system)
        if check_ports:
            check_bridge(system, "lwhps2fpga")
            if self._coherent:
                check_bridge(system, "fpga2hps")
            else:
                check_sdram_ports(system, SDRAM_PORTS)
        self.interrupt: Interrupt | None = None
        self.registers = self._open_registers(registers)

    def _open_registers(self, where: str) -> RegisterWindow:
        address = _number(where)
        if address is None:
            device = find_uio(self._system, where)
            path, offset = f"/dev/{device}", 0
        else:
            device, path, offset = "", MEMORY, address
        hint = f"{ROOT_HINT}, and name a UIO device (registers=)"
        window = self._system.registers(path, offset, WINDOW_BYTES, hint)
        found = self._system.probe(path, offset + register("id").offset)
        if found != MAGIC:
            raise DeviceError(
                f"{self.name}: {path} reads {found:#010x} at {offset:#x}, needs {MAGIC:#010x}: no"
                " Vitral core there; check the bitstream and registers="
            )
        if device:
            self.interrupt = UioInterrupt(self._system, device)
        return window

    def allocate(self, nbytes: int) -> SharedMemory:
        address, colon, size = self._memory.partition(":")
        shift = ACP_OFFSET if self._coherent else 0
        if not colon:
            buffer = Udmabuf(self._system, self._memory)
            buffer.coherent |= self._coherent
            return buffer.map(nbytes, address_offset=shift, line_bytes=LINE_BYTES)
        base, free = _number(address), _number(size)
        if base is None or free is None:
            raise DeviceError(f"memory must be a u-dma-buf or address:bytes, got {self._memory!r}")
        if nbytes > free:
            raise DeviceError(
                f"{self.name}: needs {nbytes} bytes, the reserved region has {free}; reserve more"
            )
        mapping = self._system.map(MEMORY, base, nbytes, uncached=True)
        return MappedMemory(mapping, base + shift)

    def close(self) -> None:
        if self.interrupt is not None:
            self.interrupt.close()


class De10NanoDevice(BoardDevice):
    """A DE10-Nano, as `BoardDevice` with these options besides its own.

    Parameters
    ----------
    bitstream : path or None
        .rbf to configure the FPGA with, its .dtbo beside; None when it is configured already.
    registers, memory, port, check_ports
        See `Cyclone5Board`.
    root : path
        Folder that stands for ``/``.
    """

    name = "de10-nano"
    OPTIONS = (
        *("bitstream", "registers", "memory", "port", "check_ports", "root"),
        *COMMON_OPTIONS,
    )

    def __init__(
        self,
        config: CoreConfig,
        *,
        bitstream: "str | os.PathLike[str] | None" = None,
        registers: str = REGISTERS,
        memory: str = "udmabuf0",
        port: str = "f2sdram",
        check_ports: bool = True,
        root: "str | os.PathLike[str] | System" = "/",
        watchdog: int = WATCHDOG_CYCLES,
        axi_attributes: int | None = None,
        record: "str | os.PathLike[str] | None" = None,
    ) -> None:
        system = root if isinstance(root, System) else System(root)
        if bitstream is not None:
            path = need_file(Path(bitstream), "build it, or copy it to the board")
            check_manifest(path, config)
            configure(system, path)
        board = Cyclone5Board(
            system, registers=registers, memory=memory, port=port, check_ports=check_ports
        )
        if axi_attributes is None and port == "acp":
            axi_attributes = ACP_ATTRIBUTES
        super().__init__(
            config, board, watchdog=watchdog, axi_attributes=axi_attributes, record=record
        )


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
