"""The report's pictures, drawn by matplotlib as SVG that takes its colours from the page."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from vitral.isa import Stage
from vitral.program.timeline import TRAFFIC_CYCLES
from vitral.report.memory_map import KINDS, Area
from vitral.report.run import ReportRun, stage_shares
from vitral.runtime.module import TOGETHER
from vitral.runtime.profile import LayerProfile

__all__ = ["memory_figure", "roofline_figure", "stall_figure", "timeline_figure", "usage_figure"]

INK, GRID = "#0a0b0c", "#c0c1c2"
"""Stand for the page's colours of text and lines, which differ from light to dark."""
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    *("#0072b2", "#e69f00", "#009e73"),
    *("#d55e00", "#cc79a7", "#56b4e9"),
)
"""Told apart by people of all kinds of colour vision (Okabe and Ito)."""
STAGE_COLOURS = {Stage.LOAD: BLUE, Stage.COMPUTE: GREEN, Stage.STORE: ORANGE}
CAUSES = {
    "busy": ("busy", GREEN),
    "wait_memory": ("waiting for memory", RED),
    "wait_prev": ("waiting for the stage before", ORANGE),
    "wait_next": ("waiting for the next stage", PURPLE),
    "wait_push": ("no room for a token", BLUE),
    "idle": ("without an instruction", GRID),
}
NAMED = 5
"""Layers that the roofline names."""
COLUMNS = 480
"""Points of a curve over the run."""
WIDTH = 10.0
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "vitral",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


def roofline_figure(layers: Sequence[LayerProfile], macs: int, beat_bytes: int) -> str:
    """MACs per cycle of every layer over its MACs per byte, under the roof of array and bus."""
    points = [_point(layer) for layer in layers if layer.macs and layer.cycles]
    with _figure(4.6) as (figure, axes):
        intensity = [x for x, _ in points] or [1.0]
        low, high = min(intensity) / 2, max(*intensity, 2 * macs / beat_bytes) * 2
        xs = np.geomspace(low, high, 200)
        axes.loglog(xs, np.minimum(macs, xs * beat_bytes), color=INK, linewidth=1.5)
        axes.scatter(*zip(*points, strict=True), s=36, color=BLUE, alpha=0.75, zorder=3)
        _name_points(axes, layers)
        axes.set_xlabel("MACs per byte moved in the busier direction")
        axes.set_ylabel("MACs per cycle")
        axes.set_xlim(low, high)
        axes.grid(True, which="major", linewidth=0.5)
        axes.annotate(f"array: {macs} MACs per cycle", (low * 1.1, macs / 1.35))
        axes.axhline(macs, color=GRID, linewidth=1, linestyle="--", zorder=0)
        middle = (low * macs / beat_bytes) ** 0.5
        axes.annotate(
            f"  bus: {beat_bytes} bytes per cycle", (middle, middle * beat_bytes), va="top"
        )
        return _svg(figure)


def usage_figure(layers: Sequence[LayerProfile]) -> str:
    """Cycles of each layer, and how many of them the array needed at least."""
    with _figure(0.7 + 0.27 * len(layers)) as (figure, axes):
        places = np.arange(len(layers))
        cycles = np.array([layer.cycles or 0 for layer in layers])
        ideal = np.array([layer.roofline_cycles or 0 for layer in layers])
        axes.barh(places, cycles, color=SKY, height=0.72, label="measured")
        axes.barh(places, np.minimum(ideal, cycles), color=BLUE, height=0.4, label="roofline")
        for place, layer in enumerate(layers):
            text = "" if not layer.cycles else f" {_share(layer):.0%}"
            axes.text(cycles[place], place, text, va="center", fontsize=9)
        axes.set_yticks(places, [layer.name for layer in layers])
        axes.invert_yaxis()
        axes.margins(x=0.08, y=0.01)
        axes.set_xlabel("cycles (in per cent: share of the roofline)")
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
        axes.legend(loc="lower right", ncols=2, bbox_to_anchor=(1, 1))
        return _svg(figure)


def timeline_figure(run: ReportRun) -> str:
    """Layers, the share of cycles in which each stage works, and traffic, over the whole run."""
    with _figure(4.8, rows=5, ratios=(0.7, 1, 1, 1, 1)) as (figure, rows):
        edges = np.linspace(0, run.cycles, COLUMNS + 1)
        _layer_row(rows[0], run)
        for axes, stage in zip(rows[1:4], Stage, strict=True):
            shares = stage_shares(run.spans(stage), edges)
            axes.fill_between(edges[:-1], shares, step="post", color=STAGE_COLOURS[stage])
            _share_row(axes, f"{stage.name.lower()}\nbusy")
        centres = (np.arange(len(run.read_beats)) + 0.5) * TRAFFIC_CYCLES
        for beats, colour, name in (
            (run.read_beats, PURPLE, "read"),
            (run.write_beats, INK, "write"),
        ):
            shares = _binned(centres, beats / TRAFFIC_CYCLES, edges)
            rows[4].plot(edges[:-1], shares, color=colour, linewidth=1, label=name)
        _share_row(rows[4], "memory\nbeats")
        rows[4].legend(loc="upper right", ncols=2, fontsize=8, bbox_to_anchor=(1, 1.35))
        rows[4].set_xlabel("cycles")
        rows[4].xaxis.set_major_formatter(FuncFormatter(_thousands))
        return _svg(figure)


