"""Records of what a board said: kept by the device, replayed against today's driver."""

import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from board_programs import CONFIG, broken, check_doubles, doubled, image
from hand_made import double_module

from vitral.cli import main
from vitral.config import CoreConfig
from vitral.errors import DeviceError, ExecutionFault
from vitral.registers import register
from vitral.runtime.boards.device import BoardDevice
from vitral.runtime.device import DEVICES
from vitral.runtime.session import Session
from vitral.sim.board import FunctionalLogic, ReplayBoard, SimulatedBoard, read_record
from vitral.sim.board.rtl import RtlLogic

pytestmark = [pytest.mark.board, pytest.mark.xdist_group("tsim")]
DATA = Path(__file__).parent.parent / "data" / "boards"
KEPT = DATA / "double.jsonl"
"""The doubling module's three runs on the simulated board with the RTL, as a user would keep it."""
FOLDERS = sorted(path.parent for path in DATA.glob("*/record.jsonl"))
"""What `vitral run --option record=` kept: record.jsonl, model.vitral, in.npz, out.npz."""


def record(path: Path, *, interrupt: bool = False, seed: int = 1) -> Path:
    board = SimulatedBoard(FunctionalLogic(CONFIG), interrupt=interrupt, seed=seed)
    with Session(double_module(), BoardDevice(CONFIG, board, record=path)) as session:
        check_doubles(session)
    return path


def replay(path: Path) -> bool:
    """Whether everything was asked again."""
    board = ReplayBoard(path)
    with Session(double_module(), BoardDevice(board.config, board)) as session:
        check_doubles(session)
    return board.script.finished


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_record_replays(tmp_path: Path, interrupt: bool) -> None:
    assert replay(record(tmp_path / "r.jsonl", interrupt=interrupt))


def test_a_slow_board_replays(tmp_path: Path) -> None:
    """Polls of a core that is at work, however often the driver of then looked."""
    path = tmp_path / "r.jsonl"
    board = SimulatedBoard(RtlLogic(CONFIG), seed=2)
    with Session(double_module(), BoardDevice(CONFIG, board, record=path)) as session:
        check_doubles(session)
    head, entries = read_record(path)
    status = register("status").offset
    busy = ["r", status, register("status")["busy"].mask, 500]
    waits = [["r", register(f"{s}_state").offset, 0, 9] for s in ("load", "compute", "store")]
    done = register("status")["done"].mask
    slow: list[Any] = []
    for before, entry in pairwise([[], *entries]):
        if before[:2] == ["w", register("control").offset] and entry[:3] == ["r", status, done]:
            slow += [busy, *waits, busy, *waits]
        slow.append(entry)
    assert len(slow) == len(entries) + 3 * 8, "each of three runs must be slower"
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *slow]))
    assert replay(path)


def test_the_kept_record_replays() -> None:
    """Today's driver still asks a board what it asked when this record was made."""
    assert replay(KEPT)


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_what_the_command_kept_replays(folder: Path) -> None:
    """The same accesses, the bytes that the board gave, and those that fsim computes."""
    board = ReplayBoard(folder / "record.jsonl")
    with np.load(folder / "in.npz") as archive:
        feeds = {name: archive[name] for name in archive.files}
    with Session(folder / "model.vitral", BoardDevice(board.config, board)) as session:
        names = [info.name for info in session.get_outputs()]
        found = dict(zip(names, session.run(None, feeds), strict=True))
    assert board.script.finished
    with np.load(folder / "out.npz") as archive:
        assert set(archive.files) == set(found)
        for name in archive.files:
            np.testing.assert_array_equal(found[name], archive[name])


def test_there_is_a_kept_folder() -> None:
    assert FOLDERS


Change = Callable[[list[Any]], None]


def _first(entries: list[Any], *begin: Any) -> int:
    return next(n for n, entry in enumerate(entries) if entry[: len(begin)] == list(begin))


def _drop_write(entries: list[Any]) -> None:
    del entries[_first(entries, "w", register("insn_base").offset)]


def _other_write(entries: list[Any]) -> None:
    entries[_first(entries, "w", register("insn_base").offset)][2] += 64


def _other_input(entries: list[Any]) -> None:
    entries[_first(entries, "flush")][3] = "0" * 64


def _other_result(entries: list[Any]) -> None:
    places = [n for n, entry in enumerate(entries) if entry[0] == "invalidate"]
    entries[places[-1]][3] = "0" * 64


def _shorter(entries: list[Any]) -> None:
    del entries[-40:]


