"""Radiona ULX3S: ECP5 without a processor; a smaller core with on-chip memory behind its port.

The LFE5U-85F has 208 block RAMs of 18 Kbit and 156 multipliers; the core takes 64 products per
cycle, and leaves 64 KiB for program and data. Memories that long paths begin at (ACC, UOP, queues)
have so few rows that they are made of LUTs, which answer 5 ns sooner than block RAMs.
"""

from vitral.targets.target import MemoryPort, Target

__all__ = ["ULX3S_85F"]

ULX3S_85F = Target(
    name="ulx3s-85f",
    meaning="on-chip memory, loaded by a bridge; smaller core",
    board="Radiona ULX3S 85F",
    part="LFE5U-85F-6BG381C",
    device="ulx3s",
    clock_mhz=25,
    port=MemoryPort(
        name="on-chip RAM",
        protocol="AXI4",
        data_bits=64,
        addr_bits=32,
        burst_beats=16,
    ),
    core={
        "block": 8,
        "uop_buffer": 256,
        "inp_buffer": 8 << 10,
        "wgt_buffer": 32 << 10,
        "acc_buffer": 4 << 10,
        "param_depth": 16,
        "queue_depth": 32,
        "token_capacity": 31,
        "requant_lanes": 2,
    },
)
