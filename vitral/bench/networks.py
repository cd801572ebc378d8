"""Whole networks of the zoo on a device, compared with another device in the same run."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral import zoo
from vitral.bench.predict import predicted_cycles
from vitral.bench.result import BenchLayer, BenchResult, CompileCost
from vitral.bench.yardstick import numpy_workload
from vitral.compiler.pipeline import compile
from vitral.config import CoreConfig
from vitral.program import MemoryModel
from vitral.runtime.module import Module
from vitral.runtime.profile import LayerProfile
from vitral.runtime.session import Session

__all__ = ["Compiled", "bench_network", "compile_network", "sample_feeds"]

CHECKERS = {"fsim": "reference"}
"""Device to compare with, where it is not fsim."""
MEMORY = "the accelerator's memory"
Values = Mapping[str, npt.NDArray]


@dataclass(frozen=True)
class Compiled:
    """A network of the zoo as a module, and what compiling it took."""

    name: str
    module: Module
    cost: CompileCost
    feeds: Values


def compile_network(
    name: str, config: CoreConfig, *, host_layout: str = "auto", seed: int = 0
) -> Compiled:
    """Build and compile a network, with an image for it; `host_layout` as `compile` takes it."""
    model = zoo.build(name, seed)
    start = time.process_time()
    module = compile(model, target=config, host_layout=host_layout)
    cost = CompileCost(time.process_time() - start, _workload_seconds())
    return Compiled(name, module, cost, sample_feeds(module, seed + 1))


def bench_network(
    compiled: Compiled, device: str, *, memory: MemoryModel, repeat: int, options: dict[str, Any]
) -> BenchResult:
    """Run a network `repeat` times, and compare every byte.

    What is compared is all that passes between steps, the network's outputs among it, and the
    whole memory of the accelerator afterwards, with what layers inside a program left there.

    Parameters
    ----------
    options : dict
        Of the device, as `Session` takes them.
    """
    module, feeds = compiled.module, compiled.feeds
    checker = CHECKERS.get(device, "fsim")
    wanted = _tensors(module, checker, feeds)
    matches, seconds = [], 0.0
    profile: tuple[LayerProfile, ...] = ()
    with Session(module, device, **options) as session:
        for _ in range(repeat):
            session.run(None, feeds)
            matches.append(_equal(_everything(session), wanted))
            profile = session.profile()
            seconds += sum(layer.seconds for layer in profile if layer.device != "cpu")
    layers = [layer for layer in profile if layer.device != "cpu"]
    return BenchResult(
        network=compiled.name,
        device=device,
        layers=tuple(
            BenchLayer(layer, all(matches), seconds / len(layers), predicted=cycles)
            for layer, cycles in zip(layers, predicted_cycles(module, memory), strict=True)
        ),
        host=tuple(layer for layer in profile if layer.device == "cpu"),
        config=module.config,
        memory=memory,
        repeat=repeat,
        checked_by=checker,
        compiling=compiled.cost,
        notes={"programs": len(module.segments)},
    )


@cache
def _workload_seconds() -> float:
    """`numpy_workload`, once per process."""
    return numpy_workload()


def sample_feeds(module: Module, seed: int) -> dict[str, npt.NDArray]:
    """An image of the zoo's kind for a module with one input."""
    (source,) = module.inputs
    return {source.name: zoo.sample_input(_four(source.shape), seed)}


def _tensors(module: Module, device: str, feeds: Values) -> Values:
    with Session(module, device) as session:
        session.run(None, feeds)
        return {name: np.array(value) for name, value in _everything(session).items()}


def _everything(session: Session) -> Values:
    """Tensors between steps by name, and the device's memory."""
    values = dict(session.tensors())
    if session.module.segments:
        values[MEMORY] = session.device.read(0, session.module.arena_bytes)
    return values


def _equal(values: Values, wanted: Values) -> bool:
    return values.keys() == wanted.keys() and all(
        np.array_equal(values[name], wanted[name]) for name in wanted
    )


def _four(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    n, c, h, w = shape
    return n, c, h, w
