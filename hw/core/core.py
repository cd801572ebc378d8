"""The core: all parts wired together behind one register port and one memory port.

s_axi ─ registers ─ status, counters
            │
m_axi ─ reader ─┬─ fetch ──► load_queue, compute_queue, store_queue
   │            ├─ load_engine ──► inp, wgt          (load stage)
   │            ├─ acc_engine ──► uop, ACC           (compute stage)
   │            └─ param_engine ──► param            (store stage)
   └─ store_engine ◄── store stage ◄── ACC
"""

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import Axi4, Axi4Lite
from vitral.hw.bus.reader import Reader
from vitral.hw.bus.registers import RegisterFile
from vitral.hw.core.addressing import clamp
from vitral.hw.core.compute import ComputeStage
from vitral.hw.core.counters import Counters
from vitral.hw.core.fetch import Fetch
from vitral.hw.core.interfaces import Wait
from vitral.hw.core.load import LoadStage
from vitral.hw.core.load_engine import LoadEngine
from vitral.hw.core.operands import TAPS
from vitral.hw.core.queue import InsnQueue
from vitral.hw.core.scratchpad import Scratchpad
from vitral.hw.core.status import Status
from vitral.hw.core.store import StoreStage
from vitral.hw.core.store_engine import StoreEngine
from vitral.hw.core.tokens import TokenCounters
from vitral.isa import Memory
from vitral.registers import ADDRESS_BITS, COUNTERS, register

__all__ = ["Core", "core_signature"]

INCR = 1
STAGES = ("load", "compute", "store")
ENGINES = {
    "load_engine": (Memory.INP, Memory.WGT),
    "acc_engine": (Memory.UOP, Memory.ACC, Memory.ACC_8BIT),
    "param_engine": (Memory.PARAM,),
}
IN_FLIGHT = {"load_engine": 8, "acc_engine": 4, "param_engine": 2}
"""LOADs in flight in each engine."""

SCRATCHPADS = (Memory.UOP, Memory.INP, Memory.WGT, Memory.PARAM)


def core_signature(config: CoreConfig) -> wiring.Signature:
    """The ports of a `Core`."""
    return wiring.Signature(
        {
            "s_axi": In(Axi4Lite(addr_bits=ADDRESS_BITS)),
            "m_axi": Out(Axi4(addr_bits=config.addr_bits, data_bits=config.data_bits)),
            "irq": Out(1),
        }
    )


