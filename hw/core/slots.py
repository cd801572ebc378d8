"""Commands in flight in a load engine: completion in order, and their on-chip ranges."""

from amaranth import Array, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.hw.core.interfaces import INDEX_BITS, Ticket

__all__ = ["CommandSlots", "range_layout"]


def range_layout(target_bits: int, element_bits: int) -> data.StructLayout:
    """Elements ``begin <= e < end`` of memory number `target`."""
    return data.StructLayout({"target": target_bits, "begin": element_bits, "end": element_bits})


class CommandSlots(wiring.Component):
    """A ring of commands whose data and padding land at different times.

    A command enters at `slot` when `admit` is 1 (only while `free`), with the parts that are
    still to come; bits in `data_done` and `pads_done` say whose part is complete. Tickets
    leave in the order of entry, at the earliest in the cycle after the last part's `done`.

    Ports
    -----
    claim
        Range of the command that asks to enter; `conflict`: an unfinished command shares it.
    data_due, pads_due
        The entering command has data, padding to come.
    row_slot, row_index
        Number of the instruction in slot `row_slot`.
    busy
        A command is in flight or its ticket has not been taken.
    """

    def __init__(self, *, depth: int, target_bits: int, element_bits: int) -> None:
        self._depth = depth
        slot_bits = (depth - 1).bit_length()
        super().__init__(
            {
                "claim": In(range_layout(target_bits, element_bits)),
                "conflict": Out(1),
                "admit": In(1),
                "ticket": In(Ticket),
                "data_due": In(1),
                "pads_due": In(1),
                "free": Out(1),
                "slot": Out(slot_bits),
                "data_done": In(depth),
                "row_slot": In(slot_bits),
                "row_index": Out(INDEX_BITS),
                "pads_done": In(depth),
                "done": Out(stream.Signature(Ticket)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = self._depth
        used = Signal(range(depth + 1))
        oldest = Signal.like(self.slot)
        tickets = Array(Signal(Ticket, name=f"ticket_{k}") for k in range(depth))
        claims = Array(Signal.like(self.claim, name=f"claim_{k}") for k in range(depth))
        data_due = Signal(depth)
        pads_due = Signal(depth)
        leave = Signal()

        # A command that shares elements with an unfinished one has to wait.
        shares = Signal(depth)
        for k, held in enumerate(claims):
            m.d.comb += shares[k].eq(
                (held.target == self.claim.target)
                & (held.begin < self.claim.end)
                & (self.claim.begin < held.end)
            )
        m.d.comb += [
            self.conflict.eq(((data_due | pads_due) & shares).any()),
            self.free.eq(used != depth),
            self.busy.eq(used != 0),
            # not `.index`: that is the array proxy's own
            self.row_index.eq(tickets[self.row_slot]["index"]),
            self.done.valid.eq(
                self.busy & ~data_due.bit_select(oldest, 1) & ~pads_due.bit_select(oldest, 1)
            ),
            self.done.payload.eq(tickets[oldest]),
            leave.eq(self.done.valid & self.done.ready),
        ]

        m.d.sync += used.eq(used + self.admit - leave)
        with m.If(leave):
            m.d.sync += oldest.eq(oldest + 1)
        m.d.sync += [
            data_due.eq(data_due & ~self.data_done),
            pads_due.eq(pads_due & ~self.pads_done),
        ]
        with m.If(self.admit):
            m.d.sync += [
                self.slot.eq(self.slot + 1),
                tickets[self.slot].eq(self.ticket),
                claims[self.slot].eq(self.claim),
                data_due.bit_select(self.slot, 1).eq(self.data_due),
                pads_due.bit_select(self.slot, 1).eq(self.pads_due),
            ]
        return m
