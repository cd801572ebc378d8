"""Keeps the instructions that a stage has begun, and pushes their tokens in order."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, enum, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.hw.core.interfaces import INDEX_BITS

__all__ = ["Completion", "Flight", "Retirement"]


class Completion(enum.Enum, shape=2):
    """What ends an instruction: nothing but its turn, or a pulse of one of the two kinds."""

    TURN = 0
    FIRST = 1
    SECOND = 2


class Flight(data.Struct):
    """An instruction in flight; `mark` is the stage's own."""

    index: INDEX_BITS
    completion: Completion
    push_prev: 1
    push_next: 1
    mark: 1


class Retirement(wiring.Component):
    """A queue of at most `depth` begun instructions, from which they leave complete, in order.

    `completed[n]` pulses when the oldest one that waits for that kind is complete; kinds may
    overtake each other. The instruction at the head, once complete, gives its tokens as
    soon as there is room for each, and `retired` pulses with `mark` in the cycle of the last one.

    `index` and `valid` describe the head. `blocked_prev` and `blocked_next` say that it is
    complete and waits for room.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__(
            {
                "begin": In(stream.Signature(Flight)),
                "completed": In(2),
                "room_prev": In(1),
                "room_next": In(1),
                "give_prev": Out(1),
                "give_next": Out(1),
                "blocked_prev": Out(1),
                "blocked_next": Out(1),
                "valid": Out(1),
                "index": Out(INDEX_BITS),
                "retired": Out(1),
                "mark": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = Flight.as_shape().size
        m.submodules.queue = queue = fifo.SyncFIFO(width=width, depth=self.depth)
        head = data.View(Flight, queue.r_data)
        counts = [Signal(range(self.depth + 1), name=f"count_{n}") for n in range(2)]
        complete = Signal()
        m.d.comb += [
            queue.w_data.eq(self.begin.payload),
            queue.w_en.eq(self.begin.valid),
            self.begin.ready.eq(queue.w_rdy),
            queue.r_en.eq(self.retired),
            self.valid.eq(queue.r_rdy),
            self.index.eq(head.index),
            self.mark.eq(head.mark),
        ]

        # Completions that their instruction, not at the head yet, still has to use.
        kinds = (Completion.FIRST, Completion.SECOND)
        with m.Switch(head.completion):
            with m.Case(Completion.TURN):
                m.d.comb += complete.eq(queue.r_rdy)
            for kind, count in zip(kinds, counts, strict=True):
                with m.Case(kind):
                    m.d.comb += complete.eq(queue.r_rdy & (count != 0))
        for number, (kind, count) in enumerate(zip(kinds, counts, strict=True)):
            used = self.retired & (head.completion == kind)
            m.d.sync += count.eq(count + self.completed[number] - used)

        # Each push once, whichever finds room first.
        given = {}
        for side in ("prev", "next"):
            room, give = getattr(self, f"room_{side}"), getattr(self, f"give_{side}")
            given[side] = Signal(name=f"given_{side}")
            waits = complete & head[f"push_{side}"] & ~given[side]
            m.d.comb += [
                give.eq(waits & room),
                getattr(self, f"blocked_{side}").eq(waits & ~room),
            ]
            m.d.sync += given[side].eq((given[side] | give) & ~self.retired)
        m.d.comb += self.retired.eq(complete & ~Cat(self.blocked_prev, self.blocked_next).any())
        return m
