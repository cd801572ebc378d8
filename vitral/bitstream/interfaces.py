"""The core's ports, sorted into the interfaces that vendors' tools connect.

Names and widths are taken from the ports of the Verilog (`vitral.hw.verilog.port_list`); nothing
here repeats them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from vitral.config import CoreConfig

__all__ = ["CLOCK", "IRQ", "MASTER", "RESET", "SLAVE", "Port", "core_ports", "members"]

CLOCK = "aclk"
RESET = "aresetn"
IRQ = "irq"
SLAVE = "s_axi"
"""AXI4-Lite, the registers."""
MASTER = "m_axi"
"""AXI4, memory."""


@dataclass(frozen=True)
class Port:
    """A port of the core's Verilog: "input" or "output", name, bits."""

    direction: str
    name: str
    width: int


@cache
def core_ports(config: CoreConfig) -> tuple[Port, ...]:
    """All ports, in the order of the Verilog."""
    from vitral.hw.verilog import port_list

    return tuple(Port(*entry) for entry in port_list(config))


def members(ports: Sequence[Port], bus: str) -> dict[str, Port]:
    """The ports of a bus by their names in the AXI specification, in lower case."""
    return {port.name[len(bus) + 1 :]: port for port in ports if port.name.startswith(f"{bus}_")}
