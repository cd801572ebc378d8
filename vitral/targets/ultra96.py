"""Avnet Ultra96: Zynq UltraScale+ ZU3EG with a 32-bit LPDDR4 memory."""

from vitral.targets.target import Dram, MemoryPort, Target

__all__ = ["ULTRA96"]

ULTRA96 = Target(
    name="ultra96",
    meaning="AXI4 high-performance port",
    board="Avnet Ultra96",
    part="xczu3eg-sbva484-1-e",
    device="pynq",
    clock_mhz=150,
    port=MemoryPort(
        name="S_AXI_HP0_FPD",
        protocol="AXI4",
        data_bits=128,
        addr_bits=40,
        burst_beats=256,
    ),
    dram=Dram(kind="LPDDR4", nbytes=2 << 30, bits=32, rate=1066),
    registers=0xA000_0000,  # behind M_AXI_HPM0_FPD
    core={"mac_body": "packed16"},
)
