"""ResNet-18's first layer in every form that the host can lay its image out in."""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

from vitral.bench.networks import Compiled, bench_network, compile_network
from vitral.bench.result import BenchResult
from vitral.config import CoreConfig
from vitral.program import MemoryModel
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
    arguments = {"memory": memory, "repeat": repeat, "options": options}
    results: list[BenchResult] = []
    variants: list[dict[str, Any]] = []
    for layout, meaning in LAYOUTS.items():
        compiled = compile_network(NAME, config, host_layout=layout)
        result = bench_network(compiled, device, **arguments)
        results.append(result)
        variants.append(
            {
                "layout": layout,
                "meaning": meaning,
                "cycles": result.total_cycles,
                "predicted_cycles": result.layers[0].predicted,
                "match": result.match,
                **_host_cost(compiled),
            }
        )
    best = min(results, key=lambda result: result.layers[0].profile.cycles or _predicted(result))
    match = all(result.match for result in results)
    layers = tuple(replace(layer, match=match) for layer in best.layers)
    return replace(best, layers=layers, notes={**best.notes, "variants": variants})


def _predicted(result: BenchResult) -> int:
    return result.layers[0].predicted or 0


def _host_cost(compiled: Compiled) -> dict[str, Any]:
    """Bytes that the host writes for the core, and seconds that this takes, from int8 pixels."""
    module = compiled.module
    size = packed_bytes(module.segments[0].inputs[0], module.config)
    _, _, height, width = module.outputs[0].shape
    return {
        "host_bytes": size,
        "host_bytes_per_output_pixel": size / (height * width),
        "host_s": _host_seconds(compiled),
    }


def _host_seconds(compiled: Compiled) -> float:
    """Median time of laying an image out and writing it in the core's form."""
    module = compiled.module
    tensor = module.segments[0].inputs[0]
    with Session(module, "fsim") as session:

        def once() -> float:
            session.run(None, compiled.feeds)
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
