"""Tokens: every wait that was asked for holds, none is left, and no counter overflows."""

import random
from collections import deque

import pytest

from vitral.compiler.codegen.tokens import TokenStream
from vitral.isa import Finish, Gemm, Instruction, Load, Memory, Stage, Store, queue_of

_KINDS: dict[Stage, Instruction] = {
    Stage.LOAD: Load(memory=Memory.INP, y_size=1, x_size=1),
    Stage.COMPUTE: Gemm(uop_end=1, iter_out=1, iter_in=1),
    Stage.STORE: Store(y_size=1, x_size=1),
}
_LINKS = {
    "pop_prev": {Stage.COMPUTE: Stage.LOAD, Stage.STORE: Stage.COMPUTE},
    "pop_next": {Stage.LOAD: Stage.COMPUTE, Stage.COMPUTE: Stage.STORE},
    "push_prev": {Stage.COMPUTE: Stage.LOAD, Stage.STORE: Stage.COMPUTE},
    "push_next": {Stage.LOAD: Stage.COMPUTE, Stage.COMPUTE: Stage.STORE},
}


def _neighbours(insn: Instruction, action: str) -> list[Stage]:
    stage = queue_of(insn)
    return [
        _LINKS[flag][stage] for flag in (f"{action}_prev", f"{action}_next") if getattr(insn, flag)
    ]


def play(insns: list[Instruction], capacity: int, rng: random.Random) -> list[tuple[int, int]]:
    """(start, end) times of each instruction on three queues with random durations."""
    queues = {
        stage: deque(n for n, i in enumerate(insns) if queue_of(i) is stage) for stage in Stage
    }
    tokens: dict[tuple[Stage, Stage], deque[int]] = {
        (a, b): deque() for a in Stage for b in Stage if a is not b
    }
    room: dict[tuple[Stage, Stage], deque[int]] = {link: deque([0] * capacity) for link in tokens}
    free = dict.fromkeys(Stage, 0)
    times = [(-1, -1)] * len(insns)
    moved = True
    while moved:
        moved = False
        for stage, queue in queues.items():
            if not queue:
                continue
            insn = insns[queue[0]]
            sources = [(other, stage) for other in _neighbours(insn, "pop")]
            sinks = [(stage, other) for other in _neighbours(insn, "push")]
            if not all(tokens[link] for link in sources) or not all(room[link] for link in sinks):
                continue
            start = max([free[stage], *(tokens[link].popleft() for link in sources)])
            for link in sources:
                room[link].append(start)
            end = start + rng.randrange(1, 20)
            free[stage] = max([end, *(room[link].popleft() for link in sinks)])
            for link in sinks:
                tokens[link].append(free[stage])
            times[queue.popleft()] = (start, end)
            moved = True
    assert not any(queues.values()), f"deadlock at {[q[0] for q in queues.values() if q]}"
    assert not any(tokens.values()), "tokens are left"
    return times


def test_a_wait_is_one_token() -> None:
    stream = TokenStream(8)
    load = stream.append(_KINDS[Stage.LOAD])
    stream.append(_KINDS[Stage.COMPUTE], [load])
    insns, positions = stream.finish()
    assert positions == [0, 1]
    assert insns[0].push_next
    assert insns[1].pop_prev
    assert not insns[1].push_prev


def test_a_wait_that_an_earlier_one_implies_costs_nothing() -> None:
    stream = TokenStream(8)
    old, new = (stream.append(_KINDS[Stage.LOAD]) for _ in range(2))
    stream.append(_KINDS[Stage.COMPUTE], [new])
    stream.append(_KINDS[Stage.COMPUTE], [old, new, -1])
    insns, _ = stream.finish()
    assert [insn.push_next for insn in insns] == [False, True, False, False]
    assert [insn.pop_prev for insn in insns] == [False, False, True, False]


def test_load_after_store_goes_through_compute() -> None:
    stream = TokenStream(8)
    store = stream.append(_KINDS[Stage.STORE])
    load = stream.append(_KINDS[Stage.LOAD], [store])
    insns, positions = stream.finish()
    assert positions[load] == 2
    assert insns[1] == Load(memory=Memory.UOP, pop_next=True, push_prev=True)


def test_load_after_store_uses_a_compute_instruction_that_waited_already() -> None:
    stream = TokenStream(8)
    store = stream.append(_KINDS[Stage.STORE])
    stream.append(_KINDS[Stage.COMPUTE], [store])
    stream.append(_KINDS[Stage.LOAD], [store])
    insns, _ = stream.finish()
    assert len(insns) == 3
    assert insns[1].pop_next
    assert insns[1].push_prev


def test_full_counter_gets_a_nop_that_takes_the_oldest_token() -> None:
    stream = TokenStream(2)
    loads = [stream.append(_KINDS[Stage.LOAD]) for _ in range(3)]
    for load in loads:
        stream.append(_KINDS[Stage.COMPUTE], [load])
    insns, positions = stream.finish()
    assert positions == [0, 1, 3, 4, 5, 6]
    assert insns[2] == Load(memory=Memory.UOP, pop_prev=True)
    assert [insn.pop_prev for insn in insns[4:]] == [False, True, True]


@pytest.mark.parametrize("capacity", [1, 2, 5, 1000])
@pytest.mark.parametrize("seed", range(12))
def test_random_waits_hold(capacity: int, seed: int) -> None:
    rng = random.Random(seed)
    stream = TokenStream(capacity)
    wanted: list[tuple[int, int]] = []
    for _ in range(200):
        known = len(stream)
        after = [rng.randrange(known) for _ in range(rng.randrange(3)) if known]
        handle = stream.append(_KINDS[rng.choice(list(Stage))], after)
        wanted += [(before, handle) for before in after]
    stream.append(Finish())
    insns, positions = stream.finish()
    for _ in range(3):
        times = play(insns, capacity, rng)
        for before, handle in wanted:
            end, start = times[positions[before]][1], times[positions[handle]][0]
            assert end <= start, f"seed {seed}: {handle} started before {before} ended"
