"""Finds registers that may change where everybody reads them, and orders statements for that.

All next values are functions of present ones, so a register needs a second place for its next
value, and a copy in every cycle, unless all that reads it is done before it is set.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from vitral.sim.rtl.netlist.expressions import WIDEST
from vitral.sim.rtl.netlist.fold import is_constant
from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Compute,
    Fetch,
    Item,
    Local,
    Set,
    Store,
    block_reads,
)
from vitral.sim.rtl.netlist.netlist import Ram, Variable

__all__ = ["counters_of", "set_in_place"]


def set_in_place(updates: Block, resets: Block, wanted: Iterable[Variable]) -> list[Variable]:
    """Those of the `wanted` registers that can be set in place, with `updates` in an order for it.

    Each is set by one item alone or by none, which does not read it, and all other items that read
    it come first. The larger ones are tried first.
    """
    order = _Order(updates)
    reset = {thing for item in resets.items for thing in order.reads(item)}
    return [
        variable
        for variable in sorted(wanted, key=lambda v: -v.width)
        if variable not in reset and order.accepts(variable)
    ]


class _Order:
    """The items of a block, and which of them must come before which."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._locals = {local.variable: local for local in block.locals}
        self._known: dict[Variable, set[Variable | Ram]] = {}
        self._items = list(block.items)
        self._reads = [self.reads(item) for item in self._items]
        self._after: list[set[int]] = [set() for _ in self._items]
        self._setters: dict[Variable, list[int]] = {}
        stores: dict[Ram, list[int]] = {}
        for number, item in enumerate(self._items):
            for variable in _sets(item):
                self._setters.setdefault(variable, []).append(number)
            for ram in _stores(item):
                stores.setdefault(ram, []).append(number)
        for numbers in (*self._setters.values(), *stores.values()):
            for before, after in pairwise(numbers):
                self._after[before].add(after)
        for ram, numbers in stores.items():
            for number, reads in enumerate(self._reads):
                if ram in reads:
                    self._after[number].add(numbers[0])

    def reads(self, item: Item) -> set[Variable | Ram]:
        """All that an item reads, also by way of the block's locals."""
        block = Block()
        block.items = [item]
        return self._closure(block_reads(block))

    def _closure(self, things: Iterable[Variable | Ram]) -> set[Variable | Ram]:
        result = set(things)
        for thing in list(result):
            if isinstance(thing, Variable) and thing in self._locals:
                if thing not in self._known:
                    block = Block()
                    block.items = list(self._locals[thing].items)
                    self._known[thing] = self._closure(block_reads(block))
                result |= self._known[thing]
        return result

    def accepts(self, variable: Variable) -> bool:
        """Whether a register can be set in place besides those accepted; if so, orders items."""
        setters = self._setters.get(variable, [])
        if len(setters) != 1:
            return not setters
        readers = {n for n, reads in enumerate(self._reads) if variable in reads}
        if setters[0] in readers and self._last_to_read(setters[0], variable):
            readers.remove(setters[0])
        added = [n for n in readers if setters[0] not in self._after[n]]
        for number in added:
            self._after[number].add(setters[0])
        order = _sorted(self._after)
        if order is None:
            for number in added:
                self._after[number].discard(setters[0])
            return False
        self._block.items = [self._items[number] for number in order]
        return True

    def _last_to_read(self, number: int, variable: Variable) -> bool:
        """Whether an item is done with reading a variable in all ways to where it sets it."""
        if variable.width > WIDEST:
            return False
        block = Block()
        block.items = [self._items[number]]
        return self._done(block, variable, False) is not None

    def _done(self, block: Block, variable: Variable, done: bool) -> bool | None:
        """Whether the variable is set behind a block; None when it may be read after that."""
        inner = {local.variable: local for local in block.locals}
        known = {v: self._known.get(v) for v in inner}
        self._locals |= inner
        for v in known:
            self._known.pop(v, None)
        for item in block.items:
            if not isinstance(item, Branch):
                if done and variable in self.reads(item):
                    return None
                done = done or variable in _sets(item)
                continue
            if done and variable in self.reads(item):
                return None
            ends = [self._done(case, variable, done) for _, case in item.cases]
            if None in ends:
                return None
            done = done or any(ends)
        return done


def counters_of(block: Block) -> set[Variable]:
    """Registers that are only ever set to constants, or by a constant from what they are."""
    steps, others = set(), set()
    _sort_sets(block, steps, others)
    return steps - others


def _sort_sets(block: Block, steps: set[Variable], others: set[Variable]) -> None:
    locals_ = {local.variable: local for local in block.locals}
    for item in block.items:
        if isinstance(item, Branch):
            for _, case in item.cases:
                _sort_sets(case, steps, others)
        elif isinstance(item, Set) and is_constant(item.value):
            continue
        elif isinstance(item, Set):
            part = item.value[0]
            local = None if isinstance(part, str) else locals_.get(part[0])
            whole = item.value == ((local.variable, 0, item.target.width),) if local else False
            step = local is not None and whole and _is_step(local, item.target)
            (steps if step else others).add(item.target)
        else:
            others |= _sets(item)


def _is_step(local: Local, register: Variable) -> bool:
    (item, *others) = local.items
    if others or not isinstance(item, Compute) or item.node.kind not in ("add", "sub"):
        return False
    left, right = item.node.operands
    return left == ((register, 0, register.width),) and is_constant(right)


def _sorted(after: Sequence[set[int]]) -> list[int] | None:
    """Numbers in an order in which each comes before those `after` it; None when there is none."""
    waits = [0] * len(after)
    for numbers in after:
        for number in numbers:
            waits[number] += 1
    ready = sorted((n for n, count in enumerate(waits) if not count), reverse=True)
    order = []
    while ready:
        number = ready.pop()
        order.append(number)
        for following in after[number]:
            waits[following] -= 1
            if not waits[following]:
                ready.append(following)
        ready.sort(reverse=True)
    return order if len(order) == len(after) else None


def _sets(item: Item) -> set[Variable]:
    """Variables that an item or what is inside it sets."""
    return {
        leaf.target if isinstance(leaf, Set) else leaf.read.target
        for leaf in _leaves(item)
        if isinstance(leaf, Set | Fetch)
    }


def _stores(item: Item) -> set[Ram]:
    return {leaf.write.ram for leaf in _leaves(item) if isinstance(leaf, Store)}


def _leaves(item: Item) -> Iterator[Item]:
    if isinstance(item, Branch):
        for _, block in item.cases:
            for inner in block.items:
                yield from _leaves(inner)
    else:
        yield item
