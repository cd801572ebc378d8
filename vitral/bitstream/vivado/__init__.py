"""Vivado: bitstreams of PYNQ-Z1, PYNQ-Z2, Ultra96 and ZCU104, as `Backend` tells."""

from vitral.bitstream.vivado.build import build, check_tool
from vitral.bitstream.vivado.project import TOOL, VERSION, plan

__all__ = ["TOOL", "VERSION", "build", "check_tool", "plan"]
