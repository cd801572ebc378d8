"""Cores by name: the simulated default, and one per supported board.

All have the default architecture, so a module compiled for one runs on every other; boards differ
in their memory port, and in how they make products: two per DSP48 on Xilinx devices.
"""

from dataclasses import dataclass

from vitral.config import CoreConfig
from vitral.errors import ConfigError

__all__ = ["TARGETS", "Target", "find_target", "target_config"]


@dataclass(frozen=True)
class Target:
    """A core and where it is meant to run; `part` is the FPGA's, "" for none."""

    name: str
    part: str
    meaning: str
    config: CoreConfig


_ZYNQ = CoreConfig(data_bits=64, burst_beats=16, mac_body="packed16")
_ULTRASCALE = CoreConfig(data_bits=128, burst_beats=256, addr_bits=40, mac_body="packed16")
_CYCLONE = CoreConfig(data_bits=64, burst_beats=16)

TARGETS: tuple[Target, ...] = (
    Target("sim", "", "simulators: fsim, tsim", CoreConfig()),
    Target("pynq-z1", "xc7z020clg400-1", "AXI3 high-performance port", _ZYNQ),
    Target("pynq-z2", "xc7z020clg400-1", "AXI3 high-performance port", _ZYNQ),
    Target("ultra96", "xczu3eg-sbva484-1-e", "AXI4 high-performance port", _ULTRASCALE),
    Target("zcu104", "xczu7ev-ffvc1156-2-e", "AXI4 high-performance port", _ULTRASCALE),
    Target("de10-nano", "5CSEBA6U23I7", "FPGA-to-SDRAM port, bursts of 16", _CYCLONE),
)


def find_target(name: str) -> Target:
    """The target of that name; ConfigError, with the names there are, when there is none."""
    for target in TARGETS:
        if target.name == name:
            return target
    raise ConfigError(f"no target {name!r}; known: {', '.join(t.name for t in TARGETS)}")


def target_config(name: str) -> CoreConfig:
    """The core of the target of that name; ConfigError when there is none."""
    return find_target(name).config
