"""The GEMM unit: one tile product per cycle, accumulated in place for any order of elements."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.acc import AccRead, AccWrite
from vitral.hw.core.interfaces import ReadPort
from vitral.hw.core.loops import Unit, element_layout
from vitral.hw.core.mac import MacArray

__all__ = ["Gemm"]


class _Base(enum.Enum, shape=2):
    """What a product is added to."""

    ZERO = 0
    MEMORY = 1
    RUNNING = 2
    PREVIOUS = 3


class Gemm(wiring.Component):
    """Executes GEMM elements, and carries elements of unit NONE in order with them.

    ::

        cycle  0         1           2           3           4         5
               element   operands    products    sums        write
               taken,    into        and ACC     base + dot  back of
               INP, WGT  registers   read        -> running  running
               read

    `running` holds the sum of the last element. It is written back when the next element has
    another dst, when none follows, or when it ends its instruction. The next element's base is
    `running` itself, the value written in the cycle of its ACC read (`previous`), or ACC; so any
    order of dst runs at one element per cycle. A refused ACC read holds the element in cycle 2,
    a refused write-back stops all.

    `retired` pulses when an element with `last` and all before it are in ACC.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        super().__init__(
            {
                "element": In(stream.Signature(element_layout(config))),
                "inp_read": Out(
                    ReadPort(address_bits=layout.inp_index_bits, data_bits=8 * layout.inp_bytes)
                ),
                "wgt_read": Out(
                    ReadPort(address_bits=layout.wgt_index_bits, data_bits=8 * layout.wgt_bytes)
                ),
                "acc_read": Out(AccRead(config)),
                "acc_write": Out(AccWrite(config)),
                "retired": Out(1),
                "idle": Out(1),
            }
        )

    def _stage(self, number: int) -> data.View:
        layout = data.StructLayout(
            {
                "work": 1,
                "dst": self.config.layout.acc_index_bits,
                "reset": 1,
                "overwrite": 1,
                "last": 1,
            }
        )
        return Signal(layout, name=f"stage_{number}", reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.mac = mac = MacArray(self.config)
        valid = [Signal(name=f"valid_{n}") for n in range(1, 5)]
        stages = [self._stage(n) for n in range(1, 5)]
        running = Signal(8 * self.config.layout.acc_bytes, reset_less=True)

        # Movement: cycles 1 and 2 wait for ACC, cycle 3 and the write-back never wait alone.
        freeze = self.acc_write.valid & ~self.acc_write.ready
        refused = self.acc_read.valid & ~self.acc_read.ready
        move = Signal(3)
        m.d.comb += [
            move[2].eq(~freeze & ~refused),
            move[1].eq(move[2] | (~freeze & ~valid[1])),
            move[0].eq(move[1] | (~freeze & ~valid[0])),
            self.element.ready.eq(move[0]),
            self.idle.eq(~Cat(valid).any()),
        ]
        self._advance(m, valid, stages, move, freeze)

        element = self.element.payload
        product = self.element.valid & (element.unit == Unit.GEMM) & ~element.reset
        m.d.comb += [
            self.inp_read.en.eq(product & self.element.ready),
            self.inp_read.address.eq(element.src),
            self.wgt_read.en.eq(product & self.element.ready),
            self.wgt_read.address.eq(element.wgt),
            mac.inp.eq(self.inp_read.data),
            mac.wgt.eq(self.wgt_read.data),
            mac.load.eq(valid[0] & stages[0].work & ~stages[0].reset & move[1]),
            mac.multiply.eq(valid[1] & stages[1].work & move[2]),
            mac.zero.eq(stages[1].reset),
        ]
        self._accumulate(m, valid, stages, move, freeze, running, mac.dot)
        return m

    def _advance(
        self, m: Module, valid: list[Signal], stages: list[data.View], move: Value, freeze: Value
    ) -> None:
        element = self.element.payload
        with m.If(move[0]):
            m.d.sync += [
                valid[0].eq(self.element.valid),
                stages[0].work.eq(element.unit == Unit.GEMM),
            ]
            m.d.sync += [stages[0][n].eq(element[n]) for n in ("dst", "reset", "overwrite", "last")]
        with m.If(move[1]):
            m.d.sync += [valid[1].eq(valid[0]), stages[1].eq(stages[0])]
        with m.If(~freeze):
            m.d.sync += [valid[2].eq(valid[1] & move[2]), stages[2].eq(stages[1])]
            m.d.sync += [valid[3].eq(valid[2]), stages[3].eq(stages[2])]

    def _accumulate(
        self,
        m: Module,
        valid: list[Signal],
        stages: list[data.View],
        move: Value,
        freeze: Value,
        running: Signal,
        dot: Value,
    ) -> None:
        reading, adding, writing = stages[1:]
        dirty = Signal()
        follows, alike = Signal(), Signal()
        m.d.comb += [
            dirty.eq(valid[3] & writing.work),
            follows.eq(valid[2] & adding.work & (adding.dst == reading.dst)),
            alike.eq(valid[2] & adding.work & (adding.dst == writing.dst)),
            # Write back unless the next element goes on with the same sum.
            self.acc_write.valid.eq(dirty & (~alike | writing.last)),
            self.acc_write.address.eq(writing.dst),
            self.acc_write.data.eq(running),
            self.retired.eq(valid[3] & writing.last & ~freeze),
        ]

        # Where the element in cycle 2 finds its base in cycle 3.
        source, base_from = Signal(_Base), Signal(_Base, reset_less=True)
        previous = Signal.like(running, reset_less=True)
        written = self.acc_write.valid & (writing.dst == reading.dst)
        with m.If(reading.reset | reading.overwrite):
            m.d.comb += source.eq(_Base.ZERO)
        with m.Elif(follows):
            m.d.comb += source.eq(_Base.RUNNING)
        with m.Elif(written):
            m.d.comb += source.eq(_Base.PREVIOUS)
        with m.Else():
            m.d.comb += source.eq(_Base.MEMORY)
        m.d.comb += [
            self.acc_read.valid.eq(valid[1] & reading.work & ~freeze & (source == _Base.MEMORY)),
            self.acc_read.address.eq(reading.dst),
        ]
        with m.If(valid[1] & move[2]):
            m.d.sync += base_from.eq(source)
            with m.If(source == _Base.PREVIOUS):
                m.d.sync += previous.eq(running)

        base = Signal.like(running)
        with m.Switch(base_from):
            for choice, value in (
                (_Base.MEMORY, self.acc_read.data),
                (_Base.RUNNING, running),
                (_Base.PREVIOUS, previous),
            ):
                with m.Case(choice):
                    m.d.comb += base.eq(value)
        with m.If(valid[2] & adding.work & ~freeze):
            lanes = range(0, len(running), 32)
            m.d.sync += running.eq(Cat((base[n:][:32] + dot[n:][:32])[:32] for n in lanes))
