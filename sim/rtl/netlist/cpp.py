"""Writes placed blocks as the C++ of a class with one function per clock edge.

Registers are set in the order of the text, so each must be read before it is set. Items are
ordered so where they can be; where two registers need each other, the reader gets a copy that is
taken before.
"""

import re

from vitral.sim.rtl.netlist.dots import find_dots
from vitral.sim.rtl.netlist.expressions import (
    Expressions,
    Name,
    constant,
    declaration,
    integer,
    is_wide,
    test,
)
from vitral.sim.rtl.netlist.gate import place_edge
from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Compute,
    Fetch,
    Item,
    Local,
    Set,
    node_reads,
    variables,
)
from vitral.sim.rtl.netlist.netlist import (
    Netlist,
    Operator,
    Ram,
    Value,
    Variable,
    part_width,
    width_of,
)
from vitral.sim.rtl.netlist.order import Order
from vitral.sim.rtl.netlist.place import place_outputs
from vitral.sim.rtl.netlist.rtlil import NetlistError

__all__ = ["write_cpp"]

_PUBLIC = re.compile(r"\.(?:memory|lane\d+|bank_\d+)$")


class _Writer(Expressions):
    """Statements; `_written` are the registers that may have been set before the present one."""

    def __init__(self, netlist: Netlist) -> None:
        super().__init__()
        self._netlist = netlist
        self._order = Order(netlist)
        self._lines: list[str] = []
        self._written: set[Name] = set()
        self._around: list[tuple[Block, set[Name]]] = []
        self._copies: dict[Block, set[Variable]] = {}

    def current(self, variable: Variable) -> str:
        """The name that still has a variable's value of before the edge."""
        if variable not in self._written:
            return self.name(variable)
        block = next(block for block, before in reversed(self._around) if variable not in before)
        self._copies.setdefault(block, set()).add(variable)
        return f"{self.name(variable)}_old"

    def edge(self, updates: Block, resets: Block) -> list[str]:
        self._lines, self._written = [], set()
        self._around = [(updates, set())]
        self._old(updates, 1)
        self._locals(updates, 1)
        for item in self._order.arranged(updates.items):
            self._item(item, 1)
        self._locals(resets, 1)
        for item in resets.items:
            self._item(item, 1)
        return self._lines

    def outputs(self, block: Block) -> list[str]:
        self._lines, self._written, self._around = [], set(), []
        self._block(block, 1)
        return self._lines

    def _put(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _locals(self, block: Block, depth: int) -> None:
        for local in block.locals:
            if len(local.variables) == len(local.items) == 1 and self._whole(local):
                start = len(self._lines)
                self._item(local.items[0], depth)
                text = self._lines[start].lstrip()
                kind = integer(local.variables[0].width)
                self._lines[start] = "    " * depth + f"{kind} {text}"
                continue
            for variable in local.variables:
                first = self._first(local, variable)
                if variable not in local.outside:
                    text = declaration(variable, self.name(variable))
                    self._put(depth, f"{text}{first};")
                elif first and is_wide(variable.width):
                    size = (variable.width + 7) // 8
                    self._put(depth, f"std::memset({self.name(variable)}, 0, {size});")
                elif first:
                    self._put(depth, f"{self.name(variable)}{first};")
            for item in local.items:
                self._item(item, depth)

    def _whole(self, local: Local) -> bool:
        """Whether one assignment is all there is."""
        (variable,), (item,) = local.variables, local.items
        if is_wide(variable.width) or variable in local.outside:
            return False
        if isinstance(item, Set):
            return width_of(item.value) == variable.width
        return isinstance(item, Fetch) or (isinstance(item, Compute) and _is_plain(item))

    def _first(self, local: Local, variable: Variable) -> str:
        value = local.first.get(variable)
        if value is None:
            return ""
        return " = {}" if is_wide(variable.width) else f" = {constant(value, variable.width)}"

    def _item(self, item: Item, depth: int) -> None:
        if isinstance(item, Branch):
            self._branch(item, depth)
        elif isinstance(item, Set):
            self._assign(item.target, item.low, item.value, depth)
        elif isinstance(item, Compute):
            self._compute(item.node, depth)
        elif isinstance(item, Fetch):
            self._fetch(item, depth)
        else:
            write = item.write
            row = f"{self.name(write.ram)}[{self._address(write.address, write.ram)}]"
            self._assign_to(row, write.ram.width, write.low, write.value, depth)
            self._written.add(write.ram)

    def _address(self, value: Value, ram: Ram) -> str:
        """A row's number; those past the end are row 0."""
        text = self.value(value)
        if 1 << width_of(value) <= ram.depth:
            return text
        return f"({text} < {ram.depth} ? {text} : 0)"

    def _fetch(self, item: Fetch, depth: int) -> None:
        read = item.read
        if read.ram in self._written:
            raise NetlistError(f"no order in which {read.ram.name} is read before it is written")
        name = self.name(read.target)
        row = f"{self.name(read.ram)}[{self._address(read.address, read.ram)}]"
        if is_wide(read.ram.width):
            self._put(depth, f"std::memcpy({name}, {row}, {(read.ram.width + 7) // 8});")
        else:
            self._put(depth, f"{name} = {row};")
        self._written |= {read.target} & self._order.state

    def _assign(self, target: Variable, low: int, value: Value, depth: int) -> None:
        self._assign_to(self.name(target), target.width, low, value, depth)
        self._written |= {target} & self._order.state

    def _assign_to(self, name: str, size: int, low: int, value: Value, depth: int) -> None:
        """Bits of something of `size` bits get a value."""
        width = width_of(value)
        if not is_wide(size):
            text = self.value(value)
            if width < size:
                hole = constant(((1 << size) - 1) & ~(((1 << width) - 1) << low), size)
                text = f"({name} & {hole}) | ({integer(size)}){text} << {low}"
            self._put(depth, f"{name} = {text};")
            return
        for part in value:
            bits = part_width(part)
            if not isinstance(part, str) and is_wide(part[0].width):
                source = self.current(part[0])
                self._put(depth, f"copy<{low}, {part[1]}, {bits}>({name}, {source});")
            elif isinstance(part, str) and bits > 64:
                self._put_constant(name, low, part, depth)
            else:
                kind = "put128" if bits > 64 else "put"
                self._put(depth, f"{kind}<{low}, {bits}>({name}, {self.part(part)});")
            low += bits

    def _put_constant(self, name: str, low: int, part: str, depth: int) -> None:
        if "1" not in part and low % 8 == 0 and len(part) % 8 == 0:
            self._put(depth, f"std::memset({name} + {low // 8}, 0, {len(part) // 8});")
            return
        for at in range(0, len(part), 64):
            bits = part[max(0, len(part) - at - 64) : len(part) - at]
            text = constant(int(bits, 2), len(bits))
            self._put(depth, f"put<{low + at}, {len(bits)}>({name}, {text});")

    def _compute(self, node: Operator, depth: int) -> None:
        name, width = self.name(node.target), node.target.width
        wide = [operand for operand in node.operands if is_wide(width_of(operand))]
        if not wide or node.kind == "dot":
            self._put(depth, f"{name} = {self.operator(node)};")
        elif node.kind == "mux":
            no, yes, choice = node.operands
            self._put(depth, f"if ({self.value(choice)}) {{")
            self._assign(node.target, 0, yes, depth + 1)
            self._put(depth, "} else {")
            self._assign(node.target, 0, no, depth + 1)
            self._put(depth, "}")
        elif node.kind in ("shift", "shr") and width % 8 == 0:
            size = width_of(wide[0])
            amount = self.value(node.operands[1])
            whole = (size + 7) // 8
            first = " = {}" if size % 8 else ""
            self._put(depth, "{")
            self._put(depth + 1, f"uint8_t from[{whole} + kSlack]{first};")
            self._put(depth + 1, f"uint8_t to[{width // 8} + kSlack];")
            self._assign_to("from", size, 0, wide[0], depth + 1)
            self._put(depth + 1, f"shift_right(to, {width}, from, {whole}, {amount});")
            if is_wide(width):
                self._put(depth + 1, f"std::memcpy({name}, to, {width // 8});")
            else:
                kind = "get128" if width > 64 else "get"
                self._put(depth + 1, f"{name} = {kind}<0, {width}>(to);")
            self._put(depth, "}")
        elif node.kind in ("reduce_or", "reduce_bool"):
            texts = [self.any_bit(part) for part in wide[0]]
            self._put(depth, f"{name} = {' | '.join(texts)};")
        else:
            raise NetlistError(f"no C++ for operator {node.kind} of {width_of(wide[0])} bits")

    def _branch(self, branch: Branch, depth: int) -> None:
        value = self.value(branch.value)
        width = width_of(branch.value)
        before = set(self._written)
        after = set(before)
        simple = width == 1 or value.isidentifier()
        if not simple:
            self._put(depth, "{")
            self._put(depth, f"const {integer(width)} choice = {value};")
        for number, (patterns, block) in enumerate(branch.cases):
            self._written = set(before)
            tests = [test(value if simple else "choice", pattern) for pattern in patterns]
            word = "} else " if number else ""
            if tests:
                word += f"if ({' || '.join(tests)}) "
            elif not number:
                word = "if (true) "
            self._put(depth, f"{word}{{")
            self._block(block, depth + 1)
            after |= self._written
        self._put(depth, "}" if simple else "}}")
        self._written = after

    def _block(self, block: Block, depth: int) -> None:
        self._around.append((block, set(self._written)))
        self._old(block, depth)
        self._locals(block, depth)
        for item in self._order.arranged(block.items):
            self._item(item, depth)
        self._around.pop()

    def _old(self, block: Block, depth: int) -> None:
        """Copies of registers that are set in a block before they are read, as found before."""
        for variable in sorted(self._copies.get(block, ()), key=self.name):
            name = self.name(variable)
            if is_wide(variable.width):
                self._put(depth, f"{declaration(variable, f'{name}_old')};")
                self._put(depth, f"std::memcpy({name}_old, {name}, sizeof {name});")
            else:
                self._put(depth, f"const {integer(variable.width)} {name}_old = {name};")

    def state(self) -> list[str]:
        """Registers with their first values, and memories."""
        registers = [register for register, _ in self._netlist.registers]
        registers += [read.target for read in self._netlist.reads]
        lines = []
        for variable in registers:
            init = int(variable.init or "0", 2)
            wide = is_wide(variable.width)
            first = "{}" if wide else constant(init, variable.width)
            if wide and init:
                raise NetlistError(f"{variable.name} is too wide for a first value")
            lines.append(f"    {declaration(variable, self.name(variable))} = {first};")
        for ram in self._netlist.rams:
            lines.append(f"    {_row(ram, self.name(ram))} = {{}};")
        return lines

    def visits(self) -> list[str]:
        """Calls of `visit(name, data, bytes of a row, rows)`."""
        lines = []
        for ram in self._netlist.rams:
            if _PUBLIC.search(ram.name):
                name = self.name(ram)
                lines.append(f'        visit("{ram.name}", {name}, sizeof {name}[0], {ram.depth});')
        return lines


def write_cpp(netlist: Netlist, name: str) -> str:
    """C++ of a class `name`: ports and probes as members, its memories, and what moves it.

    `edge()` is a rising edge of the one clock, with the inputs as they are; `settle()` gives the
    outputs their values, `probe()` the probes.

    Raises
    ------
    ValueError
        When an output depends on an input: it would have to settle twice in a cycle.
    """
    find_dots(netlist)
    writer = _Writer(netlist)
    outputs = [(Variable(title, width_of(value)), value) for title, value in netlist.outputs]
    probes = [(Variable(title, width_of(value)), value) for title, value in netlist.probes]
    ports = [*netlist.inputs, *(variable for variable, _ in (*outputs, *probes))]
    for variable in ports:
        writer.name(variable)
    settle = writer.outputs(place_outputs(netlist, outputs))
    probe = writer.outputs(place_outputs(netlist, probes))
    _check_outputs(netlist)
    updates, resets = place_edge(netlist)
    writer.edge(updates, resets)  # once to learn which copies are needed
    functions = {"edge": writer.edge(updates, resets), "settle": settle, "probe": probe}
    lines = [
        '#include "words.h"',
        "",
        "namespace vitral {",
        "",
        f"struct {name} {{",
        f"    static constexpr unsigned kBeat = {_beat_bytes(netlist)};",
        *(f"    {_port(variable, writer.name(variable))};" for variable in ports),
        *writer.state(),
        "    template <class Visitor> void memories(Visitor&& visit) {",
        *writer.visits(),
        "    }",
        *(f"    void {title}();" for title in functions),
        "};",
    ]
    for title, body in functions.items():
        lines += ["", f"inline void {name}::{title}() {{", *body, "}"]
    return "\n".join([*lines, "", "}  // namespace vitral", ""])


def _check_outputs(netlist: Netlist) -> None:
    inputs = set(netlist.inputs)
    for name, value in netlist.outputs:
        stack, seen = list(variables(value)), set()
        while stack:
            variable = stack.pop()
            if variable in inputs:
                raise NetlistError(f"output {name} depends on input {variable.name} in one cycle")
            if variable in netlist.nodes and variable not in seen:
                seen.add(variable)
                stack += node_reads(netlist.nodes[variable])


def _beat_bytes(netlist: Netlist) -> int:
    """Bytes of the memory port's data."""
    return next((v.width // 8 for v in netlist.inputs if v.name == "m_axi_rdata"), 0)


def _port(variable: Variable, name: str) -> str:
    return f"{declaration(variable, name)} = {'{}' if is_wide(variable.width) else 0}"


def _is_plain(item: Compute) -> bool:
    """Whether an operator is written as one expression."""
    return item.node.kind == "dot" or not any(
        is_wide(width_of(operand)) for operand in item.node.operands
    )


def _row_bytes(ram: Ram) -> str:
    """Bytes of a wide row; with odd bits also those behind it that `put` reads and writes again."""
    return f"{ram.width // 8}" if ram.width % 8 == 0 else f"{(ram.width + 7) // 8} + kSlack"


def _row(ram: Ram, name: str) -> str:
    if is_wide(ram.width):
        return f"alignas(64) uint8_t {name}[{ram.depth}][{_row_bytes(ram)}]"
    return f"{integer(ram.width)} {name}[{ram.depth}]"
