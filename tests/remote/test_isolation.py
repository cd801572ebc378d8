"""What a client can see and do of another one: nothing."""

import socket
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made import ARENA, RESULT, double_module, image_of
from serving import X, answers, ask, connect, doubled, enter_raw, served

from vitral.config import CoreConfig
from vitral.isa import Cause, Finish, Instruction, Load, Memory, Store
from vitral.program import PAGE, Dram, OnChip
from vitral.runtime.device import open_device
from vitral.runtime.remote.channel import Channel
from vitral.runtime.remote.frames import Kind
from vitral.runtime.remote.images import image_digest
from vitral.runtime.remote.records import launch_record
from vitral.runtime.remote.scrub import SCRUB_BYTES, scrub_image, scrub_launch
from vitral.runtime.remote.shared_device import SharedDevice
from vitral.runtime.session import Session
from vitral.sim.functional import FunctionalSimulator
from vitral.sim.reference import Reference

CONFIG = CoreConfig()
LAUNCH = launch_record(double_module().segments[0].launch(0, ARENA))


def run_program(address: str, *program: Instruction, nbytes: int = ARENA) -> tuple[Cause, Any]:
    """How a program of a new client ends, and its whole arena afterwards."""
    device = open_device(address, CONFIG)
    device.allocate(nbytes)
    device.write(0, image_of(CONFIG, program))
    launch = double_module().segments[0].launch(0, nbytes)
    outcome = device.run(replace(launch, insn_count=len(program)))
    memory = np.array(device.read(0, nbytes)) if outcome.ok else None
    device.close()
    return outcome.cause, memory


