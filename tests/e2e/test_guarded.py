"""The guarded device sees what it is there to see."""

from dataclasses import replace

import numpy as np
import pytest
from e2e.compiled import case_named, compiled
from e2e.guarded import GuardedDevice
from hand_made import RESULT, double_instructions, double_module

import vitral
from vitral.config import CoreConfig
from vitral.isa import Instruction, Memory, Store
from vitral.program import Dram

X = {"x": np.arange(96, dtype=np.int8).reshape(1, 16, 2, 3)}


def run(*program: Instruction) -> None:
    module = double_module(instructions=program)
    with vitral.Session(module, device=GuardedDevice("reference", module)) as session:
        np.testing.assert_array_equal(
            session.run(None, X)[0], (2 * X["x"].astype(int)).astype(np.int8)
        )


def test_an_element_after_the_result() -> None:
    load, acc, alu, store, finish = double_instructions(CoreConfig(), 6)
    assert isinstance(store, Store)
    with pytest.raises(AssertionError, match="16 bytes changed that are no result"):
        run(load, acc, alu, replace(store, x_size=7), finish)


def test_an_element_before_the_result() -> None:
    load, acc, alu, store, finish = double_instructions(CoreConfig(), 6)
    assert isinstance(store, Store)
    early = replace(store, dram_base=RESULT // 16 - 1, x_size=7)
    with pytest.raises(AssertionError, match="16 bytes changed that are no result"):
        run(load, acc, alu, early, finish)


def test_a_store_into_the_arena() -> None:
    load, acc, alu, store, finish = double_instructions(CoreConfig(), 6)
    assert isinstance(store, Store)
    wide = replace(store, memory=Memory.ACC, dram_base=RESULT // 64, x_size=1)
    with pytest.raises(AssertionError, match="bytes changed that are no result"):
        run(load, acc, alu, wide, finish)


def test_memory_is_random_outside_the_image() -> None:
    module = compiled("V2", "qdq")
    device = GuardedDevice("fsim", module, seed=3)
    device.allocate(module.arena_bytes)
    counts = np.bincount(device.dram.data)
    assert counts.min() > 0
    assert counts.argmax() == 0xA5
    assert isinstance(device.dram, Dram)


def test_a_wrong_byte_is_reported_with_its_policy() -> None:
    case = case_named("ROUND-TIE")
    wrong = np.array([1, 2, 3, 4, 5, 6], np.int8).reshape(case.expected.shape)
    with pytest.raises(AssertionError, match="half up"):
        case.check(wrong)
