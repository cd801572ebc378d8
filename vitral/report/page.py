"""The report as one HTML file: style, pictures and table inside, nothing fetched."""

from collections.abc import Iterator
from html import escape

from vitral.report import figures
from vitral.report.memory_map import KINDS, memory_map
from vitral.report.run import ReportRun
from vitral.runtime.profile import LayerProfile

__all__ = ["report_page"]

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --page: #ffffff;
  --card: #f4f6f8; --line: #c4ccd4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebee; --soft: #9aa4af; --page: #14171a;
  --card: #1f2429; --line: #4a535c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 .4rem; }
p.note, figcaption { color: var(--soft); margin: .2rem 0 .6rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem;
  margin: 1.2rem 0; padding: 0; list-style: none; }
.tiles li, section { background: var(--card); border-radius: .6rem; padding: .8rem 1rem; }
.tiles b { display: block; font-size: 1.45rem; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); }
section { margin: 1rem 0; }
figure { margin: 0; }
svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child, th.text, td.text { text-align: left; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
"""

COLUMNS = (
    *(("layer", True), ("operator", True), ("where", True), ("MACs", False), ("cycles", False)),
    *(("roofline", False), ("of roofline", False), ("of the array", False), ("read B", False)),
    *(("written B", False), ("compute waits: memory", False), ("load", False), ("store", False)),
)
"""Heading, and whether the cells are text."""


def report_page(run: ReportRun, name: str) -> str:
    """The whole page about a run of the module `name`."""
    layers = run.accelerated
    layout = run.module.config.layout
    parts = [
        _section(
            "Layers against the roofline",
            "Each point is a layer: the work it has per byte, and the work it got done per cycle."
            " Those farthest below the roof are named.",
            figures.roofline_figure(layers, layout.macs_per_cycle, layout.beat_bytes),
        ),
        _section(
            "Cycles layer by layer",
            "Dark: what no implementation on this core can beat. Light: what was measured.",
            figures.usage_figure(layers),
        ),
        _section(
            "Over time",
            "Share of cycles in which each stage works, and data beats per cycle on the memory"
            " port.",
            figures.timeline_figure(run),
        ),
        _section(
            "Where the stages wait",
            "All cycles of each stage by what it did in them.",
            figures.stall_figure(run.counters),
        ),
        _section("Memory map", _memory_text(run), figures.memory_figure(memory_map(run.module))),
        f"<section><h2>All layers</h2>"
        f'<div class="scroll" tabindex="0">{_table(run)}</div></section>',
    ]
    title = f"{escape(name)} on Vitral"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{_about(run)}\n{_tiles(run)}\n" + "\n".join(parts) + "\n</main>\n"
        "</body>\n</html>\n"
    )


def _section(title: str, text: str, picture: str) -> str:
    label = escape(f"{title}. {text}", quote=True)
    picture = picture.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return (
        f"<section><h2>{escape(title)}</h2>\n<figure><figcaption>{escape(text)}</figcaption>\n"
        f"{picture}</figure></section>"
    )


def _about(run: ReportRun) -> str:
    config, memory = run.module.config, run.memory
    text = (
        f"Core {config.batch}x{config.block}x{config.block}, digest {config.digest[:12]};"
        f" memory port of {config.data_bits} bits, {memory.latency} cycles of latency,"
        f" {memory.outstanding} bursts in flight. {len(run.module.segments)} program(s), measured"
        " on the RTL cycle by cycle."
    )
    return f'<p class="note">{escape(text)}</p>'


def _tiles(run: ReportRun) -> str:
    layers = run.accelerated
    macs = sum(layer.macs for layer in layers)
    peak = run.module.config.layout.macs_per_cycle
    roofline = sum(layer.roofline_cycles or 0 for layer in layers)
    counters = run.counters
    tiles = (
        (f"{run.cycles:,}", "cycles"),
        (f"{roofline / run.cycles:.1%}", "of the roofline"),
        (f"{macs / (peak * run.cycles):.1%}", "of the array used"),
        (f"{macs / 1e6:,.1f} M", "MACs on the accelerator"),
        (f"{counters['read_beats'] / run.cycles:.1%}", "of cycles read"),
        (f"{counters['write_beats'] / run.cycles:.1%}", "of cycles write"),
    )
    items = "".join(f"<li><b>{value}</b><span>{name}</span></li>" for value, name in tiles)
    return f'<ul class="tiles">{items}</ul>'


def _memory_text(run: ReportRun) -> str:
    sizes: dict[str, int] = dict.fromkeys(KINDS, 0)
    for area in memory_map(run.module):
        sizes[area.kind] += area.size
    parts = ", ".join(f"{kind} {size / 2**20:.2f} MiB" for kind, size in sizes.items())
    return f"{run.module.arena_bytes:,} bytes of DRAM: {parts}."


def _table(run: ReportRun) -> str:
    head = "".join(
        f'<th scope="col"{" class=text" if text else ""}>{escape(name)}</th>'
        for name, text in COLUMNS
    )
    rows = "\n".join(_row(layer) for layer in run.profile)
    return (
        "<table><caption>Cycles from the last product of the layer before to its own last one."
        f"</caption><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>"
    )


def _row(layer: LayerProfile) -> str:
    kinds = [text for _, text in COLUMNS]
    cells = [
        f"<td{' class=text' if text else ''}>{escape(cell)}</td>"
        for cell, text in zip(_cells(layer), kinds, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _cells(layer: LayerProfile) -> Iterator[str]:
    yield from (layer.name, layer.op, layer.device)
    share = None
    if layer.cycles and layer.roofline_cycles:
        share = layer.roofline_cycles / layer.cycles
    yield from (_number(layer.macs), _number(layer.cycles), _number(layer.roofline_cycles))
    yield from (_percent(share), _percent(layer.utilisation))
    yield from (_number(layer.read_bytes or None), _number(layer.write_bytes or None))
    for kind in ("memory", "prev", "next"):
        yield _number(layer.counters.get(f"compute_wait_{kind}"))


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
