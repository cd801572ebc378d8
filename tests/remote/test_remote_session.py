"""Sessions on a device behind a server: as on the device itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import ARENA, double_instructions, double_module
from serving import GatedDevice, X, doubled, served

import vitral
from vitral.config import CoreConfig
from vitral.errors import DeviceError, ExecutionFault
from vitral.isa import Cause
from vitral.program import Launch
from vitral.runtime.device import open_device
from vitral.runtime.remote import Server
from vitral.runtime.session import Session

DIGITS = Path(__file__).parents[2] / "examples/digits"


@pytest.fixture(scope="module")
def server():
    with served() as server:
        yield server


def test_same_bytes_as_the_device_itself(server: Server) -> None:
    """Of every tensor of a whole network with steps on the CPU."""
    module = vitral.compile(DIGITS / "digits_int8.onnx")
    with np.load(DIGITS / "digits_images.npz") as archive:
        image = archive["demo_images"][:1]
    (info,) = module.inputs
    x = (image.reshape(info.shape) / 255).astype(info.dtype)
    with Session(module, "fsim") as here, Session(module, server.address) as there:
        for mine, its in zip(
            here.run(None, {info.name: x}), there.run(None, {info.name: x}), strict=True
        ):
            np.testing.assert_array_equal(mine, its)
        assert here.tensors().keys() == there.tensors().keys()
        for name, tensor in here.tensors().items():
            np.testing.assert_array_equal(tensor, there.tensors()[name], err_msg=name)


def test_profile_says_where_it_ran(server: Server) -> None:
    with Session(double_module(), server.address) as session:
        assert doubled(session)
        (layer,) = session.profile()
    assert layer.device == f"fsim@127.0.0.1:{server.port}"
    assert layer.roofline_cycles == 12


def test_cycles_marks_and_counters_come_back() -> None:
    module = double_module()
    with Session(module, "tsim") as here, served("tsim") as server:
        with Session(module, server.address) as there:
            assert doubled(here)
            assert doubled(there)
            (mine,), (its,) = here.outcomes(), there.outcomes()
            assert its.cycles == mine.cycles
            assert its == mine
            assert there.profile()[0].counters == here.profile()[0].counters != {}


def test_marks_come_back_by_instruction() -> None:
    device = open_device("tsim", CoreConfig())
    launch = double_module().segments[0].launch(device.allocate(ARENA), ARENA)
    for offset, chunk in double_module().image.items():
        device.write(offset, chunk)
    mine = device.run(launch, marks=(1, 2))
    device.close()
    with served("tsim") as server:
        there = open_device(server.address, CoreConfig())
        launch = double_module().segments[0].launch(there.allocate(ARENA), ARENA)
        for offset, chunk in double_module().image.items():
            there.write(offset, chunk)
        its = there.run(launch, marks=(1, 2))
        there.close()
    assert its.marks == mine.marks
    assert len(its.marks) == 2
    assert its.mark_counters == mine.mark_counters != {}


def test_device_calls_one_by_one(server: Server) -> None:
    """Without `load` and `execute`, as any device can be used."""
    device = open_device(server.address, CoreConfig())
    base = device.allocate(ARENA)
    np.testing.assert_array_equal(device.read(0, ARENA), np.zeros(ARENA, np.uint8))
    data = np.arange(1000, dtype="<i2").reshape(10, 100)
    device.write(64, data)
    np.testing.assert_array_equal(device.read(64, 2000).view("<i2"), data.reshape(-1))
    outcome = device.run(Launch(insn_base=base, insn_count=0, limit_high=ARENA))
    assert outcome.cause is Cause.EMPTY_PROGRAM
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.read(0, 1)


def test_more_than_a_frame_holds_goes_in_parts() -> None:
    with served(frame_bytes=64) as server, Session(double_module(), server.address) as session:
        assert doubled(session)
        assert doubled(session, X + 1)


def test_image_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from vitral.runtime.devices.remote import RemoteDevice

    uploads: list[int] = []
    upload = RemoteDevice._upload
    monkeypatch.setattr(
        RemoteDevice, "_upload", lambda self, parts: (uploads.append(1), upload(self, parts))
    )
    with served() as server:
        for _ in range(3):
            with Session(double_module(), server.address) as session:
                assert doubled(session)
    assert uploads == [1]


def test_least_used_image_goes_first() -> None:
    """A store for two images takes a third; the one that was not used meanwhile is sent again."""
    from vitral.runtime.remote.images import Image, ImageStore

    images = {name: Image(name, ((0, 40),), bytes(40)) for name in "abc"}
    store = ImageStore(100)
    for name in "aba":
        image = store.use(name)
        if image is None:
            with store.room(40):
                image = store.add(images[name])
        store.release(image)
    with store.room(40):
        store.release(store.add(images["c"]))
    assert [name in store for name in "abc"] == [True, False, True]
    held = store.use("a"), store.use("c")
    with pytest.raises(DeviceError, match="40 bytes, the server keeps 100 of which 80 are in use"):
        with store.room(40):
            pass
    assert None not in held


def test_fault_is_that_of_the_device_and_the_session_goes_on(server: Server) -> None:
    good = double_instructions(CoreConfig(), 6)
    beyond = replace(good[1], dram_base=1 << 20)
    broken = double_module(instructions=(good[0], beyond, *good[2:]))
    with Session(double_module(), server.address) as neighbour:
        assert doubled(neighbour)
        with Session(broken, server.address) as session:
            for _ in range(2):
                with pytest.raises(ExecutionFault, match="double: DRAM address") as caught:
                    session.run(None, {"x": X})
                assert (caught.value.cause, caught.value.index) == (Cause.DRAM_BOUNDS, 1)
                assert doubled(neighbour)


def test_time_out_is_the_device_s_and_the_session_goes_on() -> None:
    device = GatedDevice(CoreConfig())
    with served(device) as server:
        with Session(double_module(), server.address, timeout=0.05) as session:
            message = r"double: tcp://.*: gated: time-out: the program did not end within 0.05 s"
            with pytest.raises(DeviceError, match=message):
                session.run(None, {"x": X})
            device.gate.set()
            session.run(None, {"x": X})
            assert len(device.started) == 2


def test_server_limits_the_time_of_a_run() -> None:
    device = GatedDevice(CoreConfig())
    with served(device, run_seconds=0.05) as server:
        with Session(double_module(), server.address) as session:
            with pytest.raises(DeviceError, match=r"did not end within 0\.05 seconds"):
                session.run(None, {"x": X})
        device.gate.set()


def test_server_that_comes_back_is_used_again() -> None:
    with served() as server:
        session = Session(double_module(), server.address)
        assert doubled(session)
        port = server.port
    with pytest.raises(DeviceError, match=rf"double: tcp://127.0.0.1:{port}: "):
        session.run(None, {"x": X})
    with served(port=port):
        assert doubled(session)
    session.close()


def test_core_of_another_digest_is_refused(server: Server) -> None:
    small = double_module(CoreConfig(queue_depth=256))
    with pytest.raises(DeviceError, match="queue_depth 512, not 256"):
        Session(small, server.address)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tcp://127.0.0.1", {}, "must be like tcp://host:7421"),
        ("tcp://127.0.0.1:x", {}, "must be like tcp://host:7421"),
        ("tcp://127.0.0.1:0", {}, "must be like tcp://host:7421"),
        ("tcp://127.0.0.1:99999", {}, "must be like tcp://host:7421"),
        ("tcp://:7421", {}, "must be like tcp://host:7421"),
        ("tcp://127.0.0.1:1", {}, "cannot connect: Connection refused; is `vitral serve`"),
        ("tcp://127.0.0.1:1", {"latency": 3}, "no option 'latency'; known: secret"),
        ("tcp://127.0.0.1:1", {"ca_file": "/no/such"}, "/no/such: no certificates"),
        ("tcp://127.0.0.1:1", {"secret_file": "/no/such"}, "/no/such: cannot read the secret"),
    ],
)
def test_what_cannot_be_opened(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        Session(double_module(), name, **options)


def test_memory_that_does_not_suffice() -> None:
    with served(memory_bytes=ARENA + 0x2000) as server:
        with Session(double_module(), server.address) as first:
            with pytest.raises(DeviceError, match=r"65536 bytes of device memory, .* 0 are free"):
                Session(double_module(), server.address)
            assert doubled(first)
        with Session(double_module(), server.address) as second:
            assert doubled(second)


def test_store_that_does_not_suffice() -> None:
    with served(store_bytes=10) as server, Session(double_module(), server.address) as session:
        with pytest.raises(DeviceError, match="the server keeps 10 of which 0 are in use"):
            session.run(None, {"x": X})
