"""Fills the padding of a LOAD, an element at a time, in cycles that data leaves free."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PAD_VALUE_BITS", "PadFiller", "pad_element_layout", "padding_layout"]

PAD_VALUE_BITS = 32


def padding_layout(target_bits: int, element_bits: int, slot_bits: int) -> data.StructLayout:
    """Padding of one command: the frame around `y_size` rows of `x_size` elements."""
    return data.StructLayout(
        {
            "target": target_bits,
            "slot": slot_bits,
            "begin": element_bits,
            "width": element_bits,
            "y_size": element_bits,
            "x_size": element_bits,
            "y_pad_0": 4,
            "y_pad_1": 4,
            "x_pad_0": 4,
            "x_pad_1": 4,
            "value": PAD_VALUE_BITS,
        }
    )


def pad_element_layout(target_bits: int, element_bits: int) -> data.StructLayout:
    """One element to be filled with `value`."""
    return data.StructLayout(
        {"target": target_bits, "element": element_bits, "value": PAD_VALUE_BITS}
    )


class PadFiller(wiring.Component):
    """Padding → the elements it consists of, in ascending order.

    The right padding of a row and the left one of the next form one run; each run costs one
    cycle beside its elements.

    Ports
    -----
    padding
        Stream of `padding_layout`; taken when the previous one is complete.
    element
        Stream of `pad_element_layout`.
    done, done_slot
        `done` is 1 for a cycle when the padding of command `done_slot` has been taken.
    busy
        Elements are being offered or prepared.
    """

    def __init__(self, *, target_bits: int, element_bits: int, slot_bits: int) -> None:
        self._padding = padding_layout(target_bits, element_bits, slot_bits)
        self._element_bits = element_bits
        super().__init__(
            {
                "padding": In(stream.Signature(self._padding)),
                "element": Out(stream.Signature(pad_element_layout(target_bits, element_bits))),
                "done": Out(1),
                "done_slot": Out(slot_bits),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        job = Signal(self._padding)
        left_due = Signal()
        element = Signal(self._element_bits)
        run = Signal(self._element_bits)

        m.d.comb += [
            self.padding.ready.eq(~self.busy),
            self.element.valid.eq(run != 0),
            self.element.p.target.eq(job.target),
            self.element.p.element.eq(element),
            self.element.p.value.eq(job.value),
            self.done_slot.eq(job.slot),
        ]
        with m.If(self.element.valid):
            with m.If(self.element.ready):
                m.d.sync += [element.eq(element + 1), run.eq(run - 1)]
        with m.Elif(self.busy):
            self._next_run(m, job, left_due, element, run)
        with m.Elif(self.padding.valid):
            m.d.sync += [
                self.busy.eq(1),
                job.eq(self.padding.p),
                element.eq(self.padding.p.begin),
                left_due.eq(1),
            ]
        return m

    def _next_run(self, m: Module, job, left_due: Signal, element: Signal, run: Signal) -> None:
        """Rows above, left of the first row, between rows, right of the last one, rows below."""
        with m.If(job.y_pad_0 != 0):
            m.d.sync += [run.eq(job.width), job.y_pad_0.eq(job.y_pad_0 - 1)]
        with m.Elif(left_due):
            m.d.sync += [run.eq(job.x_pad_0), left_due.eq(0)]
        with m.Elif(job.y_size != 0):
            last = job.y_size == 1
            m.d.sync += [
                element.eq(element + job.x_size),
                run.eq(job.x_pad_1 + Mux(last, 0, job.x_pad_0)),
                job.y_size.eq(job.y_size - 1),
            ]
        with m.Elif(job.y_pad_1 != 0):
            m.d.sync += [run.eq(job.width), job.y_pad_1.eq(job.y_pad_1 - 1)]
        with m.Else():
            m.d.comb += self.done.eq(1)
            m.d.sync += self.busy.eq(0)
