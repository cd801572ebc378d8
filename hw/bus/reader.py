"""Read side of the memory port: several clients share one AXI read channel."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import RESP_ERROR_BIT, ReadChannel, ReadClient

__all__ = ["Reader"]


class Reader(wiring.Component):
    """Round-robin arbiter with one read ID, so that beats return in the order of the requests.

    A request reaches ARVALID in the same cycle, an R beat its client in the next one. One request
    per cycle, one beat per cycle. A client keeps its request until it is taken.

    Ports
    -----
    clients
        Array of `ReadClient`.
    channel
        The AXI read channel.
    stop
        While 1, no new burst starts; ARVALID once raised stays until ARREADY.
    defer
        While 1, the first client's turn comes only when no other one asks.
    busy
        Bursts are asked for or beats are on their way.
    beat
        A beat was taken in this cycle.
    """

    def __init__(self, config: CoreConfig, *, clients: int = 4) -> None:
        self._config = config
        self._count = clients
        super().__init__(
            {
                "clients": In(ReadClient(config)).array(clients),
                "channel": Out(ReadChannel(config)),
                "stop": In(1),
                "defer": In(1),
                "busy": Out(1),
                "beat": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        owner = Signal(range(self._count))
        m.submodules.order = order = SyncFIFO(
            width=len(owner), depth=max(2, self._config.outstanding)
        )
        m.d.comb += owner.eq(order.r_data)
        self._arbitrate(m, order)
        self._return(m, order, owner)
        return m

    def _arbitrate(self, m: Module, order: SyncFIFO) -> None:
        ar = self.channel.ar
        last = Signal(range(self._count))
        winner = self._choose(m, last)
        requests = Array(client.request for client in self.clients)
        in_flight = Signal(range(self._config.outstanding + 1))
        ended = self.channel.rvalid & self.channel.rlast
        locked = Signal()
        may_start = ~self.stop & (in_flight != self._config.outstanding)
        taken = Signal()

        # An offered request stays until ARREADY, whoever else asks meanwhile.
        chosen = Signal.like(winner)
        m.d.comb += [
            chosen.eq(Mux(locked, last, winner)),
            ar.valid.eq(locked | (requests[winner].valid & may_start)),
            ar.p.eq(requests[chosen].p),
            taken.eq(ar.valid & ar.ready),
            requests[chosen].ready.eq(taken),
            order.w_en.eq(taken),
            order.w_data.eq(chosen),
        ]
        m.d.sync += [locked.eq(ar.valid & ~ar.ready), in_flight.eq(in_flight + taken - ended)]
        with m.If(ar.valid):
            m.d.sync += last.eq(chosen)

    def _choose(self, m: Module, last: Signal) -> Signal:
        """The asking client that comes first after the one served last."""
        winner = Signal(range(self._count))
        asks = [client.request.valid for client in self.clients]
        asks[0] = asks[0] & ~(self.defer & Cat(asks[1:]).any())
        with m.Switch(last):
            for granted in range(self._count):
                with m.Case(granted):
                    # Later assignments win: from the lowest priority up.
                    for distance in reversed(range(1, self._count + 1)):
                        index = (granted + distance) % self._count
                        with m.If(asks[index]):
                            m.d.comb += winner.eq(index)
        return winner

    def _return(self, m: Module, order: SyncFIFO, owner: Signal) -> None:
        channel = self.channel
        valid = Signal(self._count)
        beat = Signal(self._config.data_bits)
        error = Signal()
        m.d.comb += [
            order.r_en.eq(channel.rvalid & channel.rlast),
            self.beat.eq(channel.rvalid),
            self.busy.eq(channel.ar.valid | order.r_rdy | valid.any()),
        ]
        m.d.sync += valid.eq(Mux(channel.rvalid, 1 << owner, 0))
        with m.If(channel.rvalid):
            m.d.sync += [beat.eq(channel.rdata), error.eq(channel.rresp[RESP_ERROR_BIT])]
        for index, client in enumerate(self.clients):
            m.d.comb += [
                client.valid.eq(valid[index]),
                client.data.eq(beat),
                client.error.eq(error),
            ]
