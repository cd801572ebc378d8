"""Checks that run where pynq is: its own Overlay, allocate and MMIO against the simulated board.

Not a test module: `test_pynq.py` runs it in an environment with numpy < 2, Python 3.10, and reads
one JSON line per check. Usage: pynq_checks.py FOLDER, a folder with network.vitral and
network.npz (images, logits, cycles).
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportArgumentType=false
# (pynq needs numpy < 2, so it cannot be where pyright runs)

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pynq
from board_programs import CONFIG, check_doubles, write_manifest
from hand_made import double_module

import vitral
import vitral.overlay
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import Dram
from vitral.registers import register
from vitral.runtime.boards.bitfile import VLNV
from vitral.runtime.devices.pynq import PynqDevice, VitralCore
from vitral.runtime.session import Session
from vitral.sim.board import FunctionalLogic, Logic, SimulatedBoard
from vitral.sim.board.handoff import handoff
from vitral.sim.board.pynq_device import SimulatedPynq
from vitral.sim.board.rtl import RtlLogic

FOLDER = Path(sys.argv[1])
Failure = (AssertionError, DeviceError)


def attach(logic: "Logic | None" = None, **options: object) -> SimulatedPynq:
    board = SimulatedBoard(logic or FunctionalLogic(CONFIG), **options)
    return SimulatedPynq.attach(board)


def overlay(text: "str | None" = None, name: str = "vitral") -> Path:
    """A bitstream and its handoff file in a new folder; gives the .bit."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    (folder / "vitral.bit").write_bytes(b"bits")
    (folder / f"{name}.hwh").write_text(text or handoff())
    return folder / "vitral.bit"


def refused(call: Callable[[], object], *parts: str) -> None:
    """`call` raises a DeviceError of one line with these parts."""
    try:
        call()
    except DeviceError as error:
        text = str(error)
        assert "\n" not in text, text
        for part in parts:
            assert part in text, text
        return
    raise AssertionError(f"not refused: {parts}")


def check_the_environment() -> None:
    assert sys.version_info[:2] == (3, 10)
    assert np.__version__.startswith("1.")


def check_the_driver_is_bound_by_its_name() -> None:
    device = attach()
    path = overlay()
    opened = PynqDevice(CONFIG, bitstream=path)
    assert isinstance(opened.board.core, VitralCore)
    assert device.downloads == [str(path)]
    opened.close()
    again = PynqDevice(CONFIG, bitstream=path, download=False)
    assert device.downloads == [str(path)], "download=False leaves the FPGA alone"
    again.close()


def check_bytes_whatever_falls_out_of_the_cache() -> None:
    for seed in (None, 1, 2, 3):
        for line_bytes in (32, 64):
            device = attach(seed=seed, line_bytes=line_bytes)
            with Session(double_module(), "pynq", bitstream=overlay()) as session:
                check_doubles(session)
                assert len(device.board.regions) == 1
            assert device.board.regions == [], "memory must be given back"


def check_flush_is_needed() -> None:
    _needed("flush")


def check_invalidate_is_needed() -> None:
    _needed("invalidate")


def _needed(operation: str) -> None:
    right = getattr(SimulatedPynq, operation)
    attach()
    setattr(SimulatedPynq, operation, lambda *_: None)
    try:
        with Session(double_module(), "pynq", bitstream=overlay()) as session:
            check_doubles(session)
    except Failure:
        return
    finally:
        setattr(SimulatedPynq, operation, right)
    raise AssertionError(f"right bytes without {operation}")


def check_a_network_on_the_rtl() -> None:
    module = vitral.Module.load(FOLDER / "network.vitral")
    data = np.load(FOLDER / "network.npz")
    attach(RtlLogic(module.config), seed=6)
    with vitral.Session(module, "pynq", bitstream=overlay(), timeout=60) as session:
        logits = [session.run(None, {"image": image})[0] for image in data["images"]]
        cycles = [outcome.cycles for outcome in session.outcomes()]
    np.savez(FOLDER / "pynq.npz", logits=logits, cycles=cycles)
    assert (np.array(logits) == data["logits"]).all()
    assert cycles == data["cycles"].tolist()


