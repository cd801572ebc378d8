"""What each instruction reads and writes, checked as if it were executed."""

from collections.abc import Iterator, Mapping

import numpy as np

from vitral.config import CoreConfig
from vitral.isa import (
    Advance,
    Alu,
    Config,
    ConfigRegister,
    Gemm,
    InstructionSet,
    Load,
    Memory,
    Stage,
    Store,
    Window,
    window_of,
)
from vitral.program import OnChip
from vitral.verify.dram import DramShadow, Rows
from vitral.verify.image import Image
from vitral.verify.loops import Footprint, IndexOverflow, LoopWalker, Where
from vitral.verify.ops import Op
from vitral.verify.order import Clock
from vitral.verify.shadow import Conflict, Shadow

__all__ = ["Effects", "element_bytes"]

_ARRAY = {memory: memory.name for memory in Memory} | {Memory.ACC_8BIT: "ACC", Memory.OUT: "ACC"}
_WINDOW = divmod(ConfigRegister.WINDOW, 128)
_SOURCES = {"src": "INP", "wgt": "WGT"}


def element_bytes(config: CoreConfig) -> dict[Memory, int]:
    """Bytes that an element takes in DRAM."""
    layout = config.layout
    return {
        Memory.UOP: layout.uop_bytes,
        Memory.WGT: layout.wgt_bytes,
        Memory.INP: layout.inp_bytes,
        Memory.ACC: layout.acc_bytes,
        Memory.OUT: layout.out_bytes,
        Memory.ACC_8BIT: layout.acc8_bytes,
        Memory.PARAM: layout.param_bytes,
    }


