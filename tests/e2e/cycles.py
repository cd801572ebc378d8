"""Cycles of layers, networks and programs on the RTL at the yardstick memory, and their baseline.

cd tests && ../.venv/bin/python -m e2e.cycles           # measure, compare
cd tests && ../.venv/bin/python -m e2e.cycles --write   # measure, make this the baseline
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

from digits import INT8_MODEL, load_images, model_input
from engines import engine

import vitral
from vitral.bench import run_bench
from vitral.bench.layers import RESNET18
from vitral.bench.networks import bench_network, compile_network
from vitral.config import CoreConfig
from vitral.program import MemoryModel, ProgramFolder

__all__ = ["BASELINE", "MEASURES", "NETWORKS", "UPDATE", "memory_record", "read_baseline"]

BASELINE = Path(__file__).parent / "data" / "cycles.json"
UPDATE = "cd tests && ../.venv/bin/python -m e2e.cycles --write"
_GOLDEN = Path(__file__).parents[1] / "data" / "golden"


def memory_record() -> dict[str, Any]:
    """The yardstick memory as the baseline file names it."""
    record = asdict(MemoryModel())
    return {name: record[name] for name in ("latency", "write_latency", "outstanding")}


def read_baseline() -> dict[str, int]:
    """Cycles by measure; ValueError when they were taken with another memory."""
    record = json.loads(BASELINE.read_text())
    if record["memory"] != memory_record():
        raise ValueError(f"{BASELINE.name}: taken with {record['memory']}, not {memory_record()}")
    return record["cycles"]


def _bench(name: str) -> int:
    result = run_bench(name, "tsim")
    if not result.match or result.total_cycles is None:
        raise AssertionError(f"{name}: wrong bytes, its cycles mean nothing")
    return result.total_cycles


def _network(name: str) -> int:
    """A network of the zoo, all programs; for c1 the host layout that the compiler chooses."""
    memory = MemoryModel()
    compiled = compile_network(name, CoreConfig())
    options = {"memory_model": memory}
    result = bench_network(compiled, "tsim", memory=memory, repeat=1, options=options)
    if not result.match or result.total_cycles is None:
        raise AssertionError(f"{name}: wrong bytes, its cycles mean nothing")
    return result.total_cycles


@cache
def _digits_module() -> vitral.Module:
    return vitral.compile(INT8_MODEL)


def _digits() -> int:
    """All programs of one image."""
    with vitral.Session(_digits_module(), device="tsim") as session:
        session.run(None, {"image": model_input(load_images("demo").pixels[0])})
        return sum(outcome.cycles or 0 for outcome in session.outcomes())


def _program(name: str) -> int:
    folder = ProgramFolder.load(_GOLDEN / name)
    dram = folder.dram()
    outcome = engine("tsim", CoreConfig()).run(folder.launch, dram)
    outcome.raise_for_status()
    if folder.differences(dram) or outcome.cycles is None:
        raise AssertionError(f"{name}: wrong bytes, its cycles mean nothing")
    return outcome.cycles


SMALL_NETWORKS = ("c1", "resnet8", "ds-cnn")
NETWORKS = ("resnet18", "mobilenetv1", "tiny-yolov2")
"""Networks that take millions of cycles."""
_PROGRAMS = sorted(path.parent.name for path in _GOLDEN.glob("*/instructions.bin"))
MEASURES: dict[str, Callable[[], int]] = {
    **{name: partial(_bench, name) for name in RESNET18},
    "digits": _digits,
    **{name: partial(_program, name) for name in _PROGRAMS},
    **{name: partial(_network, name) for name in (*SMALL_NETWORKS, *NETWORKS)},
}
"""What is measured: function to cycles, by name. A measure with wrong bytes raises."""


def main() -> int:
    """Print all measures beside the baseline; status 1 when one takes longer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make the result the baseline")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure; default: all")
    args = parser.parse_args()
    before = read_baseline() if BASELINE.exists() else {}
    chosen = {name: MEASURES[name] for name in args.names or MEASURES}
    cycles: dict[str, int] = {}
    for name, measure in chosen.items():
        cycles[name] = measure()
        change = cycles[name] - before.get(name, cycles[name])
        print(
            f"{name:20} {cycles[name]:>9,} {change:+,}"
            if change
            else f"{name:20} {cycles[name]:>9,}",
            flush=True,
        )
    if args.write:
        known = {**before, **cycles}
        kept = {name: known[name] for name in MEASURES if name in known}
        record = {"memory": memory_record(), "cycles": kept}
        BASELINE.write_text(json.dumps(record, indent=2) + "\n")
        return 0
    return int(any(cycles[name] > before.get(name, 0) for name in cycles))


if __name__ == "__main__":
    sys.exit(main())
