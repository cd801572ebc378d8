"""The register protocol: its order, its time-outs, and one line for whatever goes wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from board_programs import CONFIG, broken, check_doubles, image
from hand_made import double_instructions, double_module

from vitral.config import ISA_VERSION, CoreConfig
from vitral.errors import DeviceError, ExecutionFault
from vitral.isa import Cause
from vitral.program import Launch, Outcome, WaitReason
from vitral.registers import MAGIC, register
from vitral.runtime.boards.device import BoardDevice
from vitral.runtime.boards.driver import CoreDriver
from vitral.runtime.session import Session
from vitral.sim.board import FunctionalLogic, SimulatedBoard

pytestmark = pytest.mark.board
LAUNCH = Launch(insn_base=0, insn_count=1)
BUSY = register("status")["busy"].mask
DONE = register("status")["done"].mask


class Words:
    """A window of words; `status` gives the state, and every write is kept."""

    def __init__(self, status: Callable[[], int] = lambda: DONE) -> None:
        self.values = {
            "id": MAGIC,
            "version": ISA_VERSION,
            "digest": CONFIG.digest32,
        }
        self.status = status
        self.writes: list[tuple[int, int]] = []

    def read(self, offset: int) -> int:
        if offset == register("status").offset:
            return self.status()
        named = {register(name).offset: value for name, value in self.values.items()}
        return named.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        self.writes.append((offset, value))


def driver(words: Words, **options: Any) -> CoreDriver:
    return CoreDriver("board", words, CONFIG, **options)


def never(index: int) -> bool:
    return False


def run(words: Words, seconds: float = 1.0) -> Outcome:
    return driver(words).run(LAUNCH, seconds, never)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("id", 0, "reads 0x00000000, needs 0x4c525456: no Vitral core at this address"),
        ("id", 0xFFFFFFFF, "reads 0xffffffff"),
        ("version", ISA_VERSION + 1, f"has version {ISA_VERSION + 1}, needs {ISA_VERSION}"),
        ("digest", 1, f"digest is 00000001, needs {CONFIG.digest32:08x}; load the bitstream"),
    ],
)
def test_another_core_is_refused(name: str, value: int, text: str) -> None:
    words = Words()
    words.values[name] = value
    with pytest.raises(DeviceError, match=text):
        driver(words).identify()
    assert words.writes == [], "an unknown core must not be touched"


def test_order_of_a_start() -> None:
    """Done is cleared first, then arguments, start last."""
    words = Words()
    launch = Launch(insn_base=0x1_2345_6780 & -64, insn_count=7, limit_low=64, limit_high=1 << 33)
    driver(words, axi_attributes=0x1F).run(launch, 1.0, never)
    names = {register(n).offset: n for n in ("irq_status", "control", "insn_count")}
    order = [names[offset] for offset, _ in words.writes if offset in names]
    assert order == ["irq_status", "insn_count", "control", "irq_status"]
    sent = dict(words.writes)
    base = register("insn_base").offset
    assert (sent[base], sent[base + 4]) == (0x2345_6780 & -64, 1)
    assert sent[register("limit_high").offset + 4] == 2
    assert sent[register("axi_attributes").offset] == 0x1F
    start = [offset for offset, _ in words.writes].index(register("control").offset)
    after = {offset for offset, _ in words.writes[start + 1 :]}
    assert after == {register("irq_status").offset}


def test_a_refused_start() -> None:
    with pytest.raises(DeviceError, match="refused the start, it is busy; reset it"):
        run(Words(lambda: BUSY | register("status")["refused"].mask))


def test_a_program_that_does_not_end_is_stopped() -> None:
    words = Words()

    def status() -> int:
        resets = [v for o, v in words.writes if o == register("control").offset and v & 2]
        return 0 if resets else BUSY

    words.status = status
    outcome = run(words, seconds=0.15)
    assert outcome.message == "time-out: load is busy at instruction 0; " + "; ".join(
        f"{stage} is busy at instruction 0" for stage in ("compute", "store")
    )


def test_a_soft_reset_that_does_not_end() -> None:
    words = Words(lambda: register("status")["resetting"].mask)
    with pytest.raises(DeviceError, match=r"soft reset did not end within 0\.05 seconds"):
        driver(words).soft_reset(0.05)


def test_a_soft_reset_on_a_hung_bus() -> None:
    status = register("status")
    word = DONE | status["error"].mask | status["cause"].insert(int(Cause.BUS_HUNG))
    with pytest.raises(DeviceError, match=f"{Cause.BUS_HUNG.text} in a soft reset"):
        driver(Words(lambda: word)).soft_reset()


@pytest.mark.parametrize("word", [DONE | 1 << 2, DONE | 99 << 8 | 1 << 2, DONE | 1 << 8])
def test_a_status_without_sense(word: int) -> None:
    with pytest.raises(DeviceError, match="makes no sense; reset the core"):
        run(Words(lambda: word))


def test_an_error_names_cause_and_instruction() -> None:
    with Session(broken(1), BoardDevice(CONFIG, SimulatedBoard(FunctionalLogic(CONFIG)))) as s:
        for _ in range(2):
            with pytest.raises(ExecutionFault, match="instruction 1") as caught:
                s.run(None, {"x": image()})
            assert caught.value.cause == Cause.FINISH_NOT_LAST


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_deadlock_is_found_before_the_time_limit(interrupt: bool) -> None:
    program = list(double_instructions(CONFIG, 6))
    first = next(n for n, insn in enumerate(program) if insn.push_next)  # pyright: ignore
    program[first] = replace(program[first], push_next=0)  # pyright: ignore
    module = double_module(instructions=tuple(program))
    board = SimulatedBoard(FunctionalLogic(CONFIG), interrupt=interrupt)
    with Session(module, BoardDevice(CONFIG, board), timeout=60) as session:
        with pytest.raises(DeviceError, match=r"double: deadlock: .* waits for "):
            session.run(None, {"x": image()})


def test_the_fetch_is_named_where_no_stage_waits() -> None:
    words = Words(lambda: BUSY if len(words.writes) < 30 else 0)
    for stage in ("load", "compute", "store"):
        words.values[f"{stage}_state"] = register("load_state")["wait"].insert(1)
    words.status = lambda: 0 if words.writes[-1] == (register("control").offset, 2) else BUSY
    outcome = run(words, seconds=0.12)
    assert [(w.stage, w.reason) for w in outcome.waits] == [(None, WaitReason.MEMORY)]


def test_no_program_may_reach_beyond_the_region() -> None:
    device = BoardDevice(CONFIG, SimulatedBoard(FunctionalLogic(CONFIG)))
    base = device.allocate(4096)
    for low, high in ((0, base + 4096), (base, base + 4097), (base, 1 << 64)):
        launch = Launch(insn_base=base, insn_count=1, limit_low=low, limit_high=high)
        with pytest.raises(DeviceError, match="reach beyond the region"):
            device.run(launch)
    device.close()


def test_memory_beyond_the_cores_address_bits() -> None:
    class High(SimulatedBoard):
        def allocate(self, nbytes: int):
            memory = self.reserve(nbytes)
            memory.address = 0x8_7000_0000
            return memory

    board = High(FunctionalLogic(CONFIG))
    device = BoardDevice(CONFIG, board)
    with pytest.raises(DeviceError, match=r"0x870000000\.\.0x870001000 lies beyond the core's 32"):
        device.allocate(10)
    assert board.regions == [], "refused memory must be given back"
    BoardDevice(CoreConfig(addr_bits=40), High(FunctionalLogic(CONFIG))).allocate(10)


def test_too_little_memory_says_what_is_needed_and_free() -> None:
    device = BoardDevice(CONFIG, SimulatedBoard(FunctionalLogic(CONFIG)))
    with pytest.raises(DeviceError, match=r"needs 134217728 bytes .*, 16777216 free"):
        device.allocate(128 << 20)


def test_reads_and_writes_stay_inside() -> None:
    device = BoardDevice(CONFIG, SimulatedBoard(FunctionalLogic(CONFIG)))
    with pytest.raises(DeviceError, match="no memory"):
        device.read(0, 1)
    device.allocate(100)
    with pytest.raises(DeviceError, match="2 bytes at offset 4095 of a region of 4096"):
        device.read(4095, 2)
    with pytest.raises(DeviceError, match="1 bytes at offset -1"):
        device.write(-1, np.zeros(1, np.uint8))
    with pytest.raises(DeviceError, match="allocated already"):
        device.allocate(1)
    device.close()
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.allocate(1)


def test_sessions_one_after_another_on_one_board() -> None:
    board = SimulatedBoard(FunctionalLogic(CONFIG), seed=1)
    for _ in range(3):
        with Session(double_module(), BoardDevice(CONFIG, board)) as session:
            check_doubles(session)
        assert board.regions == []
