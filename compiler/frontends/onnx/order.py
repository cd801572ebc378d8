"""Execution order of the nodes that a model's outputs need."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeVar

from vitral.errors import CompileError

__all__ = ["execution_order"]


class _Named(Protocol):
    @property
    def where(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...


N = TypeVar("N", bound=_Named)


def execution_order(nodes: Sequence[N], given: Collection[str], outputs: Sequence[str]) -> list[N]:
    """Nodes from which `outputs` are computed, each after those it reads; otherwise file order.

    `given` names the inputs and constants. Raises CompileError for a tensor that two nodes write,
    that nobody computes, or that depends on itself.
    """
    writers = _writers(nodes, given)
    ordered: list[N] = []
    state: dict[int, bool] = {}
    for output in outputs:
        if output not in writers and output not in given:
            raise CompileError(f"output {output!r}: no node computes it; the model is incomplete")
        if output in writers:
            _visit(nodes, writers, given, writers[output], state, ordered)
    position = {id(node): i for i, node in enumerate(nodes)}
    in_file_order = sorted(ordered, key=lambda node: position[id(node)])
    return in_file_order if _is_ordered(in_file_order, given) else ordered


def _writers(nodes: Sequence[N], given: Collection[str]) -> dict[str, int]:
    writers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.outputs):
            if name in writers or name in given:
                raise CompileError(f"{node.where}: tensor {name!r} is defined a second time")
            writers[name] = index
    return writers


def _visit(
    nodes: Sequence[N],
    writers: dict[str, int],
    given: Collection[str],
    start: int,
    state: dict[int, bool],
    ordered: list[N],
) -> None:
    """Depth first without recursion; `state` is False while a node is open, True when done."""
    stack: list[tuple[int, Iterator[str]]] = []

    def enter(index: int) -> None:
        state[index] = False
        stack.append((index, iter(nodes[index].inputs)))

    if start not in state:
        enter(start)
    while stack:
        index, names = stack[-1]
        name = next(names, None)
        if name is None:
            stack.pop()
            state[index] = True
            ordered.append(nodes[index])
            continue
        if not name or name in given:
            continue
        if name not in writers:
            raise CompileError(
                f"{nodes[index].where}: needs tensor {name!r}, which no node, input or initializer"
                " provides"
            )
        writer = writers[name]
        if writer not in state:
            enter(writer)
        elif not state[writer]:
            raise CompileError(f"{nodes[index].where}: tensor {name!r} depends on itself (a cycle)")


def _is_ordered(nodes: Sequence[N], given: Collection[str]) -> bool:
    known = set(given)
    for node in nodes:
        if not known.issuperset(filter(None, node.inputs)):
            return False
        known.update(node.outputs)
    return True
