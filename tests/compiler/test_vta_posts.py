"""ALU operations of the plain VTA profile: the same function, in few operations that fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitral.compiler.passes.vta_posts import AddConstant, Clamp, Operation, Shift, vta_posts
from vitral.compiler.schedule.vta_layer import AddBias, AddTensor, Immediate, Post
from vitral.isa import AluOp

CHANNELS = 3
LOW, HIGH = -(1 << 31), (1 << 31) - 1


def wrapped(values: np.ndarray) -> np.ndarray:
    return ((values + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)


def computed(operations: list[Operation], sums: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    """int32 semantics in int64, operation by operation; `sums` and `tensor` are (n, channels)."""
    for operation in operations:
        match operation:
            case Clamp(low=low, high=high):
                sums = np.clip(sums, LOW if low is None else low, HIGH if high is None else high)
            case Shift(amount=amount):
                sums = sums >> amount if amount >= 0 else wrapped(sums << -amount)
            case AddConstant(values=values):
                sums = wrapped(sums + values)
            case AddTensor(shift=shift):
                sums = wrapped(sums + wrapped(tensor << shift))
    return sums


def executed(posts: tuple[Post, ...], sums: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    for post in posts:
        match post:
            case AddBias(bias=bias):
                sums = wrapped(sums + bias)
            case AddTensor(shift=shift):
                sums = wrapped(sums + wrapped(tensor << shift))
            case Immediate(op=AluOp.ADD, imm=imm):
                sums = wrapped(sums + imm)
            case Immediate(op=AluOp.MAX, imm=imm):
                sums = np.maximum(sums, imm)
            case Immediate(op=AluOp.MIN, imm=imm):
                sums = np.minimum(sums, imm)
            case Immediate(op=AluOp.SHR, imm=imm):
                sums = sums >> imm if imm >= 0 else wrapped(sums << -imm)
    return sums


bounds = st.one_of(st.none(), st.integers(-300, 300), st.integers(-(1 << 20), 1 << 20))
constants = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-200, 200)
operations = st.one_of(
    st.builds(Clamp, bounds, bounds),
    st.builds(Shift, st.integers(-10, 12)),
    st.builds(lambda value: AddConstant(np.array(value, np.int32)), constants),
    st.builds(
        lambda values: AddConstant(np.array(values, np.int32)),
        st.lists(constants, min_size=CHANNELS, max_size=CHANNELS),
    ),
    st.builds(AddTensor, st.just("x"), st.integers(0, 24)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(operations, max_size=6), st.integers(1, 1 << 31), st.integers(0, 1 << 30))
def test_posts_are_the_same_function(chain: list[Operation], span: int, seed: int) -> None:
    low, high = -span, span - 1
    posts = vta_posts(chain, (low, high), CHANNELS)
    if posts is None:
        return
    rng = np.random.default_rng(seed)
    sums = rng.integers(low, high, (64, CHANNELS), endpoint=True)
    sums[:2] = [[low], [high]]
    tensor = rng.integers(-128, 128, (64, CHANNELS))
    np.testing.assert_array_equal(executed(posts, sums, tensor), computed(chain, sums, tensor))


def shown(posts: tuple[Post, ...] | None) -> list[str]:
    assert posts is not None
    return [f"{p.op.name} {p.imm}" if isinstance(p, Immediate) else type(p).__name__ for p in posts]


def number(value: int) -> AddConstant:
    return AddConstant(np.array(value, np.int32))


BIAS = AddConstant(np.array([5, -6, 7], np.int32))
RELU, LIMITS = Clamp(0, None), Clamp(-127, 127)


@pytest.mark.parametrize(
    ("chain", "wanted"),
    [
        ([RELU, number(64), Shift(7), LIMITS], ["ADD 64", "SHR 7", "MAX 0", "MIN 127"]),
        ([number(64), Shift(7), LIMITS], ["ADD 64", "SHR 7", "MAX -127", "MIN 127"]),
        ([BIAS, RELU, number(64), Shift(7), LIMITS], ["AddBias", "SHR 7", "MAX 0", "MIN 127"]),
        (
            [BIAS, AddTensor("x", 3), RELU, number(64), Shift(7), LIMITS],
            ["AddBias", "AddTensor", "SHR 7", "MAX 0", "MIN 127"],
        ),
        ([number(1 << 20), Shift(21), LIMITS], ["AddBias", "SHR 21"]),
        ([Shift(20), LIMITS], ["SHR 20"]),
        ([number(0), Shift(0)], []),
        ([Clamp(0, 40_000), Shift(1), Clamp(-127, 127)], ["SHR 1", "MAX 0", "MIN 127"]),
    ],
)
def test_clamps_move_behind_and_constants_join(chain: list[Operation], wanted: list[str]) -> None:
    assert shown(vta_posts(chain, (-1_000_000, 1_000_000), CHANNELS)) == wanted


@pytest.mark.parametrize(
    "chain",
    [
        [Clamp(0, 40_000)],
        [BIAS, Shift(1), BIAS],
        [Clamp(-40_000, None), AddTensor("x", 0)],
    ],
)
def test_what_does_not_fit_is_left_to_the_cpu(chain: list[Operation]) -> None:
    assert vta_posts(chain, (-1_000_000, 1_000_000), CHANNELS) is None
