"""One core that is every mutant: a number in a memory of it says which one it is now.

Each edited expression becomes ``mutated(n, good, broken)``, which is `broken` while the number
is n, so a single build serves all mutants and, with number 0, the core as it was.
"""

import ast
import inspect
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from amaranth import Elaboratable, Module, Mux, Signal, Value
from amaranth.hdl import ValueLike
from amaranth.lib.memory import Memory

from mutants.mutant import Edit, Mutant
from vitral.config import CoreConfig
from vitral.hw.core.core import Core
from vitral.hw.verilog import emit

__all__ = ["mutated_verilog", "selector", "woven"]

NUMBER_BITS = 8
HELPER = "mutated"
Planned = tuple[int, Edit]


class _Selector(Elaboratable):
    """Shows row 0 of a memory that simulators can write, a cycle later, as `number`."""

    def __init__(self) -> None:
        self.number = Signal(NUMBER_BITS, name="mutant_number")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=NUMBER_BITS, depth=2, init=[])
        read, write = memory.read_port(), memory.write_port()
        # Row 1 follows row 0: a memory that nobody writes might be taken for a constant.
        m.d.comb += [
            self.number.eq(read.data),
            write.en.eq(1),
            write.addr.eq(1),
            write.data.eq(read.data),
        ]
        return m


def selector(arrays: dict[str, npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    """The array of a woven core whose first byte is the number of the mutant, from 1."""
    (found,) = (array for name, array in arrays.items() if name.endswith(".mutants.memory"))
    return found[0]


def mutated_verilog(config: CoreConfig, mutants: Sequence[Mutant]) -> str:
    """Verilog of a core with all mutants in it; mutant n of the list has the number n + 1.

    Raises
    ------
    ValueError
        When an edit's expression is not found exactly once.
    """
    if len(mutants) >= 1 << NUMBER_BITS:
        raise ValueError(f"at most {(1 << NUMBER_BITS) - 1} mutants, got {len(mutants)}")
    with ExitStack() as stack:
        chosen = _Selector()

        def mutated(number: int, good: ValueLike, broken: ValueLike) -> Value:
            return Mux(chosen.number == number, broken, good)

        plan: dict[Callable[..., object], list[Planned]] = defaultdict(list)
        for number, mutant in enumerate(mutants, 1):
            for edit in mutant.edits:
                plan[edit.function].append((number, edit))
        for function, edits in plan.items():
            stack.enter_context(_woven(function, edits, mutated))
        stack.enter_context(_with_part(chosen))
        return emit(config)


@contextmanager
def _with_part(part: _Selector) -> Iterator[None]:
    """Cores get `part` as their submodule `mutants`."""
    original = Core.elaborate

    def elaborate(self: Core, platform: object) -> Module:
        m = original(self, platform)
        m.submodules.mutants = part
        return m

    with patch.object(Core, "elaborate", elaborate):
        yield


@contextmanager
def _woven(
    function: Callable[..., object], edits: Sequence[Planned], helper: Callable[..., Value]
) -> Iterator[None]:
    """`function`, wherever it is referred to, runs the code of its source with the edits in it."""
    assert isinstance(function, FunctionType)
    names = vars(sys.modules[function.__module__])
    made: dict[str, Any] = {}
    source = f"<mutants of {function.__qualname__}>"
    exec(compile(woven(function, edits), source, "exec"), names, made)
    (replacement,) = made.values()
    with patch.dict(names, {HELPER: helper}):
        original, function.__code__ = function.__code__, replacement.__code__
        try:
            yield
        finally:
            function.__code__ = original


def woven(function: Callable[..., object], edits: Sequence[Planned]) -> ast.Module:
    """The function's syntax tree with every edited expression made switchable.

    Raises
    ------
    ValueError
        When an edit's expression is not found exactly once.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    weaver = _Weaver(edits)
    tree = ast.fix_missing_locations(weaver.visit(tree))
    for number, edit in edits:
        found = weaver.found[number, edit.good]
        if found != 1:
            raise ValueError(
                f"{function.__module__}.{function.__qualname__}: needs the expression"
                f" {edit.good!r} once, found it {found} times;"
                " bring the mutant up to date with the hardware"
            )
    return tree


class _Weaver(ast.NodeTransformer):
    """Wraps the nodes that equal an edit's good expression; `found` counts them."""

    def __init__(self, edits: Sequence[Planned]) -> None:
        self.found: Counter[tuple[int, str]] = Counter()
        self.edits = [(number, edit, ast.dump(_parsed(edit.good))) for number, edit in edits]

    def visit(self, node: ast.AST) -> Any:
        text = ast.dump(node) if isinstance(node, ast.expr) else ""
        result = self.generic_visit(node)
        for number, edit, wanted in self.edits:
            if text == wanted:
                self.found[number, edit.good] += 1
                result = _switch(number, result, _parsed(edit.broken))
        return result


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _switch(number: int, good: Any, broken: ast.expr) -> ast.Call:
    """``mutated(number, good, broken)``; of assignments ``x.eq(y)`` only `y` is switched."""
    if _is_assignment(good) and _is_assignment(broken):
        assert isinstance(broken, ast.Call)
        return ast.Call(good.func, [_switch(number, good.args[0], broken.args[0])], [])
    return ast.Call(ast.Name(HELPER, ast.Load()), [ast.Constant(number), good, broken], [])


def _is_assignment(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "eq"
    )
