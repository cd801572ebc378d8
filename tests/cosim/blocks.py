"""Blocks of the core, each as a Verilog design of its own with flat ports, for cocotb."""

# The stubs do not know the ports that a component declares in dict form.
# pyright: reportAttributeAccessIssue=false

from typing import Any

from amaranth import ClockDomain, ClockSignal, Module, ResetSignal
from amaranth.back import verilog
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import Axi4, burst_stream
from vitral.hw.bus.reader import Reader
from vitral.hw.core.acc import AccMemory
from vitral.hw.core.addressing import Limits, clamped_bits
from vitral.hw.core.execute import Execute
from vitral.hw.core.interfaces import (
    Fault,
    LoadCommand,
    ReadPort,
    StoreCommand,
    Ticket,
    granule_bytes,
)
from vitral.hw.core.load_engine import LoadEngine
from vitral.hw.core.load_plan import memory_geometry
from vitral.hw.core.requant import Requantizer
from vitral.hw.core.scratchpad import Scratchpad
from vitral.hw.core.store_engine import StoreEngine
from vitral.isa import Memory

__all__ = [
    "BLOCK_TOP",
    "execute_verilog",
    "load_path_verilog",
    "requantizer_verilog",
    "store_path_verilog",
]

BLOCK_TOP = "block"
INCR = 1
PAD_BITS = {Memory.INP: 8, Memory.WGT: 8, Memory.ACC: 32}


def load_path_verilog(config: CoreConfig, memories: tuple[Memory, ...]) -> str:
    """Load engine of `memories`, their arrays with `read_<memory>`, and `m_axi`."""
    return _emit(_LoadPath(config, memories))


def store_path_verilog(config: CoreConfig) -> str:
    """Store engine with `m_axi`."""
    return _emit(_StorePath(config))


def execute_verilog(config: CoreConfig) -> str:
    """Both compute units with ACC; the other memories are read through ports."""
    return _emit(Execute(config))


def requantizer_verilog(lanes: int) -> str:
    return _emit(Requantizer(lanes))


def _emit(component: Any) -> str:
    return verilog.convert(_Flat(component), name=BLOCK_TOP, emit_src=False)


