"""Runs benchmark layers on a device and checks every byte."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitral.bench.layers import RESNET18
from vitral.bench.workload import Workload, make_workload
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import MemoryModel
from vitral.runtime.profile import LayerProfile
from vitral.runtime.session import Session
from vitral.targets import target_config

__all__ = ["BenchLayer", "BenchResult", "bench_names", "run_bench"]

NETWORKS = {"c2-c11": tuple(RESNET18)}


@dataclass(frozen=True)
class BenchLayer:
    """One layer's cost in its last run; `match` says whether all runs gave the exact bytes."""

    profile: LayerProfile
    match: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """Result of a benchmark; cycles are None on devices that count none."""

    network: str
    device: str
    layers: tuple[BenchLayer, ...]
    config: CoreConfig
    memory: MemoryModel
    repeat: int

    @property
    def match(self) -> bool:
        return all(layer.match for layer in self.layers)

    @property
    def total_cycles(self) -> int | None:
        cycles = [layer.profile.cycles for layer in self.layers]
        return sum(c for c in cycles if c is not None) if None not in cycles else None

    @property
    def cycles_per_s(self) -> float | None:
        """Simulated cycles per second on this host."""
        if self.total_cycles is None:
            return None
        return self.total_cycles * self.repeat / sum(layer.seconds for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "network": self.network,
            "device": self.device,
            "match": self.match,
            "layers": [_layer_record(layer) for layer in self.layers],
            "total_cycles": self.total_cycles,
            "cycles_per_s": self.cycles_per_s,
            "config": self.config.to_dict(),
            "memory": {
                "data_bits": self.config.data_bits,
                "latency": self.memory.latency,
                "write_latency": self.memory.write_latency,
                "outstanding": self.memory.outstanding,
                "stall_seed": self.memory.stall_seed,
            },
        }


def bench_names() -> tuple[str, ...]:
    """What `run_bench` knows."""
    return (*RESNET18, *NETWORKS)


def run_bench(
    name: str,
    device: str,
    *,
    target: str = "sim",
    data_bits: int | None = None,
    memory_model: MemoryModel | None = None,
    max_cycles: int | None = None,
    repeat: int = 1,
) -> BenchResult:
    """Run a layer, or each layer of a network by itself, `repeat` times.

    Raises
    ------
    DeviceError
        When there is no such benchmark or device.
    """
    if name not in bench_names():
        raise DeviceError(f"no benchmark {name!r}; known: {', '.join(bench_names())}")
    config = target_config(target)
    config = config if data_bits is None else replace(config, data_bits=data_bits)
    memory = memory_model or MemoryModel()
    options = {"memory_model": memory, "max_cycles": max_cycles} if device == "tsim" else {}
    layers = [
        _run_layer(make_workload(layer, RESNET18[layer], config), device, repeat, options)
        for layer in NETWORKS.get(name, (name,))
    ]
    return BenchResult(
        network=name,
        device=device,
        layers=tuple(layers),
        config=config,
        memory=memory,
        repeat=repeat,
    )


def _run_layer(workload: Workload, device: str, repeat: int, options: dict[str, Any]) -> BenchLayer:
    seconds, matches = 0.0, []
    with Session(workload.module, device, **options) as session:
        for _ in range(repeat):
            start = time.perf_counter()
            (result,) = session.run(None, {"x": workload.source})
            seconds += time.perf_counter() - start
            matches.append(bool(np.array_equal(result, workload.expected)))
        profile: Sequence[LayerProfile] = session.profile()
    return BenchLayer(profile[0], all(matches), seconds)


def _layer_record(layer: BenchLayer) -> dict[str, Any]:
    profile = layer.profile
    return {
        "name": profile.name,
        "macs": profile.macs,
        "cycles": profile.cycles,
        "roofline_cycles": profile.roofline_cycles,
        "utilisation": profile.utilisation,
        "stalls": dict(profile.stalls),
        "read_bytes": profile.read_bytes,
        "write_bytes": profile.write_bytes,
        "match": layer.match,
    }
