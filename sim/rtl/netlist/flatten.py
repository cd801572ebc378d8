"""From modules to one flat netlist."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from vitral.sim.rtl.netlist.netlist import (
    Choice,
    Decision,
    Netlist,
    Operator,
    Part,
    Put,
    Ram,
    Read,
    Step,
    Value,
    Variable,
    Write,
    bits_of,
    cut,
    joined,
    part_width,
)
from vitral.sim.rtl.netlist.rtlil import (
    Assign,
    Cell,
    Chunk,
    Memory,
    Module,
    NetlistError,
    Spec,
    Statement,
)

__all__ = ["flatten"]


Key = tuple[str, str]
"""A wire: path of its instance, name."""

_Source = Variable | tuple[str, Spec]
"""What drives bits of a wire: a variable, or a value in the instance with that path."""


class _Flattener:
    def __init__(self, modules: Mapping[str, Module]) -> None:
        self._modules = modules
        self._sources: dict[Key, list[tuple[int, int, _Source]]] = {}
        self._widths: dict[Key, int] = {}
        self._todo: list[tuple[str, Module]] = []
        self._resolved: dict[Key, Value] = {}
        self.netlist = Netlist()

    def run(self, top: str, probes: Mapping[str, tuple[str, str]]) -> Netlist:
        self._enter("", self._modules[top])
        ports = self._modules[top].wires
        for name, wire in ports.items():
            if wire.direction == "input":
                variable = Variable(name[1:], wire.width)
                self.netlist.inputs.append(variable)
                self._drive(("", name), 0, wire.width, variable)
        for path, module in self._todo:
            self._sources_of(path, module)
        for path, module in self._todo:
            self._build(path, module)
        for name, wire in ports.items():
            if wire.direction == "output":
                value = self._value("", ((name, 0, wire.width),))
                self.netlist.outputs.append((name[1:], value))
        for title, (path, wire) in probes.items():
            key = (f"{path}.", f"\\{wire}")
            if key not in self._widths:
                raise NetlistError(f"the core has no {path}.{wire}; its instance names changed")
            self.netlist.probes.append((title, self._wire_value(key)))
        return self.netlist

    def _enter(self, path: str, module: Module) -> None:
        """Notes a module's instances, and the connections of their ports."""
        self._todo.append((path, module))
        for name, wire in module.wires.items():
            self._widths[path, name] = wire.width
        for cell in module.cells:
            if cell.kind not in self._modules:
                continue
            inner = f"{path}{cell.name.lstrip(chr(92))}."
            child = self._modules[cell.kind]
            self._enter(inner, child)
            for port, spec in cell.ports.items():
                name = port if port in child.wires else "\\" + port
                if child.wires[name].direction == "input":
                    self._drive((inner, name), 0, child.wires[name].width, (path, spec))
                else:
                    self._connect(path, spec, inner, ((name, 0, child.wires[name].width),))

    def _connect(self, path: str, target: Spec, source_path: str, source: Spec) -> None:
        """Drives the bits of `target` by those of `source`."""
        at = 0
        for chunk in target:
            if isinstance(chunk, str):
                at += len(chunk)
                continue
            name, low, width = chunk
            self._drive((path, name), low, width, (source_path, _slice(source, at, width)))
            at += width

    def _drive(self, key: Key, low: int, width: int, source: _Source) -> None:
        self._sources.setdefault(key, []).append((low, width, source))

    def _sources_of(self, path: str, module: Module) -> None:
        for connection in module.connections:
            self._connect(path, connection.target, path, connection.value)
        for cell in module.cells:
            for port in ("Y", "Q", "DATA"):
                if cell.kind.startswith("$mem") and (port != "DATA" or cell.kind != "$memrd_v2"):
                    continue
                if cell.kind.startswith("$") and port in cell.ports:
                    self._declare(path, module, cell.ports[port])
        for body in module.processes:
            for name, low, high in _targets(body):
                self._declare(path, module, ((name, low, high - low),))

    def _declare(self, path: str, module: Module, spec: Spec) -> None:
        for chunk in spec:
            name, low, width = _wire(chunk)
            wire = module.wires[name]
            init = None if wire.init is None else bits_of(wire.init, low, width)
            title = f"{path}{name.lstrip(chr(92))}" + (f"_{low}" if low else "")
            self._drive((path, name), low, width, Variable(title, width, init))

    def _variable(self, path: str, chunk: Chunk) -> Variable:
        """The variable that drives exactly these bits."""
        name, low, width = _wire(chunk)
        for place, size, source in self._sources[path, name]:
            if (place, size) == (low, width) and isinstance(source, Variable):
                return source
        raise NetlistError(f"{path}{name}[{low} +{width}] is not driven as a whole")

    def _value(self, path: str, spec: Spec) -> Value:
        parts: list[Part] = []
        for chunk in spec:
            if isinstance(chunk, str):
                parts.append(chunk.replace("x", "0").replace("z", "0"))
            else:
                name, low, width = chunk
                parts += cut(self._wire_value((path, name)), low, width)
        return joined(parts)

    def _wire_value(self, key: Key) -> Value:
        """All bits of a wire in terms of variables; bits without a driver are 0."""
        if key not in self._resolved:
            parts: list[Part] = []
            at = 0
            for low, width, source in sorted(self._sources.get(key, ()), key=lambda s: s[0]):
                if low > at:
                    parts.append("0" * (low - at))
                if isinstance(source, Variable):
                    parts.append((source, 0, width))
                else:
                    parts += cut(self._value(*source), 0, width)
                at = low + width
            if at < self._widths[key]:
                parts.append("0" * (self._widths[key] - at))
            self._resolved[key] = joined(parts)
        return self._resolved[key]

    def _build(self, path: str, module: Module) -> None:
        rams = {}
        for name, memory in module.memories.items():
            rams[name.lstrip("\\")] = ram = _ram(path, name, memory)
            self.netlist.rams.append(ram)
        for cell in module.cells:
            if cell.kind == "$dff":
                (target,) = cell.ports["Q"]
                register = self._variable(path, target)
                self.netlist.registers.append((register, self._value(path, cell.ports["D"])))
            elif cell.kind == "$memrd_v2":
                self._build_read(path, cell, rams)
            elif cell.kind == "$memwr_v2":
                self._build_write(path, cell, rams)
            elif cell.kind.startswith("$") and cell.kind != "$meminit_v2":
                self._build_operator(path, cell)
        for body in module.processes:
            for name, low, high in _targets(body):
                target = self._variable(path, (name, low, high - low))
                steps = self._steps(path, body, (name, low, high - low))
                self.netlist.nodes[target] = Decision(target, steps)

    def _build_operator(self, path: str, cell: Cell) -> None:
        (target,) = cell.ports["Y"]
        operands = tuple(
            self._value(path, cell.ports[port]) for port in ("A", "B", "S") if port in cell.ports
        )
        signs = [cell.parameters.get(f"{port}_SIGNED", "0") == "1" for port in "AB"]
        signed = signs[0] and (signs[1] or len(operands) == 1 or "sh" in cell.kind)
        variable = self._variable(path, target)
        self.netlist.nodes[variable] = Operator(variable, cell.kind[1:], operands, signed)

    def _build_read(self, path: str, cell: Cell, rams: Mapping[str, Ram]) -> None:
        (target,) = cell.ports["DATA"]
        ram = rams[cell.parameters["MEMID"].lstrip("\\")]
        clocked = cell.parameters["CLK_ENABLE"] == "1"
        read = Read(
            self._variable(path, target),
            ram,
            self._value(path, cell.ports["ADDR"]),
            self._value(path, cell.ports["EN"]) if clocked else None,
        )
        if clocked:
            if "1" in cell.parameters["TRANSPARENCY_MASK"].partition("'")[2]:
                raise NetlistError(f"{ram.name}: transparent read ports are not supported")
            self.netlist.reads.append(read)
        else:
            self.netlist.nodes[read.target] = read

    def _build_write(self, path: str, cell: Cell, rams: Mapping[str, Ram]) -> None:
        """One write for each run of bits with the same enable."""
        ram = rams[cell.parameters["MEMID"].lstrip("\\")]
        address, value = (self._value(path, cell.ports[port]) for port in ("ADDR", "DATA"))
        enables = [
            bit
            for part in self._value(path, cell.ports["EN"])
            for bit in (_bit(part, n) for n in range(part_width(part)))
        ]
        low = 0
        while low < len(enables):
            high = low
            while high < len(enables) and enables[high] == enables[low]:
                high += 1
            bits = tuple(cut(value, low, high - low))
            self.netlist.writes.append(Write(ram, address, low, bits, enables[low]))
            low = high

    def _steps(
        self, path: str, body: tuple[Statement, ...], bits: tuple[str, int, int]
    ) -> tuple[Step, ...]:
        """The statements that assign these bits of a wire."""
        steps: list[Step] = []
        for statement in body:
            if isinstance(statement, Assign):
                steps += self._puts(path, statement, bits)
                continue
            cases = tuple(
                (patterns, self._steps(path, inner, bits)) for patterns, inner in statement.cases
            )
            if any(inner for _, inner in cases):
                steps.append(Choice(self._value(path, statement.value), cases))
        return tuple(steps)

    def _puts(self, path: str, assign: Assign, bits: tuple[str, int, int]) -> Iterator[Put]:
        """The part of an assignment that falls on these bits: all of them or none."""
        name, first, size = bits
        at = 0
        for chunk in assign.target:
            wire, low, width = _wire(chunk)
            if wire == name and low <= first < low + width:
                value = self._value(path, _slice(assign.value, at + first - low, size))
                yield Put(0, value)
            at += width


