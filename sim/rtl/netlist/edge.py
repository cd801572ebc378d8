"""What a clock edge does to registers and memories, as items."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Fetch,
    Item,
    Set,
    Store,
    adopt,
    items_of,
    node_reads,
    variables,
)
from vitral.sim.rtl.netlist.netlist import (
    Choice,
    Decision,
    Netlist,
    Operator,
    Put,
    Step,
    Value,
    Variable,
    joined,
    width_of,
)

__all__ = ["edge_items", "uses_of"]

COMMON_RESET = 2
"""Registers that a signal must reset for these resets to be done together, after all else."""


def edge_items(
    netlist: Netlist, unit: Netlist, uses: Mapping[Variable, int]
) -> tuple[Block, Block]:
    """What a clock edge does to the state of one unit of a netlist: updates, then resets.

    Decisions that only give a register its next value are taken out of `netlist`; `unit` has
    some of its registers, reads, writes and memories; `uses` are `uses_of(netlist)`.
    """
    updates, resets = Block(), Block()
    resets.parent, resets.depth = updates, 1
    _add_fetches(unit, updates)
    _add_registers(netlist, unit, uses, updates, resets)
    _add_stores(netlist, unit, updates)
    return updates, resets


def uses_of(netlist: Netlist) -> Counter[Variable]:
    """How many registers, memory ports, ports and nodes read a variable."""
    values = [value for _, value in (*netlist.registers, *netlist.outputs, *netlist.probes)]
    for read in netlist.reads:
        values += [read.address, read.enable or ()]
    for write in netlist.writes:
        values += [write.address, write.value, (write.enable,)]
    uses = Counter(v for value in values for v in set(variables(value)))
    for node in netlist.nodes.values():
        uses.update(set(node_reads(node)))
    return uses


def _add_registers(
    netlist: Netlist,
    unit: Netlist,
    uses: Mapping[Variable, int],
    updates: Block,
    resets: Block,
) -> None:
    """Next values as branches; those with the same conditions together."""
    bodies: list[tuple[Variable, int, list[Step]]] = []
    for register, value in unit.registers:
        low = 0
        for part in value:
            width = len(part) if isinstance(part, str) else part[2]
            node = None if isinstance(part, str) else netlist.nodes.get(part[0])
            hold = Put(0, ((register, low, width),))
            if part == (register, low, width):
                low += width
                continue
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
        before = 0
        while steps and _is_reset(steps[-1]) and common[steps[-1].value] >= COMMON_RESET:
            late.setdefault(steps[-1].value, [])
            place = list(late).index(steps[-1].value)
            if place < before:  # others have these resets in another order
                break
            before = place
            last = steps.pop()
            (branch,) = items_of(register, [last], resets, low)
            late[last.value].append(branch)
    resets.items = [item for items in reversed(late.values()) for item in _merged(items)]
    groups: dict[tuple[Value | None, ...], list[Item]] = {}
    for register, low, steps in bodies:
        items = items_of(register, steps, updates, low)
        key = tuple(step.value if isinstance(step, Choice) else None for step in steps)
        lone = (None,) if len(key) == 1 and key[0] is None else ()
        groups.setdefault((*key, *([((register, low, 0),)] if lone else [])), []).extend(items)
    together = _merged([item for items in groups.values() for item in items])
    updates.items += [_guarded(item) for item in together]


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


def _merged(items: Sequence[Item]) -> list[Item]:
    """Branches on the same value with the same patterns as one, when no target is in between."""
    result: list[Item] = []
    for item in items:
        if isinstance(item, Set) and result and _continues(item, result[-1]):
            result[-1] = _united_sets(result[-1], item)
            continue
        other = _partner(result, item) if isinstance(item, Branch) else None
        if other is None:
            result.append(item)
            continue
        assert isinstance(item, Branch)
        for (_, into), (_, block) in zip(other.cases, item.cases, strict=True):
            for inner in block.items:
                adopt(inner, into)
                into.items.append(inner)
    for item in result:
        if isinstance(item, Branch):
            for _, block in item.cases:
                block.items = _merged(block.items)
    return result


def _continues(item: Set, before: Item) -> bool:
    """Whether one item sets the bits of a variable that follow those that another sets."""
    return (
        isinstance(before, Set)
        and before.target is item.target
        and before.low + width_of(before.value) == item.low
    )


def _united_sets(before: Item, item: Set) -> Set:
    assert isinstance(before, Set)
    return Set(item.target, before.low, joined([*before.value, *item.value]))


def _partner(earlier: Sequence[Item], branch: Branch) -> Branch | None:
    mine = _bits_set(branch)
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
        if any(bits & mine.get(target, 0) for target, bits in _bits_set(item).items()):
            return None
    return None


def _bits_set(item: Item) -> dict[Variable, int]:
    """Bits of registers that an item may set."""
    if isinstance(item, Set):
        return {item.target: (1 << width_of(item.value)) - 1 << item.low}
    result: dict[Variable, int] = {}
    if isinstance(item, Branch):
        for _, block in item.cases:
            for inner in block.items:
                for target, bits in _bits_set(inner).items():
                    result[target] = result.get(target, 0) | bits
    return result


def _guarded(item: Item) -> Item:
    """A choice that often hits no case, after the question whether it hits any."""
    if not isinstance(item, Branch):
        return item
    patterns = [pattern for patterns, _ in item.cases for pattern in patterns]
    full = [block for _, block in item.cases if block.items]
    if len(full) < 2 or not all(patterns for patterns, _ in item.cases):
        return item
    outer = Block(full[0].parent)
    outer.items = [item]
    adopt(item, outer)
    return Branch(item.value, [(tuple(patterns), outer)])


def _add_fetches(unit: Netlist, updates: Block) -> None:
    for read in unit.reads:
        assert read.enable is not None
        updates.items.append(_when(read.enable, updates, [Fetch(read)]))


def _add_stores(netlist: Netlist, unit: Netlist, updates: Block) -> None:
    for ram in unit.rams:
        writes = [write for write in unit.writes if write.ram is ram]
        if not writes:
            continue
        if len(writes) == 1:
            updates.items.append(_when((writes[0].enable,), updates, [Store(writes[0])]))
            continue
        target = Variable(f"{ram.name}_any", 1)
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
