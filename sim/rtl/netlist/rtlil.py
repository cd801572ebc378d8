"""Reads RTLIL, the text form of netlists that Amaranth writes and yosys reads."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "Assign",
    "Cell",
    "Chunk",
    "Memory",
    "Module",
    "NetlistError",
    "Spec",
    "Statement",
    "Switch",
    "Wire",
    "read_rtlil",
]


class NetlistError(Exception):
    """A netlist has something that cannot be rewritten as C++; Verilator takes it."""


Chunk = tuple[str, int, int] | str
"""Bits ``(wire, lowest, width)`` of a wire, or constant bits as text, highest first."""

Spec = tuple[Chunk, ...]
"""A value put together from chunks, lowest first."""


@dataclass(frozen=True)
class Wire:
    """A wire; `direction` is "input", "output" or "", `init` a register's first value."""

    width: int
    direction: str
    init: str | None


@dataclass(frozen=True)
class Memory:
    """`depth` words of `width` bits."""

    width: int
    depth: int


@dataclass(frozen=True)
class Cell:
    """An operator (its type begins with ``$``) or an instance of a module."""

    kind: str
    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    ports: dict[str, Spec] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """A parameter that is a number."""
        return int(self.parameters[name])


@dataclass(frozen=True)
class Assign:
    """``target = value``; later ones win."""

    target: Spec
    value: Spec


@dataclass(frozen=True)
class Switch:
    """The first case with a pattern that matches; one without patterns matches always."""

    value: Spec
    cases: tuple[tuple[tuple[str, ...], "tuple[Statement, ...]"], ...]


Statement = Assign | Switch


@dataclass
class Module:
    """One module as it is written."""

    wires: dict[str, Wire] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    processes: list[tuple[Statement, ...]] = field(default_factory=list)
    connections: list[Assign] = field(default_factory=list)


_TOKEN = re.compile(r"[{}]|\[\d+(?::\d+)?\]|\d+'[01xz-]*|[\\$]\S+")
_INIT = re.compile(r"attribute \\init (\d+)'([01x]+)")


class _Reader:
    """The lines of a text, and the module being read."""

    def __init__(self, text: str) -> None:
        lines = (line.strip() for line in text.splitlines())
        self._lines = iter([line for line in lines if line and not line.startswith("#")])
        self._module = Module()

    def modules(self) -> Iterator[tuple[str, Module]]:
        for line in self._lines:
            if line.startswith("module "):
                self._module = Module()
                self._read_module()
                yield line.split()[1], self._module

    def _read_module(self) -> None:
        init: str | None = None
        for line in self._lines:
            word, _, rest = line.partition(" ")
            if word == "end":
                return
            if word == "attribute":
                match = _INIT.match(line)
                init = match[2] if match else init
            elif word == "wire":
                self._read_wire(rest.split(), init)
                init = None
            elif word == "memory":
                parts = rest.split()
                self._module.memories[parts[-1]] = Memory(int(parts[1]), int(parts[3]))
            elif word == "cell":
                kind, name = rest.split()
                self._module.cells.append(self._read_cell(kind, name))
            elif word == "process":
                self._module.processes.append(self._read_body()[0])
            elif word == "connect":
                self._module.connections.append(self._assignment(rest))

    def _read_wire(self, parts: list[str], init: str | None) -> None:
        width = int(parts[parts.index("width") + 1]) if "width" in parts else 1
        direction = next((word for word in ("input", "output") if word in parts[:-1]), "")
        self._module.wires[parts[-1]] = Wire(width, direction, init)

    def _read_cell(self, kind: str, name: str) -> Cell:
        cell = Cell(kind, name)
        for line in self._lines:
            word, _, rest = line.partition(" ")
            if word == "end":
                break
            key, _, value = rest.partition(" ")
            if word == "parameter":
                cell.parameters[key.lstrip("\\")] = value.strip('"')
            elif word == "connect" and not (kind == "$meminit_v2" and key == r"\DATA"):
                cell.ports[key.lstrip("\\")] = self._spec(value)
        return cell

    def _read_body(self) -> tuple[tuple[Statement, ...], str]:
        """Statements up to the line that ends them, and that line."""
        body: list[Statement] = []
        for line in self._lines:
            word, _, rest = line.partition(" ")
            if word == "assign":
                body.append(self._assignment(rest))
            elif word == "switch":
                body.append(self._read_switch(self._spec(rest)))
            elif word in ("end", "case"):
                return tuple(body), line
        raise NetlistError("RTLIL ends inside a process")

    def _read_switch(self, value: Spec) -> Switch:
        cases = []
        line = next(self._lines)
        while line.startswith("case"):
            patterns = tuple(re.findall(r"'([01-]*)", line))
            body, line = self._read_body()
            cases.append((patterns, body))
        return Switch(value, tuple(cases))

    def _assignment(self, text: str) -> Assign:
        """Two values in a row; the first one may have an index."""
        tokens = _TOKEN.findall(text)
        target, at = self._take(tokens, 0)
        value, at = self._take(tokens, at)
        if at != len(tokens):
            raise NetlistError(f"RTLIL assignment has more than two values: {text}")
        return Assign(target, value)

    def _spec(self, text: str) -> Spec:
        return self._take(_TOKEN.findall(text), 0)[0]

    def _take(self, tokens: list[str], at: int) -> tuple[Spec, int]:
        """The value that begins at a token, and where the next one begins."""
        token = tokens[at]
        at += 1
        if token == "{":
            parts: list[Spec] = []
            while tokens[at] != "}":
                part, at = self._take(tokens, at)
                parts.append(part)
            return tuple(chunk for part in reversed(parts) for chunk in part), at + 1
        if token[0].isdigit():
            bits = token.partition("'")[2]
            return ((bits,) if bits else ()), at
        low, width = 0, self._module.wires[token].width
        if at < len(tokens) and tokens[at].startswith("["):
            high, _, lowest = tokens[at][1:-1].partition(":")
            low = int(lowest or high)
            width = int(high) - low + 1
            at += 1
        return ((token, low, width),), at


def read_rtlil(text: str) -> dict[str, Module]:
    """The modules of a netlist by name, the top one as the text has it."""
    return dict(_Reader(text).modules())