def _ram(path: str, name: str, memory: Memory) -> Ram:
    return Ram(f"{path}{name.lstrip(chr(92))}", memory.width, memory.depth)


def _wire(chunk: Chunk) -> tuple[str, int, int]:
    if isinstance(chunk, str):
        raise NetlistError("a constant cannot be driven")
    return chunk


def _bit(part: Part, n: int) -> Part:
    return bits_of(part, n, 1) if isinstance(part, str) else (part[0], part[1] + n, 1)


def _slice(spec: Spec, low: int, width: int) -> Spec:
    """Bits of a value as it is written; may reach past its end, which then is cut off."""
    result: list[Chunk] = []
    for chunk in spec:
        size = len(chunk) if isinstance(chunk, str) else chunk[2]
        begin, end = max(low, 0), min(low + width, size)
        if begin < end:
            if isinstance(chunk, str):
                result.append(bits_of(chunk, begin, end - begin))
            else:
                result.append((chunk[0], chunk[1] + begin, end - begin))
        low -= size
    return tuple(result)


def _targets(body: tuple[Statement, ...]) -> list[tuple[str, int, int]]:
    """Bits that statements assign, in ranges that no assignment cuts: (wire, first, after)."""
    ranges: dict[str, set[tuple[int, int]]] = {}
    for name, low, high in _assigned(body):
        ranges.setdefault(name, set()).add((low, high))
    result = []
    for name, parts in ranges.items():
        cuts = sorted({cut for part in parts for cut in part})
        for low, high in pairwise(cuts):
            if any(begin <= low and high <= end for begin, end in parts):
                result.append((name, low, high))
    return result


def _assigned(body: tuple[Statement, ...]) -> Iterator[tuple[str, int, int]]:
    for statement in body:
        if isinstance(statement, Assign):
            for chunk in statement.target:
                name, low, width = _wire(chunk)
                yield name, low, low + width
        else:
            for _, inner in statement.cases:
                yield from _assigned(inner)


def flatten(
    modules: Mapping[str, Module], top: str, probes: Mapping[str, tuple[str, str]] | None = None
) -> Netlist:
    """One netlist of the module `top` and all inside it. The clock is not part of it.

    `probes` names wires to be seen, as (path of the instance, wire).
    """
    return _Flattener(modules).run(top, probes or {})
