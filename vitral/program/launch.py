"""The values that a host writes into the core before it starts a program."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vitral.errors import DeviceError
from vitral.isa import Memory, Profile
from vitral.registers import BASE_ALIGN

__all__ = ["Launch"]

ADDRESS_END = 1 << 64
COUNT_END = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Where a program and its data lie, and in which profile it runs.

    Parameters
    ----------
    insn_base : int
        Byte address of the first instruction, a multiple of 64.
    insn_count : int
        Number of 128-bit instructions, below 2**24.
    profile : Profile
        Meaning of the encodings: VTA ignores spare bits, VITRAL faults on them.
    bases : Mapping[Memory, int]
        Byte address added to each memory's transfers, multiples of 64; 0 where none is given.
    limit_low, limit_high : int
        The program may touch bytes ``limit_low <= address < limit_high`` only.

    Raises
    ------
    DeviceError
        When the core's registers cannot hold a value.
    """

    insn_base: int
    insn_count: int
    profile: Profile = Profile.VITRAL
    bases: Mapping[Memory, int] = field(default_factory=dict)
    limit_low: int = 0
    limit_high: int = ADDRESS_END

    def __post_init__(self) -> None:
        bases = {Memory(memory): int(base) for memory, base in self.bases.items()}
        object.__setattr__(self, "bases", bases)
        object.__setattr__(self, "profile", Profile(self.profile))
        _check_base("insn_base", self.insn_base)
        for memory, base in bases.items():
            _check_base(f"base of {memory.name}", base)
        if not 0 <= self.insn_count < COUNT_END:
            raise DeviceError(f"insn_count must be 0..{COUNT_END - 1}, got {self.insn_count}")
        if not 0 <= self.limit_low <= self.limit_high <= ADDRESS_END:
            raise DeviceError(
                "limits must be 0 <= limit_low <= limit_high <= 2**64,"
                f" got {self.limit_low:#x} and {self.limit_high:#x}"
            )

    def base(self, memory: Memory) -> int:
        """Byte address added to the transfers of a memory."""
        return self.bases.get(memory, 0)


def _check_base(name: str, address: int) -> None:
    if not 0 <= address < ADDRESS_END or address % BASE_ALIGN:
        raise DeviceError(
            f"{name} must be a multiple of {BASE_ALIGN} below 2**64, got {address:#x}"
        )
