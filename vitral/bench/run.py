"""Runs benchmarks by name on a device and checks every byte."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from vitral.bench.layers import OCCURRENCES, RESNET18
from vitral.bench.predict import predicted_cycles
from vitral.bench.result import BenchLayer, BenchResult
from vitral.bench.workload import Workload, make_workload
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import MemoryModel
from vitral.runtime.session import Session
from vitral.targets import target_config
from vitral.zoo import NETWORKS

__all__ = ["bench_names", "run_bench"]

GROUPS = {"c2-c11": tuple(RESNET18)}
"""Layers that are measured one by one."""
FIRST_LAYER = "c1"


def bench_names() -> tuple[str, ...]:
    """What `run_bench` knows: convolutions, groups of them, networks."""
    convs = (FIRST_LAYER, *RESNET18)
    return (*convs, *GROUPS, *(name for name in NETWORKS if name not in convs))


def run_bench(
    name: str,
    device: str,
    *,
    target: str = "sim",
    data_bits: int | None = None,
    requant_lanes: int | None = None,
    memory_model: MemoryModel | None = None,
    max_cycles: int | None = None,
    repeat: int = 1,
) -> BenchResult:
    """Run a layer, each layer of a group by itself, or a network, `repeat` times.

    Raises
    ------
    DeviceError
        When there is no such benchmark or device.
    ConfigError
        When the target's core cannot have such a port or so many lanes.
    """
    if name not in bench_names():
        raise DeviceError(f"no benchmark {name!r}; known: {', '.join(bench_names())}")
    config = target_config(target)
    config = config if data_bits is None else replace(config, data_bits=data_bits)
    config = config if requant_lanes is None else replace(config, requant_lanes=requant_lanes)
    memory = memory_model or MemoryModel()
    options = {"memory_model": memory, "max_cycles": max_cycles} if device == "tsim" else {}
    if name in GROUPS or name in RESNET18:
        return _bench_layers(name, device, config, memory, repeat, options)
    from vitral.bench.first_layer import bench_first_layer
    from vitral.bench.networks import bench_network, compile_network

    arguments = {"memory": memory, "repeat": repeat, "options": options}
    if name == FIRST_LAYER:
        return bench_first_layer(device, config=config, **arguments)
    return bench_network(compile_network(name, config), device, **arguments)


def _bench_layers(
    name: str,
    device: str,
    config: CoreConfig,
    memory: MemoryModel,
    repeat: int,
    options: dict[str, Any],
) -> BenchResult:
    layers = [
        _run_layer(make_workload(layer, RESNET18[layer], config), device, memory, repeat, options)
        for layer in GROUPS.get(name, (name,))
    ]
    if name in GROUPS:
        layers = [replace(x, times=OCCURRENCES.get(x.profile.name, 1)) for x in layers]
    return BenchResult(
        network=name,
        device=device,
        layers=tuple(layers),
        config=config,
        memory=memory,
        repeat=repeat,
        checked_by="numpy",
    )


def _run_layer(
    workload: Workload, device: str, memory: MemoryModel, repeat: int, options: dict[str, Any]
) -> BenchLayer:
    seconds, matches = 0.0, []
    with Session(workload.module, device, **options) as session:
        for _ in range(repeat):
            start = time.perf_counter()
            (result,) = session.run(None, {"x": workload.source})
            seconds += time.perf_counter() - start
            matches.append(bool(np.array_equal(result, workload.expected)))
        profile = session.profile()
    (predicted,) = predicted_cycles(workload.module, memory)
    return BenchLayer(profile[0], all(matches), seconds, predicted=predicted)
