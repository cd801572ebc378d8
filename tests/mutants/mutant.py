"""What a mutant is: expressions of the hardware's source, and what stands there instead."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Edit", "Mutant"]


@dataclass(frozen=True)
class Edit:
    """In `function`, the expression `good` becomes the expression `broken`.

    `good` must be found exactly once in the function's source, as a whole expression (spaces,
    line breaks and needless parentheses do not matter). Of two assignments ``x.eq(y)``, it is
    `y` that changes.
    """

    function: Callable[..., object]
    good: str
    broken: str


@dataclass(frozen=True)
class Mutant:
    """One mistake of one unit, made at all its `edits` at once."""

    unit: str
    mistake: str
    edits: tuple[Edit, ...]

    @property
    def name(self) -> str:
        return f"{self.unit}: {self.mistake}"
