"""AMD ZCU104: Zynq UltraScale+ ZU7EV with a 64-bit DDR4 memory."""

from vitral.targets.target import Dram, MemoryPort, Target

__all__ = ["ZCU104"]

ZCU104 = Target(
    name="zcu104",
    meaning="AXI4 high-performance port",
    board="AMD ZCU104",
    part="xczu7ev-ffvc1156-2-e",
    device="pynq",
    clock_mhz=200,
    port=MemoryPort(
        name="S_AXI_HP0_FPD",
        protocol="AXI4",
        data_bits=128,
        addr_bits=40,
        burst_beats=256,
    ),
    dram=Dram(kind="DDR4", nbytes=2 << 30, bits=64, rate=2133),
    registers=0xA000_0000,  # behind M_AXI_HPM0_FPD
    core={"mac_body": "packed16"},
)
