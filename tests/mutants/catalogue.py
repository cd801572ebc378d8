"""The mutants, unit by unit in the order of the data."""

from typing import Any

from mutants.mutant import Edit, Mutant
from vitral.hw.bus.bursts import BurstSplitter
from vitral.hw.bus.reader import Reader
from vitral.hw.core import alu, requant
from vitral.hw.core.acc import AccMemory
from vitral.hw.core.alu import Alu
from vitral.hw.core.compute import ComputeStage
from vitral.hw.core.core import Core
from vitral.hw.core.fetch import Fetch
from vitral.hw.core.gather import Gather
from vitral.hw.core.gemm import Gemm
from vitral.hw.core.granules import Granules
from vitral.hw.core.legality import Legality
from vitral.hw.core.load import LoadStage
from vitral.hw.core.load_issue import LoadIssue
from vitral.hw.core.loops import Sequencer
from vitral.hw.core.mac import MacArray
from vitral.hw.core.packer import GranulePacker
from vitral.hw.core.pads import PadFiller
from vitral.hw.core.retire import Retirement
from vitral.hw.core.rows import RowWalker
from vitral.hw.core.scratchpad import Scratchpad
from vitral.hw.core.sinks import AccSink, ScratchpadSink
from vitral.hw.core.slots import CommandSlots
from vitral.hw.core.store import StoreStage
from vitral.hw.core.store_engine import StoreEngine
from vitral.hw.core.tokens import TokenCounters

__all__ = ["MUTANTS"]


def _one(unit: str, mistake: str, function: Any, good: str, broken: str) -> Mutant:
    return Mutant(unit, mistake, (Edit(function, good, broken),))


BUS = (
    _one(
        *("reader", "beats of a held request go to whom the arbiter likes now"),
        *(Reader._arbitrate, "order.w_data.eq(chosen)", "order.w_data.eq(winner)"),
    ),
    _one(
        "reader", "a held address changes", Reader._arbitrate, "Mux(locked, last, winner)", "winner"
    ),
    _one(
        *("bursts", "a burst may cross 4 KB", BurstSplitter.elaborate),
        *("Mux(to_page_end < self._limit, to_page_end, self._limit)", "self._limit"),
    ),
)

FETCH = (
    _one("fetch", "a full queue loses an instruction", Fetch._dispatch, "queue.ready", "1"),
    _one(
        *("fetch", "asks without room in its buffer", Fetch._room),
        *("reserved <= capacity - block_beats", "1"),
    ),
    _one(
        *("legality", "reserved bits are let through", Legality.elaborate),
        *("(self.word & spare).any()", "0"),
    ),
    _one(
        *("status", "a burst starts in the cycle that clears", Core._connect_reads),
        *("parts.status.stop", "parts.status.stop & ~parts.status.clear"),
    ),
)

TOKENS = (
    _one(
        *("tokens", "one given while one is taken is lost", TokenCounters.elaborate),
        *("count + giver.give - taker.take", "count + (giver.give & ~taker.take) - taker.take"),
    ),
    _one(
        *("tokens", "a full counter takes one more", TokenCounters.elaborate),
        *("count != self._capacity", "1"),
    ),
    _one(
        *("tokens", "the compute stage does not wait for the store stage", ComputeStage._decode),
        *("(~insn.pop_next | self.next.available)", "1"),
    ),
    _one(
        *("tokens", "an instruction leaves before it gave both", Retirement.elaborate),
        *("complete & ~Cat(self.blocked_prev, self.blocked_next).any()", "complete"),
    ),
    _one(
        *("tokens", "those left at FINISH are forgotten", Core._connect_status),
        *("parts.tokens.left", "0"),
    ),
    _one(
        *("tokens", "FINISH does not wait for the other stages", ComputeStage._begin),
        *("self.others_idle & ~retirement.valid", "~retirement.valid"),
    ),
)

LOAD = (
    _one(
        *("load", "padding behind the last row is a row's", PadFiller._next_run),
        *("Mux(last, 0, job.x_pad_0)", "job.x_pad_0"),
    ),
    _one(
        *("load", "a pad value is taken for 0", ScratchpadSink._pad_beat),
        *("self.pad_value[:BYTE_BITS]", "self.pad_value[:BYTE_BITS] & 0"),
    ),
    _one(
        *("load", "rows follow each other without their stride", RowWalker.elaborate),
        *("address + (stride << shift)", "address + (count << shift)"),
    ),
    _one(
        *("load", "rows with padding to the right are joined", LoadIssue._take),
        *("(command.x_pad_0 == 0) & (command.x_pad_1 == 0)", "command.x_pad_0 == 0"),
    ),
    _one(
        *("load", "padding overtakes the LOAD before", CommandSlots.elaborate),
        *("((data_due | pads_due) & shares).any()", "0"),
    ),
    _one(
        *("load", "its token does not wait for the data", CommandSlots.elaborate),
        *("~data_due.bit_select(oldest, 1)", "1"),
    ),
    _one(
        *("load", "ends of the on-chip memories are not checked", LoadIssue._admit),
        *("~self.data_due | (end <= depths[number])", "1"),
    ),
    _one(
        *("load", "micro-ops are replaced while they are read", ComputeStage._is_free),
        *("~execute.reading | below | (first >= execute.uop_end)", "1"),
    ),
    _one(
        *("load", "a row begins with the beat that holds it", LoadIssue._place),
        *("(element << geometry.unit_shift) - head", "element << geometry.unit_shift"),
    ),
    _one(
        *("load", "DRAM limits are not checked", RowWalker.elaborate),
        *("(address >= self.limits.low) & (end <= self.limits.high)", "1"),
    ),
    _one(
        *("load", "a CONFIG sets the pads of both memories", LoadStage._configure),
        *('select(word, fmt, "register") == number', "1"),
    ),
)

