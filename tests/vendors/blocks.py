"""Xilinx's blocks as far as scripts here may use them: parameters, pins, interfaces, segments.

From the product guides: processing_system7 (PG082), zynq_ultra_ps_e (PG201), axi_interconnect
(PG059), axi_intc (PG099), proc_sys_reset (PG164).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vendors.ipxact import Component
from vendors.tcl import Refused

__all__ = ["BLOCKS", "Block", "Shape", "of_component"]

GB2 = 2 << 30


@dataclass
class Shape:
    """A cell as its parameters make it.

    `pins` are (direction, kind, needed); `buses` (role, clock pin, protocol, data bits);
    `segments` (bus, largest range); `spaces` bus by address space.
    """

    pins: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    buses: dict[str, tuple[str, str, str, int]] = field(default_factory=dict)
    segments: dict[str, tuple[str, int]] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)
    externals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A block of the catalogue: default and legal values of parameters, and its shape."""

    vlnv: str
    parameters: Mapping[str, tuple[str, Callable[[str], bool]]]
    shape: Callable[[Mapping[str, str]], Shape]

    def check(self, name: str, value: str) -> None:
        if name not in self.parameters:
            raise Refused(f"{self.vlnv} has no parameter {name}")
        if not self.parameters[name][1](value):
            raise Refused(f"{name} cannot be {value!r}")


def _flag(default: str) -> tuple[str, Callable[[str], bool]]:
    return default, lambda value: value in ("0", "1")


def _one_of(default: str, *values: str) -> tuple[str, Callable[[str], bool]]:
    return default, lambda value: value in values


def _between(default: str, low: float, high: float) -> tuple[str, Callable[[str], bool]]:
    return default, lambda value: low <= float(value) <= high


def _zynq(values: Mapping[str, str]) -> Shape:
    shape = Shape(externals=("DDR", "FIXED_IO"))
    on = {name for name, value in values.items() if value == "1"}
    if "PCW_EN_CLK0_PORT" in on:
        shape.pins["FCLK_CLK0"] = ("out", "clock", False)
    if "PCW_EN_RST0_PORT" in on:
        shape.pins["FCLK_RESET0_N"] = ("out", "reset", False)
    if {"PCW_USE_FABRIC_INTERRUPT", "PCW_IRQ_F2P_INTR"} <= on:
        shape.pins["IRQ_F2P"] = ("in", "interrupt", True)
    if "PCW_USE_M_AXI_GP0" in on:
        shape.pins["M_AXI_GP0_ACLK"] = ("in", "clock", True)
        shape.buses["M_AXI_GP0"] = ("master", "M_AXI_GP0_ACLK", "AXI3", 32)
        shape.spaces["Data"] = "M_AXI_GP0"
    for n in range(4):
        if f"PCW_USE_S_AXI_HP{n}" in on:
            port = f"S_AXI_HP{n}"
            shape.pins[f"{port}_ACLK"] = ("in", "clock", True)
            width = int(values[f"PCW_{port}_DATA_WIDTH"])
            shape.buses[port] = ("slave", f"{port}_ACLK", "AXI3", width)
            shape.segments[f"{port}/HP{n}_DDR_LOWOCM"] = (port, 1 << 30)
    if "PCW_USE_S_AXI_ACP" in on:
        shape.pins["S_AXI_ACP_ACLK"] = ("in", "clock", True)
        shape.buses["S_AXI_ACP"] = ("slave", "S_AXI_ACP_ACLK", "AXI3", 64)
        shape.segments["S_AXI_ACP/ACP_DDR_LOWOCM"] = ("S_AXI_ACP", 1 << 30)
    return shape


MP_SLAVES = ("HPC0", "HPC1", "HP0", "HP1", "HP2", "HP3")
MP_MASTERS = (
    ("HPM0_FPD", "maxihpm0_fpd"),
    ("HPM1_FPD", "maxihpm1_fpd"),
    ("HPM0_LPD", "maxihpm0_lpd"),
)


def _zynqmp(values: Mapping[str, str]) -> Shape:
    shape = Shape()
    on = {name for name, value in values.items() if value == "1"}
    if "PSU__FPGA_PL0_ENABLE" in on:
        shape.pins["pl_clk0"] = ("out", "clock", False)
        shape.pins["pl_resetn0"] = ("out", "reset", False)
    if "PSU__USE__IRQ0" in on:
        shape.pins["pl_ps_irq0"] = ("in", "interrupt", True)
    for n, (name, clock) in enumerate(MP_MASTERS):
        if f"PSU__USE__M_AXI_GP{n}" in on:
            shape.pins[f"{clock}_aclk"] = ("in", "clock", True)
            width = int(values[f"PSU__MAXIGP{n}__DATA_WIDTH"])
            shape.buses[f"M_AXI_{name}"] = ("master", f"{clock}_aclk", "AXI4", width)
            shape.spaces["Data"] = f"M_AXI_{name}"
    for n, name in enumerate(MP_SLAVES):
        if f"PSU__USE__S_AXI_GP{n}" in on:
            port, clock = f"S_AXI_{name}_FPD", f"saxi{name.lower()}_fpd_aclk"
            shape.pins[clock] = ("in", "clock", True)
            shape.buses[port] = ("slave", clock, "AXI4", int(values[f"PSU__SAXIGP{n}__DATA_WIDTH"]))
            shape.segments[f"SAXIGP{n}/{name}_DDR_LOW"] = (port, GB2)
    return shape


