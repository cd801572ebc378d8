"""The DE10-Nano's device against files that stand for its Linux."""

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from board_programs import CONFIG, check_doubles, write_manifest
from hand_made import double_module

from vitral.errors import DeviceError
from vitral.runtime.boards.cyclone import BRIDGE_RESETS, PORT_RESETS
from vitral.runtime.boards.udmabuf import Udmabuf
from vitral.runtime.devices.de10_nano import De10NanoDevice
from vitral.runtime.session import Session
from vitral.sim.board import FunctionalLogic, Logic
from vitral.sim.board.board import DRAM_BASE
from vitral.sim.board.linux import BUFFER, REGISTERS, SimulatedLinux

pytestmark = [pytest.mark.board, pytest.mark.xdist_group("tsim")]
RESERVED = f"{DRAM_BASE:#x}:{1 << 20:#x}"


@contextmanager
def linux(root: Path, logic: Logic | None = None, **options: object) -> Iterator[SimulatedLinux]:
    system = SimulatedLinux(root, logic or FunctionalLogic(CONFIG), **options)  # pyright: ignore
    try:
        yield system
    finally:
        system.close()


def session(system: SimulatedLinux, **options: object) -> Session:
    device = De10NanoDevice(CONFIG, root=system, **options)  # pyright: ignore
    return Session(double_module(), device)


@pytest.mark.parametrize("registers", [hex(REGISTERS), "vitral", "uio0"])
@pytest.mark.parametrize("memory", ["udmabuf0", RESERVED])
def test_registers_and_memory_by_every_way(tmp_path: Path, registers: str, memory: str) -> None:
    with linux(tmp_path, seed=3) as system:
        with session(system, registers=registers, memory=memory) as opened:
            assert (opened.device.board.interrupt is None) == registers.startswith("0x")  # pyright: ignore
            if memory == RESERVED:
                system.region.close()  # the same memory by another way: nobody else caches it
            check_doubles(opened)


@pytest.mark.parametrize("operation", ["for_device", "for_cpu"])
def test_without_a_cache_operation_bytes_are_wrong(
    tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Udmabuf, operation, lambda *_: None)
    with linux(tmp_path) as system, session(system) as opened:
        with pytest.raises((AssertionError, DeviceError)):
            check_doubles(opened)


