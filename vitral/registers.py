"""The AXI4-Lite register map, declared once: hardware, drivers, docs and metadata come from it.

Registers are 32 bits at byte offsets from the core's base; 64-bit values take two, low word first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from vitral.config import ISA_VERSION
from vitral.isa import Memory

__all__ = [
    "ADDRESS_BITS",
    "BASE_ALIGN",
    "COUNTERS",
    "MAGIC",
    "Access",
    "BitField",
    "Register",
    "REGISTERS",
    "register",
]

ADDRESS_BITS = 12
"""Width of the register port's byte address."""

MAGIC = 0x4C525456
"""Value of the ID register: "VTRL" in little-endian ASCII."""

BASE_ALIGN = 64
"""Base addresses are multiples of this many bytes: the low bits of their registers are 0."""


class Access(Enum):
    READ = "ro"
    WRITE = "rw"
    CLEAR = "w1c"
    PULSE = "wo"


@dataclass(frozen=True, kw_only=True)
class BitField:
    name: str
    low: int
    width: int
    meaning: str

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.low

    def extract(self, value: int) -> int:
        return (value & self.mask) >> self.low

    def insert(self, value: int) -> int:
        return (value << self.low) & self.mask


@dataclass(frozen=True, kw_only=True)
class Register:
    """One register: `words` 32-bit words at byte `offset`, `reset` value, and its bit fields."""

    name: str
    offset: int
    access: Access
    meaning: str
    words: int = 1
    reset: int = 0
    fields: tuple[BitField, ...] = ()

    def __getitem__(self, name: str) -> BitField:
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"register {self.name} has no field {name}")


COUNTERS: tuple[tuple[str, str], ...] = (
    ("cycles", "cycles from launch to done"),
    ("gemm", "cycles in which a GEMM tile product was issued"),
    ("alu", "cycles in which an ALU element was issued"),
    *(
        (f"{stage}_{what}", f"{stage} stage: cycles {meaning}")
        for stage in ("load", "compute", "store")
        for what, meaning in (
            ("busy", "doing work"),
            ("idle", "without an instruction"),
            ("wait_prev", "waiting for a token of the previous stage"),
            ("wait_next", "waiting for a token of the next stage"),
            ("wait_push", "waiting for room to push a token"),
            ("wait_memory", "waiting for DRAM with nothing else to do"),
        )
    ),
    ("read_beats", "data beats read on the memory port"),
    ("write_beats", "data beats written on the memory port"),
)
"""Counters in register order: name, meaning. Each stage's six add up to `cycles`."""


def _flags(*names: tuple[str, int, int, str]) -> tuple[BitField, ...]:
    return tuple(
        BitField(name=name, low=low, width=width, meaning=meaning)
        for name, low, width, meaning in names
    )


def _declare() -> Iterator[Register]:
    offset = 0

    def place(name: str, access: Access, meaning: str, words: int = 1, **more: object) -> Register:
        nonlocal offset
        entry = Register(
            name=name,
            offset=offset,
            access=access,
            meaning=meaning,
            words=words,
            **more,  # pyright: ignore[reportArgumentType]  # keyword defaults of Register
        )
        offset += 4 * words
        return entry

    yield place("id", Access.READ, "identification, 'VTRL'", reset=MAGIC)
    yield place("version", Access.READ, "version of the ISA and this map", reset=ISA_VERSION)
    yield place("digest", Access.READ, "first 32 bits of the configuration digest")
    yield place(
        "control",
        Access.PULSE,
        "commands; `profile` is sampled with `start`; a start while busy is refused",
        fields=_flags(
            ("start", 0, 1, "launch the program"),
            (
                "soft_reset",
                1,
                1,
                "finish promised bursts, clear all but rw registers",
            ),
            ("profile", 4, 1, "0 VTA, 1 Vitral"),
        ),
    )
    yield place(
        "status",
        Access.READ,
        "state of the core",
        fields=_flags(
            ("busy", 0, 1, "a program is running"),
            ("done", 1, 1, "the last program ended, well or with an error"),
            ("error", 2, 1, "the last program ended with an error"),
            ("resetting", 3, 1, "a soft reset is draining the bus"),
            ("refused", 4, 1, "a command came while busy; cleared by the next accepted one"),
            ("cause", 8, 8, "error cause"),
        ),
    )
    yield place("error_index", Access.READ, "instruction number of the error")
    yield place(
        "irq_enable", Access.WRITE, "interrupt enable", fields=_flags(("done", 0, 1, "on done"))
    )
    yield place(
        "irq_status",
        Access.CLEAR,
        "interrupt pending, write 1 to clear",
        fields=_flags(("done", 0, 1, "program ended")),
    )
    yield place("insn_count", Access.WRITE, "instructions in the program")
    yield place(
        "watchdog", Access.WRITE, "cycles without any bus progress that mean 'bus hung'; 0 = off"
    )
    yield place(
        "axi_attributes",
        Access.WRITE,
        "sideband of the memory port",
        reset=0x0033,
        fields=_flags(
            ("arcache", 0, 4, "ARCACHE"),
            ("awcache", 4, 4, "AWCACHE"),
            ("prot", 8, 3, "AxPROT"),
            ("qos", 12, 4, "AxQOS"),
            ("user", 16, 8, "AxUSER"),
        ),
    )
    for stage in ("load", "compute", "store"):
        yield place(
            f"{stage}_state",
            Access.READ,
            f"what the {stage} stage is doing",
            fields=_flags(
                ("index", 0, 24, "number of its current instruction"),
                (
                    "wait",
                    24,
                    4,
                    "0 busy, 1 idle, 2 pop prev, 3 pop next, 4 push prev, 5 push next, 6 memory",
                ),
            ),
        )
    offset = (offset + 15) & ~15
    yield place("insn_base", Access.WRITE, "byte address of the first instruction", words=2)
    for memory in Memory:
        yield place(
            f"{memory.name.lower()}_base",
            Access.WRITE,
            f"byte address added to {memory.name} transfers",
            words=2,
        )
    yield place("limit_low", Access.WRITE, "lowest byte address the core may touch", words=2)
    yield place(
        "limit_high",
        Access.WRITE,
        "one past the highest byte address the core may touch",
        words=2,
        reset=(1 << 64) - 1,
    )
    offset = 0x100
    for name, meaning in COUNTERS:
        yield place(f"count_{name}", Access.READ, meaning, words=2)


REGISTERS: tuple[Register, ...] = tuple(_declare())
_BY_NAME = {entry.name: entry for entry in REGISTERS}


def register(name: str) -> Register:
    """The register of that name; KeyError when there is none."""
    return _BY_NAME[name]