def check_the_notebook() -> None:
    """Every cell of it, in a folder as prepared, with the core simulated."""
    folder = FOLDER / "first_run"
    module = vitral.Module.load(folder / "digits.vitral")
    device = attach(FunctionalLogic(module.config), seed=2)
    bits = overlay()
    for path in (bits, bits.with_suffix(".hwh")):
        (folder / path.name).write_bytes(path.read_bytes())
    cells = json.loads((folder / "first_run.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    here, out = os.getcwd(), io.StringIO()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out):
            for cell in cells:
                if cell["cell_type"] == "code":
                    exec("".join(cell["source"]), names)
    finally:
        os.chdir(here)
    assert "3 of 3 digits read, 3 of 3 results equal" in out.getvalue(), out.getvalue()
    assert device.downloads == [str(folder / "vitral.bit")], device.downloads
    assert device.board.regions == [], "the notebook must close its session"


def check_the_installed_overlay() -> None:
    """What `vitral bitstream install` keeps is used when no bitstream is named."""
    bits = overlay()
    write_manifest(bits, sha256=hashlib.sha256(b"bits").hexdigest())
    right = vitral.overlay._folder
    place = Path(tempfile.mkdtemp(dir=FOLDER))
    vitral.overlay._folder = lambda: place
    try:
        assert vitral.overlay.installed() is None
        kept = vitral.overlay.install(bits.parent)
        device = attach()
        with Session(double_module(), "pynq") as session:
            check_doubles(session, runs=1)
        assert device.downloads == [str(kept)] == [str(place / "vitral.bit")]
    finally:
        vitral.overlay._folder = right


def check_parts_of_a_buffer_know_their_place() -> None:
    device = attach()
    buffer = pynq.allocate(shape=(8192,), dtype=np.uint8)
    part = buffer[4096:]
    assert part.device_address == buffer.device_address + 4096
    buffer[:] = 7
    part.flush()
    region = device.board.regions[0]
    assert (region.dram[:4096] == 0x5A).all()
    assert (region.dram[4096:] == 7).all()


def check_register_accesses() -> None:
    """A window at 0x41200080 of 128 bytes: what lands where, and what is refused."""
    device = attach()
    ten = b"ten bytes!"
    seen = []
    device.read_registers = lambda address, length: seen.append(address) or bytes(length)
    mmio = pynq.MMIO(0x4120_0080, 128)
    mmio.read(0x20)
    assert seen == [0x4120_00A0]
    for bad in (lambda: mmio.read(128), lambda: mmio.read(6), lambda: mmio.write(0, ten)):
        try:
            bad()
        except (IndexError, MemoryError):
            continue
        raise AssertionError("not refused")
    attach()
    board = PynqDevice(CONFIG, bitstream=overlay()).board  # its window says so before pynq does
    refused(lambda: board.registers.read(0x1000), "needs a multiple of 4 below 0x1000")
    refused(lambda: board.registers.write(6, 1), "register offset 0x6")


def check_files_that_do_not_fit() -> None:
    device = attach()

    def opened(path: Path) -> Callable[[], object]:
        return lambda: PynqDevice(CONFIG, bitstream=path)

    alone = overlay()
    alone.with_suffix(".hwh").unlink()
    refused(opened(alone), "vitral.hwh: no such file; it must lie beside vitral.bit")
    refused(opened(overlay(name="other")), "vitral.hwh: no such file")
    refused(opened(overlay(handoff()[:900])), "not a complete hardware handoff file")
    refused(opened(overlay(handoff(vlnv="a:b:c:1.0"))), f"needs one core {VLNV}, has 0")
    refused(opened(overlay(handoff(nbytes=128))), "has 128 bytes of registers, needs 4096")
    refused(opened(FOLDER / "none.bit"), "none.bit: no such file")
    refused(lambda: PynqDevice(CONFIG), "needs bitstream=")
    other = overlay()
    write_manifest(other, core=CoreConfig(block=32, wgt_buffer=1 << 18).digest)
    refused(opened(other), "is built for core", "compile for this one")
    write_manifest(other)
    refused(opened(other), "copy it again")
    write_manifest(other, bitstream="")
    refused(opened(other), "make it with: vitral bitstream build --target pynq-z1")
    other.with_suffix(".json").write_text("[]")
    refused(opened(other), "no manifest of a bitstream")
    assert device.downloads == [], "the FPGA must not be touched"
    write_manifest(other, sha256=hashlib.sha256(b"bits").hexdigest())
    PynqDevice(CONFIG, bitstream=other).close()
    assert device.downloads == [str(other)]


def check_another_core_behind_the_registers() -> None:
    logic = FunctionalLogic(CONFIG)
    read = logic.read
    logic.read = lambda offset: 1 if offset == register("digest").offset else read(offset)
    attach(logic)
    text = f"digest is 00000001, needs {CONFIG.digest32:08x}"
    refused(lambda: PynqDevice(CONFIG, bitstream=overlay()), text)


def check_memory_that_is_not_there() -> None:
    attach()
    device = PynqDevice(CONFIG, bitstream=overlay())
    refused(lambda: device.allocate(128 << 20), "needs 134217728 bytes", "free")
    device.close()


def check_addresses_of_64_bits() -> None:
    base = 0x8_7000_0000
    attach(dram=Dram.filled(base, 1 << 20))
    device = PynqDevice(CONFIG, bitstream=overlay())
    refused(lambda: device.allocate(4096), "0x870000000..0x870001000", "32 address bits")
    device.close()
    wide = CoreConfig(addr_bits=40)
    simulated = attach(dram=Dram.filled(base, 1 << 20))
    try:
        with Session(double_module(), PynqDevice(wide, bitstream=overlay())) as session:
            session.run(None, {"x": np.zeros((1, 16, 2, 3), np.int8)})
    except DeviceError:
        pass  # this logic has 32 address bits
    low = register("insn_base").offset
    words = [simulated.board.logic.read(low + place) for place in (0, 4)]
    assert words == [0x7000_0000, 0x8], words


def main() -> None:
    for name, check in list(globals().items()):
        if name.startswith("check_") and name != "check_doubles":
            try:
                check()
                problem = ""
            except BaseException:  # every kind of failure is reported by the test
                problem = traceback.format_exc()
            print(json.dumps({"check": name, "problem": problem}), flush=True)


if __name__ == "__main__":
    main()