MEMORIES = (
    _one(
        *("scratchpad", "the write mask goes on past the end of a row"),
        *(ScratchpadSink._write_narrow, "(lane < self.left) & begun", "begun"),
    ),
    _one(
        *("scratchpad", "a beat across two rows stays in one", Scratchpad._write_narrow),
        *("self.write.row + 1", "self.write.row"),
    ),
    _one(
        *("acc", "bytes are not sign-extended", AccSink._collect),
        "values.word_select(number % lanes, bits).as_signed()",
        "values.word_select(number % lanes, bits)",
    ),
    _one(
        *("acc", "a store reads a bank that others read", AccMemory._arbitrate),
        *("~(clash(self.dst, self.store) | clash(self.src, self.store))", "1"),
    ),
    _one(
        *("scratchpad", "data of a read come from the bank that is asked now"),
        *(Scratchpad._read_banks, "Array(outputs)[lane]"),
        "Array(outputs)[port.address[:bank_bits]]",
    ),
    Mutant(
        "acc",
        "GEMM and ALU do not wait for LOADs",
        (
            Edit(
                ComputeStage._begin,
                "execute.command.ready & ~loading",
                "execute.command.ready",
            ),
            Edit(ComputeStage._begin, "offered & ~loading", "offered"),
        ),
    ),
)

LOOPS = (
    _one(
        *("sequencer", "the outer factor is added to the inner loop's end", Sequencer._count),
        '_saturating(rows[n], loop[f"{n}_factor_out"])',
        '_saturating(offsets[n], loop[f"{n}_factor_out"])',
    ),
    _one(
        *("sequencer", "the inner factor is the outer one", Sequencer._count),
        *('loop[f"{n}_factor_in"]', 'loop[f"{n}_factor_out"]'),
    ),
    _one(
        *("sequencer", "no micro-ops are taken for some", Sequencer._count),
        *("(command.uop_bgn >= command.uop_end)", "0"),
    ),
    _one(
        *("sequencer", "a micro-op past its memory is read", Sequencer._show),
        *("now.past_uops | outside", "outside"),
    ),
)

GEMM = (
    _one(
        *("gemm", "a sum under way is not carried on", Gemm._accumulate),
        *("valid[2] & adding.work & (adding.dst == reading.dst)", "0"),
    ),
    _one(
        *("gemm", "a sum written this cycle is read from ACC", Gemm._accumulate),
        *("self.acc_write.valid & (writing.dst == reading.dst)", "0"),
    ),
    _one(
        *("gemm", "overwrite adds", Gemm._accumulate),
        *("reading.reset | reading.overwrite", "reading.reset"),
    ),
    _one(
        *("gemm", "reset keeps the old sum", Gemm._accumulate),
        *("reading.reset | reading.overwrite", "reading.overwrite"),
    ),
    _one("gemm", "reset adds the last product", Gemm.elaborate, "stages[1].reset", "0"),
    _one(
        *("gemm", "goes on when ACC refuses a read", Gemm.elaborate),
        *("~freeze & ~refused", "~freeze"),
    ),
)

WINDOW = (
    _one("window", "taps that are not there count", MacArray._counting_taps, "self.more[n]", "1"),
    _one(
        *("window", "a maximum has a tap of 0 more", MacArray._counting_taps),
        *("Mux(self.load_maximum, first, 0)", "0"),
    ),
    _one("window", "maxima are summed up", Gemm._accumulate, "~adding.maximum", "1"),
    _one(
        *("window", "a maximum anew is at least 0", Gemm._accumulate),
        *("base_from == _Base.ZERO", "0"),
    ),
    _one("window", "taps are neighbours", Gemm._read, "self.distance << n", "1 << n"),
    _one(
        *("window", "the last tap may be past INP", Sequencer._add_offsets),
        *("Mux(window, self.reach, 0)", "0"),
    ),
    _one(
        *("window", "tile products end as far from the end as windows", Sequencer._add_offsets),
        *("Mux(window, self.reach, 0)", "self.reach"),
    ),
    _one(
        *("window", "weights of a maximum are checked", Sequencer._add_offsets),
        *('~now.maximum & sums["wgt"][-1]', 'sums["wgt"][-1]'),
    ),
    _one(
        *("window", "CONFIG changes windows under way", ComputeStage._begin),
        *("execute.waiting", "1"),
    ),
)

