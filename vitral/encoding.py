"""How encodings are described: fields of bits, formats made of fields, and how C lays them out.

`vitral.isa` has the encodings themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from vitral.errors import ConfigError, IsaError
from vitral.instructions import Profile

__all__ = ["INSN_BITS", "UOP_BITS", "WORD_BITS", "Field", "Format", "Packer"]

INSN_BITS = 128
WORD_BITS = 64
UOP_BITS = 32


@dataclass(frozen=True, kw_only=True)
class Field:
    """`width` bits at bit `low`; two's complement when `signed`; `profile` that defines it."""

    name: str
    low: int
    width: int
    meaning: str
    signed: bool = False
    profile: Profile = Profile.VTA

    @property
    def high(self) -> int:
        return self.low + self.width - 1

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.low

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value that fits."""
        if self.signed:
            return -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        return 0, (1 << self.width) - 1

    def extract(self, word: int) -> int:
        value = (word & self.mask) >> self.low
        return value - (1 << self.width) if self.signed and value > self.range[1] else value

    def insert(self, value: int, owner: str) -> int:
        low, high = self.range
        if not low <= value <= high:
            raise IsaError(f"{owner}: {self.name} must be {low}..{high}, got {value}")
        return (value << self.low) & self.mask


@dataclass(frozen=True)
class Format:
    """An encoding: a name, its fields in bit order, and the total width in bits."""

    name: str
    fields: tuple[Field, ...]
    width: int = INSN_BITS

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, name: str) -> Field:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    def used_mask(self, profile: Profile) -> int:
        """Bits that a profile gives a meaning; the rest is ignored (VTA) or reserved (Vitral)."""
        return sum(field.mask for field in self.fields if field.profile <= profile)

    def check(self) -> "Format":
        used = 0
        for field in self.fields:
            if used & field.mask:
                raise ConfigError(
                    f"{self.name}: {field.name} needs bits {field.high}:{field.low}, which other"
                    " fields already use; choose larger micro-op or smaller other buffers"
                )
            used |= field.mask
        if used >> self.width:
            raise ConfigError(
                f"{self.name} needs {used.bit_length()} bits, an encoding has {self.width};"
                " choose smaller buffers or a larger block"
            )
        return self


class Packer:
    """Lays fields out as C compilers do: in order, never across a 64-bit word boundary."""

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.position = 0

    def add(
        self,
        name: str,
        width: int,
        meaning: str,
        *,
        signed: bool = False,
        at: int | None = None,
        profile: Profile = Profile.VTA,
    ) -> "Packer":
        low = self.position if at is None else at
        if low % WORD_BITS + width > WORD_BITS:
            low += WORD_BITS - low % WORD_BITS
        self.fields.append(
            Field(name=name, low=low, width=width, meaning=meaning, signed=signed, profile=profile)
        )
        self.position = low + width
        return self

    def format(self, name: str, width: int = INSN_BITS) -> Format:
        return Format(name, tuple(self.fields), width).check()
