"""One access at a time to an AXI4-Lite slave, with a time-out."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.hw.bus.axi import Axi4Lite

__all__ = ["RegisterAccess"]


class RegisterAccess(wiring.Component):
    """Reads or writes one register of 32 bits.

    `start` for one cycle begins an access, with `write`, `address` and `write_data` held until
    `done`, which is high for one cycle. Then `read_data` has what was read and `silent` says
    whether the slave did not answer within `timeout` cycles or answered with an error.
    """

    def __init__(self, *, addr_bits: int, timeout: int) -> None:
        self._timeout = timeout
        super().__init__(
            {
                "axi": Out(Axi4Lite(addr_bits=addr_bits)),
                "start": In(1),
                "write": In(1),
                "address": In(addr_bits),
                "write_data": In(32),
                "read_data": Out(32),
                "done": Out(1),
                "silent": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi = self.axi
        waiting = Signal()
        timer = Signal(range(self._timeout + 1))
        answered, answer = Signal(), Signal(2)
        m.d.comb += [
            axi.awaddr.eq(self.address),
            axi.araddr.eq(self.address),
            axi.wdata.eq(self.write_data),
            axi.wstrb.eq(-1),
            axi.bready.eq(1),
            axi.rready.eq(1),
            answered.eq((self.write & axi.bvalid) | (~self.write & axi.rvalid)),
        ]
        m.d.comb += answer.eq(axi.rresp)
        with m.If(self.write):
            m.d.comb += answer.eq(axi.bresp)
        for valid, ready in (
            (axi.awvalid, axi.awready),
            (axi.wvalid, axi.wready),
            (axi.arvalid, axi.arready),
        ):
            with m.If(ready):
                m.d.sync += valid.eq(0)

        m.d.sync += self.done.eq(0)
        with m.If(self.start):
            m.d.sync += [
                waiting.eq(1),
                timer.eq(self._timeout),
                axi.awvalid.eq(self.write),
                axi.wvalid.eq(self.write),
                axi.arvalid.eq(~self.write),
            ]
        with m.Elif(waiting):
            m.d.sync += timer.eq(timer - 1)
            with m.If(answered | (timer == 0)):
                m.d.sync += [
                    waiting.eq(0),
                    self.done.eq(1),
                    self.silent.eq(~answered | (answer != 0)),
                    self.read_data.eq(axi.rdata),
                ]
        return m