CHANGES: list[tuple[Change, str]] = [
    (_drop_write, "the board was asked w 0x44 0x0, the driver asks w 0x40"),
    (_other_write, "the board was asked w 0x40 .*, the driver asks w 0x40"),
    (_other_input, "flush of .*: other bytes than on the board"),
    (_other_result, "invalidate of .*: other bytes than on the board"),
    (_shorter, "the board was asked the end, the driver asks"),
]


@pytest.mark.parametrize(("change", "text"), CHANGES, ids=[row[0].__name__ for row in CHANGES])
def test_whatever_differs_is_found(tmp_path: Path, change: Change, text: str) -> None:
    path = record(tmp_path / "r.jsonl")
    head, entries = read_record(path)
    change(entries)
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *entries]))
    with pytest.raises(DeviceError, match=rf"r.jsonl:\d+: {text}"):
        replay(path)


def test_other_inputs_than_the_record(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl")
    with Session(double_module(), BoardDevice(CONFIG, ReplayBoard(path))) as session:
        with pytest.raises(DeviceError, match=r"flush of .* other bytes than on the board"):
            session.run(None, {"x": image(99)})


def test_a_fault_replays(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    board = SimulatedBoard(FunctionalLogic(CONFIG))
    with Session(broken(1), BoardDevice(CONFIG, board, record=path)) as session:
        with pytest.raises(ExecutionFault):
            session.run(None, {"x": image()})
    with Session(broken(1), BoardDevice(CONFIG, ReplayBoard(path))) as session:
        with pytest.raises(ExecutionFault, match="at instruction 1"):
            session.run(None, {"x": image()})


def test_reads_in_a_row_are_one_line(tmp_path: Path) -> None:
    _, entries = read_record(record(tmp_path / "r.jsonl"))
    reads = [entry for entry in entries if entry[0] == "r"]
    assert all(len(entry) == 4 and entry[3] >= 1 for entry in reads)
    pairs = pairwise(entries)
    assert not [a for a, b in pairs if a[0] == "r" and a[:3] == b[:3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no record of a board"), ("{}\n", "no record"), ('{"vitral": 9}\n', "version 9, needs")],
)
def test_files_that_are_no_records(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(DeviceError, match=message):
        ReplayBoard(path)
    with pytest.raises(DeviceError, match="no record"):
        ReplayBoard(tmp_path / "none")


def test_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    board = SimulatedBoard(FunctionalLogic(CONFIG))
    with pytest.raises(DeviceError, match="cannot write"):
        BoardDevice(CONFIG, board, record=tmp_path / "no" / "folder")


class BoardHere(BoardDevice):
    """What `--device pynq` opens in these tests."""

    def __init__(self, config: CoreConfig, **options: Any) -> None:
        super().__init__(config, SimulatedBoard(FunctionalLogic(config), seed=3), **options)


@pytest.fixture
def board_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEVICES, "pynq", ("device_of_these_tests", "BoardHere"))
    here = ModuleType("device_of_these_tests")
    here.BoardHere = BoardHere  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, here.__name__, here)


def run_command(folder: Path, *options: str) -> int:
    double_module().save(folder / "m.vitral")
    np.savez(folder / "in.npz", x=image(7))
    files = ["--input", str(folder / "in.npz"), "--output", str(folder / "out.npz")]
    given = [word for option in options for word in ("--option", option)]
    return main(["run", str(folder / "m.vitral"), "--device", "pynq", *files, *given])


@pytest.mark.usefixtures("board_here")
def test_the_command_keeps_a_record(tmp_path: Path) -> None:
    record = tmp_path / "r.jsonl"
    assert run_command(tmp_path, f"record={record}", "watchdog=0x1000") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], doubled(image(7)))
    assert ["w", register("watchdog").offset, 0x1000] in read_record(record)[1]
    board = ReplayBoard(record)
    with Session(double_module(), BoardDevice(CONFIG, board, watchdog=0x1000)) as session:
        session.run(None, {"x": image(7)})
    assert board.script.finished


@pytest.mark.usefixtures("board_here")
@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("speed=3", "device pynq has no option 'speed'; known: watchdog, axi_attributes, record"),
        ("watchdog=soon", "watchdog must be a number, got 'soon'"),
        ("download=1", "download must be true or false, got '1'"),
        ("record", "must be like bitstream=core.bit, got 'record'"),
        ("memory_model=x", "memory_model is given by --latency, --outstanding and --seed"),
        ("record=none/r.jsonl", "cannot write"),
    ],
)
def test_options_that_do_not_fit(
    option: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(tmp_path, option) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
