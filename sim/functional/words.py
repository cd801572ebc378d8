"""Names of the 64-bit words that Python and the native code share, and the entry's symbol."""

from vitral.config import CoreConfig
from vitral.isa import ConfigRegister, Memory, Stage

__all__ = ["ENTRY", "QUEUE_WORDS", "RUNNING", "SLOTS", "TOKENS", "shadow_bytes", "slot"]

ENTRY = "vitral_run"
"""Symbol of the function that runs a program; takes the words' address, returns 0."""

RUNNING = -1
"""Value of `finished` until a FINISH has executed."""

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
    "rows",
    *(f"register_{register.name}" for register in ConfigRegister),
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


def shadow_bytes(config: CoreConfig) -> dict[str, int]:
    """Size of what the kernels keep: copies of memories that products read, rows of a GEMM."""
    layout = config.layout
    return {
        "wide_inp": 2 * layout.inp_depth * layout.inp_bytes,
        "wide_wgt": 2 * layout.wgt_depth * layout.wgt_bytes,
        "rows": 2 * 8 * layout.acc_depth,
    }
