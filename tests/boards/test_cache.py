"""The modelled cache: what passes between processor and memory, and what does not."""

import numpy as np
import pytest

from vitral.errors import DeviceError
from vitral.sim.board import CachedMemory

pytestmark = pytest.mark.board
LINE = 32


def memory(seed: int | None = None, lines: int = 64) -> CachedMemory:
    return CachedMemory(np.zeros(lines * LINE, np.uint8), LINE, seed=seed)


def test_a_write_stays_in_the_cache_until_flushed() -> None:
    m = memory()
    m.data[5] = 7
    assert (m.dram[5], m.dirty_lines) == (0, 1)
    m.flush(5, 1)
    assert (m.dram[5], m.dirty_lines) == (7, 0)


def test_what_a_device_wrote_is_seen_after_invalidate_only() -> None:
    m = memory()
    m.invalidate(0, LINE)  # before the device writes: a processor fetches ahead
    m.dram[0] = 9
    assert m.data[0] == 0
    m.invalidate(0, 1)
    assert m.data[0] == 9


def test_operations_are_on_whole_lines() -> None:
    m = memory()
    m.data[: 3 * LINE] = 1
    m.flush(LINE + 4, 2)
    assert m.dram.tolist()[: 3 * LINE] == [0] * LINE + [1] * LINE + [0] * LINE
    m.invalidate(2 * LINE - 1, 2)  # two lines: the flushed one, and one that forgets its 1s
    assert m.data.tolist()[: 3 * LINE] == [1] * 2 * LINE + [0] * LINE


def test_flush_leaves_clean_lines_alone() -> None:
    m = memory()
    m.dram[: 2 * LINE] = 5  # by a device
    m.data[0] = 1
    m.flush(0, 2 * LINE)
    assert m.dram[LINE] == 5
    assert m.dram[1] == 0, "a dirty line is written whole, over what the device had put there"


@pytest.mark.parametrize("seed", range(5))
def test_eviction_writes_some_dirty_lines_and_rereads_them(seed: int) -> None:
    m = memory(seed, lines=400)
    m.data[:] = 1
    m.evict()
    written = m.dram.reshape(-1, LINE).all(axis=1)
    assert 10 < written.sum() < 90, f"seed {seed}"
    assert m.dirty_lines == 400 - written.sum()
    m.flush(0, m.data.size)
    m.dram[:] = 2
    m.evict()
    fresh = m.data.reshape(-1, LINE) == 2
    assert set(fresh.sum(axis=1)) == {0, LINE}, f"seed {seed}"


def test_without_a_seed_nothing_is_evicted() -> None:
    m = memory()
    m.data[:] = 1
    m.evict()
    assert not m.dram.any()


def test_bad_ranges_and_lines() -> None:
    with pytest.raises(DeviceError, match="cache operation on 2 bytes at 2047 of 2048"):
        memory().flush(2047, 2)
    with pytest.raises(DeviceError, match="whole number of lines"):
        CachedMemory(np.zeros(33, np.uint8), LINE)
