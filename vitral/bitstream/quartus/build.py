"""Runs Quartus on a plan's folder and reads what it reports."""

import re
from pathlib import Path

from vitral.bitstream.manifest import Manifest
from vitral.bitstream.plan import Plan
from vitral.bitstream.quartus.project import NAME, VERSION
from vitral.bitstream.result import manifest_of
from vitral.bitstream.tool import Tool, run_tool

__all__ = ["build", "check_tool"]

QUARTUS = Tool(
    program="quartus_sh",
    product="Quartus Prime",
    version=VERSION,
    variables=(("QUARTUS_ROOTDIR", "bin"),),
    folders=(
        "/opt/intelFPGA*/*/quartus/bin",
        "/opt/altera*/*/quartus/bin",
        "~/intelFPGA*/*/quartus/bin",
    ),
)
LOG = "quartus.log"
RESOURCES = {
    "alm": r"Logic utilization \(in ALMs\)",
    "ff": "Total registers",
    "m10k": "Total RAM Blocks",
    "dsp": "Total DSP Blocks",
}
"""Rows of the fitter's summary by our names."""


def check_tool(target: str) -> None:
    """BitstreamError when the tool is absent."""
    QUARTUS.find(target)


def build(plan: Plan, folder: Path) -> Manifest:
    """Build the bitstream in a folder that has the plan's files; its manifest lies beside it.

    Raises
    ------
    BitstreamError
        When Quartus is absent or fails, or the design misses its clock.
    """
    quartus = QUARTUS.find(plan.target)
    run_tool([str(quartus), "-t", plan.script], folder, LOG)
    return manifest_of(plan, folder, f"output/{NAME}.fit.summary", _resources)


def _resources(report: str) -> dict[str, int]:
    found = {}
    for name, row in RESOURCES.items():
        match = re.search(rf"^{row} : ([\d,]+)", report, re.MULTILINE)
        if match:
            found[name] = int(match[1].replace(",", ""))
    return found
