"""Flags of units, as C++: who reads what, how flags are set, and how flagged units are called."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

__all__ = ["NOBODY", "WORD", "Call", "Readers", "asked", "cleared", "dispatch", "marks"]

WORD = 64
"""Flags of a word."""

RUN = 8
"""Flags that are asked for together first."""

Call = tuple[int, list[str]]
"""The number of a flag, and the statements of whom it stands for."""


@dataclass(frozen=True)
class Readers:
    """Flags of units that read something `always`, or `inside` branches that they may not take."""

    always: frozenset[int]
    inside: frozenset[int]


NOBODY = Readers(frozenset(), frozenset())


def marks(readers: Readers) -> list[str]:
    """Statements that flag units."""
    always, inside = _words(readers.always), _words(readers.inside)
    lines = []
    for n in sorted(always.keys() | inside.keys()):
        texts = [f"{always[n]:#x}ull"] if n in always else []
        texts += [f"(open[{n}] & {inside[n]:#x}ull)"] if n in inside else []
        lines.append(f"dirty[{n}] |= {' | '.join(texts)};")
    return lines


def asked(flags: str, number: int) -> str:
    """Whether a flag is set."""
    return f"{flags}[{number // WORD}] & {1 << number % WORD:#x}ull"


def cleared(flags: str, number: int) -> str:
    """The statement that clears a flag."""
    return f"{flags}[{number // WORD}] &= ~{1 << number % WORD:#x}ull;"


def dispatch(flags: str, calls: Sequence[Call], alone: Collection[int]) -> list[str]:
    """Calls the flagged ones, in their order; flags set meanwhile count if they are ahead.

    Those that are not `alone` are asked in runs, as most of them rest.
    """
    lines = []
    for _, group in groupby(calls, key=lambda call: (call[0] in alone, call[0] // WORD)):
        lines += _in_runs(flags, list(group), RUN * RUN)
    return [f"    {line}" for line in lines]


def _in_runs(flags: str, calls: Sequence[Call], size: int) -> list[str]:
    """Calls with flags in one word: asked for at once, then in runs of `size`, then one by one."""
    if len(calls) == 1:
        ((number, body),) = calls
        test, lines = asked(flags, number), [cleared(flags, number), *body]
    else:
        ((word, bits),) = _words(number for number, _ in calls).items()
        test, lines = f"{flags}[{word}] & {bits:#x}ull", []
        size = max(size // RUN, 1)
        for at in range(0, len(calls), size):
            lines += _in_runs(flags, calls[at : at + size], size)
    return [f"if ({test}) {{", *(f"    {line}" for line in lines), "}"]


def _words(flags: Iterable[int]) -> dict[int, int]:
    """Flags as bits of words, by the words' numbers."""
    words: dict[int, int] = {}
    for flag in flags:
        words[flag // WORD] = words.get(flag // WORD, 0) | 1 << flag % WORD
    return words
