"""Turns what a vendor's tool left behind into a manifest."""

import json
from collections.abc import Callable
from pathlib import Path

from vitral.bitstream.manifest import Manifest, file_digest
from vitral.bitstream.plan import Plan
from vitral.errors import BitstreamError

__all__ = ["RESULT", "manifest_of"]

RESULT = "result.json"
"""What the scripts write: `tool_version`, and `slack_ns` of the worst path."""


def manifest_of(
    plan: Plan, folder: Path, report: str, resources: Callable[[str], dict[str, int]]
) -> Manifest:
    """The manifest of what a plan's script left in a folder; written beside the bitstream too.

    `report` is the file from whose text `resources` takes its numbers.

    Raises
    ------
    BitstreamError
        When something is not there, or the design misses its clock.
    """
    try:
        result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        version, slack = str(result["tool_version"]), float(result["slack_ns"])
        used = resources((folder / report).read_text(encoding="utf-8"))
        for product in plan.products[1:]:
            (folder / product).stat()
        sha256 = file_digest(folder / plan.products[0])
    except (OSError, ValueError, TypeError, KeyError) as error:
        text = " ".join(str(error).split())
        raise BitstreamError(f"{folder}: {plan.tool} left no usable result: {text}") from None
    if slack < 0:
        raise BitstreamError(
            f"{plan.target}: misses {plan.clock_mhz:g} MHz by {-slack:.3f} ns; lower clock_mhz of"
            f" the target, or see the timing reports in {folder}"
        )
    manifest = Manifest(
        target=plan.target,
        core=plan.config.digest,
        config=plan.config.to_dict(),
        tool=plan.tool,
        tool_version=version,
        part=plan.part,
        clock_mhz=plan.clock_mhz,
        build=f"vitral bitstream build --target {plan.target}",
        bitstream=plan.products[0],
        sha256=sha256,
        plan=plan.digest,
        fmax_mhz=round(1000 / (1000 / plan.clock_mhz - slack), 1),
        resources=used,
    )
    manifest.write((folder / plan.products[0]).with_suffix(".json"))
    return manifest
