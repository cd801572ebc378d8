"""The block of 64-bit words that Python and the native code share during a run."""

from llvmlite import ir

from vitral.isa import ConfigRegister, Memory, Stage
from vitral.sim.functional.emit import I64, Code, Ptr, Value

__all__ = ["QUEUE_WORDS", "SLOTS", "TOKENS", "Context", "slot"]

TOKENS: tuple[tuple[Stage, Stage], ...] = (
    (Stage.LOAD, Stage.COMPUTE),
    (Stage.COMPUTE, Stage.LOAD),
    (Stage.COMPUTE, Stage.STORE),
    (Stage.STORE, Stage.COMPUTE),
)
"""Counters, as (giver, taker)."""

QUEUE_WORDS = 3
"""Words per queue entry: the instruction's low and high half, its number."""

_PER_STAGE = ("queue", "head", "count", "executed", "pending")

SLOTS: tuple[str, ...] = (
    "dram",
    "dram_first",
    "dram_last",
    "limit_low",
    "limit_last",
    "insn_base",
    "insn_count",
    "profile",
    *(f"base_{memory.name}" for memory in Memory),
    "uop",
    "inp",
    "wgt",
    "acc",
    "param",
    "wide_inp",
    "wide_wgt",
    *(f"pad_{register.name}" for register in ConfigRegister),
    *(f"{name}_{stage.name}" for name in _PER_STAGE for stage in Stage),
    *(f"token_{giver.name}_{taker.name}" for giver, taker in TOKENS),
    "fetched",
    "finished",
    "cause",
    "index",
    "insns",
)
"""Names of the words. Memories are addresses; limits and ends are inclusive; `finished` is the
number of the FINISH that was executed or -1; `pending` are push flags not yet served."""

_NUMBER = {name: number for number, name in enumerate(SLOTS)}


def slot(name: str) -> int:
    """Position of a word."""
    return _NUMBER[name]


class Context:
    """Access to the shared words from the function `code`, whose argument `address` is theirs."""

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
