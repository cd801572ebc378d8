"""AXI ports of the core and the inner signatures of its read and write sides."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig

__all__ = [
    "RESP_ERROR_BIT",
    "Axi4",
    "Axi4Lite",
    "ReadChannel",
    "ReadClient",
    "WriteChannel",
    "burst_stream",
]

RESP_ERROR_BIT = 1
"""Bit of RRESP and BRESP that is set in SLVERR and DECERR and clear in OKAY and EXOKAY."""

LEN_BITS = 8


def burst_stream(config: CoreConfig) -> stream.Signature:
    """Stream of bursts: byte `address` of the first beat, `len` = beats - 1, within one page."""
    return stream.Signature(data.StructLayout({"address": config.addr_bits, "len": LEN_BITS}))


def _address_channel(prefix: str, addr_bits: int) -> dict[str, wiring.Member]:
    fields = {
        "id": 1,
        "addr": addr_bits,
        "region": 4,
        "len": LEN_BITS,
        "size": 3,
        "burst": 2,
        "lock": 1,
        "cache": 4,
        "prot": 3,
        "qos": 4,
        "user": 8,
        "valid": 1,
    }
    members = {f"{prefix}{name}": Out(width) for name, width in fields.items()}
    return members | {f"{prefix}ready": In(1)}


class Axi4(wiring.Signature):
    """AXI4 as its master sees it, members named as in the specification (``awaddr`` ...)."""

    def __init__(self, *, addr_bits: int, data_bits: int) -> None:
        super().__init__(
            {
                **_address_channel("aw", addr_bits),
                "wdata": Out(data_bits),
                "wstrb": Out(data_bits // 8),
                "wlast": Out(1),
                "wvalid": Out(1),
                "wready": In(1),
                "bid": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                **_address_channel("ar", addr_bits),
                "rid": In(1),
                "rdata": In(data_bits),
                "rresp": In(2),
                "rlast": In(1),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class Axi4Lite(wiring.Signature):
    """AXI4-Lite with 32-bit data as its master sees it."""

    def __init__(self, *, addr_bits: int) -> None:
        super().__init__(
            {
                "awaddr": Out(addr_bits),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(32),
                "wstrb": Out(4),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(addr_bits),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(32),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class ReadChannel(wiring.Signature):
    """AR and R of one master with a single ID; R is taken in every cycle (RREADY is 1)."""

    def __init__(self, config: CoreConfig) -> None:
        super().__init__(
            {
                "ar": Out(burst_stream(config)),
                "rvalid": In(1),
                "rdata": In(config.data_bits),
                "rresp": In(2),
                "rlast": In(1),
            }
        )


class WriteChannel(wiring.Signature):
    """AW, W and B of one master with a single ID; B is taken in every cycle (BREADY is 1)."""

    def __init__(self, config: CoreConfig) -> None:
        beat = data.StructLayout(
            {"data": config.data_bits, "strb": config.data_bits // 8, "last": 1}
        )
        super().__init__(
            {
                "aw": Out(burst_stream(config)),
                "w": Out(stream.Signature(beat)),
                "bvalid": In(1),
                "bresp": In(2),
            }
        )


class ReadClient(wiring.Signature):
    """A reader of DRAM, as that reader sees it.

    Beats come back in the order of the requests, one per cycle with `valid`; there is no way to
    refuse them, so a client requests only what it has room for. `error` marks a beat that the
    memory answered with an error.
    """

    def __init__(self, config: CoreConfig) -> None:
        super().__init__(
            {
                "request": Out(burst_stream(config)),
                "valid": In(1),
                "data": In(config.data_bits),
                "error": In(1),
            }
        )
