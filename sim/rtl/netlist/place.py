"""Puts every computation where its result is used, and nowhere else.

What a clock edge does is a list of *items*: sets of registers and memories, many of them in
branches. An operator or decision goes into the innermost block that holds all its users, so that
it costs nothing in a cycle in which no branch with a user is taken. Gates of one bit and
multiplexers become branches themselves when what they hide is worth it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vitral.sim.rtl.netlist.flatten import (
    Choice,
    Decision,
    Netlist,
    Node,
    Operator,
    Put,
    Ram,
    Read,
    Step,
    Value,
    Variable,
    Write,
    bit_of,
)
from vitral.sim.rtl.netlist.rtlil import NetlistError

__all__ = [
    "Block",
    "Branch",
    "Compute",
    "Fetch",
    "Item",
    "Local",
    "Set",
    "Store",
    "edge_items",
    "node_reads",
    "place",
    "place_outputs",
    "values_of",
    "variables",
    "written",
]

WORTH = 3
"""Operations that a branch must save in the cycles in which it is not taken."""

COMMON_RESET = 16
"""Registers that a signal must reset for these resets to be done together, after all else."""


class Block:
    """Computations in their order, then items, executed together."""

    def __init__(self, parent: "Block | None" = None) -> None:
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.locals: list[Local] = []
        self.items: list[Item] = []


@dataclass(eq=False)
class Set:
    """Bits of a variable from `low` on get a value."""

    target: Variable
    low: int
    value: Value


@dataclass(eq=False)
class Compute:
    """A variable gets an operator's result."""

    node: Operator


@dataclass(eq=False)
class Fetch:
    """A variable gets a word of a memory."""

    read: Read


@dataclass(eq=False)
class Store:
    """A memory gets bits of a word."""

    write: Write


@dataclass(eq=False)
class Branch:
    """The first case with a matching pattern; one without patterns matches always."""

    value: Value
    cases: list[tuple[tuple[str, ...], Block]]


Cases = tuple[tuple[tuple[str, ...], tuple[Step, ...]], ...]
Item = Set | Compute | Fetch | Store | Branch


@dataclass(eq=False)
class Local:
    """Variables, and the items that give them their values; those `outside` live further out."""

    variables: list[Variable]
    items: list[Item]
    first: dict[Variable, int] = field(default_factory=dict)
    outside: set[Variable] = field(default_factory=set)


def variables(value: Value) -> Iterator[Variable]:
    for part in value:
        if not isinstance(part, str):
            yield part[0]


def edge_items(netlist: Netlist) -> tuple[Block, Block]:
    """What a clock edge does: the updates, and the resets that come after them.

    Decisions that only give a register its next value are taken out of the netlist.
    """
    updates, resets = Block(), Block()
    resets.parent, resets.depth = updates, 1
    _add_registers(netlist, updates, resets)
    _add_memories(netlist, updates)
    return updates, resets


def place_outputs(netlist: Netlist, outputs: Iterable[tuple[Variable, Value]]) -> Block:
    """What gives the outputs their values."""
    block = Block()
    block.items += [Set(variable, 0, value) for variable, value in outputs]
    place(netlist.nodes, [block])
    return block