def stall_figure(counters: Mapping[str, int]) -> str:
    """What each stage did with all cycles."""
    with _figure(2.3) as (figure, axes):
        for place, stage in enumerate(Stage):
            left = 0
            for kind, (_, colour) in CAUSES.items():
                count = counters.get(f"{stage.name.lower()}_{kind}", 0)
                axes.barh(place, count, left=left, color=colour, height=0.7)
                left += count
        axes.set_yticks(range(len(Stage)), [stage.name.lower() for stage in Stage])
        axes.invert_yaxis()
        axes.margins(x=0)
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
        axes.set_xlabel("cycles")
        handles = [Patch(color=colour, label=text) for text, colour in CAUSES.values()]
        axes.legend(handles=handles, ncols=3, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9)
        return _svg(figure)


def memory_figure(areas: Sequence[Area]) -> str:
    """The arena from its first to its last byte."""
    colours = dict(zip(KINDS, (RED, BLUE, ORANGE, GRID), strict=True))
    with _figure(1.5) as (figure, axes):
        for area in areas:
            axes.barh(0, area.size, left=area.start, color=colours[area.kind], height=1)
        axes.set_yticks([])
        axes.margins(x=0, y=0)
        axes.xaxis.set_major_formatter(FuncFormatter(_mebibytes))
        axes.set_xlabel("byte offset in the arena")
        handles = [Patch(color=c, label=kind) for kind, c in colours.items()]
        axes.legend(handles=handles, ncols=4, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9)
        return _svg(figure)


@contextmanager
def _figure(height: float, rows: int = 1, ratios: Sequence[float] = (1,)) -> Iterator[Any]:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(rows, 1, sharex=True, height_ratios=ratios)
        yield figure, axes


def _svg(figure: Figure) -> str:
    """The picture as an element of a page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "var(--ink)").replace(GRID, "var(--line)")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r'<svg ([^>]*?)height="[^"]*"([^>]*?)width="[^"]*"', r"<svg \1\2", text, count=1)


def _point(layer: LayerProfile) -> tuple[float, float]:
    moved = max(layer.read_bytes, layer.write_bytes, 1)
    return layer.macs / moved, layer.macs / (layer.cycles or 1)


def _name_points(axes: Axes, layers: Sequence[LayerProfile]) -> None:
    """Names of the layers farthest below the roof, one under the other where points are close."""
    measured = [layer for layer in layers if layer.macs and layer.cycles]
    slowest = sorted(measured, key=_share)[:NAMED]
    last, level = 0.0, 0
    for layer in sorted(slowest, key=_point):
        place = _point(layer)
        level = level + 1 if place[0] < 2 * last else 0
        last = place[0]
        offset = (6, -12 - 12 * level)
        axes.annotate(layer.name, place, xytext=offset, textcoords="offset points", fontsize=8.5)


def _share(layer: LayerProfile) -> float:
    return (layer.roofline_cycles or 0) / (layer.cycles or 1)


def _layer_row(axes: Axes, run: ReportRun) -> None:
    for number, span in enumerate(run.layers):
        width = span.end - span.start
        axes.barh(0, width, left=span.start, height=1, color=(BLUE, SKY)[number % 2])
        if width > run.cycles / 22:
            axes.text(
                *(span.start + width / 2, 0, _short(span.name)),
                ha="center",
                va="center",
                fontsize=7,
                color=("white", "black")[number % 2],
            )
    axes.set_yticks([0], ["layer"])
    axes.margins(x=0, y=0)
    axes.spines[:].set_visible(False)


def _short(name: str) -> str:
    """A layer's name in two lines; of layers that run together the first one's."""
    first, *others = name.split(TOGETHER)
    return first.replace(".", "\n", 1) + (" +" if others else "")


def _share_row(axes: Axes, name: str) -> None:
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 1], ["0", "1"])
    axes.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=12)
    axes.margins(x=0)


def _binned(xs: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Mean of `values` in each column; a column without any takes the one before's."""
    sums, _ = np.histogram(xs, edges, weights=values)
    counts, _ = np.histogram(xs, edges)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    last = np.maximum.accumulate(np.where(counts > 0, np.arange(len(counts)), 0))
    return means[last]


def _thousands(value: float, _place: object) -> str:
    return f"{value / 1e6:g} M" if abs(value) >= 1e6 else f"{value:,.0f}"


def _mebibytes(value: float, _place: object) -> str:
    return f"{value / 2**20:.3g} MiB" if value >= 2**20 else f"{value / 1024:.3g} KiB"
