"""Runs GEMM, WINDOW and ALU: the sequencer, both units and the memory they work on."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from vitral.config import CoreConfig
from vitral.hw.core.acc import AccMemory, AccRead, AccWrite
from vitral.hw.core.alu import Alu
from vitral.hw.core.gemm import Gemm
from vitral.hw.core.interfaces import Fault, ReadPort, WritePort
from vitral.hw.core.loops import Sequencer, Unit, loop_layout, window_layout
from vitral.hw.core.operands import TAPS
from vitral.isa import UOP_BITS

__all__ = ["Execute"]


class Execute(wiring.Component):
    """Executes loop commands in order; `retired` pulses once for each, in order.

    The units take turns: an element for one waits until the other is empty, so each finds ACC as
    the elements before it left it. Commands for the same unit follow each other without a gap.
    With `reading`, micro-ops from `uop_bgn` to before `uop_end` are still to be read. The user
    keeps writes, here and to the micro-ops, away from what is in use, and changes `window` only
    while `waiting`: no element is on its way to the units.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        super().__init__(
            {
                "command": In(stream.Signature(loop_layout(config))),
                "uop_read": Out(ReadPort(address_bits=layout.uop_index_bits, data_bits=UOP_BITS)),
                "window": In(window_layout(config)),
                "inp_read": Out(
                    ReadPort(address_bits=layout.inp_index_bits, data_bits=8 * layout.inp_bytes)
                ).array(TAPS),
                "wgt_read": Out(
                    ReadPort(address_bits=layout.wgt_index_bits, data_bits=8 * layout.wgt_bytes)
                ),
                "load": In(
                    WritePort(
                        row_bits=layout.acc_index_bits,
                        elements=1,
                        element_bits=8 * layout.acc_bytes,
                    )
                ),
                "store": In(AccRead(config)),
                "retired": Out(1),
                "idle": Out(1),
                "waiting": Out(1),
                "reading": Out(1),
                "uop_bgn": Out(layout.uop_index_bits),
                "uop_end": Out(layout.uop_index_bits + 1),
                "gemm_active": Out(1),
                "alu_active": Out(1),
                "fault": Out(Fault()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sequencer = sequencer = Sequencer(self.config)
        m.submodules.gemm = gemm = Gemm(self.config)
        m.submodules.alu = alu = Alu(self.config)
        m.submodules.acc = acc = AccMemory(self.config)
        connect(m, flipped(self.command), sequencer.command)
        connect(m, sequencer.uop_read, flipped(self.uop_read))
        for ours, its in zip(self.inp_read, gemm.inp_read, strict=True):
            connect(m, its, flipped(ours))
        connect(m, gemm.wgt_read, flipped(self.wgt_read))
        connect(m, sequencer.fault, flipped(self.fault))
        connect(m, flipped(self.load), acc.load)
        connect(m, flipped(self.store), acc.store)
        connect(m, alu.src_read, acc.src)

        m.d.comb += [
            sequencer.reach.eq(self.window.reach),
            gemm.extra_taps.eq(self.window.extra_taps),
            gemm.distance.eq(self.window.distance),
        ]

        # Elements go to their unit once the other one is empty.
        element, unit = sequencer.element, Signal(Unit)
        m.d.comb += [
            unit.eq(element.payload.unit),
            gemm.element.payload.eq(element.payload),
            alu.element.payload.eq(element.payload),
            gemm.element.valid.eq(element.valid & (unit != Unit.ALU) & alu.idle),
            alu.element.valid.eq(element.valid & (unit == Unit.ALU) & gemm.idle),
        ]
        with m.If(unit == Unit.ALU):
            m.d.comb += element.ready.eq(alu.element.ready & gemm.idle)
        with m.Else():
            m.d.comb += element.ready.eq(gemm.element.ready & alu.idle)

        # The unit at work has the ACC ports.
        for read, write in ((gemm.acc_read, gemm.acc_write), (alu.dst_read, alu.acc_write)):
            m.d.comb += [
                read.ready.eq(acc.dst.ready),
                read.data.eq(acc.dst.data),
                write.ready.eq(acc.result.ready),
            ]
        with m.If(alu.idle):
            _use(m, acc, gemm.acc_read, gemm.acc_write)
        with m.Else():
            _use(m, acc, alu.dst_read, alu.acc_write)
        m.d.comb += [
            self.retired.eq(gemm.retired | alu.retired),
            self.waiting.eq(sequencer.idle),
            self.reading.eq(sequencer.reading),
            self.uop_bgn.eq(sequencer.uop_bgn),
            self.uop_end.eq(sequencer.uop_end),
            self.idle.eq(sequencer.idle & gemm.idle & alu.idle),
            self.gemm_active.eq(gemm.inp_read[0].en),
            self.alu_active.eq(alu.element.valid & alu.element.ready),
        ]
        return m


def _use(m: Module, acc: AccMemory, read: AccRead, write: AccWrite) -> None:
    m.d.comb += [
        acc.dst.valid.eq(read.valid),
        acc.dst.address.eq(read.address),
        acc.result.valid.eq(write.valid),
        acc.result.address.eq(write.address),
        acc.result.data.eq(write.data),
    ]