def _add_registers(netlist: Netlist, updates: Block, resets: Block) -> None:
    """Next values as branches; those with the same conditions together."""
    uses = Counter(v for _, value in netlist.registers for v in set(variables(value)))
    for node in netlist.nodes.values():
        uses.update(set(node_reads(node)))
    bodies: list[tuple[Variable, int, list[Step]]] = []
    for register, value in netlist.registers:
        low = 0
        for part in value:
            width = len(part) if isinstance(part, str) else part[2]
            node = None if isinstance(part, str) else netlist.nodes.get(part[0])
            hold = Put(0, ((register, low, width),))
            if (
                isinstance(node, Decision)
                and part == (node.target, 0, node.target.width)
                and uses[node.target] == 1
            ):
                steps = [step for step in node.body if step != hold]
                bodies.append((register, low, steps))
                del netlist.nodes[node.target]
            else:
                bodies.append((register, low, [Put(0, (part,))]))
            low += width
    common = Counter(step.value for _, _, steps in bodies for step in _resets(steps))
    late: dict[Value, list[Item]] = {}
    for register, low, steps in bodies:
        while steps and _is_reset(steps[-1]) and common[steps[-1].value] >= COMMON_RESET:
            last = steps.pop()
            (branch,) = _items(register, [last], resets, low)
            late.setdefault(last.value, []).append(branch)
    resets.items = [item for items in reversed(late.values()) for item in _merged(items)]
    groups: dict[tuple[Value | None, ...], list[Item]] = {}
    for register, low, steps in bodies:
        items = _items(register, steps, updates, low)
        key = tuple(step.value if isinstance(step, Choice) else None for step in steps)
        lone = (None,) if len(key) == 1 and key[0] is None else ()
        groups.setdefault((*key, *([((register, low, 0),)] if lone else [])), []).extend(items)
    for items in groups.values():
        updates.items += _merged(items)


def _resets(steps: Sequence[Step]) -> Iterator[Choice]:
    for step in reversed(steps):
        if not _is_reset(step):
            return
        assert isinstance(step, Choice)
        yield step


def _is_reset(step: Step) -> bool:
    """One condition under which bits become constants."""
    if not isinstance(step, Choice) or len(step.cases) != 1 or step.cases[0][0] != ("1",):
        return False
    return all(
        isinstance(put, Put) and all(isinstance(part, str) for part in put.value)
        for put in step.cases[0][1]
    )


def _items(target: Variable, steps: Iterable[Step], block: Block, low: int = 0) -> list[Item]:
    """Steps for bits of a target from `low` on as items of `block`."""
    items: list[Item] = []
    for step in steps:
        if isinstance(step, Put):
            items.append(Set(target, low + step.low, step.value))
        elif _is_chain(step):
            items += _chain(target, step.value, step.cases, block, low)
        else:
            cases = []
            for patterns, inner in step.cases:
                case = Block(block)
                case.items = _items(target, inner, case, low)
                cases.append((patterns, case))
            items.append(Branch(step.value, cases))
    return items


def _is_chain(choice: Choice) -> bool:
    """If, else if, ...: every case asks for one bit of several."""
    return (
        len(choice.cases[0][0]) == 1
        and len(choice.cases[0][0][0]) > 1
        and all(
            len(patterns) <= 1 and all(len(p) - p.count("-") == 1 for p in patterns)
            for patterns, _ in choice.cases
        )
    )


def _chain(target: Variable, value: Value, cases: Cases, block: Block, low: int) -> list[Item]:
    """Each bit is asked for only when the ones before it were not set."""
    if not cases:
        return []
    (patterns, steps), *others = cases
    if not patterns:
        return _items(target, steps, block, low)
    place = len(patterns[0]) - 1 - next(n for n, bit in enumerate(patterns[0]) if bit != "-")
    yes, no = Block(block), Block(block)
    yes.items = _items(target, steps, yes, low)
    no.items = _chain(target, value, tuple(others), no, low)
    branch = Branch(bit_of(value, place), [((patterns[0].strip("-"),), yes), ((), no)])
    return [branch] if yes.items or no.items else []


def _merged(items: Sequence[Item]) -> list[Item]:
    """Branches on the same value with the same patterns as one, when no target is in between."""
    result: list[Item] = []
    for item in items:
        other = _partner(result, item) if isinstance(item, Branch) else None
        if other is None:
            result.append(item)
            continue
        assert isinstance(item, Branch)
        for (_, into), (_, block) in zip(other.cases, item.cases, strict=True):
            for inner in block.items:
                _adopt(inner, into)
                into.items.append(inner)
    for item in result:
        if isinstance(item, Branch):
            for _, block in item.cases:
                block.items = _merged(block.items)
    return result


