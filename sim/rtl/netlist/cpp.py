"""Writes placed blocks as the C++ of a class with one function per clock edge.

Registers are set in the order of the text, so each must be read before it is set. Items are
ordered so where they can be; where two registers need each other, the reader gets a copy that is
taken before. Values of up to 128 bits are integers, wider ones arrays of bytes (words.h).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vitral.sim.rtl.netlist.dots import find_dots
from vitral.sim.rtl.netlist.flatten import (
    Netlist,
    Operator,
    Part,
    Ram,
    Value,
    Variable,
    part_width,
    width_of,
)
from vitral.sim.rtl.netlist.gate import place_edge
from vitral.sim.rtl.netlist.place import (
    Block,
    Branch,
    Compute,
    Fetch,
    Item,
    Local,
    Set,
    Store,
    place_outputs,
    values_of,
    variables,
)

__all__ = ["write_cpp"]

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "divfloor": "/",
    "modfloor": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_PUBLIC = re.compile(r"\.(?:memory|lane\d+|bank_\d+)$")
WIDEST = 128
"""Bits of the widest integer."""

UNMOVABLE = 1 << 20
"""Price of a copy of a memory."""

Name = Variable | Ram


@dataclass
class _Effects:
    """What items read and write of registers and memories."""

    reads: set[Name] = field(default_factory=set)
    writes: set[Name] = field(default_factory=set)


class _Writer:
    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self._state: set[Name] = {register for register, _ in netlist.registers}
        self._state |= {read.target for read in netlist.reads} | set(netlist.rams)
        self._names: dict[Name, str] = {}
        self._taken: set[str] = set()
        self._lines: list[str] = []
        self._written: set[Name] = set()
        self._around: list[tuple[Block, set[Name]]] = []
        self._copies: dict[int, set[Variable]] = {}
        self._effects: dict[int, _Effects] = {}

    # Names and values

    def name(self, thing: Name) -> str:
        if thing not in self._names:
            text = re.sub(r"\W", "_", thing.name)
            while text in self._taken or not text[0].isalpha():
                text = f"v{text}" if not text[0].isalpha() else f"{text}_"
            self._taken.add(text)
            self._names[thing] = text
        return self._names[thing]

    def _read(self, variable: Variable) -> str:
        """The name that still has a variable's value of before the edge."""
        if variable not in self._written:
            return self.name(variable)
        block = next(block for block, before in reversed(self._around) if variable not in before)
        self._copies.setdefault(id(block), set()).add(variable)
        return f"{self.name(variable)}_old"

    def _part(self, part: Part) -> str:
        """Up to 128 bits as an integer."""
        if isinstance(part, str):
            return _constant(int(part, 2), len(part))
        variable, low, width = part
        name = self._read(variable)
        if is_wide(variable.width):
            return f"get{'128' if width > 64 else ''}<{low}, {width}>({name})"
        if width == variable.width:
            return name
        shifted = f"({name} >> {low})" if low else name
        if width <= 64 < variable.width:
            shifted = f"(uint64_t){shifted}"
        if low + width == variable.width:
            return shifted
        return f"({shifted} & {_constant((1 << width) - 1, width)})"

    def value(self, value: Value) -> str:
        """Up to 128 bits as an integer."""
        width = width_of(value)
        texts, at = [], 0
        for part in value:
            size = part_width(part)
            text = self._part(part)
            if at:
                text = f"({_type(width)}){text} << {at}"
            if not isinstance(part, str) or "1" in part:
                texts.append(f"({text})" if at else text)
            at += size
        if not texts:
            return "0"
        return texts[0] if len(texts) == 1 else "(" + " | ".join(texts) + ")"

    def _number(self, value: Value, width: int, signed: bool) -> str:
        """An operand, extended to `width` bits or more."""
        own = width_of(value)
        text = self.value(value)
        if not own:
            return "0"
        if all(isinstance(part, str) for part in value):
            number = int("".join(str(part) for part in reversed(value)), 2)
            if not signed or not number >> (own - 1):
                return f"({_type(max(own, width))}){_constant(number, own)}"
        if signed:
            return f"sext128<{own}>({text})" if width > 64 else f"sext<{own}>({text})"
        return f"({_type(max(own, width))}){text}"

    def _dot(self, node: Operator) -> str:
        pointers = []
        for operand in node.operands:
            (part,) = operand
            assert not isinstance(part, str)
            name = self._read(part[0])
            address = name if is_wide(part[0].width) else f"(const uint8_t*)&{name}"
            pointers.append(f"{address} + {part[1] // 8}")
        text = f"(int64_t)dot<{width_of(node.operands[0]) // 8}>({', '.join(pointers)})"
        return self._reduced(text, node.target.width, False)

    def _operator(self, node: Operator) -> str:
        """The result as an integer, reduced to its width."""
        width = node.target.width
        kind, signed = node.kind, node.signed
        if kind == "dot":
            return self._dot(node)
        sizes = [width_of(operand) for operand in node.operands]
        if kind == "mux":
            no, yes, choice = (self.value(operand) for operand in node.operands)
            return f"{choice} ? {yes} : {no}"
        if kind in ("add", "sub", "mul", "and", "or", "xor"):
            left, right = (self._number(operand, width, signed) for operand in node.operands)
            text = f"{left} {_INFIX[kind]} {right}"
            return self._reduced(text, width, self._fits(node, sizes))
        if kind in ("eq", "ne", "lt", "le", "gt", "ge"):
            most = max(sizes)
            left, right = (self._number(operand, most, signed) for operand in node.operands)
            return f"{left} {_INFIX[kind]} {right}"
        if kind in ("not", "neg"):
            sign = "~" if kind == "not" else "-"
            if kind == "not" and width == 1 == sizes[0]:
                return f"{self.value(node.operands[0])} ^ 1"
            return self._reduced(
                f"{sign}{self._number(node.operands[0], width, signed)}", width, False
            )
        if kind in ("shl", "shr", "sshr", "shift"):
            return self._shifted(node, sizes)
        if kind in ("reduce_or", "reduce_bool"):
            return " | ".join(self._any(part) for part in node.operands[0])
        if kind == "reduce_and":
            ones = _constant((1 << sizes[0]) - 1, sizes[0])
            return f"{self.value(node.operands[0])} == {ones}"
        if kind == "reduce_xor" and sizes[0] <= 64:
            return f"__builtin_parityll({self.value(node.operands[0])})"
        if kind == "divfloor" and all(isinstance(part, str) for part in node.operands[1]):
            return self._divided(node, max(sizes))
        raise ValueError(f"no C++ for operator {kind} of {sizes} bits")

    def _divided(self, node: Operator, most: int) -> str:
        """A quotient by a constant power of two, rounded down."""
        divisor = int("".join(str(part) for part in reversed(node.operands[1])), 2)
        if divisor & (divisor - 1) or not divisor or divisor >> (width_of(node.operands[1]) - 1):
            raise ValueError(f"no C++ for a division by {divisor}")
        value = self._number(node.operands[0], most, node.signed)
        return self._reduced(f"{value} >> {divisor.bit_length() - 1}", node.target.width, False)

    def _fits(self, node: Operator, sizes: list[int]) -> bool:
        """Whether the result cannot have bits above its width."""
        if node.kind in ("and", "or", "xor"):
            return not node.signed and max(sizes) <= node.target.width
        if node.signed:
            return False
        if node.kind == "add":
            return max(sizes) < node.target.width
        return node.kind == "mul" and sum(sizes) <= node.target.width

    def _reduced(self, text: str, width: int, fits: bool) -> str:
        kind = _type(width)
        if fits or width == _size(width):
            return f"({kind})({text})"
        return f"({kind})({text}) & {_constant((1 << width) - 1, width)}"

    def _shifted(self, node: Operator, sizes: list[int]) -> str:
        width = node.target.width
        most = max(width, sizes[0])
        size = _size(most)
        amount = self.value(node.operands[1])
        guarded = (1 << sizes[1]) - 1 >= size
        if node.kind == "sshr" and node.signed:
            amount = f"({amount} < {size} ? {amount} : {size - 1})" if guarded else f"{amount}"
            text = f"{self._number(node.operands[0], most, True)} >> {amount}"
            return self._reduced(text, width, False)
        value = self._number(node.operands[0], most, node.signed)
        if node.signed:
            value = f"({self._reduced(value, most, False)})"
        sign = "<<" if node.kind == "shl" else ">>"
        text = f"({_type(most)}){value} {sign} {amount}"
        if guarded:
            text = f"{amount} < {size} ? {text} : 0"
        return self._reduced(text, width, False)

    # Effects and order

    def effects(self, item: Item) -> _Effects:
        found = self._effects.get(id(item))
        if found is None:
            found = self._effects[id(item)] = _Effects()
            if isinstance(item, Branch):
                found.reads |= {v for v in variables(item.value) if v in self._state}
                for _, block in item.cases:
                    self._block_effects(block, found)
            else:
                for value in values_of(item):
                    found.reads |= {v for v in variables(value) if v in self._state}
                if isinstance(item, Set):
                    found.writes |= {item.target} & self._state
                elif isinstance(item, Fetch):
                    found.reads.add(item.read.ram)
                    found.writes |= {item.read.target} & self._state
                elif isinstance(item, Store):
                    found.writes.add(item.write.ram)
        return found

    def _block_effects(self, block: Block, found: _Effects) -> None:
        for inner in (*(i for local in block.locals for i in local.items), *block.items):
            effects = self.effects(inner)
            found.reads |= effects.reads
            found.writes |= effects.writes

    def ordered(self, items: Sequence[Item]) -> list[Item]:
        """Readers before writers, as far as possible at the least price in copies."""
        left = list(items)
        readers: dict[Name, int] = {}
        for item in left:
            for name in self.effects(item).reads:
                readers[name] = readers.get(name, 0) + 1
        result: list[Item] = []
        while left:
            blocked: set[Name] = set()  # written by an item that has to stay before
            best, lowest = 0, 1 << 40
            for n, item in enumerate(left):
                effects = self.effects(item)
                if not effects.writes & blocked:
                    price = sum(
                        _price(name)
                        for name in effects.writes
                        if readers.get(name, 0) > (name in effects.reads)
                    )
                    if price < lowest:
                        best, lowest = n, price
                        if not price:
                            break
                blocked |= effects.writes
            item = left.pop(best)
            for name in self.effects(item).reads:
                readers[name] -= 1
            result.append(item)
        return result

    # Text

    def edge(self, updates: Block, resets: Block) -> list[str]:
        self._lines, self._written = [], set()
        self._around = [(updates, set())]
        self._old(updates, 1)
        self._locals(updates, 1)
        for item in self.ordered(updates.items):
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
                kind = _type(local.variables[0].width)
                self._lines[start] = "    " * depth + f"{kind} {text}"
                continue
            for variable in local.variables:
                first = self._first(local, variable)
                if variable not in local.outside:
                    text = declaration(variable, self.name(variable))
                    self._put(depth, f"{text}{first};")
                elif first and is_wide(variable.width):
                    self._put(depth, f"std::memset({self.name(variable)}, 0, {variable.width // 8});")
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
        return " = {}" if is_wide(variable.width) else f" = {_constant(value, variable.width)}"

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

    def _address(self, value: Value, ram: Ram) -> str:
        """A row's number; those past the end are row 0."""
        text = self.value(value)
        if 1 << width_of(value) <= ram.depth:
            return text
        return f"({text} < {ram.depth} ? {text} : 0)"

    def _fetch(self, item: Fetch, depth: int) -> None:
        read = item.read
        name = self.name(read.target)
        row = f"{self.name(read.ram)}[{self._address(read.address, read.ram)}]"
        if is_wide(read.ram.width):
            self._put(depth, f"std::memcpy({name}, {row}, {read.ram.width // 8});")
        else:
            self._put(depth, f"{name} = {row};")
        self._written |= {read.target} & self._state

    def _assign(self, target: Variable, low: int, value: Value, depth: int) -> None:
        self._assign_to(self.name(target), target.width, low, value, depth)
        self._written |= {target} & self._state

    def _assign_to(self, name: str, size: int, low: int, value: Value, depth: int) -> None:
        """Bits of something of `size` bits get a value."""
        width = width_of(value)
        if not is_wide(size):
            text = self.value(value)
            if width < size:
                hole = _constant(((1 << size) - 1) & ~(((1 << width) - 1) << low), size)
                text = f"({name} & {hole}) | ({_type(size)}){text} << {low}"
            self._put(depth, f"{name} = {text};")
            return
        for part in value:
            bits = part_width(part)
            if not isinstance(part, str) and is_wide(part[0].width):
                source = self._read(part[0])
                self._put(depth, f"copy<{low}, {part[1]}, {bits}>({name}, {source});")
            elif isinstance(part, str) and bits > 64:
                self._put_constant(name, low, part, depth)
            else:
                kind = "put128" if bits > 64 else "put"
                self._put(depth, f"{kind}<{low}, {bits}>({name}, {self._part(part)});")
            low += bits

    def _put_constant(self, name: str, low: int, part: str, depth: int) -> None:
        if "1" not in part and low % 8 == 0 and len(part) % 8 == 0:
            self._put(depth, f"std::memset({name} + {low // 8}, 0, {len(part) // 8});")
            return
        for at in range(0, len(part), 64):
            bits = part[max(0, len(part) - at - 64) : len(part) - at]
            text = _constant(int(bits, 2), len(bits))
            self._put(depth, f"put<{low + at}, {len(bits)}>({name}, {text});")

    def _compute(self, node: Operator, depth: int) -> None:
        name, width = self.name(node.target), node.target.width
        wide = [operand for operand in node.operands if is_wide(width_of(operand))]
        if not wide or node.kind == "dot":
            self._put(depth, f"{name} = {self._operator(node)};")
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
            self._put(depth, "{")
            self._put(depth + 1, f"uint8_t from[{size // 8} + kSlack], to[{width // 8} + kSlack];")
            self._assign_to("from", size, 0, wide[0], depth + 1)
            self._put(depth + 1, f"shift_right(to, {width}, from, {size // 8}, {amount});")
            if is_wide(width):
                self._put(depth + 1, f"std::memcpy({name}, to, {width // 8});")
            else:
                kind = "get128" if width > 64 else "get"
                self._put(depth + 1, f"{name} = {kind}<0, {width}>(to);")
            self._put(depth, "}")
        elif node.kind in ("reduce_or", "reduce_bool"):
            texts = [self._any(part) for part in wide[0]]
            self._put(depth, f"{name} = {' | '.join(texts)};")
        else:
            raise ValueError(f"no C++ for operator {node.kind} of {width_of(wide[0])} bits")

    def _any(self, part: Part) -> str:
        """Whether any bit is set."""
        if isinstance(part, str):
            return "1" if "1" in part else "0"
        variable, low, width = part
        if width == 1:
            return self._part(part)
        pieces = [(variable, low + at, min(64, width - at)) for at in range(0, width, 64)]
        return " | ".join(f"({self._part(piece)} != 0)" for piece in pieces)

    def _branch(self, branch: Branch, depth: int) -> None:
        value = self.value(branch.value)
        width = width_of(branch.value)
        before = set(self._written)
        after = set(before)
        simple = width == 1 or value.isidentifier()
        if not simple:
            self._put(depth, "{")
            self._put(depth, f"const {_type(width)} choice = {value};")
        for number, (patterns, block) in enumerate(branch.cases):
            self._written = set(before)
            tests = [_test(value if simple else "choice", pattern) for pattern in patterns]
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
        for item in self.ordered(block.items):
            self._item(item, depth)
        self._around.pop()

    def _old(self, block: Block, depth: int) -> None:
        """Copies of registers that are set in a block before they are read, as found before."""
        for variable in sorted(self._copies.get(id(block), ()), key=self.name):
            name = self.name(variable)
            if is_wide(variable.width):
                self._put(depth, f"{declaration(variable, f'{name}_old')};")
                self._put(depth, f"std::memcpy({name}_old, {name}, sizeof {name});")
            else:
                self._put(depth, f"const {_type(variable.width)} {name}_old = {name};")

    # Declarations

    def state(self) -> list[str]:
        """Registers with their first values, and memories."""
        registers = [register for register, _ in self._netlist.registers]
        registers += [read.target for read in self._netlist.reads]
        lines = []
        for variable in registers:
            init = int(variable.init or "0", 2)
            wide = is_wide(variable.width)
            first = "{}" if wide else _constant(init, variable.width)
            if wide and init:
                raise ValueError(f"{variable.name} is too wide for a first value")
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
                lines.append(
                    f'        visit("{ram.name}", {name}, sizeof {name}[0], {ram.depth});'
                )
        return lines


