"""Groups of registers that are kept side by side, and what is asked about their values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vitral.sim.rtl.netlist.expressions import Expressions, constant
from vitral.sim.rtl.netlist.flags import Readers
from vitral.sim.rtl.netlist.netlist import Variable
from vitral.sim.rtl.netlist.usual import ANY

__all__ = ["Group", "as_usual", "fact_order"]

HALF, WHOLE = 32, 64
"""Bits of registers that take one word, or two."""

LEAST, MOST = 5, 16
"""Registers of a group whose facts are asked for side by side."""


@dataclass(eq=False)
class Group:
    """Registers of one unit that the same units read.

    Their next values become the present ones at the end of the unit when `early`, else of the
    cycle; `direct` ones have no other place for it and count as changed when they are set.
    """

    number: int
    registers: list[Variable]
    readers: Readers
    early: bool
    direct: bool


def fact_order(register: Variable, facts: Mapping[Variable, str]) -> int:
    """Registers with facts come first in a group, those of two words before those of one."""
    if register not in facts or register.width > WHOLE:
        return 2
    return register.width <= HALF


def as_usual(
    groups: Iterable[Group], facts: Mapping[Variable, str], text: Expressions
) -> list[str]:
    """The body of a function that says whether facts hold: of several registers at once."""
    tables, texts = [], []
    left = dict(facts)
    for group in groups:
        first = [r for r in group.registers if fact_order(r, facts) < 2]
        if LEAST <= len(first) <= MOST:
            care, usual = [], []
            for register in first:
                bits = left.pop(register)
                care += _words(re.sub("[01]", "1", bits))
                usual += _words(bits)
            at = group.number
            tables += [_table(f"care{at}", care), _table(f"usual{at}", usual)]
            texts.append(f"differ<{len(care)}>(&now{at}, care{at}, usual{at})")
    for variable, bits in left.items():
        for low, run in _runs(bits):
            part = text.part((variable, low, len(run)))
            texts.append(f"({part} != {constant(int(run, 2), len(run))})")
    return [*tables, f"    return !({' | '.join(texts)});"]


def _words(bits: str) -> list[int]:
    """Bits, those that are not assumed as zeros, in the words that a register has."""
    number = int(bits.replace(ANY, "0"), 2)
    return [
        number >> at & (1 << HALF) - 1
        for at in range(0, HALF if len(bits) <= HALF else WHOLE, HALF)
    ]


def _table(name: str, words: Iterable[int]) -> str:
    numbers = ", ".join(f"{word:#x}u" for word in words)
    return f"    static constexpr Words {name} = {{{{{numbers}}}}};"


def _runs(bits: str) -> Iterator[tuple[int, str]]:
    """Assumed bits in runs, with the place of the lowest."""
    for match in re.finditer("[01]+", bits):
        yield len(bits) - match.end(), match[0]
