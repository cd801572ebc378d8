"""Platform Designer: component descriptions (`_hw.tcl`) and system scripts.

Blocks from Intel's handbooks: altera_hps (Cyclone V HPS), altera_pll, altera_clock_bridge.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vendors.axi import check_bus
from vendors.tcl import Refused, Tcl

__all__ = ["PACKAGE", "Component", "System", "read_component", "run_system", "verilog_ports"]

PACKAGE = "qsys"
KINDS = {"clock": ("clk",), "reset": ("reset", "reset_n"), "interrupt": ("irq",)}
PORT = re.compile(
    r"^\s*(input|output)\s+(?:wire\s+)?(?:\[(\d+):0\]\s*)?(\w+)\s*[;,)]", re.MULTILINE
)


def verilog_ports(text: str) -> dict[str, tuple[str, int]]:
    """("in" or "out", bits) by name, of a Verilog module."""
    return {
        name: ("in" if direction == "input" else "out", int(left or 0) + 1)
        for direction, left, name in PORT.findall(text)
    }


@dataclass
class Component:
    """A description: interfaces as (kind, end), their ports by role, and properties."""

    path: Path
    name: str = ""
    interfaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    ports: dict[str, dict[str, tuple[str, str, int]]] = field(default_factory=dict)
    properties: dict[tuple[str, str], str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    top: str = ""


def read_component(path: Path) -> Component:
    """The component of a `_hw.tcl`; Refused when it breaks a rule."""
    found = Component(path)
    tcl = Tcl()
    tcl.eval(f"package provide {PACKAGE} 16.0")
    tcl.bind_all(
        _Description(found),
        [name for name in vars(_Description) if not name.startswith("_")],
    )
    tcl.run(path)
    _check(found)
    return found


class _Description:
    """Commands of a `_hw.tcl`."""

    def __init__(self, found: Component) -> None:
        self._found = found

    def set_module_property(self, name: str, value: str) -> None:
        if name not in ("NAME", "VERSION", "DISPLAY_NAME", "GROUP", "EDITABLE"):
            raise Refused(f"no property {name}")
        if name == "NAME":
            self._found.name = value

    def add_fileset(self, name: str, kind: str, callback: str, title: str) -> None:
        if kind != "QUARTUS_SYNTH" or callback or title:
            raise Refused(f"add_fileset {name} {kind}")

    def set_fileset_property(self, name: str, key: str, value: str) -> None:
        if (name, key) != ("synthesis", "TOP_LEVEL"):
            raise Refused(f"{name} has no property {key}")
        self._found.top = value

    def add_fileset_file(self, name: str, kind: str, how: str, path: str, *more: str) -> None:
        file = self._found.path.parent / path
        if (kind, how) != ("VERILOG", "PATH") or more != ("TOP_LEVEL_FILE",) or not file.is_file():
            raise Refused(f"file {name}: {kind} {how} {file} {more}")
        self._found.files.append(file)

    def add_interface(self, name: str, kind: str, end: str) -> None:
        if kind not in ("clock", "reset", "interrupt", "axi4", "axi4lite"):
            raise Refused(f"no kind of interface {kind}")
        if name in self._found.interfaces or end not in ("start", "end"):
            raise Refused(f"interface {name} {end} again")
        self._found.interfaces[name] = (kind, end)
        self._found.ports[name] = {}

    def set_interface_property(self, name: str, key: str, value: str) -> None:
        kind, _ = self._found.interfaces[name]
        known = {"associatedClock", "associatedReset"} | {
            "reset": {"synchronousEdges"},
            "interrupt": {"associatedAddressablePoint"},
            "axi4": {f"{what}IssuingCapability" for what in ("read", "write", "combined")},
        }.get(kind, set())
        if key not in known:
            raise Refused(f"{kind} {name} has no property {key}")
        if key.startswith("associated") and value not in self._found.interfaces:
            raise Refused(f"{name}: {key} {value}, which is not there")
        self._found.properties[name, key] = value

    def add_interface_port(
        self, name: str, port: str, role: str, direction: str, width: str
    ) -> None:
        ports = self._found.ports[name]
        if direction not in ("Input", "Output") or role in ports:
            raise Refused(f"port {port} {role} {direction}")
        ports[role] = (port, direction, int(width))


def _check(found: Component) -> None:
    if len(found.files) != 1:
        raise Refused(f"{found.path}: {len(found.files)} files")
    text = found.files[0].read_text()
    if not re.search(rf"^module {found.top}\b", text, re.MULTILINE):
        raise Refused(f"{found.files[0]} has no module {found.top}")
    there = verilog_ports(text)
    used = {}
    for name, ports in found.ports.items():
        kind, end = found.interfaces[name]
        for role, (port, direction, width) in ports.items():
            if there.get(port) != ("in" if direction == "Input" else "out", width):
                raise Refused(f"port {port} {direction} {width} is {there.get(port)} in Verilog")
            if port in used:
                raise Refused(f"port {port} is in {used[port]} and {name}")
            used[port] = name
            if kind in KINDS and role not in KINDS[kind]:
                raise Refused(f"{kind} {name} has no {role}")
        if kind.startswith("axi4"):
            widths = {role: there[port] for role, (port, _, _) in ports.items()}
            check_bus(name, widths, lite=kind == "axi4lite", master=end == "start")
        elif len(ports) != 1:
            raise Refused(f"{kind} {name} has ports {sorted(ports)}")
        for key in ("associatedClock", "associatedReset"):
            if kind not in ("clock", "reset") and (name, key) not in found.properties:
                raise Refused(f"{kind} {name} without {key}")
    if set(there) != set(used):
        raise Refused(f"ports in no interface: {sorted(set(there) - set(used))}")


HPS = {
    "MPU_EVENTS_Enable": ("0", "1"),
    "S2F_Width": ("0", "1", "2", "3"),
    "F2S_Width": ("0", "1", "2", "3"),
    "LWH2F_Enable": ("true", "false"),
    "F2SDRAM_Type": None,
    "F2SDRAM_Width": None,
    "F2SINTERRUPT_Enable": ("0", "1"),
    "HPS_PROTOCOL": ("DDR2", "DDR3", "LPDDR2"),
    "MEM_CLK_FREQ": None,
    "MEM_DQ_WIDTH": ("8", "16", "24", "32", "40"),
    "MEM_ROW_ADDR_WIDTH": ("12", "13", "14", "15", "16"),
    "MEM_COL_ADDR_WIDTH": ("8", "9", "10", "11", "12"),
    "MEM_BANKADDR_WIDTH": ("2", "3"),
    "MEM_TCL": ("5", "6", "7", "8", "9", "10", "11"),
    "MEM_WTCL": ("5", "6", "7", "8"),
    "MEM_DRV_STR": ("RZQ/6", "RZQ/7"),
    "MEM_RTT_NOM": ("ODT Disabled", "RZQ/2", "RZQ/4", "RZQ/6"),
    "MEM_RTT_WR": ("Dynamic ODT off", "RZQ/2", "RZQ/4"),
}
PARAMETERS: dict[str, Mapping[str, "tuple[str, ...] | None"]] = {
    "altera_hps": HPS,
    "altera_clock_bridge": {"EXPLICIT_CLOCK_RATE": None},
    "altera_pll": {
        "gui_reference_clock_frequency": None,
        "gui_number_of_clocks": tuple(map(str, range(1, 19))),
        "gui_output_clock_frequency0": None,
        "gui_use_locked": ("0", "1"),
    },
}
Ends = dict[str, tuple[str, str]]
"""(kind, "start" or "end") by interface."""


def _hps(values: Mapping[str, str]) -> Ends:
    ends: Ends = {"h2f_reset": ("reset", "start"), "memory": ("conduit", "end")}
    if values.get("MPU_EVENTS_Enable", "1") != "0":
        ends["h2f_mpu_events"] = ("conduit", "end")
    if values.get("LWH2F_Enable", "true") == "true":
        ends["h2f_lw_axi_clock"] = ("clock", "end")
        ends["h2f_lw_axi_master"] = ("memory", "start")
    for name, clock in (("S2F", "h2f"), ("F2S", "f2h")):
        if values.get(f"{name}_Width", "2") != "0":
            ends[f"{clock}_axi_clock"] = ("clock", "end")
            ends[f"{clock}_axi_{'master' if name == 'S2F' else 'slave'}"] = ("memory", "bridge")
    if values.get("F2SINTERRUPT_Enable") == "1":
        ends |= {"f2h_irq0": ("interrupt", "start"), "f2h_irq1": ("interrupt", "start")}
    return ends


class System:
    """A system; each public method is a command of qsys-script."""

    def __init__(self, components: Mapping[str, Component]) -> None:
        self.components = components
        self.project: dict[str, str] = {}
        self.instances: dict[str, str] = {}
        self.values: dict[str, dict[str, str]] = {}
        self.connections: dict[tuple[str, str], dict[str, str]] = {}
        self.exports: dict[str, str] = {}
        self.saved = ""
        self._added: dict[str, tuple[str, str]] = {}

    def create_system(self, name: str) -> None:
        self.name = name

    def set_project_property(self, name: str, value: str) -> None:
        if name not in ("DEVICE", "DEVICE_FAMILY"):
            raise Refused(f"no property {name}")
        self.project[name] = value

    def add_instance(self, name: str, kind: str) -> None:
        if kind not in PARAMETERS and kind not in self.components:
            raise Refused(f"no component {kind}")
        if name in self.instances:
            raise Refused(f"instance {name} again")
        self.instances[name] = kind
        self.values[name] = {}

    def set_instance_parameter_value(self, name: str, key: str, value: str) -> None:
        known = PARAMETERS.get(self.instances.get(name, ""), {})
        if key not in known:
            raise Refused(f"{name} has no parameter {key}")
        legal = known[key]
        if legal is not None and value not in legal:
            raise Refused(f"{name}: {key} cannot be {value!r}")
        self.values[name][key] = value

    def ends(self, instance: str) -> Ends:
        """The interfaces that an instance has with its parameters."""
        kind, values = self.instances.get(instance, ""), self.values.get(instance, {})
        if kind == "altera_hps":
            return _hps(values) | self._sdram(values)
        if kind == "altera_pll":
            outputs = range(int(values["gui_number_of_clocks"]))
            clocks: Ends = {f"outclk{n}": ("clock", "start") for n in outputs}
            return {"refclk": ("clock", "end"), "reset": ("reset", "end")} | clocks
        if kind == "altera_clock_bridge":
            return {"in_clk": ("clock", "end"), "out_clk": ("clock", "start")}
        if kind in self.components:
            found = self.components[kind].interfaces
            return {n: ("memory" if k.startswith("axi") else k, e) for n, (k, e) in found.items()}
        raise Refused(f"no instance {instance}")

    def _sdram(self, values: Mapping[str, str]) -> Ends:
        tcl = Tcl()
        types = tcl.split(values.get("F2SDRAM_Type", "Avalon-MM Bidirectional"))
        widths = tcl.split(values.get("F2SDRAM_Width", "64"))
        if len(types) != len(widths):
            raise Refused(f"F2SDRAM: types {types}, widths {widths}")
        ends: Ends = {}
        for n, (kind, width) in enumerate(zip(types, widths, strict=True)):
            if kind not in ("AXI-3", "Avalon-MM Bidirectional") or int(width) not in (
                32,
                64,
                128,
                256,
            ):
                raise Refused(f"no port to memory {kind} of {width} bits")
            ends[f"f2h_sdram{n}_clock"] = ("clock", "end")
            ends[f"f2h_sdram{n}_data"] = ("memory", "end")
        return ends

    def _end(self, name: str) -> tuple[str, str]:
        instance, _, interface = name.partition(".")
        ends = self.ends(instance)
        if interface not in ends:
            raise Refused(f"no interface {name}; there are {', '.join(sorted(ends))}")
        return ends[interface]

    def add_connection(self, start: str, end: str) -> None:
        (kind, one), (other_kind, other) = self._end(start), self._end(end)
        if kind == "interrupt":  # receivers come first
            one, other = "start", "end" if other == "end" else other
        if kind != other_kind or (one, other) != ("start", "end"):
            raise Refused(f"{start} ({kind} {one}) to {end} ({other_kind} {other})")
        if end in {e for _, e in self.connections} and kind != "reset":
            raise Refused(f"{end} is connected already")
        self.connections[start, end] = {}

    def set_connection_parameter_value(self, name: str, key: str, value: str) -> None:
        start, _, end = name.partition("/")
        if (start, end) not in self.connections:
            raise Refused(f"no connection {name}")
        legal = {"memory": "baseAddress", "interrupt": "irqNumber"}.get(self._end(start)[0])
        if key != legal:
            raise Refused(f"connection {name} has no {key}")
        self.connections[start, end][key] = value

    def add_interface(self, name: str, kind: str, end: str) -> None:
        self._added[name] = (kind, end)

    def set_interface_property(self, name: str, key: str, value: str) -> None:
        kind, _ = self._end(value)
        if key != "EXPORT_OF" or self._added.get(name, ("", ""))[0] != kind:
            raise Refused(f"{name}: {key} {value}")
        self.exports[name] = value

    def save_system(self, name: str) -> None:
        """Whether everything is connected, then the file's name."""
        connected = {end for pair in self.connections for end in pair} | set(self.exports.values())
        for instance in self.instances:
            for interface, (kind, end) in self.ends(instance).items():
                place = f"{instance}.{interface}"
                needed = end == "end" or (kind, end) == ("memory", "start")
                if needed and place not in connected:
                    raise Refused(f"nothing is connected to {place}")
        for pair, values in self.connections.items():
            kind = self._end(pair[0])[0]
            if kind in ("memory", "interrupt") and not values:
                raise Refused(f"{pair[0]} to {pair[1]} has no address or number")
        if name != f"{self.name}.qsys":
            raise Refused(f"system {self.name} saved as {name}")
        self.saved = name


def run_system(script: Path, components: Mapping[str, Component]) -> System:
    """A qsys-script."""
    system = System(components)
    tcl = Tcl()
    tcl.eval(f"package provide {PACKAGE} 16.0")
    tcl.bind_all(system, [n for n in vars(System) if not n.startswith("_") and n != "ends"])
    tcl.run(script)
    if not system.saved:
        raise Refused("the system is not saved")
    return system
