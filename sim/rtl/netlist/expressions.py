"""C++ expressions of a netlist's values and operators.

Values of up to 128 bits are integers, always reduced to their width; wider ones are arrays of
bytes, read and set by the functions of words.h.
"""

import re

from vitral.sim.rtl.netlist.netlist import (
    Operator,
    Part,
    Ram,
    Value,
    Variable,
    part_width,
    width_of,
)
from vitral.sim.rtl.netlist.rtlil import NetlistError

__all__ = ["Expressions", "Name", "constant", "declaration", "integer", "is_wide", "test"]

WIDEST = 128
"""Bits of the widest integer."""

Name = Variable | Ram

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "and": "&",
    "or": "|",
    "xor": "^",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}


class Expressions:
    """Names of variables and memories, and texts of what is made of them."""

    def __init__(self) -> None:
        self._names: dict[Name, str] = {}
        self._taken: set[str] = set()

    def current(self, variable: Variable) -> str:
        """The name that has the value of a variable of before the clock edge."""
        return self.name(variable)

    def name(self, thing: Name) -> str:
        if thing not in self._names:
            text = re.sub(r"\W", "_", thing.name)
            while text in self._taken or not text[0].isalpha():
                text = f"v{text}" if not text[0].isalpha() else f"{text}_"
            self._taken.add(text)
            self._names[thing] = text
        return self._names[thing]

    def part(self, part: Part) -> str:
        """Up to 128 bits as an integer."""
        if isinstance(part, str):
            return constant(int(part, 2), len(part))
        variable, low, width = part
        name = self.current(variable)
        if is_wide(variable.width):
            return f"get{'128' if width > 64 else ''}<{low}, {width}>({name})"
        if width == variable.width:
            return name
        shifted = f"({name} >> {low})" if low else name
        if width <= 64 < variable.width:
            shifted = f"(uint64_t){shifted}"
        if low + width == variable.width:
            return shifted
        return f"({shifted} & {constant((1 << width) - 1, width)})"

    def value(self, value: Value) -> str:
        """Up to 128 bits as an integer."""
        width = width_of(value)
        texts, at = [], 0
        for part in value:
            size = part_width(part)
            text = self.part(part)
            if at:
                text = f"({integer(width)}){text} << {at}"
            if not isinstance(part, str) or "1" in part:
                texts.append(f"({text})" if at else text)
            at += size
        if not texts:
            return "0"
        return texts[0] if len(texts) == 1 else "(" + " | ".join(texts) + ")"

    def _number(self, value: Value, width: int, signed: bool) -> str:
        """An operand, extended to `width` bits or more."""
        own = width_of(value)
        text = self.value(value)
        if not own:
            return "0"
        if all(isinstance(part, str) for part in value):
            number = int("".join(str(part) for part in reversed(value)), 2)
            if not signed or not number >> (own - 1):
                return f"({integer(max(own, width))}){constant(number, own)}"
        if signed:
            return f"sext128<{own}>({text})" if width > 64 else f"sext<{own}>({text})"
        return f"({integer(max(own, width))}){text}"

    def _dot(self, node: Operator) -> str:
        pointers = []
        for operand in node.operands:
            (part,) = operand
            assert not isinstance(part, str)
            name = self.current(part[0])
            address = name if is_wide(part[0].width) else f"(const uint8_t*)&{name}"
            pointers.append(f"{address} + {part[1] // 8}")
        text = f"(int64_t)dot<{width_of(node.operands[0]) // 8}>({', '.join(pointers)})"
        return self._reduced(text, node.target.width, False)

    def operator(self, node: Operator) -> str:
        """The result as an integer, reduced to its width."""
        width = node.target.width
        kind, signed = node.kind, node.signed
        if kind == "dot":
            return self._dot(node)
        sizes = [width_of(operand) for operand in node.operands]
        if max(width, *sizes) > WIDEST:
            raise NetlistError(f"no C++ for operator {kind} of {sizes} bits to {width}")
        if kind == "mux":
            no, yes, choice = (self.value(operand) for operand in node.operands)
            return f"{choice} ? {yes} : {no}"
        if kind in ("add", "sub", "mul", "and", "or", "xor"):
            left, right = (self._number(operand, width, signed) for operand in node.operands)
            text = f"{left} {_INFIX[kind]} {right}"
            return self._reduced(text, width, self._fits(node, sizes))
        if kind in ("eq", "ne", "lt", "le", "gt", "ge"):
            most = max(sizes)
            left, right = (self._number(operand, most, signed) for operand in node.operands)
            return f"{left} {_INFIX[kind]} {right}"
        if kind in ("not", "neg"):
            sign = "~" if kind == "not" else "-"
            if kind == "not" and width == 1 == sizes[0]:
                return f"{self.value(node.operands[0])} ^ 1"
            return self._reduced(
                f"{sign}{self._number(node.operands[0], width, signed)}", width, False
            )
        if kind in ("shl", "shr", "sshr", "shift"):
            return self._shifted(node, sizes)
        if kind in ("reduce_or", "reduce_bool"):
            return self.any_of(node.operands[0])
        if kind == "reduce_and":
            ones = constant((1 << sizes[0]) - 1, sizes[0])
            return f"{self.value(node.operands[0])} == {ones}"
        if kind == "reduce_xor" and sizes[0] <= 64:
            return f"__builtin_parityll({self.value(node.operands[0])})"
        if kind == "divfloor" and all(isinstance(part, str) for part in node.operands[1]):
            return self._divided(node, max(sizes))
        raise NetlistError(f"no C++ for operator {kind} of {sizes} bits")

    def _divided(self, node: Operator, most: int) -> str:
        """A quotient by a constant power of two, rounded down."""
        divisor = int("".join(str(part) for part in reversed(node.operands[1])), 2)
        if divisor & (divisor - 1) or not divisor or divisor >> (width_of(node.operands[1]) - 1):
            raise NetlistError(f"no C++ for a division by {divisor}")
        value = self._number(node.operands[0], most, node.signed)
        return self._reduced(f"{value} >> {divisor.bit_length() - 1}", node.target.width, False)

    def _fits(self, node: Operator, sizes: list[int]) -> bool:
        """Whether the result cannot have bits above its width."""
        if node.kind in ("and", "or", "xor"):
            return not node.signed and max(sizes) <= node.target.width
        if node.signed:
            return False
        if node.kind == "add":
            return max(sizes) < node.target.width
        return node.kind == "mul" and sum(sizes) <= node.target.width

    def _reduced(self, text: str, width: int, fits: bool) -> str:
        kind = integer(width)
        if fits or width == _size(width):
            return f"({kind})({text})"
        return f"({kind})({text}) & {constant((1 << width) - 1, width)}"

    def _shifted(self, node: Operator, sizes: list[int]) -> str:
        width = node.target.width
        most = max(width, sizes[0])
        size = _size(most)
        amount = self.value(node.operands[1])
        guarded = (1 << sizes[1]) - 1 >= size
        if node.kind == "sshr" and node.signed:
            amount = f"({amount} < {size} ? {amount} : {size - 1})" if guarded else f"{amount}"
            text = f"{self._number(node.operands[0], most, True)} >> {amount}"
            return self._reduced(text, width, False)
        value = self._number(node.operands[0], most, node.signed)
        if node.signed:
            value = f"({self._reduced(value, most, False)})"
        sign = "<<" if node.kind == "shl" else ">>"
        text = f"({integer(most)}){value} {sign} {amount}"
        if guarded:
            text = f"{amount} < {size} ? {text} : 0"
        return self._reduced(text, width, False)

    def any_of(self, value: Value) -> str:
        """Whether any bit of a value is set; bits of one integer are asked for at once."""
        masks: dict[Variable, int] = {}
        texts = []
        for part in value:
            if isinstance(part, str) or is_wide(part[0].width) or part[0].width == 1:
                texts.append(self.any_bit(part))
            else:
                masks[part[0]] = masks.get(part[0], 0) | ((1 << part[2]) - 1) << part[1]
        for variable, mask in masks.items():
            name = self.current(variable)
            if mask != (1 << variable.width) - 1:
                name = f"({name} & {constant(mask, variable.width)})"
            texts.append(f"({name} != 0)")
        return " | ".join(texts) or "0"

    def any_bit(self, part: Part) -> str:
        """Whether any bit is set."""
        if isinstance(part, str):
            return "1" if "1" in part else "0"
        variable, low, width = part
        if width == 1:
            return self.part(part)
        pieces = [(variable, low + at, min(64, width - at)) for at in range(0, width, 64)]
        return " | ".join(f"({self.part(piece)} != 0)" for piece in pieces)


