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
    slot_of: dict[Hashable, int] = {}
    following: dict[Hashable, int] = {}  # next use of what is there; the one used last is last
    result: list[tuple[int, bool]] = []
    for key in keys:
        later = uses[key]
        later.pop()
        load = following.pop(key, None) is None
        if load and free:
            slot_of[key] = free.pop()
        elif load:
            slot_of[key] = slot_of.pop(_victim(following))
        following[key] = later[-1] if later else _NEVER
        result.append((slot_of[key], load))
    return result


def _victim(following: dict[Hashable, int]) -> Hashable:
    """Takes out the data whose next use is farthest away, and gives its key."""
    latest = following.popitem() if len(following) > 1 else None
    victim = max(following, key=following.__getitem__)
    del following[victim]
    if latest is not None:
        following[latest[0]] = latest[1]
    return victim
