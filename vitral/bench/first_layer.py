"""ResNet-18's first layer in every form that the host can lay its image out in."""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

from vitral import zoo
from vitral.bench.networks import bench_network, sample_feeds
from vitral.bench.result import BenchResult
from vitral.compiler.pipeline import compile
from vitral.config import CoreConfig
from vitral.program import MemoryModel
from vitral.runtime.module import Module
from vitral.runtime.packing import pack_tensor, packed_bytes
from vitral.runtime.session import Session

__all__ = ["LAYOUTS", "bench_first_layer"]

NAME = "c1"
LAYOUTS = {
    "channels": "as it is, 3 of 16 channels used",
    "2x2": "space to depth: 2x2 pixels become 12 channels",
    "rows": "a kernel row's 7 pixels become 21 channels",
    "windows": "a whole window's 147 values become channels",
}
HOST_RUNS = 7


def bench_first_layer(
    device: str,
    *,
    config: CoreConfig,
    memory: MemoryModel,
    repeat: int,
    options: dict[str, Any],
) -> BenchResult:
    """The layout with the fewest cycles, and beside it what each layout costs core and host."""
    results = {
        layout: bench_network(
            NAME,
            device,
            config=config,
            memory=memory,
            repeat=repeat,
            options=options,
            host_layout=layout,
        )
        for layout in LAYOUTS
    }
    variants = [
        {
            "layout": layout,
            "meaning": LAYOUTS[layout],
            "cycles": result.total_cycles,
            "predicted_cycles": result.layers[0].predicted,
            "match": result.match,
            **_host_cost(config, layout),
        }
        for layout, result in results.items()
    ]
    best = min(results.values(), key=lambda result: result.layers[0].predicted or 0)
    match = all(result.match for result in results.values())
    layers = tuple(replace(layer, match=layer.match and match) for layer in best.layers)
    return replace(best, layers=layers, notes={**best.notes, "variants": variants})


def _host_cost(config: CoreConfig, layout: str) -> dict[str, Any]:
    """Bytes that the host writes for the core, and seconds that this takes, from int8 pixels."""
    module = compile(zoo.build(NAME), target=config, host_layout=layout)
    tensor = module.segments[0].inputs[0]
    size = packed_bytes(tensor, config)
    pixels = module.outputs[0].shape[2] * module.outputs[0].shape[3]
    return {
        "host_bytes": size,
        "host_bytes_per_output_pixel": size / pixels,
        "host_s": _host_seconds(module),
    }


def _host_seconds(module: Module) -> float:
    """Median time of laying an image out and writing it in the core's form."""
    tensor = module.segments[0].inputs[0]
    with Session(module, "fsim") as session:

        def once() -> float:
            session.run(None, sample_feeds(module, 1))
            steps = [step for step in session.profile() if step.op == "patches"]
            if steps:
                return steps[0].seconds
            value = session.tensors()[tensor.name]
            return _seconds(lambda: pack_tensor(value, tensor, module.config))

        return median(once() for _ in range(HOST_RUNS))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
