"""Writes placed blocks as C++ statements.

Registers are read where they are and set where their next values are kept, so that the order of
statements does not matter; only memories have to be read before they are written.
"""

from collections.abc import Iterable

from vitral.sim.rtl.netlist.expressions import (
    Expressions,
    constant,
    declaration,
    integer,
    is_wide,
    test,
)
from vitral.sim.rtl.netlist.fold import is_constant
from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Compute,
    Fetch,
    Item,
    Local,
    Set,
    block_reads,
)
from vitral.sim.rtl.netlist.netlist import (
    Operator,
    Ram,
    Value,
    Variable,
    part_width,
    width_of,
)
from vitral.sim.rtl.netlist.rtlil import NetlistError

__all__ = ["Statements"]


class Statements(Expressions):
    """Statements of blocks; `next` are the names under which state is set, `now` where it is read.

    `marks` are statements that follow when a memory was written, `flags` are set with registers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now: dict[Variable, str] = {}
        self.next: dict[Variable, str] = {}
        self.kept: dict[Variable, str] = {}
        self.marks: dict[Ram, str] = {}
        self.flags: dict[Variable, str] = {}
        self._lines: list[str] = []

    def current(self, variable: Variable) -> str:
        return self.kept.get(variable) or self.now.get(variable) or self.name(variable)

    def target(self, variable: Variable) -> str:
        """The name under which a variable is set."""
        return self.next.get(variable) or self.name(variable)

    def lines(self, blocks: Iterable[Block], depth: int = 1) -> list[str]:
        """Statements of blocks, one after the other."""
        self._lines = []
        for block in blocks:
            self._block(block, depth)
        return self._lines

    def _put(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _local(self, local: Local, depth: int) -> None:
        if len(local.items) == 1 and self._whole(local):
            start = len(self._lines)
            self._item(local.items[0], depth)
            text = self._lines[start].lstrip()
            kind = integer(local.variable.width)
            self._lines[start] = "    " * depth + f"{kind} {text}"
            return
        text = declaration(local.variable, self.name(local.variable))
        self._put(depth, f"{text};")
        for item in local.items:
            self._item(item, depth)

    def _whole(self, local: Local) -> bool:
        """Whether one assignment is all there is."""
        (item,) = local.items
        if is_wide(local.variable.width):
            return False
        if isinstance(item, Set):
            return width_of(item.value) == local.variable.width
        return isinstance(item, Fetch) or (isinstance(item, Compute) and _is_plain(item))

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
            if self.marks.get(write.ram):
                self._put(depth, self.marks[write.ram])

    def _address(self, value: Value, ram: Ram) -> str:
        """A row's number; those past the end are row 0."""
        text = self.value(value)
        if 1 << width_of(value) <= ram.depth:
            return text
        return f"({text} < {ram.depth} ? {text} : 0)"

    def _fetch(self, item: Fetch, depth: int) -> None:
        read = item.read
        name = self.target(read.target)
        row = f"{self.name(read.ram)}[{self._address(read.address, read.ram)}]"
        if is_wide(read.ram.width):
            self._put(depth, f"move<{(read.ram.width + 7) // 8}>({name}, {row});")
        else:
            self._put(depth, f"{name} = {row};")
        self._flag(read.target, depth)

    def _assign(self, target: Variable, low: int, value: Value, depth: int) -> None:
        name = self.target(target)
        whole = width_of(value) == target.width and not is_wide(target.width)
        if target in self.flags and whole and is_constant(value):
            self._put(depth, f"if ({name} != {self.value(value)}) {self.flags[target]} = true;")
            self._put(depth, f"{name} = {self.value(value)};")
            return
        self._assign_to(name, target.width, low, value, depth)
        self._flag(target, depth)

    def _flag(self, target: Variable, depth: int) -> None:
        if target in self.flags:
            self._put(depth, f"{self.flags[target]} = true;")

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
            self._put(depth, f"{name} = {self.any_of(wide[0])};")
        else:
            raise NetlistError(f"no C++ for operator {node.kind} of {width_of(wide[0])} bits")

    def _branch(self, branch: Branch, depth: int) -> None:
        value = self.value(branch.value)
        width = width_of(branch.value)
        simple = width == 1 or value.isidentifier()
        if not simple:
            self._put(depth, "{")
            self._put(depth, f"const {integer(width)} choice = {value};")
        for number, (patterns, block) in enumerate(branch.cases):
            tests = [test(value if simple else "choice", pattern) for pattern in patterns]
            word = "} else " if number else ""
            if tests:
                word += f"if ({' || '.join(tests)}) "
            elif not number:
                word = "if (true) "
            self._put(depth, f"{word}{{")
            self._block(block, depth + 1)
        self._put(depth, "}" if simple else "}}")

    def _block(self, block: Block, depth: int) -> None:
        """Items, each after the locals that it is the first to need; memories are read first."""
        if block.note:
            self._put(depth, block.note)
        waiting = {local.variable: local for local in block.locals}
        for local in block.locals:
            if any(isinstance(item, Fetch) for item in local.items):
                self._need(local.variable, waiting, depth)
        for item in block.items:
            for variable in sorted(_reads(item) & waiting.keys(), key=self.name):
                self._need(variable, waiting, depth)
            self._item(item, depth)
        if not block.depth:  # what follows needs the others
            for local in block.locals:
                self._need(local.variable, waiting, depth)

    def _need(self, variable: Variable, waiting: dict[Variable, Local], depth: int) -> None:
        """Writes a local after those that it needs, unless that was done."""
        local = waiting.pop(variable, None)
        if local is not None:
            reads = {v for item in local.items for v in _reads(item)}
            for needed in sorted(reads & waiting.keys(), key=self.name):
                self._need(needed, waiting, depth)
            self._local(local, depth)


def _reads(item: Item) -> set[Variable]:
    """All variables that an item, or what is inside it, reads."""
    block = Block()
    block.items = [item]
    return {thing for thing in block_reads(block) if isinstance(thing, Variable)}


def _is_plain(item: Compute) -> bool:
    """Whether an operator is written as one expression."""
    return item.node.kind == "dot" or not any(
        is_wide(width_of(operand)) for operand in item.node.operands
    )
