"""Cuts a netlist into units that are evaluated only when something that they read changed.

A unit holds the registers and memories of one module instance, or computations of one instance that
others look at, its exports. Parts of the second kind come first, each after those whose exports it
reads; a unit of the first kind reads exports and has none.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vitral.sim.rtl.netlist.edge import edge_items, uses_of
from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Set,
    block_reads,
    node_reads,
    variables,
)
from vitral.sim.rtl.netlist.netlist import (
    Decision,
    Netlist,
    Node,
    Operator,
    Put,
    Ram,
    Read,
    Value,
    Variable,
)
from vitral.sim.rtl.netlist.place import ordered, place
from vitral.sim.rtl.netlist.usual import Usual

__all__ = ["Unit", "find_units"]

CHEAP = 3
"""Gates of one bit that are rather repeated in every unit than exported by one."""

SMALL = 32
"""Registers and nodes up to which an instance without others inside is no unit of its own."""

Key = tuple[int, str]
"""A unit: its level, or none for one with registers, and the path of its instance."""

STATE = 1 << 30


@dataclass(eq=False)
class Unit:
    """What is evaluated together; `exports` are variables, each with the one that keeps it.

    What it reads `inside` is of no account as long as no branch was taken that reads it.
    Units that are `together` all run when one of them has to; `usual` does the same as long as
    the netlist's facts hold, with `copies` of exports.
    """

    name: str
    home: str
    together: bool = False
    registers: list[Variable] = field(default_factory=list)
    exports: dict[Variable, Variable] = field(default_factory=dict)
    updates: Block = field(default_factory=Block)
    resets: Block = field(default_factory=Block)
    reads: set[Variable | Ram] = field(default_factory=set)
    inside: set[Variable | Ram] = field(default_factory=set)
    usual: "Unit | None" = None
    copies: dict[Variable, Variable] = field(default_factory=dict)


def find_units(
    netlist: Netlist,
    together: Sequence[str] = (),
    restless: Sequence[str] = (),
    facts: Mapping[Variable, str] | None = None,
) -> list[Unit]:
    """All units in an order in which they can be evaluated, with their computations placed.

    Instances in `together`, and those inside them, count as one. What `restless` ones, and these,
    compute of others' values is kept apart, as it may rest. Under `facts` there are also
    units for the usual case in place of theirs.
    """
    whole = replace(netlist, nodes=dict(netlist.nodes))
    uses = uses_of(netlist)
    homes = Homes(netlist, together, restless)
    units = {path: Unit(path, path) for path in sorted(homes.with_state)}
    for path, unit in units.items():
        mine = _state_of(netlist, path, homes)
        unit.registers = [v for v, _ in mine.registers] + [read.target for read in mine.reads]
        unit.updates, unit.resets = edge_items(netlist, mine, uses)
    exports = _exports(netlist.nodes, list(units.values()), homes)
    first = next(iter(together), "")
    result = [*_export_units(exports, homes), *units.values()]
    for unit in result:
        unit.together = bool(first) and unit.home == first
    kept = {v: keeper for unit in result for v, keeper in unit.exports.items()}
    for unit in result:
        _fill(unit, netlist.nodes, kept)
    result = [*(u for u in result if u.exports), *_readers_first(units.values())]
    family = [unit for unit in result if unit.together]
    if facts and family:
        others = [unit for unit in result if not unit.together]
        _add_usual(whole, facts, family, others, homes)
    return result


def _readers_first(units: Iterable[Unit]) -> list[Unit]:
    """Units in an order in which few registers change before the last one has read them."""
    left, result = list(units), []
    while left:
        reads = Counter(thing for unit in left for thing in unit.reads)
        waits = [sum(reads[r] - (r in unit.reads) for r in unit.registers) for unit in left]
        result.append(left.pop(waits.index(min(waits))))
    return result


def _add_usual(
    netlist: Netlist,
    facts: Mapping[Variable, str],
    family: Sequence[Unit],
    others: Sequence[Unit],
    homes: "Homes",
) -> None:
    """Gives units that are together those that take their places under `facts`."""
    kept = {v: keeper for unit in others for v, keeper in unit.exports.items()}
    seen = {thing for unit in others for thing in unit.reads} | set(
        variables(tuple(part for _, value in netlist.outputs for part in value))
    )
    usual = Usual(netlist, facts, kept)
    exports = {v: keeper for unit in family for v, keeper in unit.exports.items()}
    copy = usual.part(_state_of(netlist, family[0].home, homes), exports)
    for unit in family:
        new = Unit(f"{unit.name}, usual", unit.home, True, unit.registers)
        unit.usual = new
        for variable, keeper in unit.exports.items():
            value = usual.value(((variable, 0, variable.width),))
            copied = _whole(value)
            if variable in seen and (copied not in copy.nodes or copied in kept):
                copied = Variable(variable.name, variable.width)
                copy.nodes[copied] = Decision(copied, (Put(0, value),))
            if copied in copy.nodes and copied not in kept:
                kept[copied] = new.exports[copied] = keeper
                new.copies[copied] = variable
    _fill_usual([(unit, unit.usual) for unit in family if unit.usual], copy, kept, seen)


def _fill_usual(
    pairs: Sequence[tuple[Unit, Unit]],
    copy: Netlist,
    kept: dict[Variable, Variable],
    seen: Collection[Variable | Ram],
) -> None:
    """Places what usual units need, without exports that nobody needs in the usual case."""
    uses = uses_of(copy)
    needed: set[Variable | Ram] = set()
    for unit, usual in reversed(pairs):
        if unit.exports:
            for variable, original in usual.copies.items():
                if original not in seen and variable not in needed:
                    del usual.exports[variable], kept[variable]
            _set_exports(usual)
        else:
            usual.updates, usual.resets = edge_items(copy, copy, uses)
        _fill(usual, copy.nodes, kept)
        needed |= usual.reads


def _whole(value: Value) -> Variable | None:
    """The variable that a value is."""
    if len(value) != 1 or isinstance(value[0], str):
        return None
    variable, low, width = value[0]
    return variable if (low, width) == (0, variable.width) else None


def _fill(unit: Unit, nodes: Mapping[Variable, Node], kept: Mapping[Variable, Variable]) -> None:
    """Places what a unit needs, and notes what it reads."""
    foreign = kept.keys() - unit.exports.keys()
    own = {v: node for v, node in nodes.items() if v not in foreign}
    place(own, [unit.updates, unit.resets])
    unit.reads = {
        thing
        for block in (unit.updates, unit.resets)
        for thing in block_reads(block)
        if thing not in own
    }
    unit.inside = unit.reads - set(_outside(unit))


def _outside(unit: Unit) -> Iterator[Variable | Ram]:
    """What a unit reads whatever branches it takes."""
    first = Block()
    for item in unit.updates.items:
        if isinstance(item, Branch):
            yield from variables(item.value)
        else:
            first.items.append(item)
    first.locals = unit.updates.locals
    yield from block_reads(first)
    yield from block_reads(unit.resets)


class Homes:
    """The instances that units are made of; small ones are counted to those around them."""

    def __init__(self, netlist: Netlist, together: Sequence[str], restless: Sequence[str]) -> None:
        self._together = tuple(together)
        self._restless = (*together[:1], *restless)
        self._calm: set[Variable] = set()
        things = [register for register, _ in netlist.registers] + netlist.rams
        counts = Counter(map(_path, (*netlist.nodes, *things)))
        around = {path.rpartition(".")[0] for path in counts}
        self._large = {path for path, count in counts.items() if count > SMALL} | around
        self.with_state = {self.of(thing) for thing in things}
        self._find_calm(netlist)

    def _find_calm(self, netlist: Netlist) -> None:
        """Computations of restless instances on nothing of their own."""
        own = {variable: self.of(variable) for variable in netlist.nodes}
        for variable in ordered(netlist.nodes, list(netlist.nodes)):
            node, path = netlist.nodes[variable], own[variable]
            if path in self._restless and not isinstance(node, Read):
                reads = set(node_reads(node))
                if all(v in self._calm or own.get(v, self.of(v)) != path for v in reads):
                    self._calm.add(variable)

    def of(self, thing: Variable | Ram) -> str:
        """The path of the instance that something is counted to."""
        path = _path(thing)
        if any(path == first or path.startswith(f"{first}.") for first in self._together):
            return self._marked(thing, self._together[0])
        around = path.rpartition(".")[0]
        return self._marked(thing, around if path not in self._large and "." in around else path)

    def _marked(self, thing: Variable | Ram, path: str) -> str:
        return f"{path}.calm" if thing in self._calm else path


def _path(thing: Variable | Ram) -> str:
    return thing.name.rpartition(".")[0]


def _state_of(netlist: Netlist, path: str, homes: Homes) -> Netlist:
    """Registers and memories of one instance."""
    return Netlist(
        registers=[pair for pair in netlist.registers if homes.of(pair[0]) == path],
        reads=[read for read in netlist.reads if homes.of(read.ram) == path],
        writes=[write for write in netlist.writes if homes.of(write.ram) == path],
        rams=[ram for ram in netlist.rams if homes.of(ram) == path],
    )


def _exports(
    nodes: Mapping[Variable, Node], units: Iterable[Unit], homes: Homes
) -> dict[Variable, int]:
    """Nodes that units other than their own need, with their levels."""
    users: dict[Variable, set[Key]] = {}
    for unit in units:
        for block in (unit.updates, unit.resets):
            for thing in block_reads(block):
                if isinstance(thing, Variable) and thing in nodes:
                    users.setdefault(thing, set()).add((STATE, unit.name))
    order = ordered(nodes, list(users))
    cheap = _cheap(nodes, order)
    exports = []
    for variable in reversed(order):
        mine, path = users[variable], homes.of(variable)
        if mine != {(STATE, path)} and mine != {(0, path)} and variable not in cheap:
            exports.append(variable)
            mine = {(0, path)}
        for needed in node_reads(nodes[variable]):
            if needed in nodes:
                users.setdefault(needed, set()).update(mine)
    return _levels(nodes, order, {v: homes.of(v) for v in exports})


def _cheap(nodes: Mapping[Variable, Node], order: Iterable[Variable]) -> set[Variable]:
    """Few gates of one bit on registers of one bit."""
    sizes: dict[Variable, int] = {}
    for variable in order:
        node = nodes[variable]
        if isinstance(node, Operator) and node.kind in ("and", "or", "not") and variable.width == 1:
            reads = list(node_reads(node))
            if all(v.width == 1 and (v in sizes or v not in nodes) for v in reads):
                size = 1 + sum(sizes.get(v, 0) for v in reads)
                if size <= CHEAP:
                    sizes[variable] = size
    return set(sizes)


def _levels(
    nodes: Mapping[Variable, Node], order: Iterable[Variable], exports: Mapping[Variable, str]
) -> dict[Variable, int]:
    """Levels, such that a unit needs nothing of others of its own level or of higher ones."""
    needs: dict[Variable, dict[str, int]] = {}
    levels: dict[Variable, int] = {}
    for variable in order:
        found: dict[str, int] = {}
        for needed in node_reads(nodes[variable]):
            for path, level in needs.get(needed, {}).items():
                found[path] = max(found.get(path, 0), level)
        if variable in exports:
            path = exports[variable]
            level = max((n + (other != path) for other, n in found.items()), default=0)
            levels[variable] = level
            found = {path: level}
        needs[variable] = found
    return levels


def _export_units(exports: Mapping[Variable, int], homes: Homes) -> list[Unit]:
    units: dict[Key, Unit] = {}
    for variable, level in exports.items():
        path = homes.of(variable)
        unit = units.setdefault((level, path), Unit(f"{path}.level{level}", path))
        unit.exports[variable] = Variable(f"{variable.name}.kept", variable.width)
    for unit in units.values():
        _set_exports(unit)
    return [units[key] for key in sorted(units)]


def _set_exports(unit: Unit) -> None:
    for variable, keeper in unit.exports.items():
        unit.updates.items.append(Set(keeper, 0, ((variable, 0, variable.width),)))
    unit.resets.parent, unit.resets.depth = unit.updates, 1
