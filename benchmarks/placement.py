"""Placements of networks: what the model expects, and what tsim and this host measure.

    python benchmarks/placement.py --networks ds-cnn resnet8 squeezenet11 --json -

Time is the cycles of the programs on tsim at the clock of a simulated target, and the seconds that
this host spends on operators, copies and starting programs; each host entry's best of several runs.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import vitral
from vitral.bench.networks import sample_feeds
from vitral.compiler.assemble import assemble
from vitral.compiler.ir import Graph
from vitral.compiler.pipeline import import_model, lower
from vitral.compiler.placement.auto import (
    DEFAULT_CLOCK_MHZ,
    PLACES,
    Rates,
    estimate,
    place_graph,
)
from vitral.compiler.placement.costs import CpuTable, default_table
from vitral.config import CoreConfig
from vitral.runtime.profile import LayerProfile
from vitral.zoo import build

NETWORKS = ("ds-cnn", "resnet8", "squeezenet11")
RUNS = 5
CLOCK = DEFAULT_CLOCK_MHZ * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description="Placements: the model against measured times.")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NAME")
    parser.add_argument("--cpu-table", metavar="FILE", help="the committed table when not given")
    parser.add_argument("--device", default="tsim", help="what counts the cycles")
    parser.add_argument("--json", metavar="FILE", default="-")
    options = parser.parse_args()
    table = CpuTable.load(options.cpu_table) if options.cpu_table else default_table()
    records = [record(name, Rates(table, CLOCK), options.device) for name in options.networks]
    text = json.dumps({"clock_mhz": DEFAULT_CLOCK_MHZ, "networks": records}, indent=1) + "\n"
    if options.json == "-":
        print(text, end="")
    else:
        Path(options.json).write_text(text)
    return 0 if all(found["same_order"] for found in records) else 1


def record(name: str, rates: Rates, device: str) -> dict[str, Any]:
    """A network's placements, and whether the model and the measurement rank them alike."""
    print(f"{name} ...", file=sys.stderr)
    graph = lower(import_model(build(name)))
    places = {}
    outputs = []
    for place in PLACES:
        graphs: dict[int, Graph] = {}

        def built(placed: Graph, graphs: dict[int, Graph] = graphs) -> vitral.Module:
            module = assemble(placed, CoreConfig(), lambda doing: None)
            graphs[id(module)] = placed
            return module

        module = place_graph(graph, CoreConfig(), place, rates, built)
        results, seconds = measured(module, sample_feeds(module), device)
        outputs.append(results)
        model = estimate(graphs[id(module)], module, rates)
        places[place] = {
            "programs": len(module.segments),
            "model_ms": {
                "accelerator": 1e3 * model.accelerator,
                "host": 1e3 * model.host,
                "copies": 1e3 * model.copies,
                "total": 1e3 * model.total,
            },
            "measured_ms": 1e3 * seconds,
        }
    same = all(
        np.array_equal(a, b)
        for others in outputs[1:]
        for a, b in zip(outputs[0], others, strict=True)
    )
    forced = [place for place in PLACES if place != "auto"]
    orders = [
        sorted(forced, key=lambda place: places[place]["model_ms"]["total"]),
        sorted(forced, key=lambda place: places[place]["measured_ms"]),
    ]
    least = min(places[place]["measured_ms"] for place in forced)
    return {
        "network": name,
        "places": places,
        "same_bytes": same,
        "same_order": orders[0] == orders[1],
        "auto_against_best": places["auto"]["measured_ms"] / least,
    }


def measured(
    module: vitral.Module, feeds: dict[str, np.ndarray], device: str
) -> tuple[list[np.ndarray], float]:
    """Outputs, and seconds of one run: cycles at the clock and the host's part."""
    with vitral.Session(module, device if module.segments else "null") as session:
        profiles: list[tuple[LayerProfile, ...]] = []
        results: list[np.ndarray] = []
        for _ in range(RUNS):
            results = session.run(None, feeds)
            profiles.append(session.profile())
        cycles = sum(outcome.cycles or 0 for outcome in session.outcomes())
    host = sum(
        min(entry.seconds for entry in entries)
        for entries in zip(*profiles, strict=True)
        if entries[0].device == "cpu"
    )
    return results, cycles / CLOCK + host


if __name__ == "__main__":
    sys.exit(main())
