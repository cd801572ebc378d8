"""The simulators."""

from vitral.config import CoreConfig
from vitral.targets.target import MemoryPort, Target

__all__ = ["SIM"]

_DEFAULT = CoreConfig()

SIM = Target(
    name="sim",
    meaning="simulators: fsim, tsim",
    device="tsim",
    port=MemoryPort(
        name="m_axi",
        protocol="AXI4",
        data_bits=_DEFAULT.data_bits,
        addr_bits=_DEFAULT.addr_bits,
        burst_beats=_DEFAULT.burst_beats,
    ),
)
