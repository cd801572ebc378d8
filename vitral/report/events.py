"""A run as trace events, the JSON form that Perfetto and chrome://tracing open.

One microsecond of the trace is one clock cycle. Programs follow each other without the time that
the host takes between them. What the host did is a process of its own, with its own clock: kernels
on the CPU and tensors moved, one after the other, in real microseconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vitral.errors import DeviceError
from vitral.isa import Stage
from vitral.program import Outcome, Span, Timeline, WaitReason
from vitral.program.timeline import TRAFFIC_CYCLES
from vitral.report.programs import instruction_texts, layer_of, layer_spans
from vitral.runtime.module import Module, Segment
from vitral.runtime.profile import LayerProfile

__all__ = ["trace_events"]

Event = dict[str, Any]
PROCESS = 1
PROGRAMS, LAYERS = 1, 2
HOST = 2
KERNELS, COPIES = 1, 2
LANES = {Stage.LOAD: 10, Stage.COMPUTE: 20, Stage.STORE: 30}
"""Thread of a stage's first lane; instructions that overlap lie in further ones."""
SHORT_WAIT = 8
"""Cycles from which a wait is worth an event of its own."""


@dataclass(frozen=True)
class _Slice:
    """One instruction on one stage, from its first cycle there to its last."""

    index: int
    start: int
    end: int
    lane: int
    waits: tuple[Span, ...]


def trace_events(
    module: Module, outcomes: Sequence[Outcome], profile: Sequence[LayerProfile] = ()
) -> dict[str, Any]:
    """The runs of a module's programs, in order, as one trace; `profile` adds the host's side.

    Raises
    ------
    DeviceError
        When an outcome has no timeline.
    """
    events = list(_names(module))
    offset = 0
    for segment, outcome in zip(module.segments, outcomes, strict=True):
        timeline = outcome.timeline
        if timeline is None:
            raise DeviceError(f"{segment.name}: its run has no timeline; ask tsim for one")
        events += _program(segment, module, outcome, timeline, offset)
        offset += timeline.cycles
    events += _host(profile)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"unit": "1 us in the trace is 1 clock cycle", "cycles": offset},
    }


def _names(module: Module) -> Iterator[Event]:
    yield _meta("process_name", PROCESS, {"name": f"vitral core {module.config.digest[:12]}"})
    yield _thread(PROGRAMS, "program")
    yield _thread(LAYERS, "layer")


def _host(profile: Sequence[LayerProfile]) -> Iterator[Event]:
    """What the host did, and behind each other what it waited for."""
    if not profile:
        return
    for name, thread, text in (
        ("process_name", KERNELS, "host (1 us is 1 us)"),
        ("thread_name", KERNELS, "kernels"),
        ("thread_name", COPIES, "copies"),
    ):
        yield {**_meta(name, thread, {"name": text}), "pid": HOST}
    clock = 0.0
    for entry in profile:
        duration = entry.seconds * 1e6
        if entry.device == "cpu":
            values: Event = {"node": entry.name, "device": entry.direction or entry.device}
            if entry.direction:
                values["bytes"] = entry.read_bytes + entry.write_bytes
            thread = COPIES if entry.direction else KERNELS
            event = _slice(entry.kernel or entry.op, thread, round(clock), 0, values)
            yield {**event, "pid": HOST, "ts": clock, "dur": duration}
        clock += duration


def _meta(name: str, thread: int, values: Event) -> Event:
    return {"ph": "M", "name": name, "pid": PROCESS, "tid": thread, "args": values}


def _thread(thread: int, name: str) -> Event:
    return _meta("thread_name", thread, {"name": name})


def _program(
    segment: Segment, module: Module, outcome: Outcome, timeline: Timeline, offset: int
) -> Iterator[Event]:
    yield _slice(segment.name, PROGRAMS, offset, timeline.cycles, {})
    kernels = {layer.name: layer.kernel for layer in segment.layers}
    for span in layer_spans(segment, module, outcome):
        kernel = {"kernel": kernels.get(span.name, ""), "cycles": span.end - span.start}
        yield _slice(span.name, LAYERS, offset + span.start, span.end - span.start, kernel)
    texts = instruction_texts(segment, module)
    for stage, thread in LANES.items():
        lanes = set()
        for part in _slices(timeline.spans[stage]):
            lanes.add(part.lane)
            yield from _instruction(segment, texts, part, thread + part.lane, offset)
        for lane in sorted(lanes):
            yield _thread(thread + lane, f"{stage.name.lower()}{f' +{lane}' if lane else ''}")
    yield from _traffic(timeline, offset)


def _instruction(
    segment: Segment, texts: list[str], part: _Slice, thread: int, offset: int
) -> Iterator[Event]:
    layer = layer_of(segment, part.index)
    text = texts[part.index] if part.index < len(texts) else "?"
    values = {"insn": part.index, "text": text, "layer": layer.name if layer else ""}
    name = " ".join(text.split()[:2]) if text.startswith(("LOAD", "STORE")) else text.split()[0]
    yield _slice(name, thread, offset + part.start, part.end - part.start, values)
    for wait in part.waits:
        yield _slice(_wait_name(wait), thread, offset + wait.start, wait.end - wait.start, {})


def _wait_name(wait: Span) -> str:
    return {
        WaitReason.POP_PREV: "wait: token of the stage before",
        WaitReason.POP_NEXT: "wait: token of the next stage",
        WaitReason.PUSH_PREV: "wait: room for a token to the stage before",
        WaitReason.PUSH_NEXT: "wait: room for a token to the next stage",
        WaitReason.MEMORY: "wait: memory",
    }.get(wait.reason, wait.reason.name.lower())


def _slices(spans: Sequence[Span]) -> list[_Slice]:
    """A stage's instructions with lanes: loads retire after the next ones have begun."""
    parts: dict[int, list[Span]] = {}
    for span in spans:
        if span.reason is not WaitReason.IDLE:
            parts.setdefault(span.index, []).append(span)
    free: list[int] = []  # end of the last slice of each lane
    slices = []
    for index, own in sorted(parts.items(), key=lambda item: item[1][0].start):
        start, end = own[0].start, own[-1].end
        lane = next((n for n, until in enumerate(free) if until <= start), len(free))
        free[lane : lane + 1] = [end]
        waits = tuple(
            span
            for span in own
            if span.reason is not WaitReason.BUSY and span.end - span.start >= SHORT_WAIT
        )
        slices.append(_Slice(index, start, end, lane, waits))
    return slices


def _traffic(timeline: Timeline, offset: int) -> Iterator[Event]:
    """Share of cycles with a beat, per direction; only where it changes."""
    last = None
    for number, pair in enumerate(zip(timeline.read_beats, timeline.write_beats, strict=True)):
        if pair != last:
            values = {
                name: round(int(beats) / TRAFFIC_CYCLES, 3)
                for name, beats in zip(("read", "write"), pair, strict=True)
            }
            yield {
                "ph": "C",
                "name": "memory beats per cycle",
                "pid": PROCESS,
                "ts": offset + number * TRAFFIC_CYCLES,
                "args": values,
            }
        last = pair


def _slice(name: str, thread: int, start: int, cycles: int, values: Event) -> Event:
    return {
        "ph": "X",
        "name": name,
        "pid": PROCESS,
        "tid": thread,
        "ts": start,
        "dur": cycles,
        "args": values,
    }
