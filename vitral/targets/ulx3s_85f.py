"""Radiona ULX3S: ECP5 without a processor; a smaller core with on-chip memory behind its port.

The LFE5U-85F has 208 block RAMs of 18 Kbit and 156 multipliers; the core takes 64 products per
cycle and about 160 KiB, and leaves room for 64 KiB of program and data. Two lanes of the
requantiser save multipliers and keep paths short.
"""

from vitral.targets.target import MemoryPort, Target

__all__ = ["ULX3S_85F"]

ULX3S_85F = Target(
    name="ulx3s-85f",
    meaning="on-chip memory, loaded by a bridge; smaller core",
    board="Radiona ULX3S 85F",
    part="LFE5U-85F-6BG381C",
    device="ulx3s",
    clock_mhz=50,
    port=MemoryPort(
        name="on-chip RAM",
        protocol="AXI4",
        data_bits=64,
        addr_bits=32,
        burst_beats=16,
    ),
    core={
        "block": 8,
        "uop_buffer": 16 << 10,
        "inp_buffer": 16 << 10,
        "wgt_buffer": 64 << 10,
        "acc_buffer": 64 << 10,
        "param_depth": 32,
        "queue_depth": 64,
        "requant_lanes": 2,
    },
)
