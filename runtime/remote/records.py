"""Launches, outcomes and errors as JSON values, and checked access to metadata."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitral.errors import ConfigError, DeviceError, ExecutionFault, ModuleError, VitralError
from vitral.isa import Cause, Memory, Profile, Stage
from vitral.program import Launch, Outcome, Wait, WaitReason
from vitral.runtime.remote.frames import ProtocolError

__all__ = [
    "error_from",
    "error_record",
    "launch_record",
    "outcome_from",
    "outcome_record",
    "relocated_launch",
    "take_int",
    "take_marks",
    "take_pairs",
    "take_seconds",
    "take_text",
]

Record = dict[str, Any]

_ERRORS: dict[str, type[VitralError]] = {
    "DeviceError": DeviceError,
    "ModuleError": ModuleError,
    "ConfigError": ConfigError,
}
_LONGEST_MESSAGE = 2000


def take_int(metadata: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """An int of a frame within `low`..`high`; ProtocolError otherwise."""
    value = metadata.get(name)
    if type(value) is not int or not low <= value <= high:
        raise ProtocolError(f"{name} must be {low}..{high}, got {_short(value)}")
    return value


def take_text(metadata: Mapping[str, Any], name: str, length: int) -> str:
    """A text of a frame with at most `length` characters."""
    value = metadata.get(name)
    if not isinstance(value, str) or len(value) > length:
        raise ProtocolError(f"{name} must be a text of at most {length}, got {_short(value)}")
    return value


def take_seconds(metadata: Mapping[str, Any], name: str) -> float | None:
    """A time of more than 0 seconds, or None."""
    value = metadata.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not value > 0:
        raise ProtocolError(f"{name} must be more than 0 seconds, got {_short(value)}")
    return float(value)


def take_pairs(
    metadata: Mapping[str, Any], name: str, arena_bytes: int, count: int = 4096
) -> tuple[tuple[int, int], ...]:
    """Ranges (offset, bytes) inside an arena, at most `count` of them."""
    value = metadata.get(name, [])
    if not isinstance(value, list) or len(value) > count:
        raise ProtocolError(f"{name} must be at most {count} ranges, got {_short(value)}")
    for pair in value:
        if not _is_range(pair, arena_bytes):
            raise ProtocolError(
                f"{name}: {_short(pair)} is no range of an arena of {arena_bytes} bytes"
            )
    return tuple((offset, nbytes) for offset, nbytes in value)


def take_marks(metadata: Mapping[str, Any], count: int = 4096) -> tuple[int, ...]:
    value = metadata.get("marks", [])
    good = isinstance(value, list) and len(value) <= count
    if not good or any(type(mark) is not int or not 0 <= mark < 1 << 24 for mark in value):
        raise ProtocolError(f"marks must be at most {count} instruction numbers")
    return tuple(value)


def launch_record(launch: Launch) -> Record:
    """A launch whose addresses are offsets into its arena."""
    return {
        "insn_base": launch.insn_base,
        "insn_count": launch.insn_count,
        "profile": int(launch.profile),
        "bases": {memory.name: base for memory, base in launch.bases.items()},
        "limit_low": launch.limit_low,
        "limit_high": launch.limit_high,
    }


def relocated_launch(record: Any, address: int, arena_bytes: int) -> Launch:
    """The launch of a record for an arena at byte `address`; it cannot reach anything else.

    Raises
    ------
    ProtocolError
        When an offset or limit is outside the arena.
    DeviceError
        When the core's registers cannot hold a value.
    """
    if not isinstance(record, Mapping) or not isinstance(record.get("bases"), Mapping):
        raise ProtocolError("a launch must be an object with bases")
    bases = record["bases"]
    unknown = [name for name in bases if name not in Memory.__members__]
    if unknown:
        raise ProtocolError(f"a launch names memories that there are none of: {_short(unknown)}")
    offsets = {
        memory: take_int(bases, memory.name, 0, arena_bytes) if memory.name in bases else 0
        for memory in Memory
    }
    low = take_int(record, "limit_low", 0, arena_bytes)
    return Launch(
        insn_base=address + take_int(record, "insn_base", 0, arena_bytes),
        insn_count=take_int(record, "insn_count", 0, (1 << 24) - 1),
        profile=Profile(take_int(record, "profile", min(Profile), max(Profile))),
        bases={memory: address + offset for memory, offset in offsets.items()},
        limit_low=address + low,
        limit_high=address + take_int(record, "limit_high", low, arena_bytes),
    )


def outcome_record(outcome: Outcome) -> Record:
    """All of an outcome but its timeline."""
    return {
        "cause": int(outcome.cause),
        "index": outcome.index,
        "waits": [
            [None if wait.stage is None else int(wait.stage), wait.index, int(wait.reason)]
            for wait in outcome.waits
        ],
        "cycles": outcome.cycles,
        "counters": dict(outcome.counters),
        "insns": outcome.insns,
        "marks": sorted(outcome.marks.items()),
        "mark_counters": [[n, dict(values)] for n, values in sorted(outcome.mark_counters.items())],
    }


def outcome_from(record: Any) -> Outcome:
    """The outcome of a record; ProtocolError when it is none."""
    try:
        return Outcome(
            Cause(record["cause"]),
            int(record["index"]),
            waits=tuple(_wait(*wait) for wait in record["waits"]),
            cycles=None if record["cycles"] is None else int(record["cycles"]),
            counters=_ints(record["counters"]),
            insns=int(record["insns"]),
            marks={int(mark): int(cycle) for mark, cycle in record["marks"]},
            mark_counters={int(mark): _ints(values) for mark, values in record["mark_counters"]},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ProtocolError("the server's answer is no outcome") from None


def error_record(error: VitralError) -> Record:
    """Kind and message of an error; those that the client does not know become DeviceError."""
    record: Record = {"message": " ".join(str(error).split())[:_LONGEST_MESSAGE]}
    if isinstance(error, ExecutionFault):
        return record | {"type": "ExecutionFault", "cause": error.cause, "index": error.index}
    kinds = [name for name, kind in _ERRORS.items() if type(error) is kind]
    return record | {"type": kinds[0] if kinds else "DeviceError"}


def error_from(record: Mapping[str, Any], where: str) -> VitralError:
    """The error of a record, with the server it comes from in front."""
    message = f"{where}: {' '.join(str(record.get('message', 'unknown error')).split())}"
    cause, index = record.get("cause"), record.get("index")
    if record.get("type") == "ExecutionFault" and type(cause) is int and type(index) is int:
        return ExecutionFault(message, cause=cause, index=index)
    return _ERRORS.get(str(record.get("type")), DeviceError)(message)


def _is_range(pair: Any, arena_bytes: int) -> bool:
    return (
        isinstance(pair, Sequence)
        and len(pair) == 2
        and all(type(value) is int and value >= 0 for value in pair)
        and pair[0] + pair[1] <= arena_bytes
    )


def _wait(stage: int | None, index: int, reason: int) -> Wait:
    return Wait(None if stage is None else Stage(stage), int(index), WaitReason(reason))


def _ints(values: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(value) for name, value in values.items()}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
