"""Finds dot products of signed bytes in a netlist: sums of products, added up one by one."""

from vitral.sim.rtl.netlist.netlist import Netlist, Operator, Value, Variable, width_of

__all__ = ["find_dots"]

MOST = 1 << 16
"""Products whose sum int32 holds for sure, in any order."""

SUM_BITS = 32

Byte = tuple[Variable, int]
"""Eight bits of a variable from a lowest one on."""


def find_dots(netlist: Netlist) -> None:
    """Replaces sums of products of neighbouring bytes by operators of kind "dot".

    Their operands are two values of as many bytes, parts of one variable each.
    """
    finder = _Finder(netlist)
    for target, node in list(netlist.nodes.items()):
        pairs = finder.pairs(node) if isinstance(node, Operator) else None
        if pairs is None:
            continue
        (left, low), (right, high) = pairs[0]
        wanted = [((left, low + 8 * n), (right, high + 8 * n)) for n in range(len(pairs))]
        if pairs == wanted and low % 8 == high % 8 == 0:
            size = 8 * len(pairs)
            operands = (((left, low, size),), ((right, high, size),))
            finder.found.append((target, Operator(target, "dot", operands, True)))
    netlist.nodes.update(finder.found)


class _Finder:
    def __init__(self, netlist: Netlist) -> None:
        self._nodes = netlist.nodes
        self.found: list[tuple[Variable, Operator]] = []

    def pairs(self, node: Operator) -> list[tuple[Byte, Byte]] | None:
        """The factors of the products that `node` is the sum of; None when it is no such sum."""
        pairs: list[tuple[Byte, Byte]] = []
        if node.kind != "add" or not node.signed or node.target.width < SUM_BITS:
            return None
        found = self._collect(node, pairs) and 1 < len(pairs) < MOST
        return pairs if found else None

    def _collect(self, node: Operator, pairs: list[tuple[Byte, Byte]]) -> bool:
        """Appends the products of a sum, the ones added first first."""
        for operand in node.operands:
            term = self._term(operand)
            if term is None:
                if any(part != "0" * width_of((part,)) for part in operand):
                    return False
            elif term.kind == "add":
                if not self._collect(term, pairs):
                    return False
            else:
                factors = [self._byte(factor) for factor in term.operands]
                if factors[0] is None or factors[1] is None:
                    return False
                pairs.append((factors[0], factors[1]))
        return True

    def _term(self, value: Value) -> Operator | None:
        """The sum or product that the bits of a signed value are, as far as int32 needs them."""
        if len(value) != 1 or isinstance(value[0], str):
            return None
        if value[0][1] or value[0][2] < min(SUM_BITS, value[0][0].width):
            return None
        node = self._nodes.get(value[0][0])
        if isinstance(node, Operator) and node.kind in ("add", "mul") and node.signed:
            return node
        return None

    def _byte(self, value: Value) -> Byte | None:
        """The byte that a value is the sign extension of."""
        if len(value) == 1 and not isinstance(value[0], str):
            variable, low, width = value[0]
            if width == 8:
                return variable, low
            node = self._nodes.get(variable)
            if low == 0 and isinstance(node, Operator) and node.kind == "add" and node.signed:
                byte, zero = node.operands
                if all(isinstance(part, str) and "1" not in part for part in zero):
                    return self._byte(byte)
        return None
