"""The packaged core: an IP-XACT component (IEEE 1685-2009), as Vivado's catalogue reads it.

Interfaces, ports with their widths, the memory map with every register and field, and the file
set. Everything is derived: ports from the Verilog, registers from `vitral.registers`.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from vitral.bitstream.interfaces import CLOCK, IRQ, MASTER, RESET, SLAVE, Port, core_ports, members
from vitral.config import CoreConfig
from vitral.registers import ADDRESS_BITS, REGISTERS, Access, Register
from vitral.runtime.boards.bitfile import VLNV

__all__ = ["ADDRESS_SPACE", "FAMILIES", "MEMORY_MAP", "REGISTER_BLOCK", "component"]

SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"
XILINX = "http://www.xilinx.com"
MEMORY_MAP = SLAVE
REGISTER_BLOCK = "reg0"
ADDRESS_SPACE = MASTER
FAMILIES = ("zynq", "zynquplus")
FILE_SET = "rtl"
VIEWS = {
    "xilinx_verilogsynthesis": "synthesis",
    "xilinx_verilogbehavioralsimulation": "simulation",
}
"""Names of the views by what Vivado takes them for."""
WORD_BITS = 32

_ACCESS = {
    Access.READ: "read-only",
    Access.WRITE: "read-write",
    Access.CLEAR: "read-write",
    Access.PULSE: "write-only",
}


def component(config: CoreConfig, source: str) -> str:
    """XML text of the component whose Verilog is the file `source`, relative to it."""
    ElementTree.register_namespace("spirit", SPIRIT)
    ElementTree.register_namespace("xilinx", XILINX)
    vendor, library, name, version = VLNV.split(":")
    ports = core_ports(config)
    root = Element(_tag("component"))
    for key, text in (
        ("vendor", vendor),
        ("library", library),
        ("name", name),
        ("version", version),
    ):
        _add(root, key, text)
    root.append(_bus_interfaces(config, ports))
    root.append(_address_spaces(config))
    root.append(_memory_maps())
    root.append(_model(name, ports))
    root.append(_file_sets(source))
    _add(root, "description", f"int8 tensor accelerator, configuration {config.digest}")
    names: dict[str, object] = {"Component_Name": f"{name}_v1_0"}
    root.append(_parameters("PARAM_VALUE", names, resolve="user", order="1"))
    root.append(_vendor_extensions())
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _tag(name: str) -> str:
    return f"{{{SPIRIT}}}{name}"


def _add(parent: Element, tag: str, text: object = None, /, **attributes: str) -> Element:
    child = ElementTree.SubElement(
        parent, _tag(tag), {_tag(key): value for key, value in attributes.items()}
    )
    child.text = None if text is None else str(text)
    return child


def _parameters(prefix: str, values: Mapping[str, object], **attributes: str) -> Element:
    """Parameters by name; Vivado finds them again by their ids, which begin with `prefix`."""
    group = Element(_tag("parameters"))
    for name, value in values.items():
        entry = _add(group, "parameter")
        _add(entry, "name", name)
        _add(entry, "value", value, id=f"{prefix}.{name}", **attributes)
    return group


def _bus_interfaces(config: CoreConfig, ports: Sequence[Port]) -> Element:
    group = Element(_tag("busInterfaces"))
    slave, master = members(ports, SLAVE), members(ports, MASTER)
    _bus(group, SLAVE, "interface:aximm", slave, "slave", {"PROTOCOL": "AXI4LITE"})
    _bus(group, MASTER, "interface:aximm", master, "master", _master_parameters(config))
    by_name = {port.name: port for port in ports}
    clock = {"ASSOCIATED_BUSIF": f"{SLAVE}:{MASTER}", "ASSOCIATED_RESET": RESET}
    _bus(group, CLOCK, "signal:clock", {"CLK": by_name[CLOCK]}, "slave", clock)
    active = {"POLARITY": "ACTIVE_LOW"}
    _bus(group, RESET, "signal:reset", {"RST": by_name[RESET]}, "slave", active)
    level = {"SENSITIVITY": "LEVEL_HIGH"}
    _bus(group, IRQ, "signal:interrupt", {"INTERRUPT": by_name[IRQ]}, "master", level)
    return group


def _master_parameters(config: CoreConfig) -> dict[str, object]:
    return {
        "PROTOCOL": "AXI4",
        "DATA_WIDTH": config.data_bits,
        "ADDR_WIDTH": config.addr_bits,
        "MAX_BURST_LENGTH": config.burst_beats,
        "NUM_READ_OUTSTANDING": config.outstanding,
        "NUM_WRITE_OUTSTANDING": config.outstanding,
        "SUPPORTS_NARROW_BURST": 0,
    }


def _bus(
    group: Element,
    name: str,
    kind: str,
    ports: Mapping[str, Port],
    mode: str,
    parameters: Mapping[str, object],
) -> None:
    library, kind = kind.split(":")
    entry = _add(group, "busInterface")
    _add(entry, "name", name)
    vendor = {"vendor": "xilinx.com", "library": library, "version": "1.0"}
    _add(entry, "busType", **vendor, name=kind)
    _add(entry, "abstractionType", **vendor, name=f"{kind}_rtl")
    role = _add(entry, mode)
    if name == SLAVE:
        _add(role, "memoryMapRef", memoryMapRef=MEMORY_MAP)
    elif name == MASTER:
        _add(role, "addressSpaceRef", addressSpaceRef=ADDRESS_SPACE)
    maps = _add(entry, "portMaps")
    for logical, port in ports.items():
        pair = _add(maps, "portMap")
        _add(_add(pair, "logicalPort"), "name", logical.upper())
        _add(_add(pair, "physicalPort"), "name", port.name)
    entry.append(_parameters(f"BUSIFPARAM_VALUE.{name.upper()}", parameters))


def _address_spaces(config: CoreConfig) -> Element:
    group = Element(_tag("addressSpaces"))
    space = _add(group, "addressSpace")
    _add(space, "name", ADDRESS_SPACE)
    _add(space, "range", 1 << config.addr_bits)
    _add(space, "width", config.data_bits)
    return group


def _memory_maps() -> Element:
    group = Element(_tag("memoryMaps"))
    table = _add(group, "memoryMap")
    _add(table, "name", MEMORY_MAP)
    block = _add(table, "addressBlock")
    _add(block, "name", REGISTER_BLOCK)
    _add(block, "baseAddress", 0)
    _add(block, "range", 1 << ADDRESS_BITS)
    _add(block, "width", WORD_BITS)
    _add(block, "usage", "register")
    for entry in REGISTERS:
        for name, offset, reset in _words(entry):
            _register(block, entry, name, offset, reset)
    return group


def _words(entry: Register) -> Iterator[tuple[str, int, int]]:
    """Name, offset and reset value of each 32-bit word."""
    if entry.words == 1:
        yield entry.name, entry.offset, entry.reset
        return
    for word, suffix in zip(range(entry.words), ("low", "high"), strict=True):
        reset = entry.reset >> WORD_BITS * word & (1 << WORD_BITS) - 1
        yield f"{entry.name}_{suffix}", entry.offset + 4 * word, reset


def _register(block: Element, entry: Register, name: str, offset: int, reset: int) -> None:
    item = _add(block, "register")
    _add(item, "name", name)
    _add(item, "description", entry.meaning)
    _add(item, "addressOffset", f"0x{offset:X}")
    _add(item, "size", WORD_BITS)
    _add(item, "access", _ACCESS[entry.access])
    _add(_add(item, "reset"), "value", f"0x{reset:X}")
    for part in entry.fields:
        bits = _add(item, "field")
        _add(bits, "name", part.name)
        _add(bits, "description", part.meaning)
        _add(bits, "bitOffset", part.low)
        _add(bits, "bitWidth", part.width)


def _model(name: str, ports: Sequence[Port]) -> Element:
    group = Element(_tag("model"))
    views = _add(group, "views")
    for view_name, step in VIEWS.items():
        view = _add(views, "view")
        _add(view, "name", view_name)
        _add(view, "envIdentifier", f"verilogSource:vivado.xilinx.com:{step}")
        _add(view, "language", "verilog")
        _add(view, "modelName", name)
        _add(_add(view, "fileSetRef"), "localName", FILE_SET)
    table = _add(group, "ports")
    for port in ports:
        entry = _add(table, "port")
        _add(entry, "name", port.name)
        wire = _add(entry, "wire")
        _add(wire, "direction", {"input": "in", "output": "out"}[port.direction])
        if port.width > 1:
            vector = _add(wire, "vector")
            _add(vector, "left", port.width - 1)
            _add(vector, "right", 0)
        types = _add(_add(wire, "wireTypeDefs"), "wireTypeDef")
        _add(types, "typeName", "wire")
        for view_name in VIEWS:
            _add(types, "viewNameRef", view_name)
    return group


def _file_sets(source: str) -> Element:
    group = Element(_tag("fileSets"))
    entry = _add(group, "fileSet")
    _add(entry, "name", FILE_SET)
    file = _add(entry, "file")
    _add(file, "name", source)
    _add(file, "fileType", "verilogSource")
    return group


def _vendor_extensions() -> Element:
    group = Element(_tag("vendorExtensions"))
    core = ElementTree.SubElement(group, f"{{{XILINX}}}coreExtensions")
    families = ElementTree.SubElement(core, f"{{{XILINX}}}supportedFamilies")
    for name in FAMILIES:
        family = ElementTree.SubElement(families, f"{{{XILINX}}}family")
        family.set(f"{{{XILINX}}}lifeCycle", "Production")
        family.text = name
    for name, text in (("taxonomies", None), ("displayName", "Vitral"), ("coreRevision", "1")):
        entry = ElementTree.SubElement(core, f"{{{XILINX}}}{name}")
        if name == "taxonomies":
            ElementTree.SubElement(entry, f"{{{XILINX}}}taxonomy").text = "/UserIP"
        entry.text = text
    return group