STORE_ALL_OF_TEN = (
    Store(dram_base=RESULT // 16, y_size=1, x_size=10, x_stride=10, push_prev=True),
    Finish(pop_next=True),
)


def with_arena(sock: socket.socket) -> Channel:
    channel = enter_raw(sock)
    assert ask(channel, Kind.ALLOCATE, {"bytes": ARENA}).kind is Kind.OK
    return channel


@pytest.mark.parametrize("device", ["fsim", "reference", "tsim"])
def test_what_a_program_leaves_in_the_core(device: str) -> None:
    with served(device) as server, Session(double_module(), server.address) as session:
        assert doubled(session)
        cause, memory = run_program(server.address, *STORE_ALL_OF_TEN)
        assert cause is Cause.NONE
        assert not memory[RESULT : RESULT + 160].any()
        assert doubled(session)


def test_without_scrubbing_it_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail."""
    monkeypatch.setattr(SharedDevice, "_forget_others", lambda self, arena: None)
    with served() as server, Session(double_module(), server.address) as session:
        assert doubled(session)
        _, memory = run_program(server.address, *STORE_ALL_OF_TEN)
        assert memory[RESULT : RESULT + 96].any()


@pytest.mark.parametrize(
    ("simulator", "config"),
    [
        (FunctionalSimulator, CONFIG),
        (Reference, CONFIG),
        (Reference, CoreConfig(block=32, wgt_buffer=512 << 10, acc_buffer=256 << 10)),
        (Reference, CoreConfig(batch=4, block=8, param_depth=8, uop_buffer=4096, inp_buffer=2048)),
    ],
)
def test_scrubbing_clears_every_memory(simulator: Any, config: CoreConfig) -> None:
    onchip = OnChip.random(config, np.random.default_rng(1))
    base = 0x4000_0000
    dram = Dram(base, scrub_image(config))
    outcome = simulator(config).run(scrub_launch(base), dram, onchip=onchip)
    assert outcome.message == "ok"
    for name, array in vars(onchip).items():
        assert not array.any(), name


@pytest.mark.parametrize("memory", [Memory.INP, Memory.WGT, Memory.UOP, Memory.ACC, Memory.PARAM])
def test_program_cannot_load_from_another_arena(memory: Memory) -> None:
    with served() as server, Session(double_module(), server.address) as session:
        assert doubled(session)
        load = Load(memory=memory, dram_base=1 << 20, y_size=1, x_size=1, x_stride=1)
        assert run_program(server.address, load, Finish())[0] is Cause.DRAM_BOUNDS
        load = Load(memory=memory, dram_base=(1 << 32) - 256, y_size=1, x_size=1, x_stride=1)
        assert run_program(server.address, load, Finish())[0] is Cause.DRAM_BOUNDS
        assert doubled(session)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"limit_high": ARENA + 1}, "limit_high must be 0..65536, got 65537"),
        ({"limit_low": -64}, "limit_low must be 0..65536, got -64"),
        ({"insn_base": ARENA + 64}, "insn_base must be 0..65536, got 65600"),
        ({"insn_base": -64}, "insn_base must be"),
        ({"insn_base": 8}, "must be a multiple of 64"),
        ({"insn_count": 1 << 24}, "insn_count must be"),
        ({"bases": {"INP": ARENA + 64}}, "INP must be 0..65536"),
        ({"bases": {"INP": True}}, "INP must be"),
        ({"bases": {"DDR": 0}}, "memories that there are none of"),
        ({"bases": []}, "with bases"),
        ({"profile": 7}, "profile must be 0..1, got 7"),
        ({"profile": [1]}, "profile must be"),
    ],
)
def test_launch_stays_in_its_arena(change: dict[str, Any], message: str) -> None:
    with served() as server, connect(server) as sock:
        channel = with_arena(sock)
        answer = ask(channel, Kind.RUN, {"launch": {**LAUNCH, **change}})
        assert answer.kind is Kind.ERROR
        assert message in answer.metadata["message"]
        assert answers(server)


@pytest.mark.parametrize(
    ("kind", "metadata", "body"),
    [
        (Kind.READ, {"outputs": [[ARENA - 1, 2]]}, b""),
        (Kind.READ, {"outputs": [[-1, 2]]}, b""),
        (Kind.READ, {"outputs": [[1 << 62, 1 << 62]]}, b""),
        (Kind.WRITE, {"offset": ARENA}, b"x"),
        (Kind.WRITE, {"offset": -1}, b"x"),
        (Kind.RUN, {"launch": LAUNCH, "inputs": [[ARENA, 1]]}, b"x"),
        (Kind.RUN, {"launch": LAUNCH, "inputs": [[0, 2]]}, b"x"),
        (Kind.RUN, {"launch": LAUNCH, "outputs": [[0, ARENA + 1]]}, b""),
        (Kind.LOAD, {"digest": "0" * 64, "chunks": [[0, ARENA + 1]]}, b""),
    ],
)
def test_ranges_stay_in_the_arena(kind: Kind, metadata: dict[str, Any], body: bytes) -> None:
    with served() as server, connect(server) as sock:
        channel = with_arena(sock)
        answer = ask(channel, kind, metadata, (body,))
        assert answer.kind is Kind.ERROR
        assert answers(server)


def test_memory_of_a_client_that_left_is_cleared() -> None:
    nbytes = ARENA
    with served(memory_bytes=ARENA + SCRUB_BYTES) as server:
        with Session(double_module(), server.address) as session:
            assert doubled(session)
        device = open_device(server.address, CONFIG)
        device.allocate(nbytes)  # the only place there is
        assert not device.read(0, nbytes).any()
        device.close()


def test_digest_alone_gives_no_image() -> None:
    with served() as server, Session(double_module(), server.address) as session:
        assert doubled(session)
        image = double_module().image
        chunks = [(offset, part.size) for offset, part in image.items()]
        digest = image_digest(chunks, [part.data for part in image.values()])
        with connect(server) as sock:
            channel = with_arena(sock)
            answer = ask(channel, Kind.LOAD, {"digest": digest, "chunks": chunks})
            assert answer.kind is Kind.CHALLENGE
            answer = ask(channel, Kind.PROOF, {"mac": "0" * 64})
            assert "proof" in answer.metadata["message"]
            memory = ask(channel, Kind.READ, {"outputs": [[0, ARENA]]})
            assert not any(memory.body)


def test_image_must_have_its_digest() -> None:
    with served() as server, connect(server) as sock:
        channel = with_arena(sock)
        claim = {"digest": "0" * 64, "chunks": [[0, 4], [PAGE, 4]]}
        assert ask(channel, Kind.LOAD, claim).kind is Kind.SEND
        channel.send(Kind.DATA, {}, (b"abcd",))
        answer = ask(channel, Kind.DATA, {}, (b"efgh",))
        assert "another digest" in answer.metadata["message"]
        assert not any(ask(channel, Kind.READ, {"outputs": [[0, ARENA]]}).body)
        assert ask(channel, Kind.LOAD, claim).kind is Kind.SEND  # it was not kept


def test_results_of_two_clients_stay_apart() -> None:
    with served() as server, Session(double_module(), server.address) as one:
        with Session(double_module(), server.address) as other:
            for step in range(5):
                assert doubled(one, X + step)
                assert doubled(other, X - step)
