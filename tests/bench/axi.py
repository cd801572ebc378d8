"""AXI memory for Amaranth's simulator, with the checks that every access has to pass."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["BusLog", "Stall", "read_slave", "write_slave"]

PAGE = 4096
OKAY, SLVERR = 0, 2


@dataclass
class BusLog:
    """What went over a channel: bursts as (address, beats), accepted write beats, bytes written."""

    bursts: list[tuple[int, int]] = field(default_factory=list)
    beats: list[tuple[int, int, bool]] = field(default_factory=list)
    written: dict[int, int] = field(default_factory=dict)
    in_flight: int = 0
    most_in_flight: int = 0

    def begin(self, address: int, beats: int, *, beat_bytes: int, limit: int) -> None:
        assert address % beat_bytes == 0, f"{address:#x} is not beat-aligned"
        assert 1 <= beats <= limit, f"burst of {beats} beats, limit {limit}"
        last = address + beats * beat_bytes - 1
        assert address // PAGE == last // PAGE, f"burst {address:#x} + {beats} crosses a page"
        self.bursts.append((address, beats))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)


class Stall:
    """Decides cycle by cycle whether a side holds back; p = 0 never, seeded."""

    def __init__(self, p: float = 0.0, seed: int = 0) -> None:
        self._p = p
        self._random = random.Random(seed)

    def __call__(self) -> bool:
        return self._p > 0 and self._random.random() < self._p


class _Stable:
    """A stream's VALID must stay and its payload hold until READY."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._offer: Any = None

    def check(self, valid: int, payload: Any, taken: bool) -> None:
        if self._offer is not None:
            assert valid, f"{self._name} VALID dropped before READY"
            assert payload == self._offer, f"{self._name} payload changed before READY"
        self._offer = payload if valid and not taken else None


def read_slave(
    channel: Any,
    memory: np.ndarray,
    *,
    limit: int,
    latency: int = 8,
    stall: Stall | None = None,
    base: int = 0,
    error_beat: int | None = None,
    log: BusLog | None = None,
) -> tuple[Callable, BusLog]:
    """A process that answers a `ReadChannel` from `memory` (uint8, first byte at `base`).

    The beat numbered `error_beat` (over all bursts) is answered with SLVERR.
    """
    log = log or BusLog()
    stall = stall or Stall()
    beat_bytes = len(channel.rdata) // 8

    async def process(ctx: Any) -> None:
        waiting: deque[list[int]] = deque()
        stable = _Stable("AR")
        now = number = 0
        while True:
            ready = not stall()
            ctx.set(channel.ar.ready, ready)
            send = bool(waiting) and waiting[0][2] <= now and not stall()
            ctx.set(channel.rvalid, send)
            if send:
                address, left, _ = waiting[0]
                offset = address - base
                beat = memory[offset : offset + beat_bytes].tobytes()
                ctx.set(channel.rdata, int.from_bytes(beat, "little"))
                ctx.set(channel.rresp, SLVERR if number == error_beat else OKAY)
                ctx.set(channel.rlast, left == 1)
            _, _, valid, address, length = await ctx.tick().sample(
                channel.ar.valid, channel.ar.p.address, channel.ar.p.len
            )
            stable.check(valid, (address, length), bool(ready and valid))
            now += 1
            if send:
                number += 1
                waiting[0][0] += beat_bytes
                waiting[0][1] -= 1
                if not waiting[0][1]:
                    waiting.popleft()
                    log.in_flight -= 1
            if valid and ready:
                log.begin(address, length + 1, beat_bytes=beat_bytes, limit=limit)
                waiting.append([address, length + 1, now + latency])

    return process, log


def write_slave(
    channel: Any,
    memory: np.ndarray,
    *,
    limit: int,
    latency: int = 8,
    stall: Stall | None = None,
    base: int = 0,
    error_burst: int | None = None,
) -> tuple[Callable, BusLog]:
    """A process that takes a `WriteChannel` into `memory` and answers B after `latency` cycles.

    Every byte's number of writes is in `log.written`. Burst number `error_burst` gets SLVERR.
    """
    log = BusLog()
    stall = stall or Stall()
    beat_bytes = len(channel.w.p.data) // 8

    async def process(ctx: Any) -> None:
        bursts: deque[list[int]] = deque()
        early: deque[tuple[int, int, int]] = deque()
        answers: deque[tuple[int, int]] = deque()
        aw_stable, w_stable = _Stable("AW"), _Stable("W")
        now = number = 0
        while True:
            aw_ready, w_ready = not stall(), not stall()
            ctx.set(channel.aw.ready, aw_ready)
            ctx.set(channel.w.ready, w_ready)
            answer = bool(answers) and answers[0][0] <= now and not stall()
            ctx.set(channel.bvalid, answer)
            if answer:
                ctx.set(channel.bresp, answers[0][1])
            _, _, aw_valid, address, length, w_valid, data, strb, last = await ctx.tick().sample(
                channel.aw.valid,
                channel.aw.p.address,
                channel.aw.p.len,
                channel.w.valid,
                channel.w.p.data,
                channel.w.p.strb,
                channel.w.p.last,
            )
            aw_stable.check(aw_valid, (address, length), bool(aw_valid and aw_ready))
            w_stable.check(w_valid, (data, strb, last), bool(w_valid and w_ready))
            now += 1
            if answer:
                answers.popleft()
                log.in_flight -= 1
            if aw_valid and aw_ready:
                log.begin(address, length + 1, beat_bytes=beat_bytes, limit=limit)
                bursts.append([address, length + 1])
            if w_valid and w_ready:
                log.beats.append((data, strb, bool(last)))
                early.append((data, strb, last))
            while early and bursts:
                data, strb, last = early.popleft()
                at, left = bursts[0]
                assert bool(last) == (left == 1), f"WLAST {last} with {left} beats left"
                _write(memory, log, at, base, data, strb, beat_bytes)
                bursts[0][0] += beat_bytes
                bursts[0][1] -= 1
                if left == 1:
                    bursts.popleft()
                    answers.append((now + latency, SLVERR if number == error_burst else OKAY))
                    number += 1

    return process, log


def _write(
    memory: np.ndarray, log: BusLog, address: int, base: int, data: int, strb: int, size: int
) -> None:
    for lane in range(size):
        if strb >> lane & 1:
            memory[address - base + lane] = data >> (8 * lane) & 0xFF
            log.written[address + lane] = log.written.get(address + lane, 0) + 1
