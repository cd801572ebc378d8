"""The compute stage: instructions in order, tokens at the right time, no cycle lost."""

from typing import Any

import pytest
from bench.compute import ComputeBench, Trace
from bench.compute_model import Lanes, run_gemm, run_window
from bench.execute import SMALL, ExecuteBench

from vitral.hw.core.interfaces import Wait
from vitral.isa import (
    Alu,
    AluOp,
    Config,
    ConfigRegister,
    Finish,
    Gemm,
    Instruction,
    Load,
    Memory,
    Profile,
    Stage,
    Uop,
    Window,
    window_value,
)

WINDOWS = ((4, 3), (1, 1), (3, 1), (2, 5))
UOPS = [Uop(n, 3 * n % 16, 5 * n % 16) for n in range(8)]
CONTENTS = ExecuteBench(SMALL, UOPS)


def _bench(**options: Any) -> ComputeBench:
    return ComputeBench(SMALL, UOPS, (CONTENTS.inp, CONTENTS.wgt), **options)


def _gemm(count: int = 1, **fields: Any) -> Gemm:
    return Gemm(uop_end=count, iter_out=1, iter_in=1, **fields)


def _window(**fields: Any) -> Window:
    return Window(uop_end=1, iter_out=1, iter_in=6, src_factor_in=1, **fields)


def _register(value: int) -> Config:
    return Config(
        stage=Stage.COMPUTE,
        register=ConfigRegister.WINDOW - 128 * Stage.COMPUTE,
        value=value,
    )


def _after(old: Lanes, *program: Gemm) -> Lanes:
    """ACC element 0 after GEMMs that begin with `old` in it."""
    acc = [list(old) for _ in range(32)]
    for insn in program:
        run_gemm(insn, UOPS, CONTENTS.inp, CONTENTS.wgt, acc, SMALL.block)
    return acc[0]


def test_tokens_of_the_next_gemm_are_taken_while_this_one_drains() -> None:
    flags = {"pop_prev": True, "pop_next": True, "push_prev": True, "push_next": True}
    trace = _bench().run([_gemm(3, **flags)] * 4)
    first = trace.gemm_cycles[0]
    assert trace.gemm_cycles == list(range(first, first + 12))
    assert len(trace.taken) == len(trace.given) == 8


def test_a_token_follows_the_last_write_back() -> None:
    """The element is read in the cycle of the token: the new sum must be there."""
    program = [
        Load(memory=Memory.ACC, sram_base=0, x_size=8, y_size=1),
        _gemm(push_next=True),
        _gemm(push_next=True),
        _gemm(2, push_next=True, overwrite=True),
    ]
    trace = _bench(loaded=[1, -2, 3, -4], watch=0).run(program, cycles=60)
    sums = [_after([1, -2, 3, -4], *program[1 : n + 1]) for n in (1, 2, 3)]
    assert list(trace.watched.values()) == sums


def test_alu_after_gemm_after_load() -> None:
    program = [
        Load(memory=Memory.ACC, x_size=1, y_size=1),
        _gemm(),
        Alu(alu_opcode=AluOp.ADD, uop_end=1, iter_out=1, iter_in=1, use_imm=True, imm=-7),
        Alu(
            alu_opcode=AluOp.MAX,
            uop_end=1,
            iter_out=1,
            iter_in=1,
            use_imm=True,
            push_next=True,
        ),
    ]
    trace = _bench(loaded=[5, 5, 5, 5], watch=0).run(program, cycles=60)
    expected = [max(x - 7, 0) for x in _after([5] * 4, program[1])]
    assert list(trace.watched.values()) == [expected]


def test_a_load_waits_for_the_units_and_holds_up_the_next() -> None:
    program = [_gemm(4), Load(memory=Memory.ACC, sram_base=9, x_size=2, y_size=3), _gemm()]
    trace = _bench(latency=20).run(program)
    assert trace.loads == [{"memory": Memory.ACC, "sram_base": 9, "pad_value": 0}]
    assert trace.begun[1] > trace.gemm_cycles[3] + 2
    assert trace.begun[2] >= trace.begun[1] + 20 + 6
    assert trace.waits[trace.begun[1] + 10] == (Wait.MEMORY, 1)