def _partner(earlier: Sequence[Item], branch: Branch) -> Branch | None:
    mine = written(branch)
    for item in reversed(earlier):
        if (
            isinstance(item, Branch)
            and item.value == branch.value
            and (
                [patterns for patterns, _ in item.cases]
                == [patterns for patterns, _ in branch.cases]
            )
        ):
            return item
        if written(item) & mine:
            return None
    return None


def _adopt(item: Item, block: Block) -> None:
    """Moves an item's blocks below `block`."""
    if isinstance(item, Branch):
        for _, inner in item.cases:
            inner.parent, inner.depth = block, block.depth + 1
            for deeper in inner.items:
                _adopt(deeper, inner)


def written(item: Item) -> set[Variable | Ram]:
    """Registers and memories that an item may set."""
    if isinstance(item, Set):
        return {item.target}
    if isinstance(item, Fetch):
        return {item.read.target}
    if isinstance(item, Store):
        return {item.write.ram}
    if isinstance(item, Compute):
        return {item.node.target}
    return {name for _, block in item.cases for inner in block.items for name in written(inner)}


def _add_memories(netlist: Netlist, updates: Block) -> None:
    for read in netlist.reads:
        assert read.enable is not None
        updates.items.append(_when(read.enable, updates, [Fetch(read)]))
    for ram in netlist.rams:
        writes = [write for write in netlist.writes if write.ram is ram]
        if len(writes) == 1:
            updates.items.append(_when((writes[0].enable,), updates, [Store(writes[0])]))
            continue
        target = Variable(f"{ram.name}.any", 1)
        enables = tuple(write.enable for write in writes)
        netlist.nodes[target] = Operator(target, "reduce_or", (_united(enables),), False)
        outer = _when(((target, 0, 1),), updates, [])
        block = outer.cases[0][1]
        block.items = [_when((write.enable,), block, [Store(write)]) for write in writes]
        updates.items.append(outer)


def _united(bits: Value) -> Value:
    """Bits as few parts; equal neighbours once."""
    parts: list[tuple[Variable, int, int] | str] = []
    for bit in bits:
        last = parts[-1] if parts else ""
        if isinstance(bit, str) or isinstance(last, str) or last[0] is not bit[0]:
            parts.append(bit)
        elif bit[1] == last[1] + last[2]:
            parts[-1] = (last[0], last[1], last[2] + 1)
        elif not last[1] <= bit[1] < last[1] + last[2]:
            parts.append(bit)
    return tuple(parts)


def _when(enable: Value, parent: Block, items: list[Item]) -> Branch:
    block = Block(parent)
    block.items = items
    return Branch(enable, [(("1",), block)])


def node_reads(node: Node) -> Iterator[Variable]:
    if isinstance(node, Operator):
        for operand in node.operands:
            yield from variables(operand)
    elif isinstance(node, Decision):
        yield from _step_reads(node.body)
    else:
        yield from variables(node.address)


def _step_reads(steps: Iterable[Step]) -> Iterator[Variable]:
    for step in steps:
        yield from variables(step.value)
        if isinstance(step, Choice):
            for _, inner in step.cases:
                yield from _step_reads(inner)


def place(nodes: Mapping[Variable, Node], blocks: Sequence[Block]) -> list[Variable]:
    """Gives blocks, the first one around the others, the locals that their items need.

    Returns all nodes that are needed, in order of computation.
    """
    return _Placer(nodes).place(blocks)


