"""Access from native code to the words that it shares with Python."""

from llvmlite import ir

from vitral.sim.functional.emit import I64, Code, Ptr, Value
from vitral.sim.functional.words import slot

__all__ = ["Context"]


class Context:
    """The shared words, seen from the function `code`, whose argument `address` is theirs."""

    def __init__(self, code: Code, address: Value) -> None:
        self.code = code
        self.address = address
        self.words = code.pointer(address, I64)

    def __getitem__(self, name: str) -> Value:
        return self.words[slot(name)]

    def __setitem__(self, name: str, value: Value | int) -> None:
        self.words[slot(name)] = value

    def memory(self, name: str, kind: ir.Type) -> Ptr:
        """The on-chip memory, shadow or queue of that name."""
        return self.code.pointer(self[name], kind)