UOP_LOADS = {
    "behind those in use": ({"sram_base": 5, "x_size": 2, "y_size": 3}, True),
    "before those in use": ({"sram_base": 0, "x_size": 2, "y_size": 1}, True),
    "one behind in use": ({"sram_base": 4, "x_size": 2, "y_size": 3}, False),
    "one before in use": ({"sram_base": 0, "x_size": 3, "y_size": 1}, False),
    "rows before, not looked at": ({"sram_base": 0, "x_size": 1, "y_size": 2}, False),
    "padding before, not looked at": (
        {"sram_base": 0, "x_size": 1, "y_size": 1, "x_pad_1": 1},
        False,
    ),
}


@pytest.mark.parametrize(("fields", "early"), UOP_LOADS.values(), ids=UOP_LOADS)
def test_micro_ops_not_in_use_are_loaded_early(fields: dict[str, Any], early: bool) -> None:
    busy = Gemm(uop_bgn=2, uop_end=5, iter_out=5, iter_in=2)
    trace = _bench().run([busy, Load(memory=Memory.UOP, **fields), _gemm()])
    last_read = trace.gemm_cycles[29] - 1
    assert (trace.begun[1] < last_read) == early
    assert trace.begun[2] > trace.begun[1] + 5


def test_loads_follow_each_other() -> None:
    program = [
        Load(memory=Memory.UOP, sram_base=8, x_size=2, y_size=1, push_next=True),
        Load(memory=Memory.ACC, sram_base=8, x_size=2, y_size=1, push_next=True),
        _gemm(push_next=True),
    ]
    trace = _bench(latency=20).run(program)
    assert trace.begun[1] == trace.begun[0] + 1
    assert trace.begun[2] >= trace.begun[1] + 20
    assert len(trace.given) == 3


def test_a_window_uses_what_config_set_before_it() -> None:
    """Neither those under way nor the pad register change; the next one follows soon."""
    program = [
        Load(memory=Memory.ACC, sram_base=0, x_size=8, y_size=1),
        *(
            insn
            for taps, distance in WINDOWS
            for insn in (_register(window_value(taps, distance)), _window(push_next=True))
        ),
    ]
    trace = _bench(watch=0).run(program)
    acc = [[0] * SMALL.block for _ in range(32)]
    expected = []
    for window in WINDOWS:
        run_window(_window(), UOPS, CONTENTS.inp, CONTENTS.wgt, acc, SMALL.block, window)
        expected.append(list(acc[0]))
    assert list(trace.watched.values()) == expected
    assert trace.pad_acc == 0
    gaps = [b - a for a, b in zip(trace.gemm_cycles, trace.gemm_cycles[1:], strict=False)]
    assert max(gaps) <= 4, "a CONFIG of the window waits for the sequencer only"


def test_finish_waits_for_the_other_stages() -> None:
    trace = _bench(idle_from=50).run([_gemm(), Finish(pop_prev=True)])
    assert trace.finished is not None
    assert 50 <= trace.finished <= 53
    assert trace.waits[40] == (Wait.BUSY, 1)


def test_finish_pushes_before_it_ends() -> None:
    trace = _bench(counters={"room_next": 0}, grants={30: "room_next"}).run(
        [Finish(push_next=True)]
    )
    assert trace.given == [(30, "next")]
    assert trace.finished == 30


NOPS: dict[str, Instruction] = {
    "LOAD of no column": Load(memory=Memory.UOP, y_size=3, x_pad_0=1),
    "LOAD of no row": Load(memory=Memory.ACC, x_size=3, y_pad_0=1),
    "GEMM without iterations": Gemm(uop_end=1, iter_in=1),
    "ALU without micro-ops": Alu(uop_bgn=2, uop_end=2, iter_out=1, iter_in=1),
    "CONFIG": Config(stage=Stage.COMPUTE, register=0, value=3),
}


@pytest.mark.parametrize("nop", NOPS.values(), ids=NOPS)
def test_nothing_to_do_only_moves_tokens(nop: Instruction) -> None:
    fields = dict.fromkeys(("pop_prev", "pop_next", "push_prev", "push_next"), True)
    moving = type(nop)(**(vars(nop) | fields))
    trace = _bench().run([moving] * 10 + [Finish()])
    assert trace.finished is not None
    assert trace.finished < 30
    assert len(trace.given) == len(trace.taken) == 20
    assert not trace.loads
    assert not trace.gemm_cycles


def _steady(trace: Trace) -> tuple[Wait, int]:
    return trace.waits[-1]