ALU = (
    _one(
        *("alu", "SHR fills with zeros", alu._shift),
        *("Cat(Const(0, LANE), value).as_signed()", "Cat(Const(0, LANE), value)"),
    ),
    _one(
        *("alu", "SHR by more than 31 uses 5 bits", alu._shift),
        *("amount[5:] == sign.replicate(LANE - 5)", "1"),
    ),
    _one(
        *("alu", "MIN compares without sign", Alu._operate),
        *("Mux(x < y, x, y)", "Mux(x.as_unsigned() < y.as_unsigned(), x, y)"),
    ),
    _one(
        *("alu", "MAX of two negatives is their minimum", Alu._operate),
        *("Mux(x < y, y, x)", "Mux((x < y) ^ (x[-1] & y[-1]), y, x)"),
    ),
    _one(
        *("alu", "immediates have no sign", Alu._operand),
        *("working.imm[-1].replicate(LANE - len(working.imm))", "Const(0, LANE - 16)"),
    ),
    _one("alu", "MUL uses 16 bits of one factor", Alu._multiply, "y[n:][:LANE]", "y[n:][:16]"),
    _one(
        *("alu", "src is read while it is computed", Alu._read),
        *(
            "pending(reading.dst) | (~reading.use_imm & pending(reading.src))",
            "pending(reading.dst)",
        ),
    ),
    _one(
        *("alu", "dst and src are asked of one bank at once", Alu._read),
        *("reading.dst[bank] == reading.src[bank]", "0"),
    ),
)

REQUANT = (
    _one(
        *("requant", "HALF_EVEN rounds ties up", requant._round),
        *("half & (~exact | odd)", "half"),
    ),
    _one(
        *("requant", "HALF_UP rounds ties away from zero", requant._round),
        *('half & (~exact | ~x["negative"])', "half"),
    ),
    _one(
        *("requant", "DOUBLE rounds up by magnitude first", requant._add_products),
        *('Mux(x["negative"], Const(half - 1, FIRST_SHIFT), half)', "half"),
    ),
    _one(
        *("requant", "DOUBLE rounds half up last", requant._round),
        *("Mux(twice, half, away)", "away"),
    ),
    _one("requant", "FLOAT32 has no ties", requant._round, "Mux(tie, odd, half)", "half"),
    _one(
        *("requant", "FLOAT32 ties are those of exact arithmetic", requant._round),
        *("(offset + reach >= 0) & (offset + sticky <= reach)", "half & exact"),
    ),
    _one(
        *("requant", "low bits are forgotten", requant._divide),
        *("(word & (Const((1 << PRODUCT) - 1, PRODUCT) >> ~amount)).any()", "0"),
    ),
    _one(
        *("requant", "large values are not limited to `high`", requant._clamp),
        *('Mux(value > x["high"], x["high"], value)', "value"),
    ),
    _one(
        *("requant", "`low` is not looked at", requant._clamp),
        *('Mux(value < x["low"], x["low"], value)', "value"),
    ),
)

STORE = (
    _one(
        *("store", "each element has parameters of its own in a row", Granules._count),
        *("(job.advance == Advance.ROW) & row_ends", "job.advance == Advance.ROW"),
    ),
    _one(
        *("store", "plain bytes overtake requantised ones", Granules.elaborate),
        *("~(waiting | requantizer.busy)", "1"),
    ),
    _one(
        *("store", "reads more elements than there is room for", Gather.elaborate),
        *("(queue.level + arriving < DEPTH)", "1"),
    ),
    _one(
        *("store", "writes whole beats", GranulePacker.elaborate),
        "Cat(bit.replicate(self._granule_bytes) for bit in strobes | now)",
        "(active | ~active).replicate(lanes * self._granule_bytes)",
    ),
    _one(
        *("store", "its token does not wait for B", StoreEngine._acknowledge),
        *("order.r_rdy & (answers.r_rdy | ~oldest.burst)", "order.r_rdy"),
    ),
    Mutant(
        "store",
        "parameters are replaced while they are used",
        (
            Edit(
                StoreStage._begin,
                "self.load_command.ready & ~granules.reads_params",
                "self.load_command.ready",
            ),
            Edit(StoreStage._begin, "offered & ~granules.reads_params", "offered"),
        ),
    ),
)

MUTANTS = (*BUS, *FETCH, *TOKENS, *LOAD, *MEMORIES, *LOOPS, *GEMM, *WINDOW, *ALU, *REQUANT, *STORE)
"""Every mistake, one after the other; each unit of the core has some."""
