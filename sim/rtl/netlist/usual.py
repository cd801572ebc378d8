"""What a netlist is while some registers have the values that they usually have.

In most cycles most control is the same: nothing is refused, no unit stands still, one kind of
instruction runs. What follows from that is computed when the C++ is written.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from vitral.sim.rtl.netlist.fold import bits_in, is_constant
from vitral.sim.rtl.netlist.netlist import (
    Decision,
    Netlist,
    Node,
    Part,
    Put,
    Value,
    Variable,
    joined,
    part_width,
)
from vitral.sim.rtl.netlist.place import ordered
from vitral.sim.rtl.netlist.simplify import Simplifier, narrow, roots

__all__ = ["ANY", "Usual", "find_facts", "pattern_bits"]

ANY = "-"
"""A bit that is not assumed."""

REST = "*"
"""In a pattern, as many of these bits as there are left."""


def find_facts(netlist: Netlist, patterns: Mapping[str, str]) -> dict[Variable, str]:
    """Bits, highest first, that registers and inputs are assumed to have.

    `patterns` are by name; a name that is not there and a pattern that does not fit do not count.
    """
    sources = [*(register for register, _ in netlist.registers), *netlist.inputs]
    facts = {v: pattern_bits(patterns[v.name], v.width) for v in sources if v.name in patterns}
    return {variable: bits for variable, bits in facts.items() if bits.strip(ANY)}


def pattern_bits(pattern: str, width: int) -> str:
    """A pattern of `width` bits: "*" stands for any bits in between; without it, zeros go first."""
    if REST not in pattern:
        return pattern.zfill(width) if len(pattern) <= width else ANY * width
    high, low = pattern.split(REST)
    rest = width - len(high) - len(low)
    return high + ANY * rest + low if rest >= 0 else ANY * width


class Usual(Simplifier):
    """A copy of a netlist under `facts`; nodes are new variables, `leaves` and state are the same.

    `values` has what each node of the netlist is in the copy.
    """

    def __init__(
        self, netlist: Netlist, facts: Mapping[Variable, str], leaves: Collection[Variable]
    ) -> None:
        super().__init__(netlist)
        self._facts = facts
        self._nodes: dict[Variable, Node] = {}
        self._holds = dict(_holds(netlist))
        self.values.update({v: joined(list(_assumed(v, bits))) for v, bits in facts.items()})
        for variable in ordered(netlist.nodes, roots(netlist)):
            node = self.node(netlist.nodes[variable])
            known = self.known_value(node)
            if variable in leaves:
                if known is not None and is_constant(known):
                    self.values[variable] = known
            elif known is not None:
                self.values[variable] = known if variable in self._holds else self.value(known)
            else:
                fresh = Variable(variable.name, variable.width)
                self._nodes[fresh] = replace(node, target=fresh)
                self.values[variable] = ((fresh, 0, fresh.width),)

    def node(self, node: Node) -> Node:
        """What leaves a register as it is stays to be seen as that."""
        result = super().node(node)
        hold = self._holds.get(node.target)
        if hold and isinstance(result, Decision) and result.body:
            first, *others = result.body
            if first == Put(0, self.value(hold)):
                return Decision(node.target, (Put(0, hold), *others))
        return result

    def part(self, state: Netlist, exports: Collection[Variable]) -> Netlist:
        """The copy of some state, and of what gives it and `exports` their values."""
        copy = Netlist(nodes=self._nodes, rams=state.rams)
        copy.registers = [(v, self._next(v, value)) for v, value in state.registers]
        for read in state.reads:
            enable = self.value(read.enable or ())
            if "1" in enable or not is_constant(enable):
                copy.reads.append(replace(read, address=self.value(read.address), enable=enable))
        for write in state.writes:
            (enable,) = self.value((write.enable,))
            if enable != "0":
                address, value = self.value(write.address), self.value(write.value)
                copy.writes.append(replace(write, address=address, value=value, enable=enable))
        copy.outputs = [(v.name, self.value(((v, 0, v.width),))) for v in exports]
        order = ordered(copy.nodes, roots(copy))
        copy.nodes = {variable: self._nodes[variable] for variable in order}
        narrow(copy, order)
        return copy

    def _next(self, register: Variable, value: Value) -> Value:
        """A next value; one that is what the register has anyway is the register itself."""
        whole: Value = ((register, 0, register.width),)
        result = self.value(value)
        bits = self._facts.get(register, ANY)
        if result == whole or (is_constant(result) and bits_in(result).replace("x", "0") == bits):
            return whole
        return self.value(result)


def _holds(netlist: Netlist) -> Iterator[tuple[Variable, Value]]:
    """By the decision that gives the next value of register bits, the bits."""
    for register, value in netlist.registers:
        low = 0
        for part in value:
            if not isinstance(part, str) and isinstance(netlist.nodes.get(part[0]), Decision):
                yield part[0], ((register, low, part[2]),)
            low += part_width(part)


def _assumed(variable: Variable, bits: str) -> Iterator[Part]:
    """A variable in parts, lowest first."""
    for low, bit in enumerate(reversed(bits)):
        yield (variable, low, 1) if bit == ANY else bit
