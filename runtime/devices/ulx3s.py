"""ULX3S: a core in an ECP5 without a processor, behind the board's USB serial port."""

import os

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.runtime.boards.device import COMMON_OPTIONS, BoardDevice
from vitral.runtime.boards.driver import WATCHDOG_CYCLES
from vitral.runtime.serial.board import SerialBoard
from vitral.runtime.serial.link import SerialLink
from vitral.runtime.serial.port import BAUD, SerialPort, open_port

__all__ = ["Ulx3sDevice"]


class Ulx3sDevice(BoardDevice):
    """A ULX3S with the project's bitstream, as `BoardDevice` with these options besides its own.

    Parameters
    ----------
    port : str or SerialPort
        Serial port by name, or an open one.
    baud : int
        Its rate, for a bitstream that was built with another one.

    Raises
    ------
    DeviceError
        When nobody answers there, or the bitstream holds another core.
    """

    name = "ulx3s"
    OPTIONS = ("port", "baud", *COMMON_OPTIONS)

    def __init__(
        self,
        config: CoreConfig,
        *,
        port: "str | SerialPort | None" = None,
        baud: int = BAUD,
        watchdog: int = WATCHDOG_CYCLES,
        axi_attributes: int | None = None,
        record: "str | os.PathLike[str] | None" = None,
    ) -> None:
        if port is None:
            raise DeviceError("ulx3s needs a serial port; give port=/dev/ttyUSB0, or what it is")
        opened = open_port(port, int(baud)) if isinstance(port, str) else port
        try:
            link = SerialLink(self.name, opened)
        except DeviceError:
            opened.close()
            raise
        super().__init__(
            config,
            SerialBoard(link),
            watchdog=watchdog,
            axi_attributes=axi_attributes,
            record=record,
        )
