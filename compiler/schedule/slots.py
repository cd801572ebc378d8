"""Assigns data that is used in a known order to the few slots of an on-chip memory."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

__all__ = ["assign_slots"]

_NEVER = 1 << 62


def assign_slots(keys: Sequence[Hashable], slots: int, first: int = 0) -> list[tuple[int, bool]]:
    """For each use, its slot and whether the data must be loaded into it first.

    Unused slots are taken in turn from `first` on. Then the data whose next use is farthest
    away goes, but never the one used just before while there is another: its slot is still
    being read, so the load could not run ahead.
    """
    uses: dict[Hashable, list[int]] = defaultdict(list)
    for place in range(len(keys) - 1, -1, -1):
        uses[keys[place]].append(place)
    free = [(first + offset) % slots for offset in range(slots - 1, -1, -1)]
    resident: dict[Hashable, int] = {}  # in order of last use, the latest last
    result: list[tuple[int, bool]] = []
    for key in keys:
        uses[key].pop()
        load = key not in resident
        if load and free:
            slot = free.pop()
        elif load:
            slot = resident.pop(_victim(resident, uses))
        else:
            slot = resident.pop(key)
        resident[key] = slot
        result.append((slot, load))
    return result


def _victim(resident: dict[Hashable, int], uses: dict[Hashable, list[int]]) -> Hashable:
    candidates = list(resident)
    if len(candidates) > 1:
        candidates.pop()
    return max(candidates, key=lambda key: uses[key][-1] if uses[key] else _NEVER)
