"""A flat netlist: variables, operators, decisions, registers and memories."""

from dataclasses import dataclass, field

__all__ = [
    "Choice",
    "Decision",
    "Netlist",
    "Node",
    "Operator",
    "Part",
    "Put",
    "Ram",
    "Read",
    "Step",
    "Value",
    "Variable",
    "Write",
    "bit_of",
    "bits_of",
    "cut",
    "joined",
    "part_width",
    "width_of",
]


@dataclass(eq=False)
class Variable:
    """A signal with one driver: an input, an operator, a decision, or a register."""

    name: str
    width: int
    init: str | None = None


@dataclass(eq=False)
class Ram:
    """A memory."""

    name: str
    width: int
    depth: int


Part = tuple[Variable, int, int] | str
"""Bits ``(variable, lowest, width)``, or constant bits, highest first."""

Value = tuple[Part, ...]
"""A value put together from parts, lowest first."""


@dataclass(eq=False)
class Operator:
    """`target` = an operator of RTLIL on its operands; `signed` when both are."""

    target: Variable
    kind: str
    operands: tuple[Value, ...]
    signed: bool


@dataclass(eq=False)
class Read:
    """`target` = a word of a memory; at a clock edge while `enable`, or at once without it."""

    target: Variable
    ram: Ram
    address: Value
    enable: Value | None


@dataclass(eq=False)
class Decision:
    """`target` gets its value by statements; targets in them are ``(target, lowest, width)``."""

    target: Variable
    body: tuple["Step", ...]


@dataclass(frozen=True)
class Put:
    """Bits of a decision's target from `low` on get a value."""

    low: int
    value: Value


@dataclass(frozen=True)
class Choice:
    """The first case with a matching pattern; one without patterns matches always."""

    value: Value
    cases: tuple[tuple[tuple[str, ...], tuple["Step", ...]], ...]


Step = Put | Choice
Node = Operator | Decision | Read


@dataclass(eq=False)
class Write:
    """At a clock edge, bits of a memory's word from `low` on get `value` while `enable`."""

    ram: Ram
    address: Value
    low: int
    value: Value
    enable: Part


@dataclass(eq=False)
class Netlist:
    """All of a core: `registers` with their next values, `nodes` by their targets.

    `outputs` are the ports of that direction, `probes` other values that somebody wants to see.
    """

    inputs: list[Variable] = field(default_factory=list)
    outputs: list[tuple[str, Value]] = field(default_factory=list)
    probes: list[tuple[str, Value]] = field(default_factory=list)
    nodes: dict[Variable, Node] = field(default_factory=dict)
    registers: list[tuple[Variable, Value]] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    rams: list[Ram] = field(default_factory=list)


def part_width(part: Part) -> int:
    """Bits of a part."""
    return len(part) if isinstance(part, str) else part[2]


def width_of(value: Value) -> int:
    """Bits of a value."""
    return sum(part_width(part) for part in value)


def bit_of(value: Value, place: int) -> Value:
    """One bit of a value."""
    return tuple(cut(value, place, 1))


def bits_of(text: str, low: int, width: int) -> str:
    return text[len(text) - low - width : len(text) - low].replace("x", "0")


def cut(value: Value, low: int, width: int) -> list[Part]:
    result: list[Part] = []
    for part in value:
        size = part_width(part)
        begin, end = max(low, 0), min(low + width, size)
        if begin < end:
            if isinstance(part, str):
                result.append(bits_of(part, begin, end - begin))
            else:
                result.append((part[0], part[1] + begin, end - begin))
        low -= size
    return result


def joined(parts: list[Part]) -> Value:
    """Neighbours that continue each other as one part."""
    result: list[Part] = []
    for part in parts:
        last = result[-1] if result else None
        if isinstance(part, str) and isinstance(last, str):
            result[-1] = part + last
        elif (
            last is not None
            and not isinstance(part, str)
            and not isinstance(last, str)
            and part[0] is last[0]
            and part[1] == last[1] + last[2]
        ):
            result[-1] = (last[0], last[1], last[2] + part[2])
        else:
            result.append(part)
    return tuple(result)
