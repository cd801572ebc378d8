"""What is done at a clock edge: items, in blocks, with the locals that they need."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vitral.sim.rtl.netlist.netlist import (
    Choice,
    Decision,
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

__all__ = [
    "Block",
    "Branch",
    "Compute",
    "Fetch",
    "Item",
    "Local",
    "Set",
    "Store",
    "adopt",
    "block_reads",
    "items_of",
    "node_reads",
    "values_of",
    "variables",
]


class Block:
    """Computations in their order, then items, executed together; `note` is a statement before."""

    def __init__(self, parent: "Block | None" = None) -> None:
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.locals: list[Local] = []
        self.items: list[Item] = []
        self.note = ""


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
    """A variable, and the items that give it its value."""

    variable: Variable
    items: list[Item]


def variables(value: Value) -> Iterator[Variable]:
    for part in value:
        if not isinstance(part, str):
            yield part[0]


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


def values_of(item: Set | Compute | Fetch | Store) -> tuple[Value, ...]:
    """What an item other than a branch reads."""
    if isinstance(item, Set):
        return (item.value,)
    if isinstance(item, Compute):
        return item.node.operands
    if isinstance(item, Fetch):
        return (item.read.address,)
    return (item.write.address, item.write.value)


def block_reads(block: Block) -> Iterator[Variable | Ram]:
    """All that a block's items and the locals that it has so far read."""
    for item in (*(item for local in block.locals for item in local.items), *block.items):
        if isinstance(item, Branch):
            yield from variables(item.value)
            for _, inner in item.cases:
                yield from block_reads(inner)
        else:
            for value in values_of(item):
                yield from variables(value)
            if isinstance(item, Fetch):
                yield item.read.ram


def items_of(target: Variable, steps: Iterable[Step], block: Block, low: int = 0) -> list[Item]:
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
                case.items = items_of(target, inner, case, low)
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
        return items_of(target, steps, block, low)
    place = len(patterns[0]) - 1 - next(n for n, bit in enumerate(patterns[0]) if bit != "-")
    bit = bit_of(value, place)
    if bit == ("1",):
        return items_of(target, steps, block, low)
    if bit == ("0",):
        return _chain(target, value, tuple(others), block, low)
    yes, no = Block(block), Block(block)
    yes.items = items_of(target, steps, yes, low)
    no.items = _chain(target, value, tuple(others), no, low)
    branch = Branch(bit, [((patterns[0].strip("-"),), yes), ((), no)])
    return [branch] if yes.items or no.items else []


def adopt(item: Item, block: Block) -> None:
    """Move an item's blocks below `block`."""
    if isinstance(item, Branch):
        for _, inner in item.cases:
            inner.parent, inner.depth = block, block.depth + 1
            for deeper in inner.items:
                adopt(deeper, inner)