WAITS = {
    "pop prev": ([_gemm(), _gemm(pop_prev=True)], {"tokens_prev": 0}, (Wait.POP_PREV, 1)),
    "pop next": ([_gemm(), _gemm(pop_next=True)], {"tokens_next": 0}, (Wait.POP_NEXT, 1)),
    "pop both": (
        [_gemm(pop_prev=True, pop_next=True)],
        {"tokens_prev": 0, "tokens_next": 0},
        (Wait.POP_PREV, 0),
    ),
    "push prev": ([_gemm(push_prev=True), _gemm()], {"room_prev": 0}, (Wait.PUSH_PREV, 0)),
    "push next": ([_gemm(), _gemm(push_next=True)], {"room_next": 0}, (Wait.PUSH_NEXT, 1)),
    "idle": ([_gemm(push_prev=True, push_next=True)], {}, (Wait.IDLE, 0)),
}


@pytest.mark.parametrize(("program", "counters", "shown"), WAITS.values(), ids=WAITS)
def test_wait_codes(
    program: list[Instruction], counters: dict[str, int], shown: tuple[Wait, int]
) -> None:
    code, index = _steady(_bench(counters=counters).run(program, cycles=40))
    assert code == shown[0]
    assert shown[0] is Wait.IDLE or index == shown[1]


def test_neither_token_is_taken_without_the_other() -> None:
    program = [_gemm(pop_prev=True, pop_next=True)]
    trace = _bench(counters={"tokens_next": 0}, grants={20: "tokens_next"}).run(program)
    assert trace.taken == [(20, "prev"), (20, "next")]


def test_pushes_stay_in_order_while_one_waits_for_room() -> None:
    """The first instruction's push waits; those behind may run, but give nothing before it."""
    program = [_gemm(push_next=True), _gemm(push_prev=True), _gemm(push_prev=True)]
    trace = _bench(counters={"room_next": 0}, grants={40: "room_next"}).run(program, cycles=60)
    assert trace.given == [(40, "next"), (41, "prev"), (42, "prev")]


def test_more_instructions_than_fit_in_flight() -> None:
    program = [_gemm(push_next=True)] * 20
    trace = _bench(counters={"room_next": 0}, grants=dict.fromkeys(range(60, 80), "room_next")).run(
        program
    )
    assert len(trace.given) == 20
    assert len(trace.gemm_cycles) == 20


@pytest.mark.parametrize("profile", Profile)
def test_vitral_fields_are_ignored_in_the_vta_profile(profile: Profile) -> None:
    program = [
        Config(stage=Stage.COMPUTE, register=0, value=-5),
        Load(memory=Memory.ACC, x_size=1, y_size=1, pad_value=True),
        _gemm(overwrite=True, push_next=True),
    ]
    trace = _bench(profile=profile, loaded=[1, 2, 3, 4], watch=0).run(program, cycles=60)
    vitral = profile is Profile.VITRAL
    assert trace.pad_acc == (-5) % (1 << 32)
    assert trace.loads[0]["pad_value"] == vitral
    assert list(trace.watched.values()) == [_after([1, 2, 3, 4], _gemm(overwrite=vitral))]


LONG = Gemm(uop_end=8, iter_out=20, iter_in=20)
ABANDONED: dict[str, tuple[list[Instruction], dict[str, int]]] = {
    "GEMM under way": ([LONG], {}),
    "a fault": ([Gemm(uop_end=1, iter_out=1, iter_in=99, dst_factor_in=1), LONG], {}),
    "a push without room": ([_gemm(push_prev=True), LONG], {"room_prev": 0}),
    "a LOAD": ([Load(memory=Memory.ACC, x_size=30, y_size=1), LONG], {}),
    "a pad register": ([Config(stage=Stage.COMPUTE, register=0, value=7), LONG], {}),
}


@pytest.mark.parametrize(("abandoned", "counters"), ABANDONED.values(), ids=ABANDONED)
def test_clear_leaves_nothing_behind(
    abandoned: list[Instruction], counters: dict[str, int]
) -> None:
    program = [
        Load(memory=Memory.ACC, x_size=1, y_size=1),
        _gemm(push_next=True),
        Finish(),
    ]
    bench = _bench(counters=counters, loaded=[9, 8, 7, 6], watch=0)
    trace = bench.run(program, abandoned=abandoned, clear_at=45)
    assert trace.finished is not None
    assert [side for _, side in trace.given] == ["next"]
    assert list(trace.watched.values()) == [_after([9, 8, 7, 6], _gemm())]
    assert trace.pad_acc == 0
