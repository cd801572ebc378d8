"""tsim: runs programs on the real RTL, cycle by cycle."""

import os
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Cause, Memory, Opcode, Profile, Stage
from vitral.program import Dram, Launch, MemoryModel, OnChip, Outcome, Wait, WaitReason
from vitral.registers import COUNTERS, MAGIC, register
from vitral.sim.rtl.arrays import load_arrays, store_arrays
from vitral.sim.rtl.build import build_library, build_native, trace_kind
from vitral.sim.rtl.emit import emit_cpp, emit_verilog
from vitral.sim.rtl.library import End, Harness
from vitral.sim.rtl.record import Recorder
from vitral.sim.rtl.toolchain import find_toolchain

__all__ = ["RtlSimulator"]

WORD = 32
WORD_MASK = (1 << WORD) - 1
QUIET_CYCLES = 4096
"""Cycles without bus traffic after which the stages' states are looked at."""
RESET_CYCLES = 1 << 16
"""Cycles that a soft reset may take to drain the bus."""
OPCODE_MASK = 7
ENGINES = ("native", "verilator")
TIME_STEP = 1 << 14
"""Cycles between two looks at the host's clock."""


class RtlSimulator:
    """A core in simulation: its netlist, compiled, with a memory behind it.

    Two engines simulate the same netlist, equal in every cycle: "native" the C++ that
    `vitral.sim.rtl.netlist` makes of it, "verilator" the emitted Verilog through Verilator, which
    is slower to build and to run, but can show waveforms and take any Verilog.

    The first one of a configuration takes the time of a build (tens of seconds); libraries are
    kept in the cache. Instances are independent and may run in parallel threads, one thread per
    instance at a time. On-chip memories keep their contents from run to run, as on hardware.

    Parameters
    ----------
    config : CoreConfig
        The core.
    memory_model : MemoryModel
        Timing and errors of the memory; the default is the one of all published numbers.
    trace : path or None
        File for a waveform of everything; FST, or VCD where FST's libraries are missing.
    verilog : str or None
        Verilog to simulate instead of the emitted one, with the same ports.
    engine : str
        "native" or "verilator"; when empty, what ``VITRAL_TSIM`` says, else native. It is always
        Verilator with `trace` or `verilog`, and for the few configurations that native lacks an
        operator for.

    Raises
    ------
    DeviceError
        When the library cannot be built, or it is not a core of this configuration.
    """

    def __init__(
        self,
        config: CoreConfig,
        *,
        memory_model: MemoryModel | None = None,
        trace: "str | Path | None" = None,
        verilog: str | None = None,
        engine: str = "",
    ) -> None:
        self.config = config
        self.memory_model = memory_model or MemoryModel()
        kind = trace_kind(find_toolchain()) if trace is not None else ""
        model = None
        if trace is None and verilog is None and _engine(engine) == "native":
            model = emit_cpp(config)
        if model is not None:
            library = build_native(model)
        else:
            text = emit_verilog(config) if verilog is None else verilog
            library = build_library(text, trace=kind)
        self._harness = Harness(library)
        if trace is not None:
            self._open_trace(Path(trace), kind)
        self._check_identity()

    def __enter__(self) -> "RtlSimulator":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the model and finish its waveform; the instance is of no use afterwards."""
        self._harness.close()

    @property
    def cycle(self) -> int:
        """Clock cycles simulated so far, with those of resets and register accesses."""
        return self._harness.cycle

    @property
    def beats(self) -> tuple[int, int]:
        """Data beats read and written on the memory port so far, as the memory counted them."""
        return self._harness.beats

    def watch(self) -> None:
        """Keep a `signature` from now on, which costs speed."""
        self._harness.watch()

    @property
    def signature(self) -> int:
        """A hash of the memory port's outputs and the interrupt in every cycle since `watch`."""
        return self._harness.signature

    @property
    def arrays(self) -> dict[str, npt.NDArray[np.uint8]]:
        """The model's memories by hierarchical name, uint8 (depth, bytes), live windows."""
        return self._harness.arrays

    def reset(self) -> None:
        """Hardware reset: all registers and state; on-chip memories keep their contents."""
        self._harness.reset()

    def soft_reset(self) -> None:
        """Reset by command: the core drains the bus first; base registers stay.

        Raises
        ------
        DeviceError
            When that takes more than 65,536 cycles.
        """
        self.write_register("control", register("control")["soft_reset"].mask)
        end = self.cycle + RESET_CYCLES
        while register("status")["resetting"].extract(self.read_register("status")):
            if self.cycle > end:
                raise DeviceError(f"soft reset did not end in {RESET_CYCLES} cycles; use reset()")

    def read_register(self, name: str) -> int:
        """Value of a register of the map, 32 or 64 bits."""
        entry = register(name)
        words = [self._harness.read(entry.offset + 4 * word) for word in range(entry.words)]
        return sum(word << (WORD * place) for place, word in enumerate(words))

    def write_register(self, name: str, value: int) -> None:
        """Write a register of the map, low word first."""
        entry = register(name)
        for word in range(entry.words):
            self._harness.write(entry.offset + 4 * word, value >> (WORD * word) & WORD_MASK)

    def run(
        self,
        launch: Launch,
        dram: Dram,
        *,
        onchip: OnChip | None = None,
        max_cycles: int | None = None,
        max_seconds: float | None = None,
        marks: Collection[int] = (),
        timeline: bool = False,
    ) -> Outcome:
        """Run a program to its end, an error, a deadlock or the cycle limit.

        Parameters
        ----------
        launch : Launch
            Where the program is.
        dram : Dram
            The memory; the program writes it in place.
        onchip : OnChip or None
            Contents to put into the on-chip memories first; receives what they hold afterwards.
            None leaves them as they are.
        max_cycles : int or None
            Cycle limit; the memory model's where None.
        max_seconds : float or None
            Limit in seconds on the host; None for none.
        marks : collection of int
            Instructions whose end is wanted, with all that was counted until then: the cycle in
            which the stage has gone on from it. Looking changes no cycle count.
        timeline : bool
            Whether to record what each stage did in every cycle.

        Returns
        -------
        Outcome
            With `cycles` and `counters` as the core counted them.

        Raises
        ------
        DeviceError
            When the core breaks a rule of AXI, or reports its end with bursts still open.
        """
        harness = self._harness
        harness.attach(dram)
        harness.configure(self.memory_model, self.config.burst_beats)
        if onchip is not None:
            onchip.check(self.config)
            store_arrays(harness.arrays, onchip)
        recorder = Recorder(harness, self.config, launch, dram, marks, keep=timeline)
        deadline = None if max_seconds is None else time.monotonic() + max_seconds
        self._launch(launch)
        limit = self.memory_model.limit_cycles if max_cycles is None else max_cycles
        waits = self._wait(launch, dram, limit, deadline)
        outcome = self._outcome(launch, waits)
        recorder.finish(outcome.cycles or 0)
        outcome = replace(
            outcome,
            marks=recorder.marks,
            mark_counters=recorder.counters,
            timeline=recorder.timeline,
        )
        if waits:
            self.soft_reset()
        if onchip is not None:
            load_arrays(harness.arrays, onchip)
        return outcome

    def _launch(self, launch: Launch) -> None:
        self.write_register("insn_base", launch.insn_base)
        self.write_register("insn_count", launch.insn_count)
        for memory in Memory:
            self.write_register(f"{memory.name.lower()}_base", launch.base(memory))
        self.write_register("limit_low", launch.limit_low)
        self.write_register("limit_high", min(launch.limit_high, (1 << 64) - 1))
        self.write_register("irq_status", register("irq_status")["done"].mask)
        self.write_register("irq_enable", register("irq_enable")["done"].mask)
        control = register("control")
        profile = control["profile"].insert(int(launch.profile is Profile.VITRAL))
        self.write_register("control", control["start"].mask | profile)

    def _wait(
        self, launch: Launch, dram: Dram, limit: int, deadline: float | None
    ) -> tuple[Wait, ...]:
        """Clock until the end; where the stages wait when there is none."""
        harness, model = self._harness, self.memory_model
        quiet = QUIET_CYCLES + model.latency + model.write_latency
        stop = harness.cycle + limit
        before: tuple[Wait, ...] = ()
        while True:
            end = self._clock(stop, quiet, deadline)
            if end is End.PROTOCOL:
                raise DeviceError(f"memory port: {harness.error}")
            if end is End.DONE:
                return ()
            waits = self._waits(launch, dram)
            if end is End.LIMIT:
                return waits or (Wait(None, 0, WaitReason.MEMORY),)
            if waits == before and Outcome(Cause.NONE, 0, waits).deadlocked:
                return waits
            before = waits

    def _clock(self, stop: int, quiet: int, deadline: float | None) -> End:
        """`Harness.run` up to cycle `stop`, or until it is late; in steps where that matters."""
        harness = self._harness
        since = harness.cycle
        beats = harness.beats
        while deadline is not None:
            end = harness.run(max(0, min(TIME_STEP, stop - harness.cycle)), quiet)
            if end is not End.LIMIT or harness.cycle >= stop or time.monotonic() > deadline:
                return end
            if harness.beats != beats:
                beats, since = harness.beats, harness.cycle
            elif harness.cycle - since >= quiet:
                return End.QUIET
        return harness.run(max(0, stop - harness.cycle), quiet)

    def _waits(self, launch: Launch, dram: Dram) -> tuple[Wait, ...]:
        waits = []
        for stage in Stage:
            entry = register(f"{stage.name.lower()}_state")
            value = self.read_register(entry.name)
            reason = WaitReason(entry["wait"].extract(value))
            index = entry["index"].extract(value)
            if reason is WaitReason.BUSY and _is_finish(launch, dram, index):
                reason = WaitReason.DRAIN
            if reason is not WaitReason.IDLE:
                waits.append(Wait(stage, index, reason))
        return tuple(waits)

    def _outcome(self, launch: Launch, waits: tuple[Wait, ...]) -> Outcome:
        counters = {name: self.read_register(f"count_{name}") for name, _ in COUNTERS}
        if waits:
            return Outcome(Cause.NONE, 0, waits, counters["cycles"], counters)
        fields = register("status")
        status = self.read_register("status")
        cause = Cause(fields["cause"].extract(status))
        error = bool(fields["error"].extract(status))
        reads, writes = self._harness.bursts_open
        if not fields["done"].extract(status) or error != (cause is not Cause.NONE):
            raise DeviceError(f"status {status:#x} after the interrupt makes no sense")
        if reads or writes:
            raise DeviceError(f"core reported done with {reads} reads and {writes} writes open")
        index = self.read_register("error_index") if error else 0
        count = 0 if error else launch.insn_count
        return Outcome(cause, index, (), counters["cycles"], counters, count)

    def _open_trace(self, path: Path, kind: str) -> None:
        if path.suffix != f".{kind}":
            hint = "; install liblz4-dev and zlib1g-dev for FST" if kind == "vcd" else ""
            raise DeviceError(f"{path}: waveforms here are {kind.upper()}, name it *.{kind}{hint}")
        if not self._harness.open_trace(path):
            raise DeviceError(f"{path}: cannot write a waveform there")

    def _check_identity(self) -> None:
        harness, layout = self._harness, self.config.layout
        harness.reset()
        if harness.beat_bytes != layout.beat_bytes:
            raise DeviceError(
                f"the core's memory port has {8 * harness.beat_bytes} data bits,"
                f" the configuration {self.config.data_bits}"
            )
        found, digest = self.read_register("id"), self.read_register("digest")
        if found != MAGIC or digest != self.config.digest32:
            raise DeviceError(
                f"core says id {found:#x}, digest {digest:#x};"
                f" needs {MAGIC:#x} and {self.config.digest32:#x}"
            )


def _engine(wanted: str) -> str:
    name = wanted or os.environ.get("VITRAL_TSIM", ENGINES[0])
    if name not in ENGINES:
        raise DeviceError(f"no simulation engine {name!r}; there are: {', '.join(ENGINES)}")
    return name


def _is_finish(launch: Launch, dram: Dram, index: int) -> bool:
    address = launch.insn_base + 16 * index
    return dram.holds(address, 1) and dram.read(address, 1)[0] & OPCODE_MASK == Opcode.FINISH