class Core(wiring.Component):
    """An accelerator core; the architecture page says what it does.

    Instance names are stable: `inp`, `wgt`, `uop`, `param` are `Scratchpad`s, ACC lies in
    `compute`, so that simulators find the memories.

    Ports
    -----
    s_axi
        AXI4-Lite slave, the registers of `vitral.registers`.
    m_axi
        AXI4 master, one read and one write ID, INCR bursts of full beats.
    irq
        Level, high while an enabled interrupt is pending.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        super().__init__(core_signature(config))

    def elaborate(self, platform):
        m = Module()
        parts = self._parts(m)
        self._connect_registers(m, parts)
        self._connect_program(m, parts)
        self._connect_tokens(m, parts)
        self._connect_memories(m, parts)
        self._connect_engines(m, parts)
        self._connect_addresses(m, parts)
        self._connect_reads(m, parts)
        self._connect_writes(m, parts)
        self._connect_status(m, parts)
        self._connect_counters(m, parts)
        return m

    def _parts(self, m: Module) -> "_Parts":
        parts = _Parts(self.config)
        for name in ("registers", "status", "counters", "reader", "compute", "store"):
            m.submodules[name] = getattr(parts, name)
        clear = ResetInserter(parts.status.clear)
        for name in ("fetch", "load", "tokens", "store_engine"):
            m.submodules[name] = clear(getattr(parts, name))
        for stage, queue in parts.queues.items():
            m.submodules[f"{stage}_queue"] = clear(queue)
        for name, engine in parts.engines.items():
            m.submodules[name] = clear(engine)
        for memory, pad in parts.pads.items():
            m.submodules[memory.name.lower()] = pad
        return parts

    def _connect_registers(self, m: Module, parts: "_Parts") -> None:
        registers, status = parts.registers, parts.status
        wiring.connect(m, wiring.flipped(self.s_axi), registers.axi)
        m.d.comb += [
            status.control.eq(registers.control),
            status.watchdog.eq(registers.watchdog),
            status.irq_enable.eq(registers.irq_enable),
            status.irq_clear.eq(registers.irq_status_clear),
            registers.status.eq(status.status),
            registers.error_index.eq(status.error_index),
            registers.irq_status.eq(status.irq_status),
            self.irq.eq(status.irq),
        ]
        for stage in STAGES:
            shown = getattr(registers, f"{stage}_state")
            part = getattr(parts, stage)
            for name in ("index", "wait"):
                field = register(f"{stage}_state")[name]
                m.d.comb += shown[field.low : field.low + field.width].eq(getattr(part, name))

    def _connect_program(self, m: Module, parts: "_Parts") -> None:
        """Fetch to the queues, the queues to the stages."""
        m.d.comb += [
            parts.fetch.launch.eq(parts.status.launch),
            parts.fetch.profile.eq(parts.status.profile),
            parts.fetch.count.eq(parts.registers.insn_count),
        ]
        for stage in STAGES:
            part = getattr(parts, stage)
            queue = parts.queues[stage]
            wiring.connect(m, getattr(parts.fetch, stage), queue.i)
            wiring.connect(m, queue.o, part.insn)
            m.d.comb += part.profile.eq(parts.status.profile)

    def _connect_tokens(self, m: Module, parts: "_Parts") -> None:
        tokens = parts.tokens
        wiring.connect(m, parts.load.next, tokens.load_next)
        wiring.connect(m, parts.compute.prev, tokens.compute_prev)
        wiring.connect(m, parts.compute.next, tokens.compute_next)
        wiring.connect(m, parts.store.prev, tokens.store_prev)

    def _connect_memories(self, m: Module, parts: "_Parts") -> None:
        """Engines to the write ports, stages to the read ports of the on-chip memories."""
        for name, engine in parts.engines.items():
            for memory in ENGINES[name]:
                if memory in parts.pads:
                    write = getattr(engine, f"write_{memory.name.lower()}")
                    wiring.connect(m, write, parts.pads[memory].write)
        wiring.connect(m, parts.engines["acc_engine"].write_acc, parts.compute.acc_write)
        for memory in (Memory.UOP, Memory.WGT):
            read = getattr(parts.compute, f"{memory.name.lower()}_read")
            wiring.connect(m, read, parts.pads[memory].read)
        for read, port in zip(parts.compute.inp_read, parts.pads[Memory.INP].read, strict=True):
            wiring.connect(m, read, port)
        wiring.connect(m, parts.store.param_read, parts.pads[Memory.PARAM].read)
        wiring.connect(m, parts.store.acc_read, parts.compute.acc_read)

    def _connect_engines(self, m: Module, parts: "_Parts") -> None:
        """Commands and tickets between stages and engines, and the pad registers."""
        load, engine = parts.load, parts.engines["load_engine"]
        wiring.connect(m, load.command, engine.command)
        wiring.connect(m, engine.done, load.done)
        m.d.comb += [
            engine.pad_inp.eq(load.pad_inp),
            engine.pad_wgt.eq(load.pad_wgt),
            load.engine_busy.eq(engine.busy),
            load.engine_waiting.eq(engine.waiting),
        ]
        acc_engine = parts.engines["acc_engine"]
        m.d.comb += acc_engine.pad_acc.eq(parts.compute.pad_acc)
        for stage, user in (
            (parts.compute, acc_engine),
            (parts.store, parts.engines["param_engine"]),
        ):
            wiring.connect(m, stage.load_command, user.command)
            wiring.connect(m, user.done, stage.load_done)
        wiring.connect(m, parts.store.store_command, parts.store_engine.command)
        wiring.connect(m, parts.store.store_data, parts.store_engine.data)
        wiring.connect(m, parts.store_engine.done, parts.store.store_done)

    def _connect_addresses(self, m: Module, parts: "_Parts") -> None:
        """Clamped bases and limits, one register each for all users."""
        registers = parts.registers
        low = clamp(m, self.config, registers.limit_low)
        high = clamp(m, self.config, registers.limit_high)
        for user in (parts.fetch, parts.store_engine, *parts.engines.values()):
            m.d.comb += [user.limits.low.eq(low), user.limits.high.eq(high)]
        m.d.comb += parts.fetch.base.eq(clamp(m, self.config, registers.insn_base))
        for name, memories in {**ENGINES, "store_engine": (Memory.OUT, Memory.ACC)}.items():
            user = parts.engines.get(name, parts.store_engine)
            for memory in memories:
                port = f"{memory.name.lower()}_base"
                base = clamp(m, self.config, getattr(registers, port))
                m.d.comb += getattr(user, f"base_{memory.name.lower()}").eq(base)

    def _connect_reads(self, m: Module, parts: "_Parts") -> None:
        reader, axi = parts.reader, self.m_axi
        for client, user in zip(
            reader.clients, (parts.fetch, *parts.engines.values()), strict=True
        ):
            wiring.connect(m, user.read, client)
        ar = reader.channel.ar
        m.d.comb += [
            reader.stop.eq(parts.status.stop),
            # Operands first: fetch would take half of the bursts to fill its queues.
            reader.defer.eq(parts.queues["compute"].ahead),
            axi.arvalid.eq(ar.valid),
            axi.araddr.eq(ar.p.address),
            axi.arlen.eq(ar.p.len),
            ar.ready.eq(axi.arready),
            reader.channel.rvalid.eq(axi.rvalid),
            reader.channel.rdata.eq(axi.rdata),
            reader.channel.rresp.eq(axi.rresp),
            reader.channel.rlast.eq(axi.rlast),
            axi.rready.eq(1),
        ]
        self._constants(m, parts, "ar")

    def _connect_writes(self, m: Module, parts: "_Parts") -> None:
        engine, axi = parts.store_engine, self.m_axi
        channel = engine.channel
        m.d.comb += [
            engine.stop.eq(parts.status.stop),
            axi.awvalid.eq(channel.aw.valid),
            axi.awaddr.eq(channel.aw.p.address),
            axi.awlen.eq(channel.aw.p.len),
            channel.aw.ready.eq(axi.awready),
            axi.wvalid.eq(channel.w.valid),
            axi.wdata.eq(channel.w.p.data),
            axi.wstrb.eq(channel.w.p.strb),
            axi.wlast.eq(channel.w.p.last),
            channel.w.ready.eq(axi.wready),
            channel.bvalid.eq(axi.bvalid),
            channel.bresp.eq(axi.bresp),
            axi.bready.eq(1),
        ]
        self._constants(m, parts, "aw")

    def _constants(self, m: Module, parts: "_Parts", channel: str) -> None:
        """Size, burst type and sideband; the latter holds still while a program runs."""
        entry = register("axi_attributes")
        written = parts.registers.axi_attributes
        used = Signal(len(written), init=entry.reset, name=f"{channel}_attributes")
        with m.If(~parts.status.busy & ~parts.bus_busy):
            m.d.sync += used.eq(written)
        for name, field in (
            ("cache", entry[f"{channel}cache"]),
            ("prot", entry["prot"]),
            ("qos", entry["qos"]),
            ("user", entry["user"]),
        ):
            port = getattr(self.m_axi, f"{channel}{name}")
            m.d.comb += port.eq(used[field.low : field.low + field.width])
        size = (self.config.layout.beat_bytes - 1).bit_length()
        m.d.comb += [
            getattr(self.m_axi, f"{channel}size").eq(size),
            getattr(self.m_axi, f"{channel}burst").eq(INCR),
        ]

    def _connect_status(self, m: Module, parts: "_Parts") -> None:
        status, axi = parts.status, self.m_axi
        engines = parts.engines.values()
        others_idle = Signal()
        store_idle = (parts.store.wait == Wait.IDLE) & ~parts.store_engine.busy
        compute_idle = (parts.compute.wait == Wait.IDLE) & parts.queues["compute"].empty
        m.d.comb += [
            parts.bus_busy.eq(parts.reader.busy | parts.store_engine.pending),
            others_idle.eq(
                parts.load.idle
                & store_idle
                & ~parts.engines["param_engine"].busy
                & parts.queues["load"].empty
                & parts.queues["store"].empty
            ),
            parts.compute.others_idle.eq(others_idle),
            parts.fetch.idle.eq(others_idle & compute_idle & ~parts.engines["acc_engine"].busy),
            parts.compute.clear.eq(status.clear),
            parts.store.clear.eq(status.clear),
            status.finished.eq(parts.compute.finished),
            status.finish_index.eq(parts.compute.index),
            status.tokens_left.eq(parts.tokens.left),
            status.bus_busy.eq(parts.bus_busy),
            status.bus_progress.eq(
                axi.rvalid
                | axi.bvalid
                | (axi.arvalid & axi.arready)
                | (axi.awvalid & axi.awready)
                | (axi.wvalid & axi.wready)
            ),
        ]
        faulty = (parts.fetch, parts.compute, parts.store, *engines, parts.store_engine)
        for port, part in zip(status.faults, faulty, strict=True):
            wiring.connect(m, part.fault, port)

    def _connect_counters(self, m: Module, parts: "_Parts") -> None:
        counters = parts.counters
        m.d.comb += [
            counters.running.eq(parts.status.busy),
            counters.clear.eq(parts.status.launch | parts.status.reset_done),
            counters.gemm.eq(parts.compute.gemm_active),
            counters.alu.eq(parts.compute.alu_active),
            counters.read_beats.eq(parts.reader.beat),
            counters.write_beats.eq(parts.store_engine.beat),
        ]
        for stage in STAGES:
            m.d.comb += getattr(counters, f"{stage}_wait").eq(getattr(parts, stage).wait)
        for name, _ in COUNTERS:
            port = f"count_{name}"
            m.d.comb += getattr(parts.registers, port).eq(getattr(counters, port))


class _Parts:
    """The parts by name, made once per elaboration."""

    def __init__(self, config: CoreConfig) -> None:
        layout = config.layout
        self.registers = RegisterFile(config)
        self.status = Status(faults=4 + len(ENGINES))
        self.counters = Counters()
        self.reader = Reader(config, clients=1 + len(ENGINES))
        self.fetch = Fetch(config)
        self.tokens = TokenCounters(config)
        self.load = LoadStage(config)
        self.compute = ComputeStage(config)
        self.store = StoreStage(config)
        self.store_engine = StoreEngine(config)
        self.queues = {stage: InsnQueue(depth=config.queue_depth) for stage in STAGES}
        self.engines = {
            name: LoadEngine(config, memories, depth=IN_FLIGHT[name])
            for name, memories in ENGINES.items()
        }
        self.pads = {
            memory: Scratchpad(
                element_bytes=getattr(layout, f"{memory.name.lower()}_bytes"),
                depth=getattr(layout, f"{memory.name.lower()}_depth"),
                beat_bytes=layout.beat_bytes,
                reads=TAPS if memory is Memory.INP else 1,
                parts=layout.param_rows if memory is Memory.PARAM else 1,
            )
            for memory in SCRATCHPADS
        }
        self.bus_busy = Signal()
