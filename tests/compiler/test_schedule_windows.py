"""Depthwise convolutions, poolings and additions on the core give the bytes of exact integers."""

import numpy as np
import pytest
from convs import (
    compile_layers,
    network,
    random_add,
    random_depthwise,
    random_pool,
    run_exact,
    small_configs,
)
from engines import engine

from vitral.compiler.schedule import windows
from vitral.compiler.schedule.layer import AccelLayer
from vitral.config import CoreConfig
from vitral.program import Dram, Launch, OnChip, Outcome
from vitral.sim.reference import Reference

CONFIGS = small_configs()
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
MAKERS = {"depthwise": random_depthwise, "pool": random_pool, "add": random_add}


@pytest.fixture(autouse=True)
def _depthwise_by_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "DEPTHWISE", True)


def _check(
    layers: list[AccelLayer],
    config: CoreConfig,
    outputs: tuple[str, ...],
    seed: int,
    engines: tuple[str, ...] = ("reference", "fsim"),
) -> None:
    """Compile, verify, run on engines and in shuffled order; compare all outputs."""
    compiled = compile_layers(layers, config, outputs)
    assert compiled.verify().ok, f"seed {seed}: {compiled.verify().message}"
    rng = np.random.default_rng(seed + 1000)
    inputs = {
        tensor.name: rng.integers(-128, 128, tensor.shape).astype(np.int8)
        for tensor in compiled.segment.inputs
    }
    wanted = run_exact(layers, inputs)

    def shuffled(launch: Launch, dram: Dram, onchip: OnChip) -> Outcome:
        return Reference(config).run(launch, dram, onchip=onchip, order_seed=seed)

    def on(name: str, launch: Launch, dram: Dram, onchip: OnChip) -> Outcome:
        return engine(name, config).run(launch, dram, onchip=onchip)

    runs = {"shuffled": shuffled}
    runs |= {name: lambda *args, name=name: on(name, *args) for name in engines}
    for name, run in runs.items():
        for value, got in compiled.run(run, inputs, seed).items():
            np.testing.assert_array_equal(got, wanted[value], f"seed {seed}, {name}, {value}")


@every_config
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", range(10))
def test_random_layer(seed: int, kind: str, config: CoreConfig) -> None:
    largest = 40 if config == CONFIGS["default"] else 10
    layer = MAKERS[kind](np.random.default_rng(seed), largest=largest)
    _check([layer], config, ("y",), seed)


@pytest.mark.parametrize(
    ("name", "channels", "size"),
    [
        ("default", 40, 23),
        ("block4", 9, 8),
        ("block8-batch2", 17, 9),
        ("block16-one-token", 33, 10),
    ],
)
def test_network_in_one_program(name: str, channels: int, size: int) -> None:
    layers = network(np.random.default_rng(3), channels=channels, size=size)
    _check(layers, CONFIGS[name], ("t4", "y"), 3)
