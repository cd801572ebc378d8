"""What must be right on a Cyclone V SoC before its FPGA may be talked to, and how to set it up."""

import shutil
from pathlib import Path

from vitral.errors import DeviceError
from vitral.runtime.boards.system import System

__all__ = ["MEMORY", "check_bridge", "check_sdram_ports", "check_state", "configure"]

MANAGERS = ("/sys/class/fpga_manager/fpga0/state", "/sys/class/fpga/fpga0/status")
"""State of the FPGA manager: Linux 4.4 and later, and the 3.x of older board images."""
READY = ("operating", "user mode")
OVERLAYS = "/sys/kernel/config/device-tree/overlays"
OVERLAY = "vitral"
FIRMWARE = "/lib/firmware"

BRIDGE_RESETS = 0xFFD0_501C
"""Reset manager, brgmodrst: 1 = in reset. Cyclone V HPS Technical Reference Manual."""
BRIDGES = {"hps2fpga": 0, "lwhps2fpga": 1, "fpga2hps": 2}
PORT_RESETS = 0xFFC2_5080
"""SDRAM controller, fpgaportrst: 1 = out of reset. Bits 3:0 are the read data ports, 7:4 the write
data ports, 13:8 the command ports. It must be set by the boot loader while nothing uses the
memory, so it is only read here."""
PORT_MASK = 0x3FFF
PAGE = 4096
MEMORY = "/dev/mem"
HINT = "run as root, or check once by hand and pass check_ports=False"


def check_state(system: System) -> None:
    """DeviceError unless the FPGA is configured and in use."""
    for path in MANAGERS:
        if system.exists(path):
            state = system.read(path)
            if state.lower() not in READY:
                raise DeviceError(
                    f"{system.path(path)}: the FPGA is in state {state!r}, needs {READY[0]!r};"
                    " configure it: pass bitstream=, or load the .rbf in U-Boot"
                )
            return
    raise DeviceError(f"{system.path(MANAGERS[0])}: no FPGA manager; is this a Cyclone V SoC?")


def check_bridge(system: System, name: str) -> None:
    """DeviceError when a bridge between processor and FPGA is in reset: any access would hang."""
    if _word(system, BRIDGE_RESETS) >> BRIDGES[name] & 1:
        raise DeviceError(
            f"bridge {name} is in reset (brgmodrst {BRIDGE_RESETS:#x}); enable it: 'bridge enable'"
            " in U-Boot, or an overlay that configures the FPGA with its bridges"
        )


def check_sdram_ports(system: System, needed: int) -> None:
    """DeviceError unless these ports of the SDRAM controller are out of reset."""
    state = _word(system, PORT_RESETS) & PORT_MASK
    if state & needed != needed:
        raise DeviceError(
            f"FPGA-to-SDRAM ports {state:#06x} are out of reset (fpgaportrst {PORT_RESETS:#x}),"
            f" needs {needed:#06x}; the core would hang: run 'bridge enable' in U-Boot with the"
            " FPGA configured, before Linux starts"
        )


def _word(system: System, address: int) -> int:
    window = system.registers(MEMORY, address - address % PAGE, PAGE, HINT)
    return window.read(address % PAGE)


def configure(system: System, bitstream: Path) -> None:
    """Configure the FPGA through a device-tree overlay, which also handles its bridges.

    The overlay (same name, ``.dtbo``) names the bitstream as its firmware.

    Raises
    ------
    DeviceError
        When there is no overlay or no way to apply it, or the kernel refuses it.
    """
    overlay = bitstream.with_suffix(".dtbo")
    if not overlay.is_file():
        raise DeviceError(f"{overlay}: no such file; the overlay must lie beside {bitstream.name}")
    if not system.exists(OVERLAYS):
        raise DeviceError(
            f"{system.path(OVERLAYS)}: this kernel has no overlays; mount configfs, or load"
            f" {bitstream.name} in U-Boot and leave bitstream= out"
        )
    for file in (bitstream, overlay):
        target = system.path(f"{FIRMWARE}/{file.name}")
        try:
            if not (target.exists() and target.samefile(file)):
                shutil.copyfile(file, target)
        except OSError as error:
            raise DeviceError(f"{target}: {(error.strerror or str(error)).lower()}") from None
    folder = f"{OVERLAYS}/{OVERLAY}"
    system.remove_folder(folder)
    system.make_folder(folder)
    system.write(f"{folder}/path", overlay.name)
    status = system.read(f"{folder}/status")
    if status != "applied":
        system.remove_folder(folder)
        raise DeviceError(f"{overlay.name}: the kernel says {status!r}; see dmesg")
