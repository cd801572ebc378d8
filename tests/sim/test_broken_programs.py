"""Programs with a mistake end with the same status in any order, and on every simulator."""

from collections import Counter

import pytest
from engines import engine
from programs import CONFIGS, Program, generate
from programs.broken import MISTAKES, broken

from vitral.isa import Cause
from vitral.program import Wait
from vitral.sim.reference import Reference

Status = tuple[Cause, int, tuple[Wait, ...]]
WANTED = {
    "opcode": {Cause.UNDEFINED_OPCODE},
    "reserved": {Cause.RESERVED_BITS},
    "sram": {Cause.SRAM_BOUNDS},
    "dram": {Cause.DRAM_BOUNDS, Cause.BUS_READ, Cause.BUS_WRITE},
    "index": {Cause.INDEX_OVERFLOW},
    "early finish": {Cause.FINISH_NOT_LAST},
}
ORDERS = range(2)
PER_CONFIG = 6


def in_order(program: Program, order: int | None) -> Status:
    outcome = Reference(program.config).run(
        program.launch, program.dram.copy(), onchip=program.onchip.copy(), order_seed=order
    )
    return outcome.cause, outcome.index, outcome.waits


def on(name: str, program: Program) -> Status:
    outcome = engine(name, program.config).run(
        program.launch, program.dram.copy(), onchip=program.onchip.copy()
    )
    return outcome.cause, outcome.index, outcome.waits


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("config", CONFIGS)
def test_status(config: str, mistake: str) -> None:
    made = 0
    seeds = PER_CONFIG * (4 if mistake == "window" else 1)  # few programs have a place for it
    for seed in range(seeds):
        program = broken(generate(seed, CONFIGS[config]), mistake, seed)
        if program is None:
            continue
        made += 1
        status = in_order(program, None)
        where = f"seed {seed}, {status}\n{program.text}"
        if mistake in WANTED:
            assert status[0] in WANTED[mistake], where
        for order in ORDERS:
            assert in_order(program, order) == status, f"order {order}, {where}"
        assert on("fsim", program) == status, where
    assert made >= PER_CONFIG // 2


def test_token_mistakes_show_as_deadlocks_and_left_tokens() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(60):
        program = broken(generate(seed, CONFIGS["tight"]), "token", seed)
        assert program is not None
        cause, _, waits = in_order(program, None)
        kinds["deadlock" if waits else cause.name] += 1
    assert kinds["deadlock"] > 10
    assert kinds["TOKENS_LEFT"] > 5
