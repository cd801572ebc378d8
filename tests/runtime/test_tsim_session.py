"""Sessions on the RTL: same bytes, cycles per layer, and usable after every kind of failure."""

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hand_made import SOURCE, double_instructions, double_module

from vitral.bench.layers import RESNET18, ConvShape
from vitral.bench.workload import make_layer, make_workload
from vitral.cli import main
from vitral.compiler.codegen.arena import Arena
from vitral.compiler.schedule.segment import schedule_segment
from vitral.config import CoreConfig
from vitral.errors import DeviceError, ExecutionFault
from vitral.isa import Cause, Finish
from vitral.program import MemoryModel
from vitral.runtime.devices.simulated import BASE
from vitral.runtime.devices.tsim import TsimDevice
from vitral.runtime.module import Module, TensorInfo
from vitral.runtime.session import Session

X = np.arange(96, dtype=np.int8).reshape(1, 16, 2, 3)
DOUBLED = (2 * X.astype(int)).astype(np.int8)


@pytest.fixture
def device() -> Iterator[TsimDevice]:
    device = TsimDevice(CoreConfig())
    yield device
    device.close()


def runs(session: Session) -> bool:
    return bool(np.array_equal(session.run(None, {"x": X})[0], DOUBLED))


def test_every_run_gives_the_same_bytes_and_cycles(device: TsimDevice) -> None:
    with Session(double_module(), device) as session:
        cycles = []
        for _ in range(3):
            assert runs(session)
            (layer,) = session.profile()
            cycles.append(layer.cycles)
            assert set(session.outcomes()[0].counters) >= {"gemm", "read_beats", "write_beats"}
            assert any(name.startswith("compute_wait") for name in layer.stalls)
    assert len(set(cycles)) == 1
    assert cycles[0] is not None
    assert cycles[0] > 64


@pytest.mark.parametrize(
    ("model", "cause"),
    [
        (MemoryModel(fail_reads=(1,)), Cause.BUS_READ),
        (MemoryModel(fail_writes=(0,)), Cause.BUS_WRITE),
        (MemoryModel(error_ranges=((BASE + SOURCE, BASE + SOURCE + 1),)), Cause.BUS_READ),
    ],
)
def test_usable_after_a_bus_error(model: MemoryModel, cause: Cause) -> None:
    device = TsimDevice(CoreConfig(), memory_model=model)
    with Session(double_module(), device) as session:
        with pytest.raises(ExecutionFault, match=r"double: bus error on a .* instruction \d+$"):
            session.run(None, {"x": X})
        device.memory_model = MemoryModel()
        assert runs(session)
        device.memory_model = model
        device.reset()
        with pytest.raises(ExecutionFault) as caught:
            session.run(None, {"x": X})
        assert caught.value.cause == cause


def test_usable_after_too_many_cycles(device: TsimDevice) -> None:
    with Session(double_module(), device) as session:
        device.max_cycles = 100
        with pytest.raises(DeviceError, match="double: time-out: "):
            session.run(None, {"x": X})
        device.max_cycles = None
        assert runs(session)


def test_usable_after_a_time_out_on_the_host(device: TsimDevice) -> None:
    workload = make_workload("c7", RESNET18["c7"], CoreConfig())
    with Session(workload.module, device, timeout=1e-4) as session:
        with pytest.raises(DeviceError, match="c7: time-out: "):
            session.run(None, {"x": workload.source})
        session.timeout = None
        (y,) = session.run(None, {"x": workload.source})
        np.testing.assert_array_equal(y, workload.expected)


def chain(count: int) -> Module:
    """Equal convolutions, each on the result of the one before, in one program."""
    rng = np.random.default_rng(2)
    shape = ConvShape(64, 14, 64, 3, 1, 1)
    layers = [make_layer(f"l{n}", shape, rng) for n in range(count)]
    layers = [replace(one, source=f"x{n}", result=f"x{n + 1}") for n, one in enumerate(layers)]
    arena, ends = Arena(), ("x0", f"x{count}")
    segment = schedule_segment(
        layers, CoreConfig(), name="chain", inputs=ends[:1], outputs=ends[1:], arena=arena
    )
    infos = [TensorInfo(name=name, shape=layers[0].in_shape, dtype="int8") for name in ends]
    return Module(
        config=CoreConfig(),
        inputs=(infos[0],),
        outputs=(infos[1],),
        steps=(segment,),
        arrays={},
        arena_bytes=arena.size,
        image=arena.image,
        macs=sum(layer.macs for layer in layers),
    )


def test_layers_of_a_program_share_its_cycles(device: TsimDevice) -> None:
    module = chain(3)
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, module.inputs[0].shape).astype(np.int8)
    with Session(module, device) as session:
        session.run(None, {"x0": x})
        layers, (outcome,) = session.profile(), session.outcomes()
        cycles = [layer.cycles or 0 for layer in layers]
        assert sum(cycles) == outcome.cycles
        slack = 80  # a mark is known to that many cycles
        for layer, taken in zip(layers, cycles, strict=True):
            assert layer.macs // 256 - slack <= taken <= 1.5 * layer.macs / 256
        again = device.run(module.segments[0].launch(BASE, module.arena_bytes))
        assert again.cycles == outcome.cycles, "looking for marks costs the core nothing"
        with pytest.raises(DeviceError, match="marks number instructions 0"):
            device.run(module.segments[0].launch(BASE, module.arena_bytes), marks=[1 << 20])


def without_end(finish: Finish) -> Module:
    return double_module(instructions=(*double_instructions(CoreConfig(), 6)[:-1], finish))


def test_a_deadlock_is_named_as_by_the_reference(device: TsimDevice) -> None:
    module = without_end(Finish(pop_prev=True, pop_next=True))
    with Session(module, device) as session:
        with pytest.raises(DeviceError, match="deadlock: compute waits for load at instruction 4"):
            session.run(None, {"x": X})


def test_bench_on_the_rtl(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "c7", "--latency", "16", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    (layer,) = result["layers"]
    assert result["match"] is True
    assert layer["cycles"] == result["total_cycles"] >= layer["roofline_cycles"]
    assert 0.5 < layer["utilisation"] <= 1
    assert layer["utilisation"] == pytest.approx(layer["macs"] / 256 / layer["cycles"])
    assert result["memory"]["latency"] == 16
    assert result["cycles_per_s"] > 0