class Effects:
    """Follows a program's instructions, in an order that some execution has.

    Micro-ops and the WINDOW register are followed by value, everything else by who touched it last.

    Parameters
    ----------
    config : CoreConfig
        The core.
    image : Image
        What DRAM holds before.
    dram : DramShadow
        Keeps the DRAM accesses.
    rows : mapping from instruction number to Rows
        DRAM ranges of the transfers that are within bounds.
    onchip : OnChip or None
        What the on-chip memories hold before; nothing when None.
    """

    def __init__(
        self,
        config: CoreConfig,
        image: Image,
        dram: DramShadow,
        rows: Mapping[int, Rows],
        onchip: OnChip | None,
    ) -> None:
        layout = config.layout
        self._image, self._dram, self._rows = image, dram, rows
        self._depths = {
            name: getattr(layout, f"{name.lower()}_depth")
            for name in ("UOP", "INP", "WGT", "ACC", "PARAM")
        }
        self._shadows = {
            name: Shadow(depth, onchip is not None) for name, depth in self._depths.items()
        }
        self._uops = np.zeros(layout.uop_depth, np.uint32) if onchip is None else onchip.uop.copy()
        self._uops_known = np.full(layout.uop_depth, onchip is not None)
        self._taps = window_of(0)
        self._walker = LoopWalker(InstructionSet.of(config))
        self._queues: dict[Stage, list[Op]] = {stage: [] for stage in Stage}

    def of(self, op: Op, clock: Clock) -> Iterator[str]:
        """Everything that is wrong with the next instruction, given what is ordered before it."""
        self._queues[op.stage].append(op)
        match op.insn:
            case Load() if op.transfers:
                yield from self._load(op, op.insn, clock)
            case Store() if op.transfers:
                yield from self._store(op, op.insn, clock)
            case Gemm() | Window() | Alu():
                yield from self._loops(op, op.insn, clock)
            case Config(stage=stage, register=register, value=value):
                if (stage, register) == _WINDOW:
                    self._taps = window_of(value)
            case _:
                pass

    def _load(self, op: Op, insn: Load, clock: Clock) -> Iterator[str]:
        name = _ARRAY[insn.memory]
        height = insn.y_pad_0 + insn.y_size + insn.y_pad_1
        width = insn.x_pad_0 + insn.x_size + insn.x_pad_1
        where = slice(op.sram, op.sram + height * width)
        if where.stop > self._depths[name]:
            yield self._past(op, name, where)
            return
        rows = self._rows.get(op.index)
        if rows is not None:
            yield from self._read_dram(op, rows, clock)
            if insn.memory is Memory.UOP:
                self._load_uops(op, insn, rows)
        yield from self._write(op, name, where, clock)

    def _load_uops(self, op: Op, insn: Load, rows: Rows) -> None:
        """Micro-ops decide what is touched later, so their values are followed."""
        table = np.zeros((insn.y_size, insn.x_size), np.uint32)
        known = np.zeros(table.shape, bool)
        for number, start in enumerate(rows.starts.tolist()):
            data = self._image.read(start, rows.size)
            row = Rows(start, 1, rows.size, 0)
            if data is not None and not self._dram.changed(row):
                table[number], known[number] = data.view("<u4"), True
        pads = ((insn.y_pad_0, insn.y_pad_1), (insn.x_pad_0, insn.x_pad_1))
        where = slice(op.sram, op.sram + np.pad(table, pads).size)
        self._uops[where] = np.pad(table, pads).ravel()
        self._uops_known[where] = np.pad(known, pads, constant_values=True).ravel()

    def _store(self, op: Op, insn: Store, clock: Clock) -> Iterator[str]:
        where = slice(op.sram, op.sram + insn.y_size * insn.x_size)
        if where.stop > self._depths["ACC"]:
            yield self._past(op, "ACC", where)
        else:
            yield from self._read(op, "ACC", where, clock)
        if insn.requant:
            yield from self._parameters(op, insn, clock)
        rows = self._rows.get(op.index)
        if rows is not None:
            conflict = self._dram.write(rows, op.stage, clock)
            if conflict is not None:
                yield self._collision(op, f"writes DRAM {rows}", conflict)

    def _parameters(self, op: Op, insn: Store, clock: Clock) -> Iterator[str]:
        steps = {
            Advance.NONE: 1,
            Advance.ROW: insn.y_size,
            Advance.ELEMENT: insn.y_size * insn.x_size,
        }
        where = slice(insn.param_base, insn.param_base + steps[insn.advance])
        if where.stop > self._depths["PARAM"]:
            yield self._past(op, "PARAM", where)
        else:
            yield from self._read(op, "PARAM", where, clock)

    def _loops(self, op: Op, insn: Gemm | Window | Alu, clock: Clock) -> Iterator[str]:
        if not insn.iter_out or not insn.iter_in or insn.uop_bgn >= insn.uop_end:
            return
        range_ = slice(insn.uop_bgn, insn.uop_end)
        if range_.stop > self._depths["UOP"]:
            yield self._past(op, "UOP", range_)
            return
        if not self._uops_known[range_].all():
            yield from self._unknown_uop(op, range_)
            return
        try:
            touched = self._walker.footprint(insn, self._uops[range_], self._taps)
        except IndexOverflow as overflow:
            yield f"{op}: {overflow}"
            return
        yield from self._compute(op, insn, touched, clock)

    def _unknown_uop(self, op: Op, where: slice) -> Iterator[str]:
        number = where.start + int(np.argmin(self._uops_known[where]))
        loaded = self._shadows["UOP"].written[number]
        why = "whose value is not known before the program runs" if loaded else "never loaded"
        yield f"{op} uses micro-op {number}, {why}"

    def _compute(
        self, op: Op, insn: Gemm | Window | Alu, touched: Footprint, clock: Clock
    ) -> Iterator[str]:
        for field, name in _SOURCES.items():
            if field in touched:
                source = "ACC" if isinstance(insn, Alu) else name
                yield from self._read(op, source, touched[field], clock)
        dst = touched["dst"]
        if not _replaces(insn):
            yield from self._unwritten(op, "ACC", dst)
        yield from self._write(op, "ACC", dst, clock)

    def _read(self, op: Op, name: str, where: Where, clock: Clock) -> Iterator[str]:
        yield from self._unwritten(op, name, where)
        conflict = self._shadows[name].read(where, op.stage, clock)
        if conflict is not None:
            yield self._collision(op, f"reads {name} {_range(where)}", conflict)

    def _write(self, op: Op, name: str, where: Where, clock: Clock) -> Iterator[str]:
        conflict = self._shadows[name].write(where, op.stage, clock)
        if conflict is not None:
            yield self._collision(op, f"writes {name} {_range(where)}", conflict)

    def _unwritten(self, op: Op, name: str, where: Where) -> Iterator[str]:
        element = self._shadows[name].unwritten(where)
        if element is not None:
            yield f"{op} uses {name} element {element}, which was never written"

    def _read_dram(self, op: Op, rows: Rows, clock: Clock) -> Iterator[str]:
        conflict, missing = self._dram.read(rows, op.stage, clock)
        if conflict is not None:
            yield self._collision(op, f"reads DRAM {rows}", conflict)
        if missing is not None:
            yield f"{op} reads DRAM byte {missing:#x}, which nothing wrote"

    def _past(self, op: Op, name: str, where: slice) -> str:
        return f"{op}: {name} {_range(where)} ends past its {self._depths[name]} elements"

    def _collision(self, op: Op, what: str, conflict: Conflict) -> str:
        other = self._queues[conflict.stage][conflict.count - 1]
        did = "writes" if conflict.wrote else "reads"
        return (
            f"{op} {what}, which instruction {other.index} ({other}) {did},"
            " and no tokens order the two"
        )


def _replaces(insn: Gemm | Window | Alu) -> bool:
    """Whether the result does not depend on what ACC held."""
    match insn:
        case Gemm():
            return insn.reset or insn.overwrite
        case Window():
            return insn.overwrite
        case Alu():
            return False


def _range(where: Where) -> str:
    first, last = (where.start, where.stop - 1) if isinstance(where, slice) else where[[0, -1]]
    return f"{first}..{last}" if last > first else str(first)
