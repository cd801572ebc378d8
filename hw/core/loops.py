"""The micro-op sequencer: turns GEMM, WINDOW and ALU into one element operation per cycle."""

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.decode import select
from vitral.hw.core.interfaces import INDEX_BITS, Fault, ReadPort
from vitral.isa import ITER_BITS, UOP_BITS, WINDOW_FIELDS, Cause, InstructionSet

__all__ = [
    "OPERANDS",
    "REACH_BITS",
    "Sequencer",
    "Unit",
    "element_layout",
    "loop_layout",
    "operand_bits",
    "window_layout",
]

OPERANDS = ("dst", "src", "wgt")
REACH_BITS = WINDOW_FIELDS["half_step"].width + 1 + WINDOW_FIELDS["extra_taps"].width
"""Width of the distance from a window's first input to its last, in elements."""


class Unit(enum.Enum, shape=2):
    """What an element operation is; windows are GEMM's unit's. NONE only carries `last` along."""

    NONE = 0
    GEMM = 1
    ALU = 2
    WINDOW = 3


def operand_bits(config: CoreConfig) -> dict[str, int]:
    """Index width of each operand; `src` is an INP or an ACC element."""
    layout = config.layout
    return {
        "dst": layout.acc_index_bits,
        "src": max(layout.inp_index_bits, layout.acc_index_bits),
        "wgt": layout.wgt_index_bits,
    }


def _operation() -> dict[str, ShapeLike]:
    return {
        "unit": Unit,
        "reset": 1,
        "maximum": 1,
        "overwrite": 1,
        "alu_opcode": 3,
        "use_imm": 1,
        "imm": 16,
    }


def loop_layout(config: CoreConfig) -> data.StructLayout:
    """An instruction as the sequencer takes it: names as in the instruction set.

    With unit NONE, the loops are not looked at. `reset` is GEMM's, `maximum` WINDOW's. `imm` holds
    the immediate's 16 bits.
    """
    bits = operand_bits(config)
    factors = {f"{name}_factor_{loop}": bits[name] for name in OPERANDS for loop in ("out", "in")}
    uop_bits = config.layout.uop_index_bits
    return data.StructLayout(
        {
            "index": INDEX_BITS,
            **_operation(),
            "uop_bgn": uop_bits,
            "uop_end": uop_bits + 1,
            "iter_out": ITER_BITS,
            "iter_in": ITER_BITS,
            **factors,
        }
    )


def window_layout(config: CoreConfig) -> data.StructLayout:
    """A window's inputs: those beyond the first, the distance between two, and of the last one."""
    return data.StructLayout(
        {
            "extra_taps": WINDOW_FIELDS["extra_taps"].width,
            "distance": config.layout.inp_index_bits,
            "reach": REACH_BITS,
        }
    )


def element_layout(config: CoreConfig) -> data.StructLayout:
    """One element operation: indices in bounds; `last` marks the instruction's last one."""
    return data.StructLayout({**operand_bits(config), **_operation(), "last": 1})


def _element_state() -> data.StructLayout:
    return data.StructLayout({"index": INDEX_BITS, "past_uops": 1, **_operation(), "last": 1})


