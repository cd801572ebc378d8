"""What is constant, and what is needed, when one bit of a netlist has a known value."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vitral.sim.rtl.netlist.items import Block, Branch, Item, node_reads, values_of, variables
from vitral.sim.rtl.netlist.netlist import (
    Decision,
    Node,
    Operator,
    Put,
    Step,
    Value,
    Variable,
    part_width,
    width_of,
)

__all__ = ["Cofactors", "Known", "is_inert"]

Known = Mapping[Variable, int]
"""Variables with the values that they are known to have."""

MOST_BITS = 128
"""Variables wider than this are never known."""

PATTERN_BITS = 16
"""Selectors wider than this are not looked into."""


class Cofactors:
    """A netlist's nodes in order, and the items that use them.

    Parameters
    ----------
    nodes : mapping
        All nodes.
    order : sequence of Variable
        Targets of the nodes that are of interest, each after those it reads.
    items : sequence of Item
        What an edge does.
    """

    def __init__(
        self,
        nodes: Mapping[Variable, Node],
        order: Sequence[Variable],
        items: Sequence[Item],
    ) -> None:
        self._nodes = nodes
        self._order = order
        self._items = items
        self._index = {variable: n for n, variable in enumerate(order)}
        self._reads = {target: set(node_reads(nodes[target])) for target in order}
        self._item_reads = [set(item_needs(item, {})) for item in items]
        self._users: dict[Variable, list[Variable]] = {}
        self._item_users: dict[Variable, list[int]] = {}
        for target, reads in self._reads.items():
            for variable in reads:
                self._users.setdefault(variable, []).append(target)
        for number, reads in enumerate(self._item_reads):
            for variable in reads:
                self._item_users.setdefault(variable, []).append(number)
        self._uses = Counter(v for reads in self._reads.values() for v in reads)
        self._uses.update(v for reads in self._item_reads for v in reads)

    def constants(self, variable: Variable, value: int) -> dict[Variable, int]:
        """All that is known when `variable` is."""
        known = {variable: value}
        queue = [self._index[user] for user in self._users.get(variable, ())]
        heapq.heapify(queue)
        seen = set(queue)
        while queue:
            target = self._order[heapq.heappop(queue)]
            result = self._result(self._nodes[target], known) if target not in known else None
            if result is None:
                continue
            known[target] = result
            for user in self._users.get(target, ()):
                if self._index[user] not in seen:
                    seen.add(self._index[user])
                    heapq.heappush(queue, self._index[user])
        return known

    def dead(self, known: Known) -> set[Variable]:
        """Targets of nodes that nobody needs then, but would without; known ones among them."""
        dropped: dict[Variable, int] = {}
        lost: dict[Variable, set[Variable]] = {}
        dead: set[Variable] = set()
        queue: list[Variable] = []

        def drop(variable: Variable) -> None:
            dropped[variable] = dropped.get(variable, 0) + 1
            if dropped[variable] == self._uses.get(variable) and variable in self._index:
                dead.add(variable)
                queue.append(variable)

        touched = {user for variable in known for user in self._users.get(variable, ())}
        for target in touched | {variable for variable in known if variable in self._index}:
            now = set() if target in known else set(self._needs(self._nodes[target], known))
            lost[target] = self._reads[target] - now
            for variable in lost[target]:
                drop(variable)
        for number in {n for variable in known for n in self._item_users.get(variable, ())}:
            for variable in self._item_reads[number] - set(item_needs(self._items[number], known)):
                drop(variable)
        while queue:
            target = queue.pop()
            for variable in self._reads[target] - lost.get(target, set()):
                drop(variable)
        return dead

    def inert(self, known: Known) -> list[Item]:
        """The items that do nothing then."""
        touched = {n for variable in known for n in self._item_users.get(variable, ())}
        return [self._items[n] for n in sorted(touched) if is_inert(self._items[n], known)]

    def cone(self, variable: Variable) -> set[Variable]:
        """Targets of all nodes that a variable depends on, its own among them."""
        found: set[Variable] = set()
        stack = [variable]
        while stack:
            target = stack.pop()
            if target in self._index and target not in found:
                found.add(target)
                stack += self._reads[target]
        return found

    def _result(self, node: Node, known: Known) -> int | None:
        if node.target.width > MOST_BITS:
            return None
        if isinstance(node, Decision):
            return _outcome(node.body, node.target.width, known)
        return _operate(node, known) if isinstance(node, Operator) else None

    def _needs(self, node: Node, known: Known) -> Iterator[Variable]:
        if isinstance(node, Decision):
            yield from _steps_need(node.body, known)
        elif isinstance(node, Operator) and node.kind == "mux":
            choice = _number(node.operands[2], known)
            wanted = node.operands if choice is None else (node.operands[choice],)
            for operand in wanted:
                yield from _unknown(operand, known)
        else:
            yield from (v for v in node_reads(node) if v not in known)


def _unknown(value: Value, known: Known) -> Iterator[Variable]:
    return (variable for variable in variables(value) if variable not in known)


def _number(value: Value, known: Known) -> int | None:
    """The value, if all of it is known."""
    total, at = 0, 0
    for part in value:
        if isinstance(part, str):
            bits = int(part, 2)
        else:
            whole = known.get(part[0])
            if whole is None:
                return None
            bits = whole >> part[1] & (1 << part[2]) - 1
        total |= bits << at
        at += part_width(part)
    return total


def _bits(value: Value, known: Known) -> str:
    """Known bits, highest first, and x for the others."""
    texts = []
    for part in value:
        number = _number((part,), known)
        width = part_width(part)
        texts.append("x" * width if number is None else f"{number:0{width}b}")
    return "".join(reversed(texts))


def _operate(node: Operator, known: Known) -> int | None:
    """The result of an operator, where that is easy to see."""
    mask = (1 << node.target.width) - 1
    if node.kind == "mux":
        choice = _number(node.operands[2], known)
        numbers = [_number(operand, known) for operand in node.operands[:2]]
        if choice is None:
            return numbers[0] if numbers[0] == numbers[1] else None
        return numbers[choice]
    if node.kind in ("reduce_or", "reduce_bool"):
        bits = _bits(node.operands[0], known)
        return 1 if "1" in bits else None if "x" in bits else 0
    numbers = [_number(operand, known) for operand in node.operands]
    if node.kind in ("and", "mul") and 0 in numbers:
        return 0
    if node.kind in ("shl", "shr", "sshr") and numbers[0] == 0:
        return 0
    if node.kind == "or" and mask in numbers and not node.signed:
        return mask
    if None in numbers or node.signed:
        return None
    left, right = numbers[0] or 0, (numbers[1] or 0) if len(numbers) > 1 else 0
    if node.kind == "not":
        return ~left & mask
    if node.kind in _TESTS:
        return int(_TESTS[node.kind](left, right))
    if node.kind in _SUMS:
        return _SUMS[node.kind](left, right) & mask
    return None


_TESTS = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
}
_SUMS = {
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    "add": int.__add__,
    "sub": int.__sub__,
}


def _possible(value: Value, patterns: Sequence[tuple[str, ...]], known: Known) -> list[int | None]:
    """Numbers of the cases that may be taken; None when it may be that none is."""
    if width_of(value) > PATTERN_BITS:
        return [*range(len(patterns)), None]
    bits = _bits(value, known)
    result: list[int | None] = []
    for number, alternatives in enumerate(patterns):
        verdicts = {_match(bits, pattern) for pattern in alternatives} or {"yes"}
        if "yes" in verdicts:
            return [*result, number]
        if "maybe" in verdicts:
            result.append(number)
    return [*result, None]


def _match(bits: str, pattern: str) -> str:
    verdict = "yes"
    for bit, wanted in zip(bits, pattern, strict=True):
        if wanted == "-" or bit == wanted:
            continue
        if bit != "x":
            return "no"
        verdict = "maybe"
    return verdict


def _outcome(steps: Iterable[Step], width: int, known: Known) -> int | None:
    """What steps that begin with 0 leave in a target, if that is known."""
    results = _outcomes(steps, width, known, {0})
    return next(iter(results)) if len(results) == 1 else None


def _outcomes(
    steps: Iterable[Step], width: int, known: Known, before: set[int | None]
) -> set[int | None]:
    """All values that steps may leave; None for one that is not known."""
    for step in steps:
        if isinstance(step, Put):
            whole = not step.low and width_of(step.value) == width
            before = {_number(step.value, known) if whole else None}
            continue
        after: set[int | None] = set()
        for number in _possible(step.value, [patterns for patterns, _ in step.cases], known):
            inner = () if number is None else step.cases[number][1]
            after |= _outcomes(inner, width, known, before)
        before = after
    return before


def _steps_need(steps: Iterable[Step], known: Known) -> Iterator[Variable]:
    for step in steps:
        if isinstance(step, Put):
            yield from _unknown(step.value, known)
            continue
        possible = _possible(step.value, [patterns for patterns, _ in step.cases], known)
        if len(possible) > 1:
            yield from _unknown(step.value, known)
        for number in possible:
            if number is not None:
                yield from _steps_need(step.cases[number][1], known)


def item_needs(item: Item, known: Known) -> Iterator[Variable]:
    """What an item needs for its effect; nothing when it has none."""
    if isinstance(item, Branch):
        possible = _possible(item.value, [patterns for patterns, _ in item.cases], known)
        effects = [
            [need for inner in item.cases[number][1].items for need in item_needs(inner, known)]
            for number in possible
            if number is not None and not is_inert_block(item.cases[number][1], known)
        ]
        if effects and len(possible) > 1:
            yield from _unknown(item.value, known)
        for needs in effects:
            yield from needs
    else:
        for value in values_of(item):
            yield from _unknown(value, known)


def is_inert(item: Item, known: Known) -> bool:
    """Whether an item does nothing."""
    if not isinstance(item, Branch):
        return False
    possible = _possible(item.value, [patterns for patterns, _ in item.cases], known)
    return all(n is None or is_inert_block(item.cases[n][1], known) for n in possible)


def is_inert_block(block: Block, known: Known) -> bool:
    return all(is_inert(item, known) for item in block.items)
