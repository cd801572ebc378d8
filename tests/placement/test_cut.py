"""The minimum cut against all choices of small graphs."""

from itertools import product
from math import inf

import numpy as np
import pytest

from vitral.compiler.placement.cut import Item, split


def _cost(
    items: list[Item], copies: dict[str, float], outputs: list[str], there: set[str]
) -> float:
    """Written from the definition: operators, and each value that crosses once."""
    total = sum(item.accelerator if item.output in there else item.host for item in items)
    values = {name for item in items for name in item.inputs} | set(outputs)
    for value in values:
        readers = {item.output in there for item in items if value in item.inputs}
        readers |= {False} if value in outputs else set()
        total += copies[value] if (value not in there) in readers else 0
    return total


def _random_items(seed: int) -> tuple[list[Item], dict[str, float], list[str]]:
    rng = np.random.default_rng(seed)
    names = ["in"]
    items = []
    for number in range(rng.integers(1, 8)):
        count = int(rng.integers(1, 4))
        inputs = tuple(str(name) for name in rng.choice(names, count))
        costs = rng.integers(0, 20, 2).astype(float)
        if rng.random() < 0.2:
            costs[1] = inf
        items.append(Item(output=f"v{number}", inputs=inputs, host=costs[0], accelerator=costs[1]))
        names.append(f"v{number}")
    copies = {name: float(rng.integers(0, 12)) for name in names}
    outputs = [str(name) for name in rng.choice(names[1:], 2)]
    return items, copies, outputs


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_costs_less(seed: int) -> None:
    items, copies, outputs = _random_items(seed)
    choices = [
        {item.output for item, taken in zip(items, flags, strict=True) if taken}
        for flags in product([False, True], repeat=len(items))
    ]
    least = min(_cost(items, copies, outputs, there) for there in choices)
    assert _cost(items, copies, outputs, split(items, copies, outputs)) == least


def test_one_tensor_is_paid_for_once() -> None:
    """Three readers on the accelerator, each worth 2, for one copy of 5."""
    items = [
        Item(output=name, inputs=("x",), host=2.0, accelerator=0.0) for name in ("a", "b", "c")
    ]
    copies = {"x": 5.0, "a": 5.0, "b": 5.0, "c": 5.0}
    assert split(items, copies) == {"a", "b", "c"}
    assert split(items[:2], copies) == set()


def test_what_cannot_run_there_does_not() -> None:
    items = [Item(output="a", inputs=("x",), host=1e6, accelerator=inf)]
    assert split(items, {"x": 0.0, "a": 0.0}) == set()
