"""The project folder: Platform Designer component and system, project, constraints, overlay."""

from collections.abc import Mapping

from vitral.bitstream.fusesoc import core_file
from vitral.bitstream.interfaces import CLOCK, IRQ, MASTER, RESET, SLAVE, Port, core_ports, members
from vitral.bitstream.plan import Plan
from vitral.bitstream.render import render
from vitral.config import CoreConfig
from vitral.errors import ConfigError
from vitral.registers import ADDRESS_BITS
from vitral.runtime.boards.bitfile import VLNV
from vitral.targets import Target

__all__ = ["NAME", "TOOL", "VERSION", "plan"]

TOOL = "quartus"
VERSION = "18.1"
NAME = "vitral"
SCRIPT = "build.tcl"
IP = "ip"
_, _, CORE, CORE_VERSION = VLNV.split(":")
SOURCE = f"{CORE}.v"
FAMILY = "Cyclone V"
PART_PREFIX = "5CSE"
OSCILLATOR_PIN = "PIN_V11"
"""FPGA_CLK1_50 of DE10-Nano."""
LIGHTWEIGHT = 0xFF20_0000
LIGHTWEIGHT_BYTES = 2 << 20
"""Where the processor sees the lightweight bridge (Cyclone V HPS Technical Reference Manual)."""
PORTS = ("f2h_sdram0", "f2h_sdram1", "f2h_sdram2")
PORT_TYPES = {"AXI3": "AXI-3"}
"""What the memory controller calls a port's protocol."""


def plan(target: Target, verilog: str) -> Plan:
    """The project for a target with a Cyclone V SoC.

    Raises
    ------
    ConfigError
        When the target's part, memory port or addresses do not fit the processor.
    """
    _check(target)
    assert target.clock_mhz is not None
    values = _values(target)
    files = {
        SCRIPT: _render("build.tcl", target=target.name, project=NAME, search=IP),
        "system.tcl": render("quartus/system.tcl", values),
        "report.tcl": _render("report.tcl", project=NAME),
        f"{NAME}.qpf": f'PROJECT_REVISION = "{NAME}"\n',
        f"{NAME}.qsf": _render(
            "vitral.qsf",
            family=FAMILY,
            part=target.part,
            sdc=f"{NAME}.sdc",
            oscillator_pin=OSCILLATOR_PIN,
        ),
        f"{NAME}.sdc": _render("vitral.sdc", period_ns=f"{1000 / _oscillator(target):.3f}"),
        f"{NAME}.dts": _render("vitral.dts", bitstream=f"{NAME}.rbf", project=NAME),
        f"{IP}/{CORE}_hw.tcl": component(target.config),
        f"{IP}/{SOURCE}": verilog,
        f"{NAME}.core": core_file(f"{IP}/{SOURCE}", target),
    }
    return Plan(
        target=target.name,
        config=target.config,
        tool=TOOL,
        version=VERSION,
        part=target.part,
        clock_mhz=target.clock_mhz,
        files=files,
        script=SCRIPT,
        products=(f"{NAME}.rbf",),
    )


def component(config: CoreConfig) -> str:
    """Text of the component's description (``_hw.tcl``): every port in its interface."""
    ports = core_ports(config)
    return _render(
        "vitral_core_hw.tcl",
        name=CORE,
        version=CORE_VERSION,
        top=CORE,
        source=SOURCE,
        clock=CLOCK,
        reset=RESET,
        irq=IRQ,
        slave=SLAVE,
        master=MASTER,
        slave_ports=_port_lines(SLAVE, members(ports, SLAVE)),
        master_ports=_port_lines(MASTER, members(ports, MASTER)),
        outstanding=config.outstanding,
        both_outstanding=2 * config.outstanding,
    )


def _render(template: str, /, **values: object) -> str:
    return render(f"quartus/{template}", values)


def _port_lines(bus: str, ports: Mapping[str, Port]) -> str:
    return "\n".join(
        f"add_interface_port {bus} {port.name} {role} {port.direction.capitalize()} {port.width}"
        for role, port in ports.items()
    )


def _check(target: Target) -> None:
    if not target.part.startswith(PART_PREFIX):
        raise ConfigError(
            f"part {target.part!r} of {target.name}: needs a Cyclone V SoC, {PART_PREFIX}..."
        )
    if target.clock_mhz is None or target.dram is None or target.oscillator_mhz is None:
        raise ConfigError(f"target {target.name} has no clock, oscillator or memory to build for")
    if target.port.name not in PORTS or target.port.protocol not in PORT_TYPES:
        raise ConfigError(
            f"{target.name}: no memory port {target.port.name!r} with {target.port.protocol}; the"
            f" processor has {', '.join(PORTS)} with {', '.join(PORT_TYPES)}"
        )
    last = LIGHTWEIGHT + LIGHTWEIGHT_BYTES - (1 << ADDRESS_BITS)
    if target.registers is None or not LIGHTWEIGHT <= target.registers <= last:
        raise ConfigError(
            f"{target.name}: registers at {target.registers or 0:#x}; the lightweight bridge has"
            f" {LIGHTWEIGHT:#x}..{last:#x}"
        )


def _oscillator(target: Target) -> float:
    assert target.oscillator_mhz is not None
    return target.oscillator_mhz


def _values(target: Target) -> dict[str, object]:
    """For the system; `PORTS` are numbered, and those before the one in use exist too."""
    assert target.dram is not None
    assert target.registers is not None
    count = PORTS.index(target.port.name) + 1
    return {
        "target": target.name,
        "family": FAMILY,
        "part": target.part,
        "oscillator_hz": round(_oscillator(target) * 1e6),
        "oscillator_mhz": float(_oscillator(target)),
        "clock_mhz": float(target.clock_mhz or 0),
        "port_type": " ".join([PORT_TYPES[target.port.protocol]] * count),
        "port_bits": " ".join([str(target.port.data_bits)] * count),
        "port": target.port.name,
        "dram_bits": target.dram.bits,
        "name": CORE,
        "clock": CLOCK,
        "reset": RESET,
        "slave": SLAVE,
        "master": MASTER,
        "irq": IRQ,
        "core_offset": f"0x{target.registers - LIGHTWEIGHT:08X}",
        "dram_offset": f"0x{target.port.offset:08X}",
    }
