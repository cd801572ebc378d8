"""The GEMM unit: a tile product or window per cycle, accumulated for any order of elements."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.acc import AccRead, AccWrite
from vitral.hw.core.interfaces import ReadPort
from vitral.hw.core.loops import Unit, element_layout
from vitral.hw.core.mac import MacArray
from vitral.hw.core.operands import TAPS

__all__ = ["Gemm"]

LANE = 32


class _Base(enum.Enum, shape=2):
    """What a result is combined with."""

    ZERO = 0
    MEMORY = 1
    RUNNING = 2
    PREVIOUS = 3


class Gemm(wiring.Component):
    """Executes GEMM and WINDOW elements, and carries elements of unit NONE in order with them.

    ::

        cycle  0         1           2           3           4         5
               element   operands    products    sums        write
               taken,    into        and ACC     base + dot  back of
               INP, WGT  registers   read        -> running  running
               read

    A window reads inputs src, src + distance, ..., src + extra_taps * distance at once; both
    numbers change only while no element is offered. Its maximum goes the way of sums.

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
                "extra_taps": In(range(TAPS)),
                "distance": In(layout.inp_index_bits),
                "inp_read": Out(
                    ReadPort(address_bits=layout.inp_index_bits, data_bits=8 * layout.inp_bytes)
                ).array(TAPS),
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
                "window": 1,
                "more": TAPS - 1,
                "reset": 1,
                "maximum": 1,
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

        self._read(m)
        m.d.comb += [
            *(port.eq(read.data) for port, read in zip(mac.tap, self.inp_read, strict=True)),
            mac.wgt.eq(self.wgt_read.data),
            mac.load.eq(valid[0] & stages[0].work & ~stages[0].reset & move[1]),
            mac.window.eq(stages[0].window),
            mac.more.eq(stages[0].more),
            mac.load_maximum.eq(stages[0].maximum),
            mac.multiply.eq(valid[1] & stages[1].work & move[2]),
            mac.maximum.eq(stages[1].maximum),
            mac.zero.eq(stages[1].reset),
        ]
        self._accumulate(m, valid, stages, move, freeze, list(mac.dot))
        return m

    @property
    def _more(self) -> Value:
        """Bit t - 1: the element offered has tap t > 0."""
        window = self.element.payload.unit == Unit.WINDOW
        return Cat(window & (self.extra_taps >= tap) for tap in range(1, TAPS))

    def _read(self, m: Module) -> None:
        element = self.element.payload
        taken = self.element.valid & self.element.ready & _is_work(element) & ~element.reset
        m.d.comb += [
            self.wgt_read.en.eq(taken & ~element.maximum),
            self.wgt_read.address.eq(element.wgt),
            self.inp_read[0].en.eq(taken),
            self.inp_read[0].address.eq(element.src),
        ]
        for tap, read in enumerate(self.inp_read[1:], 1):
            steps = Signal.like(self.distance, name=f"steps_{tap}")
            m.d.comb += [
                steps.eq(sum(((self.distance << n) for n in range(2) if tap >> n & 1), Const(0))),
                read.en.eq(taken & self._more[tap - 1]),
                read.address.eq(element.src + steps),
            ]

    def _advance(
        self, m: Module, valid: list[Signal], stages: list[data.View], move: Value, freeze: Value
    ) -> None:
        element = self.element.payload
        with m.If(move[0]):
            m.d.sync += [
                valid[0].eq(self.element.valid),
                stages[0].work.eq(_is_work(element)),
                stages[0].window.eq(element.unit == Unit.WINDOW),
                stages[0].more.eq(self._more),
            ]
            names = ("dst", "reset", "maximum", "overwrite", "last")
            m.d.sync += [stages[0][n].eq(element[n]) for n in names]
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
        dots: list[Value],
    ) -> None:
        reading, adding, writing = stages[1:]
        running = [Signal(LANE, name=f"running_{n}", reset_less=True) for n in range(len(dots))]
        dirty = Signal()
        follows, alike = Signal(), Signal()
        m.d.comb += [
            dirty.eq(valid[3] & writing.work),
            follows.eq(valid[2] & adding.work & (adding.dst == reading.dst)),
            alike.eq(valid[2] & adding.work & (adding.dst == writing.dst)),
            # Write back unless the next element goes on with the same sum.
            self.acc_write.valid.eq(dirty & (~alike | writing.last)),
            self.acc_write.address.eq(writing.dst),
            self.acc_write.data.eq(Cat(running)),
            self.retired.eq(valid[3] & writing.last & ~freeze),
        ]

        # Where the element in cycle 2 finds its base in cycle 3.
        source, base_from = Signal(_Base), Signal(_Base, reset_less=True)
        previous = Signal.like(self.acc_write.data, name="previous", reset_less=True)
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
                m.d.sync += previous.eq(Cat(running))

        base = Signal.like(previous)
        with m.Switch(base_from):
            for choice, value in (
                (_Base.MEMORY, self.acc_read.data),
                (_Base.RUNNING, Cat(running)),
                (_Base.PREVIOUS, previous),
            ):
                with m.Case(choice):
                    m.d.comb += base.eq(value)
        lanes = [(now, base[LANE * n :][:LANE], dots[n]) for n, now in enumerate(running)]
        with m.If(valid[2] & adding.work & ~freeze):
            with m.If(~adding.maximum):
                m.d.sync += [now.eq((old + dot)[:LANE]) for now, old, dot in lanes]
            with m.Elif(base_from == _Base.ZERO):
                m.d.sync += [now.eq(dot) for now, _, dot in lanes]
            with m.Else():
                m.d.sync += [now.eq(_larger(old, dot)) for now, old, dot in lanes]


def _is_work(element: data.View) -> Value:
    return (element.unit == Unit.GEMM) | (element.unit == Unit.WINDOW)


def _larger(first: Value, second: Value) -> Value:
    return Mux(first.as_signed() < second.as_signed(), second, first)
