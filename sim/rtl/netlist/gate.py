"""Puts what has no effect in many cycles behind one question.

When a bit says that a unit rests, most of the unit's logic is constant or needed by nobody. For
every bit and value, `Cofactors` finds these computations and updates; the bits that save most are
chosen, one inside the other where that helps, and become branches.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vitral.sim.rtl.netlist.cofactor import Cofactors
from vitral.sim.rtl.netlist.edge import edge_items
from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Item,
    Local,
    adopt,
    node_reads,
    values_of,
    variables,
    written,
)
from vitral.sim.rtl.netlist.netlist import Netlist, Node, Ram, Variable
from vitral.sim.rtl.netlist.place import place
from vitral.sim.rtl.netlist.rtlil import NetlistError

__all__ = ["place_edge"]

WORTH = 6
"""Computations that a branch must save."""

UPDATE = 2
"""What an update counts for among computations."""


@dataclass(frozen=True)
class _Gate:
    """What is saved while `variable` has the value `closed`."""

    variable: Variable
    closed: int
    members: int
    known: dict[Variable, int]


Path = tuple[_Gate, ...]
"""Gates around something, the outermost one first."""


def place_edge(netlist: Netlist) -> tuple[Block, Block]:
    """What a clock edge does: the updates, and the resets that come after them."""
    updates, resets = edge_items(netlist)
    nodes = netlist.nodes
    order = place(nodes, [updates, resets])
    top = [variable for local in updates.locals for variable in local.variables]
    _clear(updates)
    _clear(resets)
    units = _units(updates.items)
    cofactors = Cofactors(nodes, order, [*updates.items, *resets.items])
    gates = _gates(cofactors, nodes, order, top, units)
    chosen = _paths(gates, len(top) + len(units))
    paths = dict(zip(map(id, top), chosen[: len(top)], strict=True))
    updates.items = _wrapped(units, chosen[len(top) :], updates)
    place(nodes, [updates, resets])
    used = set().union(*(_item_reads(item) for item in updates.items), _block_reads(resets))
    updates.locals = _clustered(updates.locals, paths, updates, used)
    return updates, resets


def _clear(block: Block) -> None:
    block.locals = []
    for item in block.items:
        if isinstance(item, Branch):
            for _, inner in item.cases:
                _clear(inner)


def _units(items: Sequence[Item]) -> list[list[Item]]:
    """Items in groups that set different registers; what is in one has to keep its order."""
    units: list[list[Item]] = []
    unit_of: dict[Variable | Ram, list[Item]] = {}
    for item in items:
        targets = written(item)
        merged = [item]
        joined = {id(unit_of[target]) for target in targets if target in unit_of}
        for unit in [unit for unit in reversed(units) if id(unit) in joined]:
            units.remove(unit)
            targets |= {t for inner in unit for t in written(inner)}
            merged = [*unit, *merged]
        units.append(merged)
        unit_of.update(dict.fromkeys(targets, merged))
    return units


def _gates(
    cofactors: Cofactors,
    nodes: dict[Variable, Node],
    order: Sequence[Variable],
    top: Sequence[Variable],
    units: Sequence[list[Item]],
) -> list[_Gate]:
    """All bits that could be gates, with what they save: a bit mask of top, then units."""
    place_of = {variable: n for n, variable in enumerate(top)}
    asked = {v for unit in units for item in unit for v in _conditions(item)}
    for variable in order:
        asked.update(v for v in node_reads(nodes[variable]) if v.width == 1)
    candidates = [v for v in asked if v.width == 1 and (v in place_of or v not in nodes)]
    unit_of = {id(item): n for n, unit in enumerate(units) for item in unit}
    gates = []
    for variable in sorted(candidates, key=lambda v: v.name):
        cone = cofactors.cone(variable)
        for closed in (0, 1):
            known = cofactors.constants(variable, closed)
            saved = [place_of[v] for v in cofactors.dead(known) - cone if v in place_of]
            inert = Counter(unit_of.get(id(item)) for item in cofactors.inert(known))
            still = [n for n, count in inert.items() if n is not None and count == len(units[n])]
            if len(saved) + UPDATE * len(still) >= WORTH:
                mask = sum(1 << n for n in saved) | sum(1 << (n + len(top)) for n in still)
                gates.append(_Gate(variable, closed, mask, known))
    return gates


def _conditions(item: Item) -> set[Variable]:
    if not isinstance(item, Branch):
        return set()
    inner = (_conditions(deeper) for _, block in item.cases for deeper in block.items)
    return set(variables(item.value)).union(*inner)


def _paths(gates: Sequence[_Gate], count: int) -> list[Path]:
    """For each of the members the gates around it."""
    paths: list[Path] = [()] * count

    def divide(members: int, around: Path) -> None:
        left = members
        while True:
            best = max(
                (gate for gate in gates if gate.variable not in {g.variable for g in around}),
                key=lambda gate: (gate.members & left).bit_count(),
                default=None,
            )
            if best is None or (best.members & left).bit_count() < WORTH:
                break
            inside = best.members & left
            for n in _places(inside):
                paths[n] = (*around, best)
            divide(inside, (*around, best))
            left &= ~inside

    divide((1 << count) - 1, ())
    return paths


def _places(mask: int) -> list[int]:
    return [n for n in range(mask.bit_length()) if mask >> n & 1]


def _open(gate: _Gate) -> tuple[str, ...]:
    return (str(1 - gate.closed),)


def _wrapped(units: Sequence[list[Item]], paths: Sequence[Path], block: Block) -> list[Item]:
    """Items behind their gates, one branch for each gate."""
    result: list[Item] = []
    groups: dict[int, tuple[_Gate, list[list[Item]], list[Path]]] = {}
    for unit, path in zip(units, paths, strict=True):
        if not path:
            result += unit
            continue
        _, inner, rest = groups.setdefault(id(path[0]), (path[0], [], []))
        inner.append(unit)
        rest.append(path[1:])
    for gate, inner, rest in groups.values():
        body = Block(block)
        body.items = _wrapped(inner, rest, body)
        for item in body.items:
            adopt(item, body)
        result.append(Branch(((gate.variable, 0, 1),), [(_open(gate), body)]))
    return result


def _local_reads(local: Local) -> set[Variable]:
    return set().union(*(_item_reads(item) for item in local.items))


def _item_reads(item: Item) -> set[Variable]:
    if not isinstance(item, Branch):
        return {v for value in values_of(item) for v in variables(value)}
    reads = set(variables(item.value))
    for _, block in item.cases:
        reads |= _block_reads(block)
    return reads


def _block_reads(block: Block) -> set[Variable]:
    items = [*(item for local in block.locals for item in local.items), *block.items]
    return set().union(*map(_item_reads, items))


def _clustered(
    locals_: Sequence[Local],
    paths: dict[int, Path],
    block: Block,
    used: set[Variable],
    depth: int = 0,
) -> list[Local]:
    """Locals in an order in which those behind one gate follow each other, in a branch.

    `used` are the variables that something outside `locals_` reads.
    """
    around = [paths.get(id(local.variables[0]), ())[depth:] for local in locals_]
    needs = [
        _local_reads(local) | {gate.variable for gate in path}
        for local, path in zip(locals_, around, strict=True)
    ]
    owner = {v: n for n, local in enumerate(locals_) for v in local.variables}
    graph = [{owner[v] for v in read if v in owner} - {n} for n, read in enumerate(needs)]
    runs = _runs(graph, [path[0] if path else None for path in around])
    asked = {gate.variable for gate, _ in runs if gate is not None}
    reads = [set().union(*(needs[n] for n in run)) for _, run in runs]
    result: list[Local] = []
    for number, (gate, run) in enumerate(runs):
        inner = [locals_[n] for n in run]
        if gate is None or len(run) < WORTH // 2:
            result += inner
            continue
        outside = used.union(asked, *reads[:number], *reads[number + 1 :])
        result.append(_gated(gate, inner, paths, block, outside, depth))
    return result


def _gated(
    gate: _Gate,
    inner: list[Local],
    paths: dict[int, Path],
    block: Block,
    used: set[Variable],
    depth: int,
) -> Local:
    """One local with all variables that are read outside; the others are inside."""
    body = Block(block)
    shown = [v for local in inner for v in local.variables if v in used]
    hidden: set[Variable] = set()
    for local in inner:
        hidden |= local.outside
        local.outside = local.outside | set(shown)
        for item in local.items:
            adopt(item, body)
    body.locals = _clustered(inner, paths, body, used, depth + 1)
    first = {v: gate.known.get(v, 0) for v in shown}
    branch = Branch(((gate.variable, 0, 1),), [(_open(gate), body)])
    return Local(shown, [branch], first, hidden & set(shown))


def _runs(
    graph: Sequence[set[int]], gates: Sequence[_Gate | None]
) -> list[tuple[_Gate | None, list[int]]]:
    """An order of computation, as few runs of one gate as a greedy choice gives."""
    missing = [len(needs) for needs in graph]
    users: list[list[int]] = [[] for _ in gates]
    for n, needs in enumerate(graph):
        for need in needs:
            users[need].append(n)
    ready: dict[int, list[int]] = {}

    def offer(n: int) -> None:
        ready.setdefault(id(gates[n]), []).append(n)

    for n, count in enumerate(missing):
        if not count:
            offer(n)
    runs: list[tuple[_Gate | None, list[int]]] = []
    while ready:
        free = id(None)
        kind = free if free in ready else max(ready, key=lambda k: len(ready[k]))
        run: list[int] = []
        gate = gates[ready[kind][0]]
        while kind in ready:
            for n in sorted(ready.pop(kind)):
                run.append(n)
                for user in users[n]:
                    missing[user] -= 1
                    if not missing[user]:
                        offer(user)
        runs.append((gate, run))
    if sum(len(run) for _, run in runs) != len(gates):
        raise NetlistError("gates made a loop")
    return runs
