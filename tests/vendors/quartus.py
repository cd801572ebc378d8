"""A Quartus that takes the commands of a build script and of the tools it calls.

Run as a program it is `quartus_sh -t FILE`.
"""

import os
import shlex
import sys
from pathlib import Path

from vendors.platform_designer import Component, System, read_component, run_system
from vendors.tcl import Refused, Tcl, flags

__all__ = ["Quartus"]

PARTS = {"5CSEBA6U23I7": "Cyclone V"}
CLOCK_PINS = {"PIN_V11", "PIN_Y13", "PIN_E11"}
"""Of DE10-Nano's 50 MHz oscillator."""
SUMMARY = """\
Fitter Status : Successful
Logic utilization (in ALMs) : 27,345 / 41,910 ( 65 % )
Total registers : 20123
Total block memory bits : 3,900,000 / 5,662,720 ( 69 % )
Total RAM Blocks : 502 / 553 ( 91 % )
Total DSP Blocks : 109 / 112 ( 97 % )
"""
PINS = Path("system/synthesis/submodules/hps_sdram_p0_pin_assignments.tcl")
ASSIGNMENTS = (
    *("FAMILY", "DEVICE", "TOP_LEVEL_ENTITY", "PROJECT_OUTPUT_DIRECTORY", "QIP_FILE", "SDC_FILE"),
    "OPTIMIZATION_MODE",
)


