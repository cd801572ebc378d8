"""Verifies one program: everything that can be known about it before it runs."""

from vitral.config import INSN_BYTES, CoreConfig
from vitral.isa import Cause, Load, Store
from vitral.program import Launch, OnChip, Outcome
from vitral.verify.dram import DramShadow, Rows
from vitral.verify.effects import Effects, element_bytes
from vitral.verify.image import Image
from vitral.verify.intervals import IntervalSet
from vitral.verify.ops import Op, decode_ops
from vitral.verify.order import TokenOrder
from vitral.verify.report import Finding, Report

__all__ = ["verify_program"]

FINDINGS_MAX = 20
ADDRESS_MAX = 1 << 62
"""Addresses beyond are refused: the verifier counts bytes in 64 bits with a sign."""


def verify_program(
    launch: Launch,
    config: CoreConfig,
    image: Image,
    *,
    name: str = "program",
    onchip: OnChip | None = None,
) -> Report:
    """All that is wrong with a program, found without running it.

    Encodings; on-chip, micro-op, parameter and DRAM bounds; deadlock and tokens left, with queue
    depth and token capacity; use of on-chip or DRAM data that nothing wrote; and accesses of two
    stages to the same data, one of them a write, that no token path orders.

    Parameters
    ----------
    launch : Launch
        Where the program lies; DRAM accesses must stay within its limits.
    config : CoreConfig
        The core.
    image : Image
        What memory holds before: at least the instructions and micro-ops.
    onchip : OnChip or None
        What the on-chip memories hold before; nothing when None.
    """
    report = Report(name, launch.insn_count)
    base = min(launch.insn_base, ADDRESS_MAX)
    words = image.read(base, launch.insn_count * INSN_BYTES)
    if words is None:
        report.findings.append(Finding(None, f"no instructions at {launch.insn_base:#x}"))
        return report
    ops, report.findings = decode_ops(words, config, launch.profile)
    if report.ok:
        _Verifier(ops, launch, config, image, onchip, report).run()
    report.findings.sort(key=lambda item: -1 if item.index is None else item.index)
    return report


class _Verifier:
    """Checks each instruction in an order that some execution has."""

    def __init__(
        self,
        ops: list[Op],
        launch: Launch,
        config: CoreConfig,
        image: Image,
        onchip: OnChip | None,
        report: Report,
    ) -> None:
        self.ops, self.launch, self.config, self.report = ops, launch, config, report
        self.end = min(launch.limit_high, 1 << config.addr_bits, ADDRESS_MAX)
        self.element_bytes = element_bytes(config)
        self.rows = self._place_rows()
        self.dram = DramShadow(*self._by_direction(), image.filled)
        self.effects = Effects(config, image, self.dram, self.rows, onchip)

    def run(self) -> None:
        order = TokenOrder(self.ops, self.config)
        for op, clock in order:
            for text in self.effects.of(op, clock):
                self._find(op.index, text)
            if len(self.report.findings) >= FINDINGS_MAX:
                return
        self._check_end(order)
        self._check_program_stays()
        self.report.live_in = self.dram.live_in | self._program
        self.report.writes = self.dram.writes

    def _place_rows(self) -> dict[int, Rows]:
        """DRAM ranges of all transfers by instruction; those out of bounds are left out."""
        placed = {}
        for op in self.ops:
            insn = op.insn
            if not isinstance(insn, Load | Store) or not op.transfers:
                continue
            size = self.element_bytes[insn.memory]
            start = self.launch.base(insn.memory) + op.dram * size
            rows = Rows(start, insn.y_size, insn.x_size * size, insn.x_stride * size)
            if self.launch.limit_low <= rows.start and rows.end <= self.end:
                placed[op.index] = rows
                continue
            self._find(
                op.index,
                f"{op}: DRAM bytes {rows} are outside {self.launch.limit_low:#x}..{self.end:#x}",
            )
        return placed

    def _by_direction(self) -> tuple[list[Rows], list[Rows]]:
        writes, reads = [], []
        for index, rows in self.rows.items():
            (writes if isinstance(self.ops[index].insn, Store) else reads).append(rows)
        return writes, reads

    def _find(self, index: int | None, text: str) -> None:
        self.report.findings.append(Finding(index, text))

    def _check_end(self, order: TokenOrder) -> None:
        if order.waits:
            self._find(None, Outcome(Cause.NONE, 0, order.waits).message)
        elif order.tokens_left:
            left = ", ".join(order.tokens_left)
            self._find(len(self.ops) - 1, f"{Cause.TOKENS_LEFT.text}: {left}")

    @property
    def _program(self) -> IntervalSet:
        return IntervalSet.of([(self.launch.insn_base, len(self.ops) * INSN_BYTES)])

    def _check_program_stays(self) -> None:
        """Fetch runs ahead of everything, so no STORE may reach the instructions."""
        if not self.dram.writes & self._program:
            return
        for index, rows in self.rows.items():
            written = IntervalSet(rows.starts, rows.starts + rows.size)
            if isinstance(self.ops[index].insn, Store) and written & self._program:
                self._find(index, f"{self.ops[index]} overwrites the program's own instructions")
                return
