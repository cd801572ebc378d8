"""Cores by name: the simulators' default, and one per board, each in a file of its own.

All but the smaller one for ULX3S have the default architecture, so a module compiled for one runs
on every other; they differ in their memory port, and in how they make products: two per DSP48 on
Xilinx devices.
"""

from vitral.config import CoreConfig
from vitral.errors import ConfigError
from vitral.targets.de10_nano import DE10_NANO
from vitral.targets.pynq_z1 import PYNQ_Z1
from vitral.targets.pynq_z2 import PYNQ_Z2
from vitral.targets.sim import SIM
from vitral.targets.target import Dram, MemoryPort, Target
from vitral.targets.ultra96 import ULTRA96
from vitral.targets.ulx3s_85f import ULX3S_85F
from vitral.targets.zcu104 import ZCU104

__all__ = ["TARGETS", "Dram", "MemoryPort", "Target", "find_target", "target_config"]

TARGETS: tuple[Target, ...] = (SIM, PYNQ_Z1, PYNQ_Z2, ULTRA96, ZCU104, DE10_NANO, ULX3S_85F)


def find_target(name: str) -> Target:
    """The target of that name; ConfigError, with the names there are, when there is none."""
    for target in TARGETS:
        if target.name == name:
            return target
    raise ConfigError(f"no target {name!r}; known: {', '.join(t.name for t in TARGETS)}")


def target_config(name: str) -> CoreConfig:
    """The core of the target of that name; ConfigError when there is none."""
    return find_target(name).config