def is_wide(width: int) -> bool:
    """Whether a value of that width is an array of bytes."""
    return width > WIDEST


def _size(width: int) -> int:
    """Bits of the integer that holds a value."""
    return next(size for size in (32, 64, 128) if width <= size)


def integer(width: int) -> str:
    return {32: "uint32_t", 64: "uint64_t", 128: "u128"}[_size(width)]


def constant(value: int, width: int) -> str:
    if width <= 32:
        return f"{value:#x}u" if value > 9 else f"{value}u"
    if width <= 64:
        return f"{value:#x}ull"
    return f"((u128){value >> 64:#x}ull << 64 | {value & (1 << 64) - 1:#x}ull)"


def test(value: str, pattern: str) -> str:
    """Whether a value matches a pattern."""
    if pattern == "1":
        return value
    care = int("".join("0" if bit == "-" else "1" for bit in pattern), 2)
    wanted = int(pattern.replace("-", "0"), 2)
    width = len(pattern)
    if "-" not in pattern:
        return f"{value} == {constant(wanted, width)}"
    return f"({value} & {constant(care, width)}) == {constant(wanted, width)}"


def declaration(variable: Variable, name: str) -> str:
    """A variable's type and name."""
    if is_wide(variable.width):
        return f"alignas(64) uint8_t {name}[{(variable.width + 7) // 8} + kSlack]"
    return f"{integer(variable.width)} {name}"
