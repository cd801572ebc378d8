"""Takes the fields of instructions and micro-ops apart, at the positions that the ISA gives."""

from amaranth.hdl import Value

from vitral.isa import Field, Format

__all__ = ["field_of", "select"]


def field_of(word: Value, field: Field) -> Value:
    """The bits of one field, signed when the field is."""
    bits = word[field.low : field.high + 1]
    return bits.as_signed() if field.signed else bits


def select(word: Value, fmt: Format, name: str) -> Value:
    """The field of that name in a word of format `fmt`."""
    return field_of(word, fmt[name])
