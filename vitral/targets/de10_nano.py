"""Terasic DE10-Nano: Cyclone V SE with a 32-bit DDR3 memory.

Of the device's 112 DSP blocks the multiplier array takes 86, the ALU 10; docs/area.md
counts what is left for the requantiser.
"""

from vitral.targets.target import Dram, MemoryPort, Target

__all__ = ["DE10_NANO"]

DE10_NANO = Target(
    name="de10-nano",
    meaning="FPGA-to-SDRAM port, bursts of 16",
    board="Terasic DE10-Nano",
    part="5CSEBA6U23I7",
    device="de10-nano",
    clock_mhz=100,
    oscillator_mhz=50,  # FPGA_CLK1_50
    port=MemoryPort(
        name="f2h_sdram0",
        protocol="AXI3",
        data_bits=64,
        addr_bits=32,
        burst_beats=16,
    ),
    dram=Dram(kind="DDR3", nbytes=1 << 30, bits=32, rate=800),
    registers=0xFF20_0000,  # behind the lightweight bridge
    core={"requant_lanes": 2},
)