class _Flat(wiring.Component):
    """A component with flat ports, clock `aclk` and synchronous reset `aresetn`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        members: dict[str, wiring.Member] = {"aclk": In(1), "aresetn": In(1)}
        for path, member, _ in inner.signature.flatten(inner):
            members["_".join(map(str, path))] = member.flow(member.shape)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.d.comb += [ClockSignal().eq(self.aclk), ResetSignal().eq(~self.aresetn)]
        m.submodules.inner = inner = self._inner
        for path, member, port in inner.signature.flatten(inner):
            outer = getattr(self, "_".join(map(str, path)))
            source, sink = (outer, port) if member.flow == In else (port, outer)
            m.d.comb += sink.eq(source)
        return m


def _bursts(
    m: Module, axi: wiring.PureInterface, channel: str, config: CoreConfig
) -> stream.Interface:
    """A stream that drives an address channel."""
    bursts = burst_stream(config).create(path=(channel,))
    values = {
        "valid": bursts.valid,
        "addr": bursts.p.address,
        "len": bursts.p.len,
        "size": (config.layout.beat_bytes - 1).bit_length(),
        "burst": INCR,
    }
    m.d.comb += [getattr(axi, f"{channel}{name}").eq(value) for name, value in values.items()]
    m.d.comb += bursts.ready.eq(getattr(axi, f"{channel}ready"))
    return bursts


class _LoadPath(wiring.Component):
    def __init__(self, config: CoreConfig, memories: tuple[Memory, ...]) -> None:
        self._config, self._memories = config, memories
        members = {
            "command": In(stream.Signature(LoadCommand)),
            "done": Out(stream.Signature(Ticket)),
            "fault": Out(Fault()),
            "limits": In(Limits(config)),
            "m_axi": Out(Axi4(addr_bits=config.addr_bits, data_bits=config.data_bits)),
        }
        for memory in memories:
            name = memory.name.lower()
            members[f"base_{name}"] = In(clamped_bits(config))
            if memory in PAD_BITS:
                members[f"pad_{name}"] = In(PAD_BITS[memory])
            if memory is not Memory.ACC_8BIT:
                geometry = memory_geometry(config, memory)
                members[f"read_{name}"] = In(
                    ReadPort(
                        address_bits=(geometry.depth - 1).bit_length(),
                        data_bits=8 * geometry.element_bytes,
                    )
                )
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        config, axi = self._config, self.m_axi
        m.submodules.engine = engine = LoadEngine(config, self._memories)
        # A second client that asks for nothing: Verilog has no memory of 0 bits to tell one apart.
        m.submodules.reader = reader = Reader(config, clients=2)
        wiring.connect(m, engine.read, reader.clients[0])
        wiring.connect(m, reader.channel.ar, wiring.flipped(_bursts(m, axi, "ar", config)))
        m.d.comb += axi.rready.eq(1)
        m.d.comb += [
            getattr(reader.channel, n).eq(getattr(axi, n))
            for n in ("rvalid", "rdata", "rresp", "rlast")
        ]
        for name in ("command", "done", "fault", "limits"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(engine, name))
        for memory in self._memories:
            self._connect(m, engine, memory)
        return m

    def _connect(self, m: Module, engine: LoadEngine, memory: Memory) -> None:
        name = memory.name.lower()
        m.d.comb += getattr(engine, f"base_{name}").eq(getattr(self, f"base_{name}"))
        if memory in PAD_BITS:
            m.d.comb += getattr(engine, f"pad_{name}").eq(getattr(self, f"pad_{name}"))
        if memory is Memory.ACC_8BIT:
            return
        port = getattr(self, f"read_{name}")
        if memory is Memory.ACC:
            m.submodules.acc = acc = AccMemory(self._config)
            wiring.connect(m, engine.write_acc, acc.load)
            m.d.comb += [
                acc.store.valid.eq(port.en),
                acc.store.address.eq(port.address),
                port.data.eq(acc.store.data),
            ]
            return
        geometry = memory_geometry(self._config, memory)
        m.submodules[name] = pad = Scratchpad(
            element_bytes=geometry.element_bytes,
            depth=geometry.depth,
            beat_bytes=geometry.beat_bytes,
        )
        wiring.connect(m, getattr(engine, f"write_{name}"), pad.write)
        wiring.connect(m, wiring.flipped(port), pad.read)


class _StorePath(wiring.Component):
    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        super().__init__(
            {
                "command": In(stream.Signature(StoreCommand)),
                "data": In(stream.Signature(8 * granule_bytes(config))),
                "done": Out(stream.Signature(Ticket)),
                "fault": Out(Fault()),
                "limits": In(Limits(config)),
                "base_out": In(clamped_bits(config)),
                "base_acc": In(clamped_bits(config)),
                "m_axi": Out(Axi4(addr_bits=config.addr_bits, data_bits=config.data_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, axi = self._config, self.m_axi
        m.submodules.engine = engine = StoreEngine(config)
        for name in ("command", "data", "done", "fault", "limits"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(engine, name))
        channel = engine.channel
        wiring.connect(m, channel.aw, wiring.flipped(_bursts(m, axi, "aw", config)))
        m.d.comb += [
            engine.base_out.eq(self.base_out),
            engine.base_acc.eq(self.base_acc),
            axi.wvalid.eq(channel.w.valid),
            axi.wdata.eq(channel.w.p.data),
            axi.wstrb.eq(channel.w.p.strb),
            axi.wlast.eq(channel.w.p.last),
            channel.w.ready.eq(axi.wready),
            channel.bvalid.eq(axi.bvalid),
            channel.bresp.eq(axi.bresp),
            axi.bready.eq(1),
        ]
        return m
