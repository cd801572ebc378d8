"""The trace of a run: complete, consistent with the run, and in the form that viewers take."""

import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digits import INT8_MODEL

import vitral
from vitral.cli import main
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Stage
from vitral.program import MemoryModel, WaitReason
from vitral.report import trace_events, write_gtkwave
from vitral.report.memory_map import KINDS, memory_map
from vitral.report.programs import instruction_texts, layer_spans
from vitral.report.run import ReportRun, record_run, sample_feeds, stage_shares
from vitral.sim.rtl.emit import emit_verilog

Event = dict[str, Any]


@pytest.fixture(scope="module")
def run() -> ReportRun:
    module = vitral.compile(INT8_MODEL)
    return record_run(module, sample_feeds(module), memory=MemoryModel())


@pytest.fixture(scope="module")
def events(run: ReportRun) -> list[Event]:
    trace = trace_events(run.module, run.outcomes)
    assert json.loads(json.dumps(trace)) == trace, "plain JSON values only"
    return trace["traceEvents"]


def slices(events: list[Event]) -> dict[str, list[Event]]:
    """Complete events by the name of their thread."""
    names = {
        e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"
    }
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[names[event["tid"]]].append(event)
    return found


def test_every_instruction_is_there_once(run: ReportRun, events: list[Event]) -> None:
    """On the stages; a wait lies inside its instruction."""
    found = slices(events)
    lanes = [name for name in found if name.split()[0] in {s.name.lower() for s in Stage}]
    shown = [e for name in lanes for e in found[name] if "insn" in e["args"]]
    wanted = sum(segment.insn_count for segment in run.module.segments)
    assert wanted - len(run.module.segments) <= len(shown) <= wanted
    texts = {t for s in run.module.segments for t in instruction_texts(s, run.module)}
    assert {e["args"]["text"] for e in shown} <= texts
    assert {e["args"]["layer"] for e in shown} >= {layer.name for layer in run.layers}


def test_slices_of_a_lane_nest(events: list[Event]) -> None:
    """Viewers draw a slice inside the one that it lies in; two may not cross."""
    for name, lane in slices(events).items():
        open_until: list[int] = []
        for event in sorted(lane, key=lambda e: (e["ts"], -e["dur"])):
            start, end = event["ts"], event["ts"] + event["dur"]
            assert event["dur"] > 0, name
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1], f"{name}: {event}"
            open_until.append(end)


def test_layers_follow_each_other_to_the_end(run: ReportRun, events: list[Event]) -> None:
    layers = slices(events)["layer"]
    assert [e["name"] for e in layers] == [layer.name for layer in run.accelerated]
    assert [e["dur"] for e in layers] == [layer.cycles for layer in run.accelerated]
    assert layers[0]["ts"] == 0
    assert layers[-1]["ts"] + layers[-1]["dur"] == run.cycles


def test_traffic_sums_up_to_the_beats(run: ReportRun, events: list[Event]) -> None:
    """The curve is a step function that holds its value until it changes."""
    first = run.outcomes[0]
    assert first.timeline is not None
    curve = [e for e in events if e["ph"] == "C" and e["ts"] < (first.cycles or 0)]
    times = np.array([e["ts"] for e in curve])
    grid = np.arange(len(first.timeline.read_beats)) * 64
    for direction, beats in (
        ("read", first.timeline.read_beats),
        ("write", first.timeline.write_beats),
    ):
        values = np.array([e["args"][direction] for e in curve])
        held = values[np.searchsorted(times, grid, side="right") - 1]
        np.testing.assert_allclose(held * 64, beats, atol=0.05)


def test_without_a_timeline_there_is_no_trace(run: ReportRun) -> None:
    with vitral.Session(run.module, "tsim") as session:
        session.run(None, sample_feeds(run.module))
        with pytest.raises(DeviceError, match="has no timeline"):
            trace_events(run.module, session.outcomes())


def test_busy_shares_are_the_busy_cycles(run: ReportRun) -> None:
    edges = np.linspace(0, run.cycles, 101)
    for stage in Stage:
        shares = stage_shares(run.spans(stage), edges)
        busy = run.counters[f"{stage.name.lower()}_busy"]
        assert shares.sum() * run.cycles / 100 == pytest.approx(busy)
        assert 0 <= shares.min() <= shares.max() <= 1 + 1e-9
        covered = sum(s.end - s.start for s in run.spans(stage) if s.reason is WaitReason.BUSY)
        assert covered == busy


