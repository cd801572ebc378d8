"""Digilent PYNQ-Z1: Zynq-7020 with a 16-bit DDR3 memory."""

from vitral.targets.target import Dram, MemoryPort, Target

__all__ = ["PYNQ_Z1"]

PYNQ_Z1 = Target(
    name="pynq-z1",
    meaning="AXI3 high-performance port",
    board="Digilent PYNQ-Z1",
    part="xc7z020clg400-1",
    device="pynq",
    clock_mhz=100,
    oscillator_mhz=50,  # PS_CLK
    port=MemoryPort(
        name="S_AXI_HP0",
        protocol="AXI3",
        data_bits=64,
        addr_bits=32,
        burst_beats=16,
    ),
    dram=Dram(kind="DDR3", nbytes=512 << 20, bits=16, rate=1050),
    registers=0x43C0_0000,  # behind M_AXI_GP0
    core={"mac_body": "packed16"},
)
