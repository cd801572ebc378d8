"""Measures what operators cost on this host: the table that automatic placement counts with.

    python benchmarks/cpu_table.py --output table.json
    vitral compile model.onnx --place auto --cpu-table table.json

Networks of the zoo run on the CPU, and on fsim for copies; for each family of operators the times
of all of them, the best of several runs each, give a line: seconds of one operator, and of one
unit of its work.
"""

import argparse
import json
import platform
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vitral.bench.networks import sample_feeds
from vitral.bench.yardstick import numpy_workload
from vitral.compiler.assemble import assemble
from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Op
from vitral.compiler.pipeline import import_model, lower
from vitral.compiler.placement.auto import on_host
from vitral.compiler.placement.costs import COPY, LAUNCH, family, work
from vitral.config import CoreConfig
from vitral.runtime.module import Module
from vitral.runtime.profile import LayerProfile
from vitral.runtime.session import Session
from vitral.zoo import build

NETWORKS = ("squeezenet11", "mobilenetv1", "resnet8", "ds-cnn", "resnet18")
RUNS = 5
OTHER = "other"
PATCHES = "patches"

Samples = dict[str, list[tuple[int, float]]]


@dataclass(frozen=True)
class Placed:
    """A network on one side, with the graph that it was made from."""

    graph: Graph
    module: Module


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what operators cost on the CPU.")
    parser.add_argument("--output", metavar="FILE", required=True)
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NAME")
    options = parser.parse_args()
    samples: Samples = defaultdict(list)
    for name in options.networks:
        print(f"{name} ...", file=sys.stderr)
        lowered = lower(import_model(build(name)))
        for graph in (on_host(lowered), lowered):
            placed = Placed(graph, assemble(graph, CoreConfig(), lambda doing: None))
            feeds = sample_feeds(placed.module)
            for key, pairs in measure(placed, feeds).items():
                samples[key] += pairs
            samples[LAUNCH] += launches(placed.module, feeds)
    lines = {key: fitted(pairs) for key, pairs in sorted(samples.items())}
    lines.setdefault(OTHER, fitted([pair for pairs in samples.values() for pair in pairs]))
    table = {
        "host": platform.processor() or platform.machine(),
        "numpy_workload_s": numpy_workload(),
        "networks": list(options.networks),
        "lines": lines,
    }
    Path(options.output).write_text(json.dumps(table, indent=1) + "\n")
    return 0


def measure(placed: Placed, feeds: dict[str, np.ndarray]) -> Samples:
    """(work, seconds) by family; of each entry of the profile the best run."""
    profiles: list[tuple[LayerProfile, ...]] = []
    with Session(placed.module, "fsim") as session:
        for _ in range(RUNS + 1):
            session.run(None, feeds)
            profiles.append(session.profile())
    best = [
        (entries[0], min(entry.seconds for entry in entries))
        for entries in zip(*profiles[1:], strict=True)
    ]
    ops: dict[str, list[Op]] = defaultdict(list)
    for op in placed.graph.ops:
        ops[op.name].append(op)
    samples: Samples = defaultdict(list)
    spent: dict[str, float] = defaultdict(float)
    for entry, seconds in best:
        if entry.direction:
            samples[COPY].append((entry.read_bytes + entry.write_bytes, seconds))
        elif entry.op == PATCHES:
            samples[PATCHES].append((_layout_size(placed.module, entry.name), seconds))
        elif entry.device == "cpu":
            spent[entry.name] += seconds
    for name, seconds in spent.items():
        if len(ops[name]) == 1:
            (op,) = ops[name]
            samples[family(op)].append((work(op, placed.graph), seconds))
    return samples


def launches(module: Module, feeds: dict[str, np.ndarray]) -> list[tuple[int, float]]:
    """(0, seconds) of each program on a device that does nothing."""
    with Session(module, "null") as session:
        session.run(None, feeds)
        return [
            (0, entry.seconds)
            for entry in session.profile()
            if entry.device == "null" and entry.seconds
        ]


def _layout_size(module: Module, name: str) -> int:
    tensors = {t.name: t for segment in module.segments for t in segment.inputs}
    step = next(s for s in module.steps if getattr(s, "op", "") == PATCHES and s.name == name)
    return int(np.prod(tensors[step.outputs[0]].shape))  # type: ignore[union-attr]


def fitted(pairs: list[tuple[int, float]]) -> tuple[float, float]:
    """Fixed part and slope, both at least 0, of least error relative to what was measured."""
    amounts, seconds = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    weight = 1 / np.maximum(seconds, 1e-7)
    terms = np.stack([np.ones_like(amounts), amounts], axis=1) * weight[:, None]
    (fixed, slope), *_ = np.linalg.lstsq(terms, np.ones_like(amounts), rcond=None)
    if fixed < 0:
        fixed, slope = 0.0, float(np.median(seconds / np.maximum(amounts, 1)))
    if slope < 0:
        fixed, slope = float(np.median(seconds)), 0.0
    return float(fixed), float(slope)


if __name__ == "__main__":
    sys.exit(main())