class Sequencer(wiring.Component):
    """Runs iter_out x iter_in x micro-ops; each result is checked to be inside its memory.

    Takes a command in the very cycle in which it issues the last micro-op of the one before, so
    element operations follow each other without a gap. An element appears two cycles after its
    command was taken. A command without any element, or of unit NONE, gives one element of unit
    NONE with `last`, which keeps instructions in order. With `reading`, micro-ops from `uop_bgn`
    to before `uop_end` are still to be read. An index past its memory raises `fault`
    instead of the element, for good; operands that an operation does not look at are unchecked.
    A window's last input is element src + `reach`; `reach` changes only while `idle`.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        super().__init__(
            {
                "command": In(stream.Signature(loop_layout(config))),
                "element": Out(stream.Signature(element_layout(config))),
                "uop_read": Out(
                    ReadPort(address_bits=config.layout.uop_index_bits, data_bits=UOP_BITS)
                ),
                "reach": In(REACH_BITS),
                "idle": Out(1),
                "reading": Out(1),
                "uop_bgn": Out(config.layout.uop_index_bits),
                "uop_end": Out(config.layout.uop_index_bits + 1),
                "fault": Out(Fault()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        loop = Signal(loop_layout(self.config), reset_less=True)
        active, fetched = Signal(), Signal()
        issue, last = Signal(), Signal()
        taken = Signal()
        m.d.comb += [
            issue.eq(active & (~fetched | self.element.ready)),
            self.command.ready.eq(~active | (issue & last)),
            taken.eq(self.command.valid & self.command.ready),
            self.idle.eq(~active & ~fetched),
            self.reading.eq(active),
            self.uop_bgn.eq(loop.uop_bgn),
            self.uop_end.eq(loop.uop_end),
        ]

        # First stage: `loop` is the running instruction; it counts down to its last micro-op.
        with m.If(taken | (issue & last)):
            m.d.sync += active.eq(taken)
        past_uops, offsets = self._count(m, loop, issue, last, taken)

        # Second stage: the micro-op has arrived and meets the offsets it was issued with.
        now = Signal(_element_state(), reset_less=True)
        held = {n: Signal.like(offsets[n], name=f"{n}_held") for n in OPERANDS}
        with m.If(issue):
            m.d.sync += fetched.eq(1)
            m.d.sync += [held[n].eq(offsets[n]) for n in OPERANDS]
            m.d.sync += [now[n].eq(loop[n]) for n in ("index", *_operation())]
            m.d.sync += [now.last.eq(last), now.past_uops.eq(past_uops)]
        with m.Elif(self.element.ready):
            m.d.sync += fetched.eq(0)
        self._show(m, fetched, now, held)
        return m

    def _count(
        self, m: Module, loop: data.View, issue: Value, last: Signal, taken: Value
    ) -> tuple[Value, dict[str, Signal]]:
        """Whether the micro-op's number is past its memory, and the three offsets.

        The top bit of an offset is a sticky overflow.
        """
        layout = self.config.layout
        uop = Signal(layout.uop_index_bits + 1, reset_less=True)
        left_in = Signal(ITER_BITS, reset_less=True)
        bits = operand_bits(self.config)
        offsets = {n: Signal(bits[n] + 1, name=f"{n}_offset", reset_less=True) for n in OPERANDS}
        rows = {n: Signal(bits[n] + 1, name=f"{n}_row", reset_less=True) for n in OPERANDS}

        last_uop, last_in, none = Signal(), Signal(), Signal()
        m.d.comb += [
            none.eq(loop.unit == Unit.NONE),
            last_uop.eq(uop + 1 == loop.uop_end),
            last_in.eq(left_in == 1),
            last.eq(none | (last_uop & last_in & (loop.iter_out == 1))),
            self.uop_read.en.eq(issue & ~none),
            self.uop_read.address.eq(uop),
        ]
        with m.If(issue):
            m.d.sync += uop.eq(Mux(last_uop, loop.uop_bgn, uop + 1))
            with m.If(last_uop & last_in):
                m.d.sync += [left_in.eq(loop.iter_in), loop.iter_out.eq(loop.iter_out - 1)]
                for n in OPERANDS:
                    row = _saturating(rows[n], loop[f"{n}_factor_out"])
                    m.d.sync += [rows[n].eq(row), offsets[n].eq(row)]
            with m.Elif(last_uop):
                m.d.sync += left_in.eq(left_in - 1)
                for n in OPERANDS:
                    m.d.sync += offsets[n].eq(_saturating(offsets[n], loop[f"{n}_factor_in"]))
        with m.If(taken):
            command = self.command.payload
            empty = (
                (command.iter_out == 0)
                | (command.iter_in == 0)
                | (command.uop_bgn >= command.uop_end)
            )
            m.d.sync += [loop.eq(command), uop.eq(command.uop_bgn), left_in.eq(command.iter_in)]
            m.d.sync += [signal.eq(0) for n in OPERANDS for signal in (offsets[n], rows[n])]
            with m.If(empty):
                m.d.sync += loop.unit.eq(Unit.NONE)
        return uop[-1], offsets

    def _show(self, m: Module, fetched: Signal, now: data.View, held: dict[str, Signal]) -> None:
        outside = self._add_offsets(m, now, held)
        bad = Signal()
        m.d.comb += [
            bad.eq((now.unit != Unit.NONE) & (now.past_uops | outside)),
            self.element.valid.eq(fetched & ~bad),
            self.fault.valid.eq(fetched & bad),
            self.fault.cause.eq(Cause.INDEX_OVERFLOW),
            self.fault.index.eq(now.index),
        ]
        m.d.comb += [self.element.payload[n].eq(now[n]) for n in (*_operation(), "last")]

    def _add_offsets(self, m: Module, now: data.View, held: dict[str, Signal]) -> Value:
        """Drives the element's indices; returns whether one that is looked at is too large."""
        layout, isa = self.config.layout, InstructionSet.of(self.config)
        element, word = self.element.payload, self.uop_read.data
        alu, window = now.unit == Unit.ALU, now.unit == Unit.WINDOW
        src = Mux(alu, select(word, isa.alu_uop, "src"), select(word, isa.gemm_uop, "src"))
        terms = {
            "dst": select(word, isa.gemm_uop, "dst"),
            "src": src,
            "wgt": select(word, isa.gemm_uop, "wgt"),
        }
        sums = {}
        for n, term in terms.items():
            sums[n] = Signal(len(held[n]), name=f"{n}_sum")
            m.d.comb += [sums[n].eq(_saturating(held[n], term)), element[n].eq(sums[n])]
        past_inp = (sums["src"] + Mux(window, self.reach, 0))[layout.inp_index_bits :].any()
        past_acc = sums["src"][layout.acc_index_bits :].any()
        return sums["dst"][-1] | Mux(
            alu,
            ~now.use_imm & past_acc,
            ~now.reset & (past_inp | (~now.maximum & sums["wgt"][-1])),
        )


def _saturating(value: Value, step: Value) -> Value:
    """value + step, where the top bit, once set, stays: the sum left the memory."""
    total = value[:-1] + step
    return Cat(total[: len(value) - 1], total[len(value) - 1] | value[-1])
