"""A Vivado that takes the commands of a batch script, keeps the block design, and checks it.

Run as a program it is `vivado -mode batch ... -source FILE`.
"""

import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from vendors.blocks import BLOCKS, of_component
from vendors.design import BlockDesign
from vendors.ipxact import read_component
from vendors.tcl import Refused, Tcl, flags

__all__ = ["Vivado"]

PARTS = ("xc7z020clg400-1", "xczu3eg-sbva484-1-e", "xczu7ev-ffvc1156-2-e")
COMMANDS = (
    *("create_project", "current_project", "set_property", "update_ip_catalog", "get_ipdefs"),
    *("create_bd_design", "create_bd_cell", "get_bd_cells", "get_bd_pins", "get_bd_intf_pins"),
    *("connect_bd_net", "connect_bd_intf_net", "make_bd_intf_pins_external"),
    *("get_bd_addr_spaces", "get_bd_addr_segs", "assign_bd_address"),
    *("validate_bd_design", "save_bd_design", "get_files", "generate_target", "make_wrapper"),
    *("add_files", "current_fileset", "update_compile_order", "launch_runs", "wait_on_run"),
    *("get_runs", "get_property", "open_run", "report_utilization", "report_timing_summary"),
    *("get_timing_paths", "version"),
)
UTILIZATION = """\
+----------------------------+-------+-------+
|          Site Type         |  Used | Fixed |
+----------------------------+-------+-------+
| {lut} LUTs                 | 41234 |     0 |
| {lut} Registers            | 15001 |     0 |
| Block RAM Tile             | 126.5 |     0 |
| DSPs                       |   182 |     0 |
"""