def _price(name: Name) -> int:
    return UNMOVABLE if isinstance(name, Ram) else 1 + name.width // 32


def is_wide(width: int) -> bool:
    """Whether a value of that width is an array of bytes."""
    return width > WIDEST


def _size(width: int) -> int:
    """Bits of the integer that holds a value."""
    return next(size for size in (32, 64, 128) if width <= size)


def _type(width: int) -> str:
    return {32: "uint32_t", 64: "uint64_t", 128: "u128"}[_size(width)]


def _constant(value: int, width: int) -> str:
    if width <= 32:
        return f"{value:#x}u" if value > 9 else f"{value}u"
    if width <= 64:
        return f"{value:#x}ull"
    return f"((u128){value >> 64:#x}ull << 64 | {value & (1 << 64) - 1:#x}ull)"


def _test(value: str, pattern: str) -> str:
    """Whether a value matches a pattern."""
    if pattern == "1":
        return value
    care = int("".join("0" if bit == "-" else "1" for bit in pattern), 2)
    wanted = int(pattern.replace("-", "0"), 2)
    width = len(pattern)
    if "-" not in pattern:
        return f"{value} == {_constant(wanted, width)}"
    return f"({value} & {_constant(care, width)}) == {_constant(wanted, width)}"


def declaration(variable: Variable, name: str) -> str:
    """A variable's type and name."""
    if is_wide(variable.width):
        return f"alignas(64) uint8_t {name}[{(variable.width + 7) // 8} + kSlack]"
    return f"{_type(variable.width)} {name}"


