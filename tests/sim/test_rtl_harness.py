"""The harness around the verilated model: timing, protocol checks, errors, on-chip access.

A small bus master of the tests stands in for the core, so that what is checked here is known
independently of it.
"""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from standin import DEADLOCK, DEFECTS, standin_verilog

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Cause, Memory, Stage
from vitral.program import Dram, Launch, MemoryModel, OnChip, Wait, WaitReason
from vitral.sim.rtl import RtlSimulator
from vitral.sim.rtl.build import build_library, trace_kind
from vitral.sim.rtl.toolchain import find_toolchain

CONFIG = CoreConfig()
BURST = 8
"""Records of 16 bytes in a burst of 16 beats."""
SOURCE, TARGET = 0x2000, 0x8000


@pytest.fixture(scope="module")
def verilog() -> str:
    return standin_verilog(CONFIG)


@pytest.fixture
def simulator(verilog: str) -> Iterator[RtlSimulator]:
    with RtlSimulator(CONFIG, verilog=verilog) as instance:
        yield instance


def memory(seed: int = 1) -> Dram:
    dram = Dram.filled(0x1000, 0x10000, 0xA5)
    dram.write(SOURCE, np.random.default_rng(seed).bytes(0x4000))
    return dram


def copy(count: int, source: int = SOURCE, target: int = TARGET) -> Launch:
    return Launch(insn_base=source, insn_count=count, bases={Memory.OUT: target})


@pytest.mark.parametrize("stall_seed", [None, 1, 2])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 512])
def test_copies_and_touches_nothing_else(verilog: str, count: int, stall_seed: int | None) -> None:
    dram = memory()
    wanted = dram.copy()
    wanted.write(TARGET, wanted.read(SOURCE, 16 * count))
    model = MemoryModel(stall_seed=stall_seed)
    with RtlSimulator(CONFIG, verilog=verilog, memory_model=model) as simulator:
        simulator.run(copy(count), dram).raise_for_status()
    assert np.array_equal(dram.data, wanted.data)


@pytest.mark.parametrize(("latency", "write_latency"), [(64, 64), (1, 1), (10, 3)])
def test_cycles_are_those_of_the_model(verilog: str, latency: int, write_latency: int) -> None:
    # One burst of n beats: the AR handshake in the first cycle; the first R beat `latency` cycles
    # later; then AW, n W beats and, `write_latency` after the last, B.
    model = MemoryModel(latency=latency, write_latency=write_latency)
    with RtlSimulator(CONFIG, verilog=verilog, memory_model=model) as simulator:
        for records in (1, 3, BURST):
            beats = 2 * records
            outcome = simulator.run(copy(records), memory())
            assert outcome.cycles == 1 + latency + (beats - 1) + 1 + 1 + beats + write_latency


def test_stalls_are_seeded(verilog: str) -> None:
    def cycles(seed: int) -> int | None:
        model = MemoryModel(stall_seed=seed, stall_probability=0.9)
        with RtlSimulator(CONFIG, verilog=verilog, memory_model=model) as simulator:
            return simulator.run(copy(64), memory()).cycles

    assert cycles(3) == cycles(3)
    assert len({cycles(seed) for seed in range(4)}) == 4


def test_counts_beats(simulator: RtlSimulator) -> None:
    simulator.run(copy(100), memory())
    assert simulator.beats == (200, 200)


@pytest.mark.parametrize(("number", "defect"), list(enumerate(DEFECTS, 1)))
def test_broken_protocol_is_named(verilog: str, number: int, defect: str) -> None:
    model = MemoryModel(stall_seed=5)
    with RtlSimulator(CONFIG, verilog=verilog, memory_model=model) as simulator:
        simulator.write_register("watchdog", number)
        launch = copy(64, source=SOURCE + 0xFC0) if defect == "page" else copy(64)
        with pytest.raises(DeviceError, match=DEFECTS[defect]):
            simulator.run(launch, memory())
        simulator.reset()
        simulator.write_register("watchdog", 0)
        simulator.run(copy(64), memory()).raise_for_status()


def test_errors_reach_the_core(verilog: str) -> None:
    cases = (
        MemoryModel(fail_reads=(3,)),
        MemoryModel(fail_writes=(0,)),
        MemoryModel(error_ranges=((SOURCE + 800, SOURCE + 801),)),
        MemoryModel(error_ranges=((TARGET + 64, TARGET + 72),)),
    )
    for model in cases:
        with RtlSimulator(CONFIG, verilog=verilog, memory_model=model) as simulator:
            outcome = simulator.run(copy(64), memory())
            assert outcome.cause is Cause.BUS_READ, model


def test_failed_writes_change_nothing(verilog: str) -> None:
    dram = memory()
    wanted = dram.copy()
    wanted.write(TARGET + 128, wanted.read(SOURCE + 128, 128))
    model = MemoryModel(fail_writes=(0,))
    with RtlSimulator(CONFIG, verilog=verilog, memory_model=model) as simulator:
        simulator.run(copy(16), dram)
    assert np.array_equal(dram.data, wanted.data)


def test_outside_the_memory_is_an_error(simulator: RtlSimulator) -> None:
    assert simulator.run(copy(8, source=0x11000 - 64), memory()).cause is Cause.BUS_READ
    assert simulator.run(copy(8, target=0x80000), memory()).cause is Cause.BUS_READ
    simulator.run(copy(8), memory()).raise_for_status()


