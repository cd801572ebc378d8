"""Quartus Prime: bitstreams of DE10-Nano, as `Backend` tells."""

from vitral.bitstream.quartus.build import build
from vitral.bitstream.quartus.project import TOOL, VERSION, plan

__all__ = ["TOOL", "VERSION", "build", "plan"]
