"""Reads IP-XACT 1685-2009 components and checks them by the rules of the standard and of AXI."""

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

from vendors.axi import check_bus
from vendors.tcl import Refused

__all__ = ["Component", "Interface", "read_component"]

NS = "{http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009}"
ORDER = {
    "component": (
        *("vendor", "library", "name", "version", "busInterfaces", "addressSpaces", "memoryMaps"),
        *("model", "choices", "fileSets", "description", "parameters", "vendorExtensions"),
    ),
    "busInterface": (
        *("name", "displayName", "description", "busType", "abstractionType", "master", "slave"),
        *("portMaps", "parameters"),
    ),
    "addressBlock": ("name", "description", "baseAddress", "range", "width", "usage", "register"),
    "register": (
        *("name", "description", "addressOffset", "size", "access", "reset", "field"),
        "parameters",
    ),
    "field": ("name", "description", "bitOffset", "bitWidth", "access"),
    "addressSpace": ("name", "range", "width"),
    "view": ("name", "envIdentifier", "language", "modelName", "fileSetRef"),
    "port": ("name", "wire"),
    "wire": ("direction", "vector", "wireTypeDefs"),
    "fileSet": ("name", "file"),
    "file": ("name", "fileType"),
    "parameter": ("name", "value"),
}
"""Children in the order that the schema demands."""


@dataclass
class Interface:
    """A bus interface: type, role, ports by logical name, parameters."""

    kind: str
    role: str
    ports: dict[str, str]
    parameters: dict[str, str]
    reference: str = ""


@dataclass
class Component:
    """What a tool knows about a packaged block."""

    vlnv: str
    top: str
    ports: dict[str, tuple[str, int]]
    interfaces: dict[str, Interface]
    segments: dict[str, int] = field(default_factory=dict)
    spaces: dict[str, int] = field(default_factory=dict)
    registers: dict[int, str] = field(default_factory=dict)
    source: Path = Path()


def read_component(path: Path) -> Component:
    """The component of a file; Refused when it breaks a rule."""
    root = ElementTree.parse(path).getroot()
    if root.tag != f"{NS}component":
        raise Refused(f"{path}: no component but {root.tag}")
    for element in root.iter():
        _check_order(element)
    ports = {_text(port, "name"): _port(port) for port in root.iter(f"{NS}port")}
    found = Component(
        vlnv=":".join(_text(root, name) for name in ("vendor", "library", "name", "version")),
        top=_text(root, "name"),
        ports=ports,
        interfaces={_text(bus, "name"): _interface(bus) for bus in root.iter(f"{NS}busInterface")},
    )
    _read_spaces(root, found)
    _read_views(root, found, path.parent)
    _check_interfaces(found)
    return found


def _check_order(element: Element) -> None:
    name = element.tag.removeprefix(NS)
    if name not in ORDER:
        return
    order = ORDER[name]
    children = [child.tag.removeprefix(NS) for child in element]
    unknown = [child for child in children if child not in order]
    if unknown:
        raise Refused(f"{name} cannot have {unknown[0]}")
    places = [order.index(child) for child in children]
    if places != sorted(places):
        raise Refused(f"children of {name} in the wrong order: {children}")


def _text(element: Element, *path: str) -> str:
    found = element.find("/".join(NS + part for part in path))
    if found is None or not (found.text or "").strip():
        raise Refused(f"{element.tag.removeprefix(NS)} without {'/'.join(path)}")
    return (found.text or "").strip()


def _number(element: Element, *path: str) -> int:
    return int(_text(element, *path), 0)


def _port(port: Element) -> tuple[str, int]:
    direction = _text(port, "wire", "direction")
    if direction not in ("in", "out"):
        raise Refused(f"port {_text(port, 'name')} goes {direction}")
    vector = port.find(f"{NS}wire/{NS}vector")
    if vector is None:
        return direction, 1
    return direction, _number(vector, "left") - _number(vector, "right") + 1