def _interconnect(values: Mapping[str, str]) -> Shape:
    shape = Shape()
    ends = {"S": ("slave", int(values["NUM_SI"])), "M": ("master", int(values["NUM_MI"]))}
    shape.pins |= {"ACLK": ("in", "clock", True), "ARESETN": ("in", "reset", True)}
    for letter, (role, count) in ends.items():
        for n in range(count):
            port = f"{letter}{n:02}"
            shape.pins[f"{port}_ACLK"] = ("in", "clock", True)
            shape.pins[f"{port}_ARESETN"] = ("in", "reset", True)
            shape.buses[f"{port}_AXI"] = (role, f"{port}_ACLK", "any", 0)
    return shape


def _intc(values: Mapping[str, str]) -> Shape:
    shape = Shape(
        pins={
            "s_axi_aclk": ("in", "clock", True),
            "s_axi_aresetn": ("in", "reset", True),
            "intr": ("in", "interrupt", True),
        },
        buses={"s_axi": ("slave", "s_axi_aclk", "AXI4LITE", 32)},
        segments={"S_AXI/Reg": ("s_axi", 1 << 16)},
    )
    if values["C_IRQ_CONNECTION"] == "1":  # else `interrupt` is an interface, not a pin
        shape.pins["irq"] = ("out", "interrupt", False)
    return shape


def _reset(values: Mapping[str, str]) -> Shape:
    return Shape(
        pins={
            "slowest_sync_clk": ("in", "clock", True),
            "ext_reset_in": ("in", "reset", True),
            "aux_reset_in": ("in", "reset", False),
            "mb_debug_sys_rst": ("in", "reset", False),
            "dcm_locked": ("in", "other", False),
            "mb_reset": ("out", "reset high", False),
            "bus_struct_reset": ("out", "reset high", False),
            "peripheral_reset": ("out", "reset high", False),
            "interconnect_aresetn": ("out", "reset", False),
            "peripheral_aresetn": ("out", "reset", False),
        }
    )


_ZYNQ_PARAMETERS = {
    "PCW_USE_M_AXI_GP0": _flag("1"),
    "PCW_EN_CLK0_PORT": _flag("1"),
    "PCW_EN_RST0_PORT": _flag("1"),
    "PCW_USE_FABRIC_INTERRUPT": _flag("0"),
    "PCW_IRQ_F2P_INTR": _flag("0"),
    "PCW_FPGA0_PERIPHERAL_FREQMHZ": _between("50", 0.1, 250),
    "PCW_CRYSTAL_PERIPHERAL_FREQMHZ": _between("33.333333", 30, 60),
    "PCW_USE_S_AXI_ACP": _flag("0"),
    "PCW_USE_DEFAULT_ACP_USER_VAL": _flag("0"),
    **{f"PCW_USE_S_AXI_HP{n}": _flag("0") for n in range(4)},
    **{f"PCW_S_AXI_HP{n}_DATA_WIDTH": _one_of("64", "32", "64") for n in range(4)},
}
_WIDTHS = _one_of("128", "32", "64", "128")
_ZYNQMP_PARAMETERS = {
    "PSU__FPGA_PL0_ENABLE": _flag("1"),
    "PSU__USE__IRQ0": _flag("1"),
    "PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ": _between("100", 1, 400),
    "PSU__PSS_REF_CLK__FREQMHZ": _between("33.333", 27, 60),
    **{f"PSU__USE__M_AXI_GP{n}": _flag("1" if n < 2 else "0") for n in range(3)},
    **{f"PSU__MAXIGP{n}__DATA_WIDTH": _WIDTHS for n in range(3)},
    **{f"PSU__USE__S_AXI_GP{n}": _flag("0") for n in range(7)},
    **{f"PSU__SAXIGP{n}__DATA_WIDTH": _WIDTHS for n in range(7)},
}
_COUNT = _between("1", 1, 16)

BLOCKS = {
    block.vlnv.split(":")[2]: block
    for block in (
        Block("xilinx.com:ip:processing_system7:5.5", _ZYNQ_PARAMETERS, _zynq),
        Block("xilinx.com:ip:zynq_ultra_ps_e:3.4", _ZYNQMP_PARAMETERS, _zynqmp),
        Block(
            "xilinx.com:ip:axi_interconnect:2.1",
            {"NUM_SI": _COUNT, "NUM_MI": ("2", _COUNT[1])},
            _interconnect,
        ),
        Block("xilinx.com:ip:axi_intc:4.1", {"C_IRQ_CONNECTION": _flag("0")}, _intc),
        Block("xilinx.com:ip:proc_sys_reset:5.0", {}, _reset),
    )
}
FAMILIES = {"processing_system7": "xc7z", "zynq_ultra_ps_e": "xczu"}


def of_component(component: Component) -> Block:
    """A packaged block, as the catalogue takes it from its component.xml."""
    shape = Shape()
    clock = ""
    for name, bus in component.interfaces.items():
        kind = bus.kind.rpartition(":")[2]
        if kind == "aximm":
            continue
        (port,) = bus.ports.values()
        direction = component.ports[port][0]
        shape.pins[port] = (direction, kind, direction == "in")
        if kind == "clock":
            clock = port
            if component.ports.get(bus.parameters["ASSOCIATED_RESET"]) is None:
                raise Refused(f"clock {name}: no reset {bus.parameters['ASSOCIATED_RESET']}")
        if kind == "reset" and bus.parameters["POLARITY"] != "ACTIVE_LOW":
            raise Refused(f"reset {name} is {bus.parameters['POLARITY']}")
    for name, bus in component.interfaces.items():
        if bus.kind.endswith(":aximm"):
            width = component.ports[bus.ports["WDATA"]][1]
            shape.buses[name] = (bus.role, clock, bus.parameters["PROTOCOL"], width)
    for name, size in component.segments.items():
        shape.segments[name] = (name.split("/")[0], size)
    shape.spaces = {name: name for name in component.spaces}
    return Block(component.vlnv, {}, lambda values: shape)
