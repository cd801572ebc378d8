"""Quartus Prime: bitstreams of DE10-Nano, as `Backend` tells."""

from vitral.bitstream.quartus.build import build, check_tool
from vitral.bitstream.quartus.project import TOOL, VERSION, plan

__all__ = ["TOOL", "VERSION", "build", "check_tool", "plan"]
