"""An order of items in which registers are read before they are set, as far as there is one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Fetch,
    Item,
    Set,
    Store,
    values_of,
    variables,
)
from vitral.sim.rtl.netlist.netlist import Netlist, Ram, Variable

__all__ = ["Order"]

UNMOVABLE = 1 << 20
"""Price of a copy of a memory."""

Name = Variable | Ram


@dataclass
class _Effects:
    """What items read and set of registers and memories."""

    reads: set[Name] = field(default_factory=set)
    writes: set[Name] = field(default_factory=set)


class Order:
    """Knows a netlist's state, and what items do to it."""

    def __init__(self, netlist: Netlist) -> None:
        self.state: set[Name] = {register for register, _ in netlist.registers}
        self.state |= {read.target for read in netlist.reads} | set(netlist.rams)
        self._effects: dict[Item, _Effects] = {}

    def _effects_of(self, item: Item) -> _Effects:
        found = self._effects.get(item)
        if found is None:
            found = self._effects[item] = _Effects()
            if isinstance(item, Branch):
                found.reads |= {v for v in variables(item.value) if v in self.state}
                for _, block in item.cases:
                    self._block_effects(block, found)
            else:
                for value in values_of(item):
                    found.reads |= {v for v in variables(value) if v in self.state}
                if isinstance(item, Set):
                    found.writes |= {item.target} & self.state
                elif isinstance(item, Fetch):
                    found.reads.add(item.read.ram)
                    found.writes |= {item.read.target} & self.state
                elif isinstance(item, Store):
                    found.writes.add(item.write.ram)
        return found

    def _block_effects(self, block: Block, found: _Effects) -> None:
        for inner in (*(i for local in block.locals for i in local.items), *block.items):
            effects = self._effects_of(inner)
            found.reads |= effects.reads
            found.writes |= effects.writes

    def arranged(self, items: Sequence[Item]) -> list[Item]:
        """Readers before writers, as far as possible at the least price in copies."""
        left = list(items)
        readers: dict[Name, int] = {}
        for item in left:
            for name in self._effects_of(item).reads:
                readers[name] = readers.get(name, 0) + 1
        result: list[Item] = []
        while left:
            blocked: set[Name] = set()  # written by an item that has to stay before
            best, lowest = 0, 1 << 40
            for n, item in enumerate(left):
                effects = self._effects_of(item)
                if not effects.writes & blocked:
                    price = sum(
                        _price(name)
                        for name in effects.writes
                        if readers.get(name, 0) > (name in effects.reads)
                    )
                    if price < lowest:
                        best, lowest = n, price
                        if not price:
                            break
                blocked |= effects.writes
            item = left.pop(best)
            for name in self._effects_of(item).reads:
                readers[name] -= 1
            result.append(item)
        return result


def _price(name: Name) -> int:
    return UNMOVABLE if isinstance(name, Ram) else 1 + name.width // 32