class _Placer:
    """Places the nodes that blocks need."""

    def __init__(self, nodes: Mapping[Variable, Node]) -> None:
        self._nodes = nodes
        self._top = Block()
        self._place: dict[Variable, Block] = {}
        self._cost: dict[Variable, int] = {}

    def place(self, blocks: Sequence[Block]) -> list[Variable]:
        self._top = blocks[0]
        for block in blocks:
            for item in block.items:
                self._use(item, block)
        order = self._order(list(self._place))
        users = Counter(v for variable in order for v in set(node_reads(self._nodes[variable])))
        for variable in order:
            self._cost[variable] = self._weight(variable, users)
        for variable in reversed(order):
            block = self._place[variable]
            local = Local([variable], self._compute(self._nodes[variable], block))
            block.locals.insert(0, local)
            for item in local.items:
                self._use(item, block)
        return order

    def _order(self, roots: Sequence[Variable]) -> list[Variable]:
        """Nodes that roots need, each after those it reads."""
        order: list[Variable] = []
        state: dict[Variable, int] = {}
        stack: list[tuple[Variable, Iterator[Variable]]] = []

        def enter(variable: Variable) -> None:
            if variable not in self._nodes or state.get(variable) == 2:
                return
            if state.get(variable) == 1:
                raise NetlistError(f"combinational loop through {variable.name}")
            state[variable] = 1
            stack.append((variable, node_reads(self._nodes[variable])))

        for root in roots:
            enter(root)
            while stack:
                variable, reads = stack[-1]
                following = next(reads, None)
                if following is None:
                    state[variable] = 2
                    order.append(variable)
                    stack.pop()
                else:
                    enter(following)
        return order

    def _weight(self, variable: Variable, users: Counter[Variable]) -> int:
        """Operations that go away when nobody needs the variable."""
        reads = set(node_reads(self._nodes[variable]))
        own = 1 + variable.width // 32
        return own + sum(self._cost.get(v, 0) for v in reads if users[v] == 1)

    def _value_cost(self, value: Value) -> int:
        return sum(self._cost.get(variable, 0) for variable in set(variables(value)))

    def _compute(self, node: Node, block: Block) -> list[Item]:
        target = node.target
        if isinstance(node, Decision):
            return _items(target, node.body, block)
        if isinstance(node, Read):
            return [Fetch(node)]
        if node.kind == "and" and target.width == 1:
            gate, hidden = sorted(node.operands, key=self._value_cost)
            if self._value_cost(hidden) >= WORTH:
                yes = Block(block)
                yes.items = [Set(target, 0, hidden)]
                no = Block(block)
                no.items = [Set(target, 0, ("0",))]
                return [Branch(gate, [(("1",), yes), ((), no)])]
        if node.kind == "mux" and max(map(self._value_cost, node.operands[:2])) >= WORTH:
            cases = []
            for patterns, value in (((("1",)), node.operands[1]), ((), node.operands[0])):
                case = Block(block)
                case.items = [Set(target, 0, value)]
                cases.append((patterns, case))
            return [Branch(node.operands[2], cases)]
        return [Compute(node)]

    def _use(self, item: Item, block: Block) -> None:
        """Notes that an item in a block needs what it reads."""
        if isinstance(item, Branch):
            self._need(item.value, block)
            for _, inner in item.cases:
                for deeper in inner.items:
                    self._use(deeper, inner)
        else:
            for value in values_of(item):
                self._need(value, block)

    def _need(self, value: Value, block: Block) -> None:
        for variable in variables(value):
            if isinstance(self._nodes.get(variable), Read):
                self._place[variable] = self._top  # before any memory is written
            elif variable in self._nodes:
                place = self._place.get(variable)
                self._place[variable] = block if place is None else _common(place, block)


def values_of(item: Set | Compute | Fetch | Store) -> tuple[Value, ...]:
    """What an item other than a branch reads."""
    if isinstance(item, Set):
        return (item.value,)
    if isinstance(item, Compute):
        return item.node.operands
    if isinstance(item, Fetch):
        return (item.read.address,)
    return (item.write.address, item.write.value)


def _common(first: Block, second: Block) -> Block:
    """The innermost block around both."""
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return first