def test_deadlock_is_found_and_left_behind(simulator: RtlSimulator) -> None:
    simulator.write_register("watchdog", DEADLOCK)
    outcome = simulator.run(copy(64), memory())
    assert outcome.waits == (
        Wait(Stage.LOAD, 5, WaitReason.POP_NEXT),
        Wait(Stage.COMPUTE, 17, WaitReason.POP_PREV),
    )
    assert outcome.message.startswith("deadlock: load waits for compute at instruction 5; compute")
    with pytest.raises(DeviceError, match="compute waits for load at instruction 17"):
        outcome.raise_for_status()
    simulator.write_register("watchdog", 0)
    simulator.run(copy(64), memory()).raise_for_status()


def test_cycle_limit_ends_a_run(simulator: RtlSimulator) -> None:
    outcome = simulator.run(copy(512), memory(), max_cycles=1000)
    assert not outcome.ok
    assert outcome.waits


def test_onchip_memories_come_and_go(simulator: RtlSimulator) -> None:
    rng = np.random.default_rng(7)
    first = OnChip.random(CONFIG, rng)
    wanted = first.copy()
    simulator.run(copy(1), memory(), onchip=first)
    assert not first.differences(wanted)
    arrays = simulator.arrays
    assert np.array_equal(arrays["core.vitral_core.uop.lane1"].view("<u4")[5, 0], wanted.uop[11])
    assert np.array_equal(
        arrays["core.vitral_core.inp.memory"][9].view(np.int8), wanted.inp[9].ravel()
    )
    bank = CONFIG.layout.acc_depth // CONFIG.acc_banks
    assert np.array_equal(
        arrays["core.vitral_core.acc.bank_2"][3].view("<i4"), wanted.acc[2 * bank + 3].ravel()
    )


def test_onchip_of_another_configuration_is_refused(simulator: RtlSimulator) -> None:
    with pytest.raises(DeviceError, match="on-chip inp must be int8"):
        simulator.run(copy(1), memory(), onchip=OnChip.zeros(CoreConfig(inp_buffer=1 << 14)))


def test_another_core_is_refused(verilog: str) -> None:
    with pytest.raises(DeviceError, match="digest"):
        RtlSimulator(CoreConfig(inp_buffer=1 << 14), verilog=verilog)
    with pytest.raises(DeviceError, match="64 data bits, the configuration 128"):
        RtlSimulator(CoreConfig(data_bits=128), verilog=verilog)


def test_closed_simulator_is_refused(verilog: str) -> None:
    simulator = RtlSimulator(CONFIG, verilog=verilog)
    simulator.close()
    simulator.close()
    with pytest.raises(DeviceError, match="closed"):
        simulator.run(copy(1), memory())
    with pytest.raises(DeviceError, match="closed"):
        simulator.run(copy(1), memory(), onchip=OnChip.zeros(CONFIG))
    assert not simulator.arrays


def test_instances_run_in_parallel(verilog: str) -> None:
    drams = [memory(seed) for seed in range(3)]

    def work(dram: Dram) -> None:
        with RtlSimulator(CONFIG, verilog=verilog) as simulator:
            simulator.run(copy(512), dram).raise_for_status()

    threads = [threading.Thread(target=work, args=(dram,)) for dram in drams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for dram in drams:
        assert dram.read(TARGET, 0x2000) == dram.read(SOURCE, 0x2000)


def test_failed_build_names_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRAL_CACHE", str(tmp_path))
    with pytest.raises(DeviceError, match=r"failed, see .*\.log: .*rror") as failure:
        build_library("module core(input aclk; endmodule")
    assert "\n" not in str(failure.value)
    assert not list(tmp_path.rglob("*.so"))
    assert not list(tmp_path.rglob("build-*"))


def test_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from vitral.sim.rtl import toolchain

    monkeypatch.setattr(shutil, "which", lambda *_: None)
    toolchain.find_toolchain.cache_clear()
    toolchain.find_compiler.cache_clear()
    with pytest.raises(DeviceError, match=r"needs a C\+\+ compiler"):
        toolchain.find_toolchain()
    with pytest.raises(DeviceError, match=r"needs a C\+\+ compiler"):
        toolchain.find_compiler()


def test_writes_a_waveform(verilog: str, tmp_path: Path) -> None:
    kind = trace_kind(find_toolchain())
    path = tmp_path / f"copy.{kind}"
    with RtlSimulator(CONFIG, verilog=verilog, trace=path) as simulator:
        simulator.run(copy(8), memory()).raise_for_status()
    data = path.read_bytes()
    if kind == "fst":
        # The header block of a closed file: type 0, length 329, then first and last time.
        assert data[0] == 0
        assert int.from_bytes(data[1:9], "big") == 329
        assert int.from_bytes(data[17:25], "big") > 1000
    else:
        text = data.decode()
        assert "m_axi_arvalid" in text
        assert text.count("\n#") > 2 * 100


def test_waveform_of_another_format_is_refused(verilog: str, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"copy\.txt: waveforms here are"):
        RtlSimulator(CONFIG, verilog=verilog, trace=tmp_path / "copy.txt")
