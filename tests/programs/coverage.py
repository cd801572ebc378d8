"""What a set of random programs must contain."""

from collections import Counter

from vitral.isa import Advance, AluOp, ConfigRegister, Memory, Profile, Rounding

__all__ = ["COVERAGE", "missing", "table"]

PAD_SIDES = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")
NO_PAD_VALUE = (Memory.UOP, Memory.PARAM)
WINDOW_MODES = ("add", "overwrite", "maximum", "maximum overwrite")
TOKENS = {
    "LOAD": ("pop_next", "push_next"),
    "COMPUTE": ("pop_prev", "pop_next", "push_prev", "push_next"),
    "STORE": ("pop_prev", "push_prev"),
}


def _loads(profile: Profile) -> list[str]:
    vitral = profile is Profile.VITRAL
    keys = []
    for memory in Memory:
        if memory is Memory.OUT or (memory is Memory.PARAM and not vitral):
            continue
        keys += [f"LOAD {memory.name}", f"LOAD {memory.name} empty"]
        keys += [f"LOAD {memory.name} {side}" for side in PAD_SIDES]
        if vitral and memory not in NO_PAD_VALUE:
            keys += [f"LOAD {memory.name} {side} value" for side in PAD_SIDES]
    return keys


def _all_of(profile: Profile) -> list[str]:
    keys = _loads(profile)
    keys += ["STORE OUT", "STORE OUT empty", "GEMM add", "GEMM reset", "GEMM empty", "ALU empty"]
    keys += [f"ALU {op.name} {kind}" for op in AluOp for kind in ("immediate", "tensor")]
    if profile is Profile.VITRAL:
        keys += ["STORE ACC", "STORE ACC empty", "GEMM overwrite"]
        keys += [f"STORE OUT {mode.name} {kind.name}" for mode in Rounding for kind in Advance]
        keys += [f"CONFIG {register.name}" for register in ConfigRegister]
        keys += ["WINDOW empty", "WINDOW apart"]
        keys += [f"WINDOW {mode} {taps}" for mode in WINDOW_MODES for taps in range(1, 5)]
    return [f"{profile.name} {key}" for key in keys]


COVERAGE: tuple[str, ...] = (
    *_all_of(Profile.VTA),
    *_all_of(Profile.VITRAL),
    *(f"token {stage} {flag}" for stage, flags in TOKENS.items() for flag in flags),
)
"""Everything that the generator counts."""


def missing(counts: Counter[str], least: int) -> list[str]:
    """Lines about what came less than `least` times."""
    return [f"{key}: {counts[key]}" for key in COVERAGE if counts[key] < least]


def table(counts: Counter[str]) -> str:
    """All counts, one per line."""
    return "\n".join(f"{counts[key]:7} {key}" for key in COVERAGE)
