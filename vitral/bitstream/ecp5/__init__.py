"""ECP5 boards by free tools from PyPI: yosys, nextpnr, ecppack."""

from vitral.bitstream.ecp5.build import build
from vitral.bitstream.ecp5.project import TOOL, VERSION, plan

__all__ = ["TOOL", "VERSION", "build", "plan"]
