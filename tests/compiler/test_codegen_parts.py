"""Arena, hazards, micro-op placement and parameter halves."""

import numpy as np
import pytest

from vitral.compiler.codegen.arena import ALIGN, Arena
from vitral.compiler.codegen.hazards import Hazards
from vitral.compiler.codegen.microops import MicroOps
from vitral.compiler.codegen.params import ParamRing
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import InstructionSet, Load, Memory, Uop


def test_blocks_start_at_pages_and_do_not_overlap() -> None:
    arena = Arena()
    offsets = [arena.reserve(1), arena.place(np.arange(5000, dtype=np.int8)), arena.borrow(4096)]
    assert offsets == [0, 4096, 12288]
    assert arena.size == 16384
    assert list(arena.image) == [4096]
    assert arena.image[4096].tobytes() == np.arange(5000, dtype=np.int8).tobytes()


def test_released_space_is_used_again_and_grows_together() -> None:
    arena = Arena()
    first, second, third = (arena.borrow(ALIGN) for _ in range(3))
    arena.release(first)
    arena.release(second)
    assert arena.borrow(2 * ALIGN) == first
    arena.release(third)
    assert arena.borrow(1) == third
    assert arena.size == 3 * ALIGN


def test_the_smallest_fitting_block_is_lent() -> None:
    arena = Arena()
    large, _, small, _ = (arena.borrow(n * ALIGN) for n in (3, 1, 1, 1))
    arena.release(large)
    arena.release(small)
    assert arena.borrow(ALIGN) == small
    assert arena.borrow(ALIGN) == large
    assert arena.borrow(2 * ALIGN) == large + ALIGN


def test_only_borrowed_blocks_are_released() -> None:
    arena = Arena()
    with pytest.raises(CompileError, match="no block is borrowed at 0x0"):
        arena.release(arena.reserve(1))


def test_reads_wait_for_the_writer_and_writes_for_the_last_reader() -> None:
    hazards = Hazards(8)
    hazards.write(slice(0, 4), 1)
    hazards.write(slice(4, 8), 2)
    assert hazards.before_read(slice(0, 4)) == 1
    assert hazards.before_read(slice(3, 5)) == 2
    assert hazards.before_write(slice(0, 8)) == -1
    hazards.read(slice(2, 3), 5)
    assert hazards.before_write(slice(0, 3)) == 5
    assert hazards.before_write(slice(3, 8)) == -1
    assert hazards.before_read(slice(2, 2)) == -1


def _sequence(first: int, length: int) -> tuple[Uop, ...]:
    return tuple(Uop(dst=0, src=first, wgt=n) for n in range(length))


def _ring_config() -> CoreConfig:
    return CoreConfig(uop_buffer=64)  # 16 micro-ops


def test_micro_ops_that_all_fit_are_loaded_once() -> None:
    a, b = _sequence(0, 6), _sequence(1, 7)
    uops = MicroOps(_ring_config(), [[a, b, a], [b]])
    isa = InstructionSet.of(_ring_config())
    assert uops.image.tolist() == [isa.encode_uop(uop) for uop in (*a, *b)]
    base, loads = uops.request(0, b, 100)
    assert (base, [(i.sram_base, i.dram_base, i.x_size) for i in loads]) == (6, [(0, 100, 13)])
    assert uops.request(1, b, 100) == (6, [])
    assert uops.request(1, a, 100) == (0, [])


def test_neighbouring_layers_are_loaded_together_while_they_fit() -> None:
    a, b, c, d = _sequence(0, 6), _sequence(1, 7), _sequence(2, 9), _sequence(3, 20)
    uops = MicroOps(_ring_config(), [[a], [a, b], [c], [c, b], [d], [a]])
    assert [i.x_size for i in uops.request(0, a, 0)[1]] == [13]
    assert uops.request(1, b, 0) == (6, [])
    assert [i.x_size for i in uops.request(2, c, 0)[1]] == [16]
    assert uops.request(3, b, 0) == (9, [])
    assert [i.x_size for i in uops.request(5, a, 0)[1]] == [6]


def test_micro_ops_of_a_layer_are_loaded_as_it_starts() -> None:
    a, b, c = _sequence(0, 6), _sequence(1, 7), _sequence(2, 5)
    uops = MicroOps(_ring_config(), [[a, b], [b, c]])
    assert uops.request(0, a, 0)[1][0].x_size == 13
    assert uops.request(0, b, 0) == (6, [])
    base, loads = uops.request(1, c, 0)
    assert base == 7
    assert [(i.sram_base, i.dram_base, i.x_size) for i in loads] == [(0, 13, 12)]
    assert uops.request(1, b, 0) == (0, [])


def test_micro_ops_that_do_not_fit_are_loaded_in_a_ring() -> None:
    sequences = [_sequence(n, 6) for n in range(4)]
    uops = MicroOps(_ring_config(), [sequences])
    held: dict[int, Uop] = {}
    stored = [uop for sequence in sequences for uop in sequence]
    for number in (0, 1, 0, 2, 1, 0, 3, 3, 0):
        base, loads = uops.request(0, sequences[number], 0)
        for insn in loads:
            assert insn.memory is Memory.UOP
            for n in range(insn.x_size):
                held[insn.sram_base + n] = stored[insn.dram_base + n]
        assert tuple(held[base + n] for n in range(6)) == sequences[number]
        assert max(held) < 16


@pytest.mark.parametrize("blocks", [1, 3, 4, 5, 8, 9, 20])
def test_parameters_are_in_place_whenever_they_are_asked_for(blocks: int) -> None:
    ring, held = ParamRing(8), {}
    rng = np.random.default_rng(blocks)
    for layer in (0, 1, 2):
        for block in (0, *(int(n) for n in rng.integers(0, blocks, 30))):
            place, insn = ring.request(layer, block, blocks, 100 * layer)
            if isinstance(insn, Load):
                for n in range(insn.x_size):
                    held[insn.sram_base + n] = insn.dram_base + n
            assert held[place] == 100 * layer + block
    assert max(held) < 8
    assert ring.holds(0, blocks, blocks) == (blocks <= 8)
