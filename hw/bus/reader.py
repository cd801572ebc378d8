"""Read side of the memory port: several clients share one AXI read channel."""

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import RESP_ERROR_BIT, ReadChannel, ReadClient

__all__ = ["Reader"]


class Reader(wiring.Component):
    """Round-robin arbiter with one read ID, so that beats return in the order of the requests.

    A request reaches ARVALID in the next cycle; an R beat reaches its client in the next cycle.
    One request per cycle, one beat per cycle.

    Ports
    -----
    clients
        Array of `ReadClient`.
    channel
        The AXI read channel.
    stop
        While 1, no new burst starts; ARVALID once raised stays until ARREADY.
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
        winner = Signal(range(self._count))
        with m.Switch(last):
            for granted in range(self._count):
                with m.Case(granted):
                    # Later assignments win: go through the clients from the lowest priority up.
                    for distance in reversed(range(1, self._count + 1)):
                        index = (granted + distance) % self._count
                        with m.If(self.clients[index].request.valid):
                            m.d.comb += winner.eq(index)

        asked = Signal()
        free = Signal()
        requests = Array(client.request for client in self.clients)
        in_flight = Signal(range(self._config.outstanding + 1))
        ended = self.channel.rvalid & self.channel.rlast
        m.d.comb += [
            asked.eq(requests[winner].valid),
            free.eq((~ar.valid | ar.ready) & ~self.stop & (in_flight != self._config.outstanding)),
            requests[winner].ready.eq(free),
            order.w_en.eq(asked & free),
            order.w_data.eq(winner),
        ]
        m.d.sync += in_flight.eq(in_flight + order.w_en - ended)
        with m.If(ar.ready):
            m.d.sync += ar.valid.eq(0)
        with m.If(asked & free):
            m.d.sync += [ar.valid.eq(1), ar.p.eq(requests[winner].p), last.eq(winner)]

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
