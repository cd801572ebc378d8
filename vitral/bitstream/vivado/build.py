"""Runs Vivado on a plan's folder and reads what it reports."""

import re
from pathlib import Path

from vitral.bitstream.manifest import Manifest
from vitral.bitstream.plan import Plan
from vitral.bitstream.result import manifest_of
from vitral.bitstream.tool import Tool, run_tool
from vitral.bitstream.vivado.project import TOOL, VERSION

__all__ = ["build", "check_tool"]

VIVADO = Tool(
    program=TOOL,
    product="Vivado",
    version=VERSION,
    variables=(("XILINX_VIVADO", "bin"),),
    folders=("/tools/Xilinx/Vivado/*/bin", "/opt/Xilinx/Vivado/*/bin"),
)
LOG = "vivado.log"
REPORT = "utilization.rpt"
RESOURCES = {
    "lut": ("Slice LUTs", "CLB LUTs"),
    "ff": ("Slice Registers", "CLB Registers"),
    "bram36": ("Block RAM Tile",),
    "dsp": ("DSPs",),
}
"""Rows of `report_utilization` by our names: of 7 series, and of UltraScale+ where it differs."""


def check_tool(target: str) -> None:
    """BitstreamError when the tool is absent."""
    VIVADO.find(target)


def build(plan: Plan, folder: Path) -> Manifest:
    """Build the bitstream in a folder that has the plan's files; its manifest lies beside it.

    Raises
    ------
    BitstreamError
        When Vivado is absent or fails, or the design misses its clock.
    """
    vivado = VIVADO.find(plan.target)
    options = ("-mode", "batch", "-notrace", "-nojournal", "-nolog")
    run_tool([str(vivado), *options, "-source", plan.script], folder, LOG)
    return manifest_of(plan, folder, REPORT, _resources)


def _resources(report: str) -> dict[str, int]:
    found = {}
    for name, rows in RESOURCES.items():
        for row in rows:
            match = re.search(rf"^\|\s*{row}\*?\s*\|\s*([\d.]+)", report, re.MULTILINE)
            if match:
                found[name] = round(float(match[1]))
                break
    return found
