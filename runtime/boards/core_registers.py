"""The core's registers by name, over a window of 32-bit words."""

from vitral.registers import register
from vitral.runtime.boards.interfaces import RegisterWindow

__all__ = ["CoreRegisters"]

WORD_BITS = 32
WORD_BYTES = 4
WORD_MASK = (1 << WORD_BITS) - 1


class CoreRegisters:
    """Registers of the map in `vitral.registers`; those of 64 bits are two words, low one first.

    Parameters
    ----------
    window : RegisterWindow
        Where they are.
    """

    def __init__(self, window: RegisterWindow) -> None:
        self.window = window

    def read(self, name: str) -> int:
        """Value of a register. One of two words is only right while it does not change."""
        entry = register(name)
        return sum(
            self.window.read(entry.offset + WORD_BYTES * word) << WORD_BITS * word
            for word in range(entry.words)
        )

    def write(self, name: str, value: int) -> None:
        entry = register(name)
        for word in range(entry.words):
            self.window.write(
                entry.offset + WORD_BYTES * word, value >> WORD_BITS * word & WORD_MASK
            )

    def fields(self, name: str) -> dict[str, int]:
        """All bit fields of a register, from one read."""
        value = self.read(name)
        return {field.name: field.extract(value) for field in register(name).fields}

    def write_fields(self, name: str, **fields: int) -> None:
        """Write a register with these fields, the others 0."""
        entry = register(name)
        value = 0
        for field, number in fields.items():
            value |= entry[field].insert(number)
        self.write(name, value)
