"""Makes a netlist smaller without changing what it does.

Names for parts of other values go away, equal computations of one instance become one, choices
between equal values and gates with constants too, and what nobody needs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vitral.sim.rtl.netlist.items import node_reads, variables
from vitral.sim.rtl.netlist.netlist import (
    Choice,
    Decision,
    Netlist,
    Node,
    Operator,
    Put,
    Read,
    Step,
    Value,
    Variable,
    cut,
    joined,
    part_width,
    width_of,
)
from vitral.sim.rtl.netlist.place import ordered

__all__ = ["simplify"]


def simplify(netlist: Netlist) -> None:
    """Rewrites all values of a netlist in place."""
    _Simplifier(netlist).run()


class _Simplifier:
    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self._values: dict[Variable, Value] = {}
        self._known: dict[tuple, Variable] = {}

    def run(self) -> None:
        netlist = self._netlist
        nodes: dict[Variable, Node] = {}
        for variable in ordered(netlist.nodes, list(_roots(netlist))):
            node = self._node(netlist.nodes[variable])
            value = self._known_value(node)
            if value is None:
                nodes[variable] = node
            else:
                self._values[variable] = value
        netlist.nodes.clear()
        netlist.nodes.update(nodes)
        netlist.registers[:] = [(r, self._value(value)) for r, value in netlist.registers]
        netlist.outputs[:] = [(name, self._value(value)) for name, value in netlist.outputs]
        netlist.probes[:] = [(name, self._value(value)) for name, value in netlist.probes]
        for read in netlist.reads:
            read.address, read.enable = self._value(read.address), self._value(read.enable or ())
        for write in netlist.writes:
            write.address, write.value = self._value(write.address), self._value(write.value)
            (write.enable,) = self._value((write.enable,))
        needed = set(ordered(nodes, list(_roots(netlist))))
        for variable in nodes.keys() - needed:
            del netlist.nodes[variable]

    def _value(self, value: Value) -> Value:
        parts = []
        for part in value:
            if isinstance(part, str) or part[0] not in self._values:
                parts.append(part)
            else:
                parts += cut(self._values[part[0]], part[1], part[2])
        return joined(parts)

    def _node(self, node: Node) -> Node:
        """The same in terms of what is left."""
        if isinstance(node, Operator):
            return replace(node, operands=tuple(map(self._value, node.operands)))
        if isinstance(node, Read):
            return replace(node, address=self._value(node.address))
        return Decision(node.target, tuple(self._steps(node.body)))

    def _steps(self, body: Iterable[Step]) -> list[Step]:
        """Statements that set a whole variable, without those that others make void."""
        steps: list[Step] = []
        for step in body:
            if isinstance(step, Put):
                steps = [Put(0, self._value(step.value))]
                continue
            value = self._value(step.value)
            cases = tuple((patterns, tuple(self._steps(inner))) for patterns, inner in step.cases)
            if not _is_constant(value):
                steps.append(Choice(value, cases))
                continue
            inner = next((inner for patterns, inner in cases if _matches(value, patterns)), ())
            steps = list(inner) if _is_whole(inner) else [*steps, *inner]
        return steps

    def _known_value(self, node: Node) -> Value | None:
        """What a node always is in terms of others, if that is so."""
        if isinstance(node, Read):
            return None
        value = _decided(node) if isinstance(node, Decision) else _folded(node)
        if value is not None:
            return value
        what = node.body if isinstance(node, Decision) else (node.kind, node.operands, node.signed)
        key = (node.target.name.rpartition(".")[0], node.target.width, what)
        other = self._known.setdefault(key, node.target)
        return None if other is node.target else ((other, 0, other.width),)


def _roots(netlist: Netlist) -> Iterator[Variable]:
    for _, value in (*netlist.registers, *netlist.outputs, *netlist.probes):
        yield from variables(value)
    for read in netlist.reads:
        yield from variables(read.address)
        yield from variables(read.enable or ())
    for write in netlist.writes:
        yield from variables((*write.address, *write.value, write.enable))


def _is_constant(value: Value) -> bool:
    return all(isinstance(part, str) for part in value)


def _bits(value: Value) -> str:
    return "".join(part for part in reversed(value) if isinstance(part, str))


def _matches(value: Value, patterns: tuple[str, ...]) -> bool:
    bits = _bits(value)
    return not patterns or any(
        all(wanted in ("-", bit) for wanted, bit in zip(pattern, bits, strict=True))
        for pattern in patterns
    )


def _is_whole(steps: tuple[Step, ...]) -> bool:
    return bool(steps) and isinstance(steps[0], Put)


def _decided(node: Decision) -> Value | None:
    """The value of a decision that decides nothing."""
    if len(node.body) == 1 and isinstance(node.body[0], Put):
        return node.body[0].value
    return None


def _folded(node: Operator) -> Value | None:
    """The value of an operator that selects or passes on."""
    width = node.target.width
    if node.kind == "mux":
        no, yes, choice = node.operands
        if no == yes:
            return no
        return (yes if "1" in _bits(choice) else no) if _is_constant(choice) else None
    if node.kind not in ("and", "or") or any(width_of(v) != width for v in node.operands):
        return None
    left, right = node.operands
    if left == right:
        return left
    for gate, value in ((left, right), (right, left)):
        if _is_constant(gate) and len(set(_bits(gate))) == 1:
            return value if ("1" in _bits(gate)) == (node.kind == "and") else gate
    return None
