"""Cuts transfers into bursts as the core's row walker and burst splitter do."""

from functools import lru_cache

from vitral.config import CoreConfig

__all__ = ["Transfer", "transfer"]

PAGE_BYTES = 4096


class Transfer:
    """The bursts of a LOAD or STORE, in beats; the first `before_last` are not of its last row."""

    __slots__ = ("before_last", "bursts")

    def __init__(self, bursts: tuple[int, ...], before_last: int) -> None:
        self.bursts = bursts
        self.before_last = before_last


@lru_cache(maxsize=8192)
def _cut(place: int, beats: int, limit: int, page: int) -> tuple[int, ...]:
    """Bursts of a run that starts `place` beats into a page."""
    bursts = []
    while beats:
        burst = min(beats, limit, page - place)
        bursts.append(burst)
        beats -= burst
        place = (place + burst) % page
    return tuple(bursts)


def transfer(
    address: int, row_bytes: int, stride_bytes: int, rows: int, joinable: bool, config: CoreConfig
) -> Transfer:
    """`rows` rows of `row_bytes` bytes from byte `address` on; abutting ones become one."""
    width = config.layout.beat_bytes
    page, limit = PAGE_BYTES // width, config.burst_beats
    if joinable and row_bytes == stride_bytes:
        row_bytes, rows = row_bytes * rows, 1
    bursts: list[int] = []
    before_last = 0
    for row in range(rows):
        start = address + row * stride_bytes
        first = start // width
        before_last = len(bursts)
        bursts += _cut(first % page, -(-(start + row_bytes) // width) - first, limit, page)
    return Transfer(tuple(bursts), before_last)