class Quartus:
    """What has been done so far in the current folder."""

    def __init__(self, slack: float = 0.5) -> None:
        self.slack = slack
        self.components: dict[str, Component] = {}
        self.system: System | None = None
        self.done: list[str] = []
        self.settings: dict[str, str] = {}
        self.pins: dict[str, str] = {}
        self.clocks: dict[str, float] = {}

    def source(self, script: Path) -> None:
        tcl = self._tcl()
        tcl.bind("exec", self._exec)
        here = Path.cwd()
        try:
            tcl.run(script)
        finally:
            os.chdir(here)

    def _tcl(self) -> Tcl:
        tcl = Tcl()
        tcl.set("quartus(quartus_rootpath)", "/opt/intelFPGA/18.1/quartus")
        tcl.set("quartus(binpath)", "/opt/intelFPGA/18.1/quartus/bin")
        tcl.set("quartus(version)", "Version 18.1.0 Build 625")
        return tcl

    def _exec(self, *args: str) -> None:
        words = [word for word in args if word not in ("-ignorestderr", ">@", "stdout")]
        program = Path(words[0])
        folder = "sopc_builder/bin" if program.name.startswith("qsys") else "bin"
        if program.parent != Path("/opt/intelFPGA/18.1/quartus", folder):
            raise Refused(f"no program {program}")
        step = getattr(self, program.name.replace("-", "_"), None)
        if step is None:
            raise Refused(f"no program {program.name}")
        step(*words[1:])

    def _after(self, *steps: str) -> None:
        for step in steps:
            if step not in self.done:
                raise Refused(f"{step} has to come first")

    def qsys_script(self, *args: str) -> None:
        options = dict(word.split("=", 1) for word in args)
        paths = options.pop("--search-path").split(",")
        if paths[-1] != "$" or set(options) != {"--script"}:
            raise Refused(f"qsys-script {shlex.join(args)}")
        for folder in paths[:-1]:
            for path in sorted(Path(folder).glob("*_hw.tcl")):
                component = read_component(path)
                self.components[component.name] = component
        self.system = run_system(Path(options["--script"]), self.components)
        Path(self.system.saved).write_text("system\n")
        self.done.append("qsys-script")

    def qsys_generate(self, name: str, *args: str) -> None:
        self._after("qsys-script")
        options = dict(word.split("=", 1) for word in args)
        if set(options) != {"--synthesis", "--output-directory", "--search-path"}:
            raise Refused(f"qsys-generate {shlex.join(args)}")
        if not Path(name).is_file() or options["--synthesis"] != "VERILOG":
            raise Refused(f"qsys-generate {name} {options}")
        folder = Path(options["--output-directory"], "synthesis")
        (folder / "submodules").mkdir(parents=True, exist_ok=True)
        (folder / f"{Path(name).stem}.qip").write_text("")
        (folder / "submodules" / PINS.name).write_text("")
        self.done.append("qsys-generate")

    def _project(self, name: str) -> None:
        for suffix in (".qpf", ".qsf"):
            if not Path(name + suffix).is_file():
                raise Refused(f"no project {name}{suffix}")

    def quartus_map(self, project: str) -> None:
        self._project(project)
        tcl = self._tcl()
        tcl.bind("set_global_assignment", self._global)
        tcl.bind("set_location_assignment", self._location)
        tcl.bind("set_instance_assignment", self._instance)
        tcl.run(Path(f"{project}.qsf"))
        device = self.settings.get("DEVICE", "")
        if PARTS.get(device) != self.settings.get("FAMILY"):
            raise Refused(f"no part {device} of {self.settings.get('FAMILY')}")
        assert self.system is not None
        if self.system.project != {"DEVICE": device, "DEVICE_FAMILY": PARTS[device]}:
            raise Refused(f"system for {self.system.project}, project for {device}")
        if self.settings["TOP_LEVEL_ENTITY"] != self.system.name:
            raise Refused(f"no entity {self.settings['TOP_LEVEL_ENTITY']}")
        self.done.append("quartus_map")

    def _global(self, *args: str) -> None:
        found, (value,) = flags(args, ["-name"])
        name = found["-name"]
        if name not in ASSIGNMENTS:
            raise Refused(f"no assignment {name}")
        if name.endswith("_FILE") and not Path(value).is_file():
            raise Refused(f"no file {value}")
        self.settings[name] = value

    def _location(self, *args: str) -> None:
        found, (pin,) = flags(args, ["-to"])
        if pin not in CLOCK_PINS:
            raise Refused(f"{pin} is no clock of the board")
        self._port(found["-to"])
        self.pins[found["-to"]] = pin

    def _instance(self, *args: str) -> None:
        found, (value,) = flags(args, ["-name", "-to"])
        if (found["-name"], value) != ("IO_STANDARD", "3.3-V LVTTL"):
            raise Refused(f"no assignment {found['-name']} {value}")
        self._port(found["-to"])

    def _port(self, name: str) -> str:
        """A port of the top level: those of the system, whose clocks are NAME_clk."""
        assert self.system is not None
        ports = [f"{export}_clk" for export in self.system.exports if export != "memory"]
        if name not in ports:
            raise Refused(f"no port {name}; there are {ports}")
        return name

    def quartus_sta(self, *args: str) -> None:
        self._after("quartus_map")
        found, projects = flags(args, ["-t"])
        for project in projects:
            self._project(project)
        if not found:
            self._after("quartus_fit")
            self.done.append("quartus_sta")
            return
        script = Path(found["-t"])
        if script == PINS and script.is_file():
            self.done.append("pins")
            return
        self._after("quartus_sta")
        tcl = self._tcl()
        tcl.bind("project_open", self._project)
        for name in ("create_timing_netlist", "update_timing_netlist", "delete_timing_netlist"):
            tcl.bind(name, lambda: None)
        tcl.bind("project_close", lambda: None)
        tcl.bind("read_sdc", self._read_sdc)
        tcl.bind("get_timing_paths", lambda *args: "path")
        tcl.bind("get_path_info", lambda path, what: str(self.slack))
        tcl.run(script)

    def _read_sdc(self) -> None:
        tcl = self._tcl()
        tcl.bind("create_clock", self._create_clock)
        tcl.bind("get_ports", self._port)
        tcl.bind("derive_pll_clocks", lambda: None)
        tcl.bind("derive_clock_uncertainty", lambda: None)
        tcl.run(Path(self.settings["SDC_FILE"]))

    def _create_clock(self, *args: str) -> None:
        found, (port,) = flags(args, ["-name", "-period"])
        self.clocks[port] = float(found["-period"])

    def quartus_fit(self, project: str) -> None:
        self._after("quartus_map", "pins")
        self._project(project)
        output = Path(self.settings["PROJECT_OUTPUT_DIRECTORY"])
        output.mkdir(exist_ok=True)
        (output / f"{project}.fit.summary").write_text(SUMMARY)
        self.done.append("quartus_fit")

    def quartus_asm(self, project: str) -> None:
        self._after("quartus_fit")
        self._project(project)
        Path(self.settings["PROJECT_OUTPUT_DIRECTORY"], f"{project}.sof").write_text("sof\n")

    def quartus_cpf(self, *args: str) -> None:
        found, (source, result) = flags(args, ["-o"], ["-c"])
        if found != {"-c": "1", "-o": "bitstream_compression=on"} or not Path(source).is_file():
            raise Refused(f"quartus_cpf {shlex.join(args)}")
        Path(result).write_text("rbf of the core\n")


def main(args: list[str]) -> int:
    found, rest = flags(args, ["-t"])
    try:
        if rest:
            raise Refused(f"arguments {rest}")
        Quartus().source(Path(found["-t"]).resolve())
    except Refused as problem:
        print(f"Info: a line\nError (23035): {problem}\nmore")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