def _interface(bus: Element) -> Interface:
    kinds = []
    for name in ("busType", "abstractionType"):
        item = bus.find(NS + name)
        if item is None:
            raise Refused(f"interface {_text(bus, 'name')} without {name}")
        kinds.append(":".join(item.get(NS + k, "") for k in ("vendor", "library", "name")))
    if kinds[1] != f"{kinds[0]}_rtl":
        raise Refused(f"interface {_text(bus, 'name')}: types {kinds} do not match")
    roles = [role for role in ("master", "slave") if bus.find(NS + role) is not None]
    if len(roles) != 1:
        raise Refused(f"interface {_text(bus, 'name')} has roles {roles}, needs one")
    ports = {}
    for pair in bus.iter(f"{NS}portMap"):
        logical = _text(pair, "logicalPort", "name")
        if logical in ports:
            raise Refused(f"interface {_text(bus, 'name')} maps {logical} twice")
        ports[logical] = _text(pair, "physicalPort", "name")
    parameters = {_text(p, "name"): _text(p, "value") for p in bus.iter(f"{NS}parameter")}
    references = [e.get(e.tag, "") for e in bus.iter() if e.tag.endswith("Ref")]
    return Interface(kinds[0], roles[0], ports, parameters, "".join(references))


def _read_spaces(root: Element, found: Component) -> None:
    for space in root.iter(f"{NS}addressSpace"):
        found.spaces[_text(space, "name")] = _number(space, "range")
    for table in root.iter(f"{NS}memoryMap"):
        for block in table.iter(f"{NS}addressBlock"):
            size = _number(block, "range")
            found.segments[f"{_text(table, 'name')}/{_text(block, 'name')}"] = size
            for item in block.iter(f"{NS}register"):
                _add_register(item, size, found)


def _add_register(item: Element, size: int, found: Component) -> None:
    offset, name = _number(item, "addressOffset"), _text(item, "name")
    if offset % 4 or offset + 4 > size or offset in found.registers:
        raise Refused(f"register {name} at {offset:#x} is out of place")
    if name in found.registers.values():
        raise Refused(f"two registers {name}")
    taken = 0
    for bits in item.iter(f"{NS}field"):
        mask = ((1 << _number(bits, "bitWidth")) - 1) << _number(bits, "bitOffset")
        if taken & mask or mask >> _number(item, "size"):
            raise Refused(f"field {_text(bits, 'name')} of {name} is out of place")
        taken |= mask
    found.registers[offset] = name


def _read_views(root: Element, found: Component, folder: Path) -> None:
    file_sets = {_text(entry, "name"): entry for entry in root.iter(f"{NS}fileSet")}
    views = {_text(view, "name"): view for view in root.iter(f"{NS}view")}
    steps = {_text(view, "envIdentifier").rpartition(":")[2] for view in views.values()}
    if not {"synthesis", "simulation"} <= steps:
        raise Refused(f"needs views for synthesis and simulation, has {steps}")
    for view in views.values():
        name = _text(view, "fileSetRef", "localName")
        if name not in file_sets:
            raise Refused(f"no file set {name}")
        found.source = folder / _text(file_sets[name], "file", "name")
        found.top = _text(view, "modelName")
        if not found.source.is_file():
            raise Refused(f"{found.source}: no such file")
    for name in (element.text for element in root.iter(f"{NS}viewNameRef")):
        if name not in views:
            raise Refused(f"no view {name}")


def _check_interfaces(found: Component) -> None:
    used: dict[str, str] = {}
    for name, bus in found.interfaces.items():
        for logical, port in bus.ports.items():
            if port not in found.ports:
                raise Refused(f"interface {name}: no port {port}")
            if port in used:
                raise Refused(f"port {port} is in {used[port]} and {name}")
            used[port] = f"{name}.{logical}"
        if bus.kind.endswith(":aximm"):
            widths = {key.lower(): found.ports[port] for key, port in bus.ports.items()}
            lite = bus.parameters["PROTOCOL"] == "AXI4LITE"
            check_bus(name, widths, lite=lite, master=bus.role == "master")
            known = found.spaces if bus.role == "master" else _maps(found)
            if bus.reference not in known:
                raise Refused(f"interface {name} refers to {bus.reference!r}, which is not there")
    free = sorted(set(found.ports) - set(used))
    if free:
        raise Refused(f"ports in no interface: {free}")
    for name, bus in found.interfaces.items():
        for other in bus.parameters.get("ASSOCIATED_BUSIF", "").split(":"):
            if other and other not in found.interfaces:
                raise Refused(f"clock {name} for {other}, which is not there")


def _maps(found: Component) -> set[str]:
    return {name.split("/")[0] for name in found.segments}
