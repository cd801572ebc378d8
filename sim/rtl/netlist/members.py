"""Members of the class that a netlist becomes: their declarations, and how they are renewed."""

from collections.abc import Sequence

from vitral.sim.rtl.netlist.expressions import declaration, integer, is_wide
from vitral.sim.rtl.netlist.netlist import Ram, Variable

__all__ = ["bytes_of", "if_other", "port", "row", "zero"]


def if_other(width: int, old: str, new: str, flagged: Sequence[str]) -> list[str]:
    """Copies a value to where the old one is, and flags units, if they differ."""
    if not flagged:
        copy = f"move<{(width + 7) // 8}>({old}, {new});" if is_wide(width) else f"{old} = {new};"
        return [f"    {copy}"]
    if is_wide(width):
        test, copy = f"renew<{(width + 7) // 8}>({old}, {new})", []
    else:
        test, copy = f"{old} != {new}", [f"{old} = {new};"]
    return [f"    if ({test}) {{", *(f"        {line}" for line in (*copy, *flagged)), "    }"]


def port(variable: Variable, name: str) -> str:
    """A port or probe with its first value."""
    return f"{declaration(variable, name)} = {zero(variable)}"


def bytes_of(variable: Variable) -> int:
    """Bytes that have bits of a variable."""
    return (variable.width + 7) // 8


def zero(variable: Variable) -> str:
    """The first value of what has none of its own."""
    return "{}" if is_wide(variable.width) else "0"


def _row_bytes(ram: Ram) -> str:
    """Bytes of a wide row; with odd bits also those behind it that `put` reads and writes again."""
    return f"{ram.width // 8}" if ram.width % 8 == 0 else f"{(ram.width + 7) // 8} + kSlack"


def row(ram: Ram, name: str) -> str:
    """The declaration of a memory."""
    if is_wide(ram.width):
        return f"alignas(64) uint8_t {name}[{ram.depth}][{_row_bytes(ram)}]"
    return f"{integer(ram.width)} {name}[{ram.depth}]"
