"""The project folder: packaged core, block design script, FuseSoC core file."""

from vitral.bitstream.fusesoc import core_file
from vitral.bitstream.ipxact import ADDRESS_SPACE, MEMORY_MAP, REGISTER_BLOCK, component
from vitral.bitstream.plan import Plan
from vitral.bitstream.render import render
from vitral.bitstream.vivado.processors import MemoryPin, Processor, memory_pin, processor
from vitral.errors import ConfigError
from vitral.registers import ADDRESS_BITS
from vitral.runtime.boards.bitfile import VLNV
from vitral.targets import Target

__all__ = ["NAME", "TOOL", "VERSION", "plan"]

TOOL = "vivado"
VERSION = "2022.1"
"""That of PYNQ's images 3.0; the script asks the catalogue for the newest of each block."""
NAME = "vitral"
SCRIPT = "build.tcl"
IP = "ip/vitral_core"
SOURCE = "src/vitral_core.v"
INTC_BYTES = 1 << 16


def plan(target: Target, verilog: str) -> Plan:
    """The project for a target with a Zynq.

    Raises
    ------
    ConfigError
        When the target's memory port, part or addresses do not fit the processing system.
    """
    system, pin = processor(target), memory_pin(target)
    if target.clock_mhz is None or target.registers is None or target.dram is None:
        raise ConfigError(f"target {target.name} has no clock, registers or memory to build for")
    files = {
        SCRIPT: render("vivado/build.tcl", _values(target, system, pin)),
        f"{IP}/component.xml": component(target.config, SOURCE),
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
        products=(f"{NAME}.bit", f"{NAME}.hwh"),
    )


def _values(target: Target, system: Processor, pin: MemoryPin) -> dict[str, object]:
    assert target.registers is not None
    assert target.dram is not None
    parameters = {**system.parameters, **pin.parameters, system.frequency: target.clock_mhz}
    if target.oscillator_mhz is not None:
        parameters[system.oscillator] = target.oscillator_mhz
    lines = [f"  CONFIG.{name} {value} \\" for name, value in parameters.items()]
    externals = [f"make_bd_intf_pins_external [get_bd_intf_pins ps/{n}]" for n in system.externals]
    return {
        "target": target.name,
        "name": NAME,
        "part": target.part,
        "vlnv": VLNV,
        "ps_ip": system.ip,
        "ps_parameters": "\n".join(lines),
        "ps_externals": "\n".join(externals),
        "ps_clock": system.clock,
        "ps_reset": system.reset,
        "ps_irq": system.irq,
        "ps_master": system.master,
        "ps_master_clock": system.master_clock,
        "ps_slave": target.port.name,
        "ps_slave_clock": pin.clock,
        "ps_segment": pin.segment,
        "core_segment": f"{MEMORY_MAP}/{REGISTER_BLOCK}",
        "core_space": ADDRESS_SPACE,
        "core_address": f"0x{target.registers:08X}",
        "core_bytes": 1 << ADDRESS_BITS,
        "intc_address": f"0x{system.intc:08X}",
        "intc_bytes": INTC_BYTES,
        "dram_address": f"0x{target.port.offset:08X}",
        "dram_bytes": target.dram.nbytes,
    }