class Vivado(BlockDesign):
    """Everything that a script has done so far; each public method is a Tcl command."""

    def __init__(self, slack: float = 0.25) -> None:
        super().__init__()
        self.slack = slack
        self.project = Path()
        self.done: list[str] = []
        self._repositories: list[str] = []
        self.tcl = Tcl()
        self.tcl.bind_all(self, COMMANDS)

    def source(self, script: Path) -> None:
        self.tcl.run(script)

    def _needs(self, *steps: str) -> None:
        for step in steps:
            if step not in self.done:
                raise Refused(f"{step} has to come first")

    def create_project(self, *args: str) -> str:
        found, (name, folder) = flags(args, ["-part"], ["-force"])
        if found.get("-part") not in PARTS:
            raise Refused(f"no part {found.get('-part')!r}")
        self.part, self.project = found["-part"], Path(folder)
        if not self.project.parent.is_dir():
            raise Refused(f"no folder {self.project.parent}")
        self.project.mkdir(exist_ok=True)
        self.done.append("create_project")
        return name

    def current_project(self) -> str:
        self._needs("create_project")
        return "project"

    def current_fileset(self) -> str:
        return "fileset"

    def set_property(self, *args: str) -> None:
        found, rest = flags(args, ["-dict"])
        if "-dict" in found:
            pairs, (owner,) = self.tcl.split(found["-dict"]), rest
            items = list(zip(pairs[::2], pairs[1::2], strict=True))
        else:
            name, value, owner = rest
            items = [(name, value)]
        for name, value in items:
            self._set(owner, name, value)

    def _set(self, owner: str, name: str, value: str) -> None:
        if (owner, name) == ("project", "ip_repo_paths"):
            self._repositories = self.tcl.split(value)
        elif (owner, name) == ("fileset", "top"):
            self._needs("add_files")
            if value != "system_wrapper":
                raise Refused(f"no module {value}")
        elif owner in self.cells and name.startswith("CONFIG."):
            self.cells[owner].block.check(name.removeprefix("CONFIG."), value)
            self.cells[owner].values[name.removeprefix("CONFIG.")] = value
        else:
            raise Refused(f"{owner} has no property {name}")

    def update_ip_catalog(self) -> None:
        for folder in self._repositories:
            if not Path(folder).is_dir():
                raise Refused(f"no folder {folder}")
            for path in sorted(Path(folder).rglob("component.xml")):
                block = of_component(read_component(path))
                self.catalogue[block.vlnv] = block
        self.catalogue |= {block.vlnv: block for block in BLOCKS.values()}

    def get_ipdefs(self, *args: str) -> list[str]:
        found, _ = flags(args, ["-filter"], ["-all"])
        pattern = found["-filter"].split("VLNV =~ ")[1].split()[0]
        return [vlnv for vlnv in self.catalogue if fnmatchcase(vlnv, pattern)]

    def create_bd_design(self, name: str) -> None:
        self._needs("create_project")
        if name != "system":
            raise Refused(f"the wrapper would not be system_wrapper but {name}_wrapper")
        self.done.append("create_bd_design")

    def create_bd_cell(self, *args: str) -> str:
        self._needs("create_bd_design")
        return super().create_bd_cell(*args)

    def validate_bd_design(self) -> None:
        super().validate_bd_design()
        self.done.append("validate_bd_design")

    def save_bd_design(self) -> None:
        self._needs("validate_bd_design")

    def get_files(self, name: str) -> str:
        return name

    def generate_target(self, what: str, name: str) -> None:
        self._needs("validate_bd_design")
        if (what, name) != ("all", "system.bd"):
            raise Refused(f"generate_target {what} {name}")
        self.done.append("generate_target")

    def make_wrapper(self, *args: str) -> str:
        self._needs("generate_target")
        found, _ = flags(args, ["-files"], ["-top"])
        if found != {"-files": "system.bd", "-top": "1"}:
            raise Refused(f"make_wrapper {found}")
        return "system_wrapper.v"

    def add_files(self, *args: str) -> None:
        _, names = flags(args, [], ["-norecurse"])
        for name in names:
            if name != "system_wrapper.v" and not Path(name).is_file():
                raise Refused(f"no file {name}")
        self.done.append("add_files")

    def update_compile_order(self, *args: str) -> None:
        flags(args, ["-fileset"])

    def launch_runs(self, *args: str) -> None:
        self._needs("add_files")
        found, runs = flags(args, ["-to_step", "-jobs"])
        if runs != ["impl_1"] or found["-to_step"] != "write_bitstream":
            raise Refused(f"launch_runs {args}")
        bits = self.project / "vitral.runs" / "impl_1" / "system_wrapper.bit"
        bits.parent.mkdir(parents=True, exist_ok=True)
        bits.write_bytes(json.dumps(sorted(map(str, self.addresses.items()))).encode())
        handoff = self.project / "vitral.gen/sources_1/bd/system/hw_handoff/system.hwh"
        handoff.parent.mkdir(parents=True, exist_ok=True)
        handoff.write_text(self.handoff())

    def wait_on_run(self, name: str) -> None:
        self.get_runs(name)
        self.done.append("wait_on_run")

    def get_runs(self, name: str) -> str:
        if name != "impl_1":
            raise Refused(f"no run {name}")
        return name

    def get_property(self, name: str, owner: str) -> str:
        values = {("PROGRESS", "impl_1"): "100%", ("SLACK", "path"): str(self.slack)}
        if (name, owner) not in values:
            raise Refused(f"{owner} has no property {name}")
        self._needs("wait_on_run")
        return values[name, owner]

    def open_run(self, name: str) -> None:
        self._needs("wait_on_run")
        self.get_runs(name)
        self.done.append("open_run")

    def report_utilization(self, *args: str) -> None:
        self._needs("open_run")
        found, _ = flags(args, ["-file"])
        kind = "Slice" if self.part.startswith("xc7") else "CLB"
        Path(found["-file"]).write_text(UTILIZATION.format(lut=kind))

    def report_timing_summary(self, *args: str) -> None:
        self._needs("open_run")
        found, _ = flags(args, ["-file"])
        Path(found["-file"]).write_text("timing\n")

    def get_timing_paths(self, *args: str) -> str:
        self._needs("open_run")
        found, _ = flags(args, ["-max_paths"], ["-setup"])
        return "path" if found else ""

    def version(self, option: str) -> str:
        if option != "-short":
            raise Refused(f"version {option}")
        return "2022.1"


def main(args: list[str]) -> int:
    found, rest = flags(args, ["-mode", "-source"], ["-notrace", "-nojournal", "-nolog"])
    if rest or found["-mode"] != "batch":
        print(f"ERROR: [Common 17-1] arguments {args}")
        return 1
    try:
        Vivado().source(Path(found["-source"]).resolve())
    except Refused as problem:
        print(f"INFO: a line\nERROR: [BD 5-1] {problem}\nmore")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
