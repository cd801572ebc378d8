"""The ALU: element-wise operations between accumulator elements or with an immediate."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.acc import AccRead, AccWrite
from vitral.hw.core.loops import element_layout
from vitral.isa import AluOp

__all__ = ["Alu", "MULTIPLY_CYCLES"]

LANE = 32
MULTIPLY_CYCLES = 4
"""Cycles over which the lanes of an element share the multipliers."""


class Alu(wiring.Component):
    """``acc[dst] = op(acc[dst], imm or acc[src])``, each lane int32.

    ::

        cycle  0         1           2             3
               element   ACC read    operation     write back
               taken     (1 or 2)    -> result

    One element per cycle with an immediate or with dst and src in two banks, two cycles when both
    are in one bank. An element whose dst or src is still being computed waits for its write-back.
    MUL puts its operands aside in cycle 2 and takes `MULTIPLY_CYCLES` more, in which a quarter of
    the lanes at a time use the multipliers; the next element waits for it.

    `retired` pulses when an element with `last` and all before it are in ACC.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        super().__init__(
            {
                "element": In(stream.Signature(element_layout(config))),
                "dst_read": Out(AccRead(config)),
                "src_read": Out(AccRead(config)),
                "acc_write": Out(AccWrite(config)),
                "retired": Out(1),
                "idle": Out(1),
            }
        )

    def _stage(self, name: str) -> data.View:
        bits = self.config.layout.acc_index_bits
        layout = {"dst": bits, "src": bits, "alu_opcode": 3, "use_imm": 1, "imm": 16, "last": 1}
        return Signal(data.StructLayout(layout), name=name, reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid = [Signal(name=f"valid_{n}") for n in (1, 2, 3)]
        reading, working, writing = (self._stage(n) for n in ("reading", "working", "writing"))
        left = Signal(range(MULTIPLY_CYCLES + 1))
        result = Signal(LANE * self._lanes, reset_less=True)
        aside = Signal.like(result, reset_less=True)

        # Movement: a refused write-back stops all, multiplying stops all but itself.
        freeze, go = Signal(), Signal()
        multiplies = valid[1] & (working.alu_opcode == AluOp.MUL)
        stages = (reading, working, writing)
        from_aside = self._read(m, valid, stages, ~freeze & ~multiplies, go, aside)
        m.d.comb += [
            freeze.eq((self.acc_write.valid & ~self.acc_write.ready) | (left != 0)),
            self.element.ready.eq(~valid[0] | go),
            self.idle.eq(~Cat(valid).any()),
        ]
        with m.If(self.element.ready):
            m.d.sync += valid[0].eq(self.element.valid)
            m.d.sync += [reading[n].eq(self.element.payload[n]) for n, _ in reading.shape()]
        with m.If(~freeze):
            m.d.sync += [valid[1].eq(go), working.eq(reading)]
            m.d.sync += [valid[2].eq(valid[1]), writing.eq(working)]

        operand = self._operand(m, working, from_aside, aside)
        self._multiply(m, left, result, aside)
        with m.If(valid[1] & ~freeze):
            self._operate(m, working.alu_opcode, operand, result)
            with m.If(multiplies):
                m.d.sync += [aside.eq(operand), left.eq(MULTIPLY_CYCLES)]
        m.d.comb += [
            self.acc_write.valid.eq(valid[2] & (left == 0)),
            self.acc_write.address.eq(writing.dst),
            self.acc_write.data.eq(result),
            self.retired.eq(valid[2] & writing.last & ~freeze),
        ]
        return m

    @property
    def _bank_bits(self) -> int:
        return self.config.acc_banks.bit_length() - 1

    @property
    def _lanes(self) -> int:
        return self.config.batch * self.config.block

    def _read(
        self,
        m: Module,
        valid: list[Signal],
        stages: tuple[data.View, data.View, data.View],
        free: Value,
        go: Signal,
        aside: Signal,
    ) -> Signal:
        """Reads dst and src together, or src first, and puts it `aside`, when they share a bank.

        `go` says that the element being read moves on. Returns whether the operand of the element
        being worked on is `aside`.
        """
        reading, working, writing = stages
        bank = slice(self.config.layout.acc_index_bits - self._bank_bits, None)

        def pending(index: Value) -> Value:
            return (valid[1] & (working.dst == index)) | (valid[2] & (writing.dst == index))

        shared = reading.dst[bank] == reading.src[bank]
        src_done, arriving = Signal(), Signal()
        needs_src = ~reading.use_imm & ~src_done
        hazard = pending(reading.dst) | (~reading.use_imm & pending(reading.src))
        ready = valid[0] & free & ~hazard
        first = self.src_read.valid & self.src_read.ready & shared
        m.d.comb += [
            self.dst_read.address.eq(reading.dst),
            self.src_read.address.eq(reading.src),
            self.dst_read.valid.eq(ready & ~(needs_src & shared)),
            self.src_read.valid.eq(ready & needs_src),
            go.eq(self.dst_read.valid & self.dst_read.ready & (~needs_src | self.src_read.ready)),
        ]
        m.d.sync += arriving.eq(first)
        with m.If(arriving):
            m.d.sync += aside.eq(self.src_read.data)
        from_aside = Signal()
        with m.If(go):
            m.d.sync += [from_aside.eq(src_done), src_done.eq(0)]
        with m.Elif(first):
            m.d.sync += src_done.eq(1)
        return from_aside

    def _operand(self, m: Module, working: data.View, from_aside: Value, aside: Value) -> Signal:
        operand = Signal(LANE * self._lanes)
        imm = Cat(working.imm, working.imm[-1].replicate(LANE - len(working.imm)))
        with m.If(working.use_imm):
            m.d.comb += operand.eq(imm.replicate(self._lanes))
        with m.Elif(from_aside):
            m.d.comb += operand.eq(aside)
        with m.Else():
            m.d.comb += operand.eq(self.src_read.data)
        return operand

    def _operate(self, m: Module, opcode: Value, operand: Signal, result: Signal) -> None:
        """Sets `result` in cycle 2; MUL only passes acc[dst] on."""
        lanes = [
            (self.dst_read.data[n:][:LANE].as_signed(), operand[n:][:LANE].as_signed())
            for n in range(0, LANE * self._lanes, LANE)
        ]
        operations = {
            AluOp.MIN: lambda x, y: Mux(x < y, x, y),
            AluOp.MAX: lambda x, y: Mux(x < y, y, x),
            AluOp.ADD: lambda x, y: (x + y)[:LANE],
            AluOp.SHR: _shift,
            AluOp.MUL: lambda x, y: x,
        }
        with m.Switch(opcode):
            for op, operation in operations.items():
                with m.Case(op):
                    m.d.sync += result.eq(Cat(operation(x, y)[:LANE] for x, y in lanes))

    def _multiply(self, m: Module, left: Signal, result: Signal, aside: Signal) -> None:
        """One quarter of the lanes per cycle, the upper ones first: `left` quarters remain."""
        width = len(result) // MULTIPLY_CYCLES
        quarter = Signal(range(MULTIPLY_CYCLES))
        m.d.comb += quarter.eq(left - 1)
        x, y = (Signal(width, name=name) for name in ("multiplicand", "multiplier"))
        m.d.comb += [
            x.eq(result.word_select(quarter, width)),
            y.eq(aside.word_select(quarter, width)),
        ]
        products = Cat((x[n:][:LANE] * y[n:][:LANE])[:LANE] for n in range(0, width, LANE))
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Switch(left):
            for number in range(MULTIPLY_CYCLES):
                with m.Case(number + 1):
                    m.d.sync += result[number * width :][:width].eq(products)


def _shift(value: Value, amount: Value) -> Value:
    """Right by a signed amount, negative to the left; both ways filled beyond the width.

    Shifting value * 2**32 right by amount + 32, kept to 0..63, does all cases.
    """
    sign = amount[-1]
    small = amount[5:] == sign.replicate(LANE - 5)
    low = Mux(small, amount[:5], (~sign).replicate(5))
    return Cat(Const(0, LANE), value).as_signed() >> Cat(low, ~sign)
