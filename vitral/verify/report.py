"""What the verifier has to say about a program."""

from dataclasses import dataclass, field

from vitral.errors import VerifyError
from vitral.verify.intervals import IntervalSet

__all__ = ["Finding", "Report"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong; `index` is the instruction's number, None for the whole program."""

    index: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.index is None else f"instruction {self.index}: {self.text}"


@dataclass
class Report:
    """Result of verifying one program.

    Parameters
    ----------
    name : str
        The program's, for messages.
    insns : int
        Number of instructions.
    findings : list of Finding
        Empty when the program is right.
    live_in : IntervalSet
        DRAM bytes that the program reads before it writes them, its instructions included.
    writes : IntervalSet
        DRAM bytes that it writes.
    """

    name: str
    insns: int = 0
    findings: list[Finding] = field(default_factory=list)
    live_in: IntervalSet = field(default_factory=IntervalSet)
    writes: IntervalSet = field(default_factory=IntervalSet)

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def message(self) -> str:
        """One line: "ok" or the first finding, and how many more there are."""
        if self.ok:
            return f"{self.name}: ok, {self.insns} instructions"
        more = len(self.findings) - 1
        return f"{self.name}: {self.findings[0]}" + (f" (and {more} more)" if more else "")

    def raise_for_findings(self) -> None:
        """VerifyError with `message` unless `ok`."""
        if not self.ok:
            raise VerifyError(self.message)
