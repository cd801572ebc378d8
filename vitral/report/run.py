"""A network's run on the RTL with all that the report tells about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.isa import Stage
from vitral.program import MemoryModel, Outcome, Span, WaitReason
from vitral.report.programs import LayerSpan, layer_spans
from vitral.runtime.module import Module
from vitral.runtime.profile import LayerProfile
from vitral.runtime.session import Session

__all__ = ["ReportRun", "record_run", "sample_feeds", "stage_shares"]

Shares = npt.NDArray[np.float64]
Feeds = dict[str, npt.NDArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportRun:
    """One run of all programs of a module, one after the other.

    `layers` count cycles from the first program's launch; so does `spans`.
    """

    module: Module
    memory: MemoryModel
    profile: tuple[LayerProfile, ...]
    outcomes: tuple[Outcome, ...]
    layers: tuple[LayerSpan, ...]

    @property
    def cycles(self) -> int:
        return sum(outcome.cycles or 0 for outcome in self.outcomes)

    @property
    def accelerated(self) -> list[LayerProfile]:
        return [layer for layer in self.profile if layer.device != "cpu"]

    @property
    def counters(self) -> dict[str, int]:
        """Sums over the programs."""
        names = self.outcomes[0].counters if self.outcomes else ()
        return {name: sum(x.counters[name] for x in self.outcomes) for name in names}

    @property
    def read_beats(self) -> npt.NDArray[np.uint32]:
        return self._joined("read_beats")

    @property
    def write_beats(self) -> npt.NDArray[np.uint32]:
        return self._joined("write_beats")

    def spans(self, stage: Stage) -> list[Span]:
        """What a stage did, over all programs."""
        result, offset = [], 0
        for outcome in self.outcomes:
            for span in outcome.timeline.spans[stage] if outcome.timeline else ():
                result.append(Span(span.start + offset, span.end + offset, span.index, span.reason))
            offset += outcome.cycles or 0
        return result

    def _joined(self, name: str) -> npt.NDArray[np.uint32]:
        parts = [getattr(outcome.timeline, name) for outcome in self.outcomes if outcome.timeline]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint32)


def record_run(module: Module, feeds: Feeds, *, memory: MemoryModel, **options: Any) -> ReportRun:
    """Run a module on tsim with its timeline.

    Raises
    ------
    DeviceError
        When nothing of it runs on the accelerator, or a program fails.
    """
    if not module.segments:
        raise DeviceError("no layer of the module runs on the accelerator: nothing to report")
    with Session(module, "tsim", memory_model=memory, timeline=True, **options) as session:
        session.run(None, feeds)
        profile, outcomes = session.profile(), session.outcomes()
    layers, offset = [], 0
    for segment, outcome in zip(module.segments, outcomes, strict=True):
        for span in layer_spans(segment, module, outcome):
            layers.append(LayerSpan(span.name, span.start + offset, span.end + offset))
        offset += outcome.cycles or 0
    return ReportRun(
        module=module,
        memory=memory,
        profile=profile,
        outcomes=outcomes,
        layers=tuple(layers),
    )


def sample_feeds(module: Module, seed: int = 0) -> Feeds:
    """Seeded inputs; cycles do not depend on values."""
    rng = np.random.default_rng(seed)

    def sample(shape: Sequence[int], dtype: np.dtype) -> npt.NDArray:
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        info = np.iinfo(dtype)
        low, high = max(info.min, -128), min(info.max, 255)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)

    return {info.name: sample(info.shape, np.dtype(info.dtype)) for info in module.inputs}


def stage_shares(spans: Sequence[Span], edges: Shares) -> Shares:
    """The share of cycles between neighbouring `edges` in which a stage was busy."""
    busy = [(span.start, span.end) for span in spans if span.reason is WaitReason.BUSY]
    times = np.array([0, *(t for pair in busy for t in pair)], float)
    work = np.array([0, *np.cumsum([n for a, b in busy for n in (0, b - a)])], float)
    done = np.interp(edges, times, work)
    return np.diff(done) / np.maximum(np.diff(edges), 1e-9)