@pytest.mark.parametrize("what", ["0", "2", "1"])
def test_the_direction_of_a_cache_operation_counts(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver of u-dma-buf only does what the direction asks for."""
    monkeypatch.setattr("vitral.runtime.boards.udmabuf.TO_DEVICE", int(what))
    with linux(tmp_path) as system, session(system) as opened:
        if what == "2":
            with pytest.raises((AssertionError, DeviceError)):
                check_doubles(opened)
        else:
            check_doubles(opened)


@pytest.mark.parametrize(
    ("state", "starts"), [(0x0000, False), (0x3FFF, True), (0x0311, True), (0x0310, False)]
)
def test_memory_ports_in_reset(tmp_path: Path, state: int, starts: bool) -> None:
    with linux(tmp_path, words={PORT_RESETS: state}) as system:
        before = system.path("/dev/mem").stat()
        if starts:
            with session(system) as opened:
                check_doubles(opened, runs=1)
        else:
            text = r"ports 0x0[03]\d0 are out of reset .*needs 0x0311; .*bridge enable"
            with pytest.raises(DeviceError, match=text):
                session(system)
        with open(system.path("/dev/mem"), "rb") as file:
            file.seek(PORT_RESETS)
            assert int.from_bytes(file.read(4), "little") == state, "never written"
        assert before.st_size == system.path("/dev/mem").stat().st_size


@pytest.mark.parametrize(
    ("resets", "port", "text"),
    [(2, "f2sdram", "lwhps2fpga is in reset"), (4, "acp", "fpga2hps is in reset")],
)
def test_bridges_in_reset(tmp_path: Path, resets: int, port: str, text: str) -> None:
    with linux(tmp_path, words={BRIDGE_RESETS: resets}) as system:
        with pytest.raises(DeviceError, match=text):
            session(system, port=port)


def test_the_coherency_port_needs_no_cache_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with linux(tmp_path, words={PORT_RESETS: 0}) as system:
        monkeypatch.setattr(Udmabuf, "for_device", None)
        device = De10NanoDevice(CONFIG, root=system, port="acp")
        assert device.allocate(4096) == DRAM_BASE + 0x8000_0000
        device.write(1, np.full(3, 7, np.uint8))
        assert device.read(1, 3).tolist() == [7] * 3
        assert device.driver.axi_attributes == 0x0001_00FF
        device.close()


def test_an_fpga_without_configuration(tmp_path: Path) -> None:
    with linux(tmp_path, configured=False) as system:
        with pytest.raises(DeviceError, match="in state 'unknown', needs 'operating'"):
            session(system)


def bitstream(
    folder: Path, *, overlay: bool = True, manifest: dict[str, str] | None = None
) -> Path:
    folder.mkdir()
    path = folder / "vitral.rbf"
    path.write_bytes(b"bits")
    if overlay:
        path.with_suffix(".dtbo").write_bytes(b"tree")
    if manifest is not None:
        write_manifest(path, **manifest)
    return path


def test_configuration_from_linux(tmp_path: Path) -> None:
    with linux(tmp_path / "root", configured=False) as system:
        for _ in range(2):  # the overlay of the first time is replaced
            sha256 = hashlib.sha256(b"bits").hexdigest()
            path = bitstream(tmp_path / f"b{_}", manifest={"sha256": sha256})
            with session(system, bitstream=path) as opened:
                check_doubles(opened, runs=1)
        assert system.path("/lib/firmware/vitral.rbf").read_bytes() == b"bits"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"overlay": False}, r"vitral.dtbo: no such file"),
        ({"manifest": {"core": "f" * 64}}, r"built for core ffffffffffff, the program for"),
        ({"manifest": {}}, r"its manifest says 000000000000; copy it again"),
        ({"manifest": {"bitstream": ""}}, r"no bitstream; make it with: vitral bitstream build"),
    ],
)
def test_bitstreams_that_do_not_fit(tmp_path: Path, options: dict, text: str) -> None:
    with linux(tmp_path / "root", configured=False) as system:
        with pytest.raises(DeviceError, match=text):
            session(system, bitstream=bitstream(tmp_path / "b", **options))
        assert "unknown" in system.read("/sys/class/fpga_manager/fpga0/state"), "untouched"
        assert system.names("/lib/firmware") == []


def test_nothing_behind_the_registers(tmp_path: Path) -> None:
    with linux(tmp_path, words={REGISTERS: 0}) as system:
        with pytest.raises(DeviceError, match="reads 0x00000000 at 0xff200000, needs 0x4c525456"):
            session(system)


def test_a_read_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitral.runtime.boards.probe._SCRIPT", "import time; time.sleep(30)")
    monkeypatch.setattr("vitral.runtime.boards.probe.probe_word.__defaults__", (0.2,), raising=True)
    with linux(tmp_path) as system:
        with pytest.raises(DeviceError, match=r"no answer at 0xff200000 within 0.2 seconds"):
            session(system)


def test_not_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, who may open everything: the kernel's answer is given instead."""
    import vitral.runtime.boards.mapped as mapped

    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    with linux(tmp_path) as system:
        monkeypatch.setattr(mapped.os, "open", refuse)
        with pytest.raises(DeviceError, match=r"/dev/mem: no permission; run as root, or check"):
            session(system)
        with pytest.raises(DeviceError, match=r"run as root, .* udev rule, and name a UIO device"):
            session(system, check_ports=False)


def test_memory_that_is_too_small(tmp_path: Path) -> None:
    with linux(tmp_path, buffer_bytes=8 << 20) as system:
        need = 11_723_776 + 2 * 802_816  # ResNet-18's weights and two maps
        device = De10NanoDevice(CONFIG, root=system)
        with pytest.raises(DeviceError, match="needs 13332480 bytes, has 8388608"):
            device.allocate(need)
        device.close()
        reserved = De10NanoDevice(CONFIG, root=system, memory=f"{DRAM_BASE:#x}:4096")
        with pytest.raises(DeviceError, match="needs 8192 bytes, the reserved region has 4096"):
            reserved.allocate(4097)
        reserved.close()
    with linux(tmp_path / "large", buffer_bytes=16 << 20) as system:
        device = De10NanoDevice(CONFIG, root=system)
        device.allocate(need)
        device.close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"memory": "udmabuf7"}, "udmabuf7: no such buffer; load the driver with: modprobe"),
        ({"memory": "here:there"}, "must be a u-dma-buf or address:bytes, got 'here:there'"),
        ({"registers": "core"}, r"no UIO device 'core' in .*, there are: uio0 \(vitral\)"),
        ({"port": "hp0"}, "port must be f2sdram or acp, got 'hp0'"),
        ({"bitstream": "/nowhere.rbf"}, "/nowhere.rbf: no such file"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict, text: str) -> None:
    with linux(tmp_path) as system:
        with pytest.raises(DeviceError, match=text):
            session(system, **options)


def test_attributes_that_are_broken(tmp_path: Path) -> None:
    with linux(tmp_path) as system:
        system.path(f"{BUFFER}/phys_addr").write_text("none\n")
        with pytest.raises(DeviceError, match="phys_addr: needs a number, reads 'none'"):
            session(system)
        system.path(f"{BUFFER}/phys_addr").unlink()
        with pytest.raises(DeviceError, match="phys_addr: no such file"):
            session(system)
        assert stat.S_ISREG(system.path(f"{BUFFER}/size").stat().st_mode)
