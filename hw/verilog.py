"""Writes the core as one Verilog file, or as the netlist that Verilog is made from."""

import re

from amaranth import ClockDomain, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.back import rtlil, verilog
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vitral.config import CoreConfig
from vitral.hw.core.core import Core, core_signature

__all__ = ["TOP_NAME", "connect_clock", "emit", "emit_rtlil", "port_list", "verilog_text"]

TOP_NAME = "vitral_core"

_MEMORY_INIT = re.compile(r"^  initial begin\n(?:    \S+\[\d+\] = \d+'[a-z]\d+;\n)+  end\n", re.M)


def _flat_members(config: CoreConfig) -> dict[str, wiring.Member]:
    """`aclk`, `aresetn`, and the core's ports under the names of the Verilog."""
    members: dict[str, wiring.Member] = {"aclk": In(1), "aresetn": In(1)}
    for path, member in core_signature(config).members.flatten():
        if member.is_port:
            members["_".join(map(str, path))] = member
    return members


def connect_clock(m: Module, aclk: Value, aresetn: Value) -> None:
    """Drive the design's clock from `aclk`, and its reset from active-low `aresetn`, a cycle late.

    The reset has to reach every register, and in a simulation a reset straight from a port would
    make all logic depend on an input.
    """
    m.domains.sync = ClockDomain()
    m.domains.unreset = ClockDomain(reset_less=True)
    reset = Signal(init=1)
    m.d.unreset += reset.eq(~aresetn)
    m.d.comb += [
        ClockSignal().eq(aclk),
        ClockSignal("unreset").eq(aclk),
        ResetSignal().eq(reset),
    ]


class _Top(wiring.Component):
    """A `Core` with flat ports (``m_axi_awaddr``), clock `aclk` and active-low `aresetn`."""

    def __init__(self, config: CoreConfig) -> None:
        self._core = Core(config)
        super().__init__(_flat_members(config))

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self._core
        connect_clock(m, self.aclk, self.aresetn)
        for path, member, inner in core.signature.flatten(core):
            outer = getattr(self, "_".join(map(str, path)))
            if member.flow == wiring.In:
                m.d.comb += inner.eq(outer)
            else:
                m.d.comb += outer.eq(inner)
        return m


def emit(config: CoreConfig) -> str:
    """Verilog text of the core; top module `vitral_core`. Equal configurations give equal text."""
    body = verilog_text(_Top(config), TOP_NAME)
    _, _, body = body.partition("\n")  # the first line names the tool's version
    settings = " ".join(f"{name}={value}" for name, value in config.to_dict().items())
    return (
        "// Vitral accelerator core. Generated; do not edit.\n"
        f"// {settings}\n"
        f"// digest {config.digest}\n"
        f"{body}"
    )


def verilog_text(top: wiring.Component, name: str) -> str:
    """Verilog of a design, without the lines, one per row, that set memories to 0: nothing
    depends on them."""
    text = verilog.convert(top, name=name, emit_src=False, strip_internal_attrs=True)
    return _MEMORY_INIT.sub("", text)


def emit_rtlil(config: CoreConfig) -> str:
    """RTLIL text of the core: the netlist from which yosys writes the Verilog of `emit`."""
    return rtlil.convert(_Top(config), name=TOP_NAME, emit_src=False)


def port_list(config: CoreConfig) -> list[tuple[str, str, int]]:
    """(direction, name, width in bits) of every port of the Verilog, clock and reset first."""
    ports = []
    for name, member in _flat_members(config).items():
        direction = "input" if member.flow == wiring.In else "output"
        ports.append((direction, name, _width(member)))
    return ports


def _width(member: wiring.Member) -> int:
    return member.shape if isinstance(member.shape, int) else member.shape.width
