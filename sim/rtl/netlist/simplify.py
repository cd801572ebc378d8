"""Makes a netlist smaller without changing what it does.

Names for parts of other values go away, equal computations of one instance become one, choices
between equal values and gates with constants too, and what nobody needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from vitral.sim.rtl.netlist.fold import bits_in, folded, is_constant
from vitral.sim.rtl.netlist.items import variables
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

__all__ = ["Simplifier", "narrow", "roots", "simplify"]

Cases = tuple[tuple[tuple[str, ...], tuple[Step, ...]], ...]

LOW_BITS = ("add", "sub", "mul", "and", "or", "xor", "not", "neg", "mux", "shl", "dot")
"""Operators whose lowest bits depend on no higher ones than these in any operand."""

CHOICE = 2
"""The operand of a multiplexer that selects; other operators do not have so many."""


def simplify(netlist: Netlist) -> None:
    """Rewrites all values of a netlist in place."""
    Simplifier(netlist).run()


class Simplifier:
    """Rewrites nodes one after the other; `values` are those that need no node any more."""

    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self.values: dict[Variable, Value] = {}
        self._known: dict[tuple, Variable] = {}

    def run(self) -> None:
        """Rewrites all values of the netlist in place."""
        netlist = self._netlist
        nodes: dict[Variable, Node] = {}
        for variable in ordered(netlist.nodes, roots(netlist)):
            node = self.node(netlist.nodes[variable])
            value = self.known_value(node)
            if value is None:
                nodes[variable] = node
            else:
                self.values[variable] = value
        netlist.nodes.clear()
        netlist.nodes.update(nodes)
        netlist.registers[:] = [(r, self.value(value)) for r, value in netlist.registers]
        netlist.outputs[:] = [(name, self.value(value)) for name, value in netlist.outputs]
        netlist.probes[:] = [(name, self.value(value)) for name, value in netlist.probes]
        for read in netlist.reads:
            read.address, read.enable = self.value(read.address), self.value(read.enable or ())
        for write in netlist.writes:
            write.address, write.value = self.value(write.address), self.value(write.value)
            (write.enable,) = self.value((write.enable,))
        order = ordered(nodes, roots(netlist))
        for variable in nodes.keys() - set(order):
            del netlist.nodes[variable]
        narrow(netlist, order)

    def value(self, value: Value) -> Value:
        """The same in terms of what is left."""
        parts = []
        for part in value:
            if isinstance(part, str) or part[0] not in self.values:
                parts.append(part)
            else:
                parts += cut(self.values[part[0]], part[1], part[2])
        return joined(parts)

    def node(self, node: Node) -> Node:
        """The same in terms of what is left."""
        if isinstance(node, Operator):
            return replace(node, operands=tuple(map(self.value, node.operands)))
        if isinstance(node, Read):
            return replace(node, address=self.value(node.address))
        return Decision(node.target, tuple(self._steps(node.body)))

    def _steps(self, body: Iterable[Step]) -> list[Step]:
        """Statements that set a whole variable, without those that others make void."""
        steps: list[Step] = []
        for step in body:
            if isinstance(step, Put):
                steps = [Put(0, self.value(step.value))]
                continue
            value = self.value(step.value)
            cases = tuple((patterns, tuple(self._steps(inner))) for patterns, inner in step.cases)
            cases = _possible(value, cases)
            if not is_constant(value):
                steps = [] if _is_complete(value, cases) else steps
                steps.append(Choice(value, cases))
                continue
            inner = next((inner for patterns, inner in cases if _matches(value, patterns)), ())
            steps = list(inner) if _is_whole(inner) else [*steps, *inner]
        return steps

    def known_value(self, node: Node) -> Value | None:
        """What a node always is in terms of others, if that is so."""
        if isinstance(node, Read):
            return None
        value = _decided(node) if isinstance(node, Decision) else folded(node)
        if value is not None:
            return value
        what = node.body if isinstance(node, Decision) else (node.kind, node.operands, node.signed)
        key = (node.target.name.rpartition(".")[0], node.target.width, what)
        other = self._known.setdefault(key, node.target)
        return None if other is node.target else ((other, 0, other.width),)


def narrow(netlist: Netlist, order: Sequence[Variable]) -> None:
    """Makes operators' results and operands no wider than what anybody needs of them."""
    used: dict[Variable, int] = {}

    def use(values: Iterable[Value]) -> None:
        for value in values:
            for part in value:
                if not isinstance(part, str):
                    used[part[0]] = max(used.get(part[0], 0), part[1] + part[2])

    use(_root_values(netlist))
    for variable in reversed(order):
        node = netlist.nodes[variable]
        if isinstance(node, Operator):
            if node.kind in LOW_BITS and used[variable] < variable.width:
                variable.width = used[variable]
                node.operands = tuple(_lowest(node))
            use(node.operands)
        elif isinstance(node, Read):
            use([node.address])
        else:
            use(_step_values(node.body))


def _lowest(node: Operator) -> Iterator[Value]:
    """What an operator needs of its operands."""
    for number, operand in enumerate(node.operands):
        if node.kind in ("dot", "shl") or number == CHOICE:
            yield operand
        else:
            yield tuple(cut(operand, 0, node.target.width))


def _root_values(netlist: Netlist) -> Iterator[Value]:
    """All values that something other than a node reads."""
    for _, value in (*netlist.registers, *netlist.outputs, *netlist.probes):
        yield value
    for read in netlist.reads:
        yield from (read.address, read.enable or ())
    for write in netlist.writes:
        yield from (write.address, write.value, (write.enable,))


def _step_values(steps: Iterable[Step]) -> Iterator[Value]:
    for step in steps:
        yield step.value
        if isinstance(step, Choice):
            for _, inner in step.cases:
                yield from _step_values(inner)


def roots(netlist: Netlist) -> list[Variable]:
    """What registers, memories, outputs and probes read."""
    return [variable for value in _root_values(netlist) for variable in variables(value)]


def _possible(value: Value, cases: Cases) -> Cases:
    """Cases without the patterns that contradict the constant bits of the value."""
    if not any(isinstance(part, str) for part in value) or is_constant(value):
        return cases
    known = "".join(
        part if isinstance(part, str) else "-" * part_width(part) for part in reversed(value)
    )
    result = []
    for patterns, steps in cases:
        left = tuple(
            p
            for p in patterns
            if all("-" in pair or len(set(pair)) == 1 for pair in zip(p, known, strict=True))
        )
        if left or not patterns:
            result.append((left, steps))
    return tuple(result)


def _matches(value: Value, patterns: tuple[str, ...]) -> bool:
    bits = bits_in(value)
    return not patterns or any(
        all(wanted in ("-", bit) for wanted, bit in zip(pattern, bits, strict=True))
        for pattern in patterns
    )


def _is_complete(value: Value, cases: Cases) -> bool:
    """Whether there is a case for everything, and each sets the whole variable."""
    patterns = {pattern for patterns, _ in cases for pattern in patterns}
    every = any(not patterns for patterns, _ in cases) or (
        len(patterns) == 1 << width_of(value) and not any("-" in pattern for pattern in patterns)
    )
    return every and all(_is_whole(inner) for _, inner in cases)


def _is_whole(steps: tuple[Step, ...]) -> bool:
    return any(isinstance(step, Put) or _is_complete(step.value, step.cases) for step in steps)


def _decided(node: Decision) -> Value | None:
    """The value of a decision that decides nothing."""
    if len(node.body) == 1 and isinstance(node.body[0], Put):
        return node.body[0].value
    return None
