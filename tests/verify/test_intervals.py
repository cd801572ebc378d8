"""IntervalSet against sets of numbers."""

import random

import pytest

from vitral.verify.intervals import IntervalSet


def random_set(rng: random.Random) -> tuple[IntervalSet, set[int]]:
    ranges = [(rng.randrange(40), rng.randrange(6)) for _ in range(rng.randrange(6))]
    return IntervalSet.of(ranges), {n for start, size in ranges for n in range(start, start + size)}


def members(intervals: IntervalSet) -> set[int]:
    pairs = zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True)
    return {n for start, end in pairs for n in range(start, end)}


@pytest.mark.parametrize("seed", range(50))
def test_operations_are_those_of_sets(seed: int) -> None:
    rng = random.Random(seed)
    (one, mine), (other, its) = random_set(rng), random_set(rng)
    for result, wanted in (
        (one, mine),
        (one | other, mine | its),
        (one & other, mine & its),
        (one - other, mine - its),
    ):
        assert members(result) == wanted
        assert result.size == len(wanted)
        assert bool(result) == bool(wanted)
        assert (result.starts[1:] > result.ends[:-1]).all(), "merged and sorted"
    start, size = rng.randrange(50), rng.randrange(1, 5)
    assert one.covers([start], [start + size])[0] == set(range(start, start + size)).issubset(mine)
    assert one.covers([start], [start])[0], "an empty interval is in every set"


def test_equal_sets_are_equal() -> None:
    assert IntervalSet.of([(0, 4), (4, 4)]) == IntervalSet.of([(2, 6), (0, 3)])
    assert IntervalSet.of([(0, 4)]) != IntervalSet()
