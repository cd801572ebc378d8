"""Reads the program and hands every instruction to its stage's queue."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitral.config import INSN_BYTES, CoreConfig
from vitral.hw.bus.axi import ReadClient
from vitral.hw.bus.bursts import BurstSplitter
from vitral.hw.core.addressing import Limits, address_bits, clamped_bits
from vitral.hw.core.interfaces import INDEX_BITS, Fault, InsnWord
from vitral.hw.core.legality import Legality
from vitral.isa import INSN_BITS, Cause, Stage
from vitral.registers import BASE_ALIGN

__all__ = ["Fetch"]

COUNT_BITS = 32
BLOCK_INSNS = BASE_ALIGN // INSN_BYTES
"""Instructions asked for at once: an aligned block, which no page boundary can cut."""

BUFFER_BLOCKS = 8


class Fetch(wiring.Component):
    """Fetches in program order, as far ahead as its buffer and the queues allow.

    Blocks are asked for only while the buffer has room for them, so that the bus never waits
    for a queue. An instruction that cannot go to its queue holds up all later ones. Faults are
    raised when their instruction would be handed over; everything before it has been by then.

    Ports
    -----
    launch
        Starts a program of `count` instructions at `base` (a multiple of 64), read in `profile`;
        these must hold until the end.
    read
        `ReadClient`.
    load, compute, store
        Streams of `InsnWord` to the queues.
    idle
        Every stage is idle and every queue empty.
    fault
        EMPTY_PROGRAM, DRAM_BOUNDS, BUS_READ, UNDEFINED_OPCODE, UNDEFINED_FIELD, RESERVED_BITS,
        FINISH_NOT_LAST, or, when all is idle after a program without FINISH, NO_FINISH.
    """

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self._beat_bytes = config.layout.beat_bytes
        super().__init__(
            {
                "launch": In(1),
                "profile": In(1),
                "count": In(COUNT_BITS),
                "base": In(clamped_bits(config)),
                "limits": In(Limits(config)),
                "read": Out(ReadClient(config)),
                "load": Out(stream.Signature(InsnWord)),
                "compute": Out(stream.Signature(InsnWord)),
                "store": Out(stream.Signature(InsnWord)),
                "idle": In(1),
                "fault": Out(Fault()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        block_beats = max(1, BASE_ALIGN // self._beat_bytes)
        running = Signal()
        asked = Signal(COUNT_BITS)
        handed = Signal(COUNT_BITS)
        beat = stream.Signature(self._config.data_bits + 1).create(path=("beat",))
        word = stream.Signature(INSN_BITS + 1).create(path=("word",))
        with m.If(self.launch):
            m.d.sync += [running.eq(1), asked.eq(0), handed.eq(0)]

        used = self._buffer(m, beat, block_beats)
        out_of_bounds = self._ask(m, running, asked, used, block_beats)
        self._assemble(m, beat, word, asked, handed)
        self._dispatch(m, running, word, handed)
        with m.If(running & (self.count == 0)):
            self._fail(m, Cause.EMPTY_PROGRAM, 0)
        with m.Elif(running & out_of_bounds & (handed == asked)):
            self._fail(m, Cause.DRAM_BOUNDS, asked)
        return m

    def _fail(self, m: Module, cause: Value | Cause, index: Value | int) -> None:
        m.d.comb += [
            self.fault.valid.eq(1),
            self.fault.cause.eq(cause),
            self.fault.index.eq(index),
        ]

    def _ask(
        self, m: Module, running: Signal, asked: Signal, used: Signal, block_beats: int
    ) -> Signal:
        """Asks for the next block, or as much of it as there is and may be read."""
        m.submodules.splitter = splitter = BurstSplitter(
            self._config, count_bits=block_beats.bit_length()
        )
        address = Signal(address_bits(self._config))
        left = Signal(COUNT_BITS)
        inside = Signal(len(address) + 1)
        readable = Signal(range(BLOCK_INSNS + 1))
        insns = Signal.like(readable)
        out_of_bounds = Signal()
        more = Signal()
        m.d.comb += [
            left.eq(self.count - asked),
            more.eq(running & (left != 0)),
            inside.eq(self.limits.high - address),
        ]
        with m.If((address >= self.limits.low) & (address < self.limits.high)):
            whole = inside >= BLOCK_INSNS * INSN_BYTES
            m.d.comb += readable.eq(Mux(whole, BLOCK_INSNS, inside[INSN_BYTES.bit_length() - 1 :]))
        m.d.comb += [
            insns.eq(Mux(left < readable, left, readable)),
            out_of_bounds.eq(more & (readable == 0)),
            splitter.run.valid.eq(more & (insns != 0) & self._room(m, splitter, used, block_beats)),
            splitter.run.p.address.eq(address),
            splitter.run.p.beats.eq(
                (insns * INSN_BYTES + self._beat_bytes - 1) // self._beat_bytes
            ),
        ]
        with m.If(self.launch):
            m.d.sync += address.eq(self.base)
        with m.Elif(splitter.run.valid & splitter.run.ready):
            m.d.sync += [asked.eq(asked + insns), address.eq(address + insns * INSN_BYTES)]
        wiring.connect(m, wiring.flipped(self.read.request), splitter.burst)
        return out_of_bounds

    def _room(self, m: Module, splitter: BurstSplitter, used: Signal, block_beats: int) -> Signal:
        """Counts the beats asked for and not yet used; room for one more block?"""
        capacity = BUFFER_BLOCKS * block_beats
        reserved = Signal(range(capacity + 1))
        room = Signal()
        run = splitter.run
        asks = Mux(run.valid & run.ready, run.p.beats, 0)
        m.d.comb += room.eq(reserved <= capacity - block_beats)
        m.d.sync += reserved.eq(reserved + asks - used)
        return room

    def _buffer(self, m: Module, beat, block_beats: int) -> Signal:
        """Holds arriving beats. Returns: a beat is used up in this cycle."""
        used = Signal()
        m.submodules.buffer = fifo = SyncFIFO(
            width=self._config.data_bits + 1, depth=BUFFER_BLOCKS * block_beats
        )
        m.d.comb += [
            fifo.w_en.eq(self.read.valid),
            fifo.w_data.eq(Cat(self.read.data, self.read.error)),
            beat.valid.eq(fifo.r_rdy),
            beat.p.eq(fifo.r_data),
            fifo.r_en.eq(beat.ready),
            used.eq(beat.valid & beat.ready),
        ]
        return used

    def _assemble(self, m: Module, beat, word, asked: Signal, handed: Signal) -> None:
        """Beats → instruction words, each with an error mark."""
        bits, error = beat.p[:-1], beat.p[-1]
        if self._beat_bytes < INSN_BYTES:
            low = Signal(len(beat.p))
            half = Signal()
            with m.If(beat.valid & ~half):
                m.d.comb += beat.ready.eq(1)
                m.d.sync += [low.eq(beat.p), half.eq(1)]
            with m.Elif(beat.valid):
                m.d.comb += [word.valid.eq(1), beat.ready.eq(word.ready)]
                with m.If(word.ready):
                    m.d.sync += half.eq(0)
            m.d.comb += word.p.eq(Cat(low[:-1], bits, low[-1] | error))
            return
        place = handed[: (self._beat_bytes // INSN_BYTES).bit_length() - 1]
        last = (place + 1 == self._beat_bytes // INSN_BYTES) | (handed + 1 == asked)
        m.d.comb += [
            word.valid.eq(beat.valid),
            word.p.eq(Cat(bits.word_select(place, INSN_BITS), error)),
            beat.ready.eq(word.ready & last),
        ]

    def _dispatch(self, m: Module, running: Signal, word, handed: Signal) -> None:
        """One register, the checks, and the way to the queues."""
        m.submodules.legality = legality = Legality(self._config)
        insn = Signal(INSN_BITS)
        full = Signal()
        failed = Signal()
        ended = Signal()
        leaves = Signal()
        number = Signal(COUNT_BITS)
        queues = {Stage.LOAD: self.load, Stage.COMPUTE: self.compute, Stage.STORE: self.store}
        m.d.comb += [
            legality.word.eq(insn),
            legality.profile.eq(self.profile),
            word.ready.eq(~full | leaves),
        ]
        misplaced = legality.finish & (number + 1 != self.count)
        with m.If(full & failed):
            self._fail(m, Cause.BUS_READ, number)
        with m.Elif(full & (legality.cause != 0)):
            self._fail(m, legality.cause, number)
        with m.Elif(full & misplaced):
            self._fail(m, Cause.FINISH_NOT_LAST, number)
        with m.Elif(full):
            for stage, queue in queues.items():
                with m.If(legality.stage == stage):
                    m.d.comb += [queue.valid.eq(1), leaves.eq(queue.ready)]
        with m.Elif(running & (handed == self.count) & ~ended & self.idle):
            self._fail(m, Cause.NO_FINISH, self.count)
        for queue in queues.values():
            m.d.comb += [queue.p.word.eq(insn), queue.p.index.eq(number[:INDEX_BITS])]

        with m.If(leaves):
            m.d.sync += [full.eq(0), ended.eq(ended | legality.finish)]
        with m.If(word.valid & word.ready):
            m.d.sync += [
                full.eq(1),
                insn.eq(word.p[:-1]),
                failed.eq(word.p[-1]),
                number.eq(handed),
                handed.eq(handed + 1),
            ]