def write_cpp(netlist: Netlist, name: str) -> str:
    """C++ of a class `name`: ports as members, `edge()` and `settle()`, and its memories.

    `edge` is a rising edge of the one clock, with the inputs as they are; `settle` gives the
    outputs their values, which must depend on registers only.
    """
    find_dots(netlist)
    writer = _Writer(netlist)
    outputs = [(Variable(title, width_of(value)), value) for title, value in netlist.outputs]
    for variable in (*netlist.inputs, *(variable for variable, _ in outputs)):
        writer.name(variable)
    shown = place_outputs(netlist, outputs)
    updates, resets = place_edge(netlist)
    writer.edge(updates, resets)  # once to learn which copies are needed
    edge = writer.edge(updates, resets)
    settle = writer.outputs(shown)
    return "\n".join(
        [
            '#include "words.h"',
            "",
            "namespace vitral {",
            f"struct {name} {{",
            f"    static constexpr unsigned kBeat = {_beat_bytes(netlist)};",
            *(f"    {_port(v, writer.name(v))};" for v in netlist.inputs),
            *(f"    {_port(v, writer.name(v))};" for v, _ in outputs),
            *writer.state(),
            "    template <class Visitor> void memories(Visitor&& visit) {",
            *writer.visits(),
            "    }",
            f"    void edge(); void settle();",
            "};",
            f"inline void {name}::edge() {{",
            *edge,
            "}",
            f"inline void {name}::settle() {{",
            *settle,
            "}",
            "}  // namespace vitral",
            "",
        ]
    )


def _beat_bytes(netlist: Netlist) -> int:
    """Bytes of the memory port's data."""
    return next((v.width // 8 for v in netlist.inputs if v.name == "m_axi_rdata"), 0)


def _port(variable: Variable, name: str) -> str:
    """Ports wider than 64 bits are arrays of bytes."""
    if variable.width > WIDEST:
        return f"{declaration(variable, name)} = {{}}"
    return f"{_type(variable.width)} {name} = 0"


def _is_plain(item: Compute) -> bool:
    """Whether an operator is written as one expression."""
    return item.node.kind == "dot" or not any(is_wide(width_of(operand)) for operand in item.node.operands)


def _row(ram: Ram, name: str) -> str:
    if is_wide(ram.width):
        return f"alignas(64) uint8_t {name}[{ram.depth}][{ram.width // 8}]"
    return f"{_type(ram.width)} {name}[{ram.depth}]"
