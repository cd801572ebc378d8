"""The two processing systems: names of their block's parameters, pins and address segments.

Sources: UG585 and UG1085 (technical reference manuals), PG082 and PG201 (the blocks).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vitral.errors import ConfigError
from vitral.targets import Target

__all__ = ["MemoryPin", "Processor", "memory_pin", "processor"]


@dataclass(frozen=True, kw_only=True)
class MemoryPin:
    """A port into memory: parameters that enable it, its clock's pin, its segment of DRAM.

    `clock` is for the block's pin; `segment` is relative to the block.
    """

    parameters: Mapping[str, object]
    clock: str
    segment: str


@dataclass(frozen=True, kw_only=True)
class Processor:
    """A processing system's block.

    `ip` is its name in the catalogue, `parameters` what is always set, `frequency` the
    parameter of the clock in MHz, `oscillator` that of the clock it is made from, `clock`,
    `reset` and `irq` pins, `master` the interface to registers with its clock's pin, `intc`
    where the interrupt controller goes, `externals` interfaces that become the design's own.
    """

    ip: str
    parameters: Mapping[str, object]
    frequency: str
    oscillator: str
    clock: str
    reset: str
    irq: str
    master: str
    master_clock: str
    intc: int
    externals: tuple[str, ...] = ()


_ZYNQ = Processor(
    ip="processing_system7",
    parameters={
        "PCW_USE_M_AXI_GP0": 1,
        "PCW_EN_CLK0_PORT": 1,
        "PCW_EN_RST0_PORT": 1,
        "PCW_USE_FABRIC_INTERRUPT": 1,
        "PCW_IRQ_F2P_INTR": 1,
    },
    frequency="PCW_FPGA0_PERIPHERAL_FREQMHZ",
    oscillator="PCW_CRYSTAL_PERIPHERAL_FREQMHZ",
    clock="FCLK_CLK0",
    reset="FCLK_RESET0_N",
    irq="IRQ_F2P",
    master="M_AXI_GP0",
    master_clock="M_AXI_GP0_ACLK",
    intc=0x4180_0000,
    externals=("DDR", "FIXED_IO"),
)
_ZYNQMP = Processor(
    ip="zynq_ultra_ps_e",
    parameters={
        "PSU__USE__M_AXI_GP0": 1,
        "PSU__MAXIGP0__DATA_WIDTH": 32,
        "PSU__USE__M_AXI_GP1": 0,
        "PSU__USE__M_AXI_GP2": 0,
        "PSU__FPGA_PL0_ENABLE": 1,
        "PSU__USE__IRQ0": 1,
    },
    frequency="PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ",
    oscillator="PSU__PSS_REF_CLK__FREQMHZ",
    clock="pl_clk0",
    reset="pl_resetn0",
    irq="pl_ps_irq0",
    master="M_AXI_HPM0_FPD",
    master_clock="maxihpm0_fpd_aclk",
    intc=0xA001_0000,
)


def processor(target: Target) -> Processor:
    """The processing system of a target's part.

    Raises
    ------
    ConfigError
        When the part is of another family.
    """
    for prefix, found in (("xc7z", _ZYNQ), ("xczu", _ZYNQMP)):
        if target.part.startswith(prefix):
            return found
    raise ConfigError(f"part {target.part!r} of {target.name}: needs a Zynq, xc7z... or xczu...")


def memory_pin(target: Target) -> MemoryPin:
    """The port that the target's memory goes through.

    Raises
    ------
    ConfigError
        When its processing system has no such port, or not of that width.
    """
    zynq = processor(target) is _ZYNQ
    pins = _zynq_pins(target.port.data_bits) if zynq else _zynqmp_pins(target.port.data_bits)
    pin = pins.get(target.port.name)
    if pin is None:
        raise ConfigError(
            f"{target.name}: no memory port {target.port.name!r}; {processor(target).ip} has"
            f" {', '.join(pins)}"
        )
    widths = (64,) if zynq else (64, 128)
    if target.port.data_bits not in widths:
        raise ConfigError(
            f"{target.name}: {target.port.name} of {target.port.data_bits} bits; has {widths}"
        )
    return pin


def _zynq_pins(bits: int) -> dict[str, MemoryPin]:
    pins = {
        f"S_AXI_HP{n}": MemoryPin(
            parameters={f"PCW_USE_S_AXI_HP{n}": 1, f"PCW_S_AXI_HP{n}_DATA_WIDTH": bits},
            clock=f"S_AXI_HP{n}_ACLK",
            segment=f"S_AXI_HP{n}/HP{n}_DDR_LOWOCM",
        )
        for n in range(4)
    }
    pins["S_AXI_ACP"] = MemoryPin(
        parameters={"PCW_USE_S_AXI_ACP": 1, "PCW_USE_DEFAULT_ACP_USER_VAL": 1},
        clock="S_AXI_ACP_ACLK",
        segment="S_AXI_ACP/ACP_DDR_LOWOCM",
    )
    return pins


def _zynqmp_pins(bits: int) -> dict[str, MemoryPin]:
    """HPC0 and HPC1 are slaves 0 and 1, HP0 to HP3 2 to 5."""
    names = ["HPC0", "HPC1", "HP0", "HP1", "HP2", "HP3"]
    return {
        f"S_AXI_{name}_FPD": MemoryPin(
            parameters={f"PSU__USE__S_AXI_GP{n}": 1, f"PSU__SAXIGP{n}__DATA_WIDTH": bits},
            clock=f"saxi{name.lower()}_fpd_aclk",
            segment=f"SAXIGP{n}/{name}_DDR_LOW",
        )
        for n, name in enumerate(names)
    }
