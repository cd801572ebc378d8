"""Puts every computation where its result is used, and nowhere else.

An operator or decision goes into the innermost block that holds all its users, so that it costs
nothing in a cycle in which no branch with a user is taken. Gates of one bit and multiplexers become
branches themselves when what they hide is worth it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vitral.sim.rtl.netlist.items import (
    Block,
    Branch,
    Compute,
    Fetch,
    Item,
    Local,
    Set,
    items_of,
    node_reads,
    values_of,
    variables,
)
from vitral.sim.rtl.netlist.netlist import Decision, Netlist, Node, Read, Value, Variable
from vitral.sim.rtl.netlist.rtlil import NetlistError

__all__ = ["ordered", "place", "place_outputs"]

WIDE = 128
"""Bits up to which a computation is better done once early than in several branches."""

COPIES = 4
"""Branches in which wider ones are repeated."""

WORTH = 3
"""Operations that a branch must save in the cycles in which it is not taken."""


def place_outputs(netlist: Netlist, outputs: Iterable[tuple[Variable, Value]]) -> Block:
    """What gives the outputs their values."""
    block = Block()
    block.items += [Set(variable, 0, value) for variable, value in outputs]
    place(netlist.nodes, [block])
    return block


def place(nodes: Mapping[Variable, Node], blocks: Sequence[Block]) -> list[Variable]:
    """Gives blocks, the first one around the others, the locals that their items need.

    Returns all nodes that are needed, in order of computation.
    """
    return _Placer(nodes).place(blocks)


class _Placer:
    """Places the nodes that blocks need."""

    def __init__(self, nodes: Mapping[Variable, Node]) -> None:
        self._nodes = nodes
        self._top = Block()
        self._places: dict[Variable, list[Block]] = {}
        self._cost: dict[Variable, int] = {}

    def place(self, blocks: Sequence[Block]) -> list[Variable]:
        self._top = blocks[0]
        for block in blocks:
            for item in block.items:
                self._use(item, block)
        order = ordered(self._nodes, list(self._places))
        users = Counter(v for variable in order for v in set(node_reads(self._nodes[variable])))
        for variable in order:
            self._cost[variable] = self._weight(variable, users)
        for variable in reversed(order):
            for block in self._places.get(variable, ()):  # none: only a case that is empty asks
                local = Local(variable, self._compute(self._nodes[variable], block))
                block.locals.insert(0, local)
                for item in local.items:
                    self._use(item, block)
        return order

    def _weight(self, variable: Variable, users: Counter[Variable]) -> int:
        """Operations that go away when nobody needs the variable."""
        reads = set(node_reads(self._nodes[variable]))
        own = 1 + variable.width // 32
        return own + sum(self._cost.get(v, 0) for v in reads if users[v] == 1)

    def _value_cost(self, value: Value) -> int:
        return sum(self._cost.get(variable, 0) for variable in set(variables(value)))

    def _compute(self, node: Node, block: Block) -> list[Item]:
        target = node.target
        if isinstance(node, Decision):
            return items_of(target, node.body, block)
        if isinstance(node, Read):
            return [Fetch(node)]
        if node.kind == "and" and target.width == 1:
            gate, hidden = sorted(node.operands, key=self._value_cost)
            if self._value_cost(hidden) >= WORTH:
                yes = Block(block)
                yes.items = [Set(target, 0, hidden)]
                no = Block(block)
                no.items = [Set(target, 0, ("0",))]
                return [Branch(gate, [(("1",), yes), ((), no)])]
        if node.kind == "mux" and max(map(self._value_cost, node.operands[:2])) >= WORTH:
            cases = []
            for patterns, value in (((("1",)), node.operands[1]), ((), node.operands[0])):
                case = Block(block)
                case.items = [Set(target, 0, value)]
                cases.append((patterns, case))
            return [Branch(node.operands[2], cases)]
        return [Compute(node)]

    def _use(self, item: Item, block: Block) -> None:
        """Notes that an item in a block needs what it reads."""
        if isinstance(item, Branch):
            self._need(item.value, block)
            for _, inner in item.cases:
                for deeper in inner.items:
                    self._use(deeper, inner)
        else:
            for value in values_of(item):
                self._need(value, block)

    def _need(self, value: Value, block: Block) -> None:
        for variable in variables(value):
            if isinstance(self._nodes.get(variable), Read):
                self._places[variable] = [self._top]  # before any memory is written
            elif variable in self._nodes:
                self._put(variable, block)

    def _put(self, variable: Variable, block: Block) -> None:
        """Places a variable so that a block has it; wide ones rather in a few blocks than early."""
        places = self._places.setdefault(variable, [])
        if any(_common(place, block) is place for place in places):
            return
        places[:] = [place for place in places if _common(place, block) is not block]
        places.append(block)
        if len(places) > (COPIES if variable.width > WIDE else 1):
            while len(places) > 1:
                places.append(_common(places.pop(), places.pop()))


def _common(first: Block, second: Block) -> Block:
    """The innermost block around both."""
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return first


def ordered(nodes: Mapping[Variable, Node], roots: Iterable[Variable]) -> list[Variable]:
    """Nodes that roots need, each after those it reads; NetlistError when there is a loop."""
    order: list[Variable] = []
    state: dict[Variable, int] = {}
    stack: list[tuple[Variable, Iterator[Variable]]] = []

    def enter(variable: Variable) -> None:
        if variable not in nodes or state.get(variable) == 2:
            return
        if state.get(variable) == 1:
            raise NetlistError(f"combinational loop through {variable.name}")
        state[variable] = 1
        stack.append((variable, node_reads(nodes[variable])))

    for root in roots:
        enter(root)
        while stack:
            variable, reads = stack[-1]
            following = next(reads, None)
            if following is None:
                state[variable] = 2
                order.append(variable)
                stack.pop()
            else:
                enter(following)
    return order