def test_layer_spans_are_the_profile(run: ReportRun) -> None:
    spans = [
        span
        for segment, outcome in zip(run.module.segments, run.outcomes, strict=True)
        for span in layer_spans(segment, run.module, outcome)
    ]
    assert [s.end - s.start for s in spans] == [layer.cycles for layer in run.accelerated]


def test_memory_map_covers_the_arena(run: ReportRun) -> None:
    areas = memory_map(run.module)
    assert (areas[0].start, areas[-1].end) == (0, run.module.arena_bytes)
    assert all(a.end == b.start and a.kind != b.kind for a, b in pairwise(areas))
    assert {area.kind for area in areas} == set(KINDS)
    for segment in run.module.segments:
        holder = next(a for a in areas if a.start <= segment.insn_offset < a.end)
        assert holder.kind == "instructions"
        assert segment.insn_offset + 16 * segment.insn_count <= holder.end


@pytest.fixture
def feeds(run: ReportRun, tmp_path: Path) -> Path:
    path = tmp_path / "x.npz"
    np.savez(path, image=sample_feeds(run.module)["image"])
    return path


def test_run_writes_a_timeline(feeds: Path, tmp_path: Path, run: ReportRun) -> None:
    output = tmp_path / "t.json"
    arguments = ["run", str(INT8_MODEL), "--input", str(feeds), "--timeline", str(output)]
    assert main([*arguments, "--device", "tsim"]) == 0
    trace = json.loads(output.read_text())
    assert trace["otherData"]["cycles"] == run.cycles


@pytest.mark.parametrize("option", ["--timeline", "--trace"])
def test_a_device_without_a_clock_refuses(
    option: str, feeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(INT8_MODEL), "--input", str(feeds), option, str(tmp_path / "t")]
    assert main(arguments) == 2
    assert "needs --device tsim; fsim has no clock" in capsys.readouterr().err


def test_gtkwave_file_names_the_waveform_and_signals_in_groups(
    tmp_path: Path, run: ReportRun
) -> None:
    waveform = tmp_path / "w.fst"
    waveform.write_bytes(b"123")
    text = write_gtkwave(waveform, run.module.config).read_text()
    lines = text.splitlines()
    assert f'[dumpfile] "{waveform}"' in lines
    for group in ("stages", "memory reads", "memory writes", "register port"):
        assert f"-{group}" in lines
    assert "core.vitral_core.core.registers.compute_state[31:0]" in lines
    assert "core.vitral_core.m_axi_rdata[63:0]" in lines
    assert "core.vitral_core.m_axi_bvalid" in lines


def test_gtkwave_file_names_signals_that_the_core_has(tmp_path: Path) -> None:
    """Of the top module and the register file, with their widths."""
    config = CoreConfig()
    verilog = emit_verilog(config)
    waveform = tmp_path / "w.fst"
    waveform.write_bytes(b"123")
    text = write_gtkwave(waveform, config).read_text()
    signal = r"^core\.vitral_core\.(core\.registers\.)?(\w+)(\[\d+:0\])?$"
    names = re.findall(signal, text, re.MULTILINE)
    assert len(names) > 25
    for inside, name, width in names:
        module = r"\\vitral_core\.core\.registers" if inside else "vitral_core"
        body = re.search(rf"^module {module} ?\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
        assert body, module
        port = rf"^  (input|output) {re.escape(width) + ' ' if width else ''}{name};"
        assert re.search(port, body[0], re.MULTILINE), f"{module} {name}{width}"


def test_host_kernels_and_copies(run: ReportRun) -> None:
    trace = trace_events(run.module, run.outcomes, run.profile)
    host = [e for e in trace["traceEvents"] if e["pid"] == 2 and e["ph"] == "X"]
    kernels = [e["name"] for e in host if e["tid"] == 1]
    copies = [(e["name"], e["args"]["device"], e["args"]["bytes"]) for e in host if e["tid"] == 2]
    assert kernels == ["qnn_quantize", "patches", "reshape", "qnn_dequantize"]
    assert [(name, way) for name, way, _ in copies] == [
        ("device_copy", "cpu -> tsim"),
        ("device_copy", "tsim -> cpu"),
    ]
    sizes = {t.name: np.prod(t.shape) for s in run.module.segments for t in (*s.inputs, *s.outputs)}
    assert all(nbytes >= min(sizes.values()) for _, _, nbytes in copies)
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in pairwise(host))
    layers = slices([e for e in trace["traceEvents"] if e["pid"] == 1])["layer"]
    assert {e["args"]["kernel"] for e in layers} >= {"nn_conv2d", "nn_max_pool2d", "add"}
    assert sum(e["args"]["cycles"] for e in layers) == sum(o.cycles or 0 for o in run.outcomes)
