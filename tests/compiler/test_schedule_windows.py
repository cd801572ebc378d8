"""Depthwise convolutions, poolings and additions on the core give the bytes of exact integers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from convs import (
    add_layer,
    average,
    compile_layers,
    conv_layer,
    network,
    pool_layer,
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
from vitral.errors import CompileError
from vitral.isa import Load, Memory
from vitral.program import Dram, Launch, OnChip, Outcome
from vitral.sim.reference import Reference

CONFIGS = small_configs()
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
MAKERS = {"depthwise": random_depthwise, "pool": random_pool, "add": random_add}


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
@pytest.mark.parametrize("seed", range(6))
def test_random_layer(seed: int, kind: str, config: CoreConfig) -> None:
    largest = 24 if config == CONFIGS["default"] else 10
    layer = MAKERS[kind](np.random.default_rng(seed), largest=largest)
    _check([layer], config, ("y",), seed)


DEPTHWISE: dict[str, dict[str, Any]] = {
    "even-dilation": {"shape": (1, 20, 19, 17), "kernel": (3, 3), "dilations": (2, 4)},
    "odd-dilation": {"shape": (2, 20, 19, 23), "kernel": (2, 5), "dilations": (2, 3)},
    "wide-kernel": {"shape": (1, 9, 4, 40), "kernel": (1, 11), "pads": (0, 5, 0, 5)},
    "tall-kernel": {"shape": (1, 4, 17, 10), "kernel": (15, 1), "pads": (7, 0, 6, 0)},
    "stride-beyond-kernel": {"shape": (1, 9, 14, 14), "kernel": (2, 2), "strides": (3, 5)},
    "padding-only-windows": {"shape": (1, 4, 2, 2), "kernel": (3, 3), "pads": (5, 3, 4, 15),
                             "pad_value": 33},
    "border-of-forty": {"shape": (1, 6, 4, 3), "kernel": (3, 3), "pads": (40, 16, 0, 33),
                        "strides": (4, 3), "pad_value": -9},
    "whole-plane": {"shape": (3, 50, 7, 7), "kernel": (7, 7)},
    "one-value": {"shape": (1, 33, 1, 1), "kernel": (1, 1)},
    "weights-of-two-planes": {"shape": (1, 12, 6, 6), "kernel": (3, 3), "wide": True},
}  # fmt: skip


@every_config
@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise(name: str, config: CoreConfig) -> None:
    case = DEPTHWISE[name]
    channels = case["shape"][1]
    layer = conv_layer(np.random.default_rng(7), name=name, outs=channels, group=channels, **case)
    _check([layer], config, ("y",), 7)


POOLS: dict[str, dict[str, Any]] = {
    "resnet": {"shape": (1, 20, 15, 15), "kernel": (3, 3), "strides": (2, 2),
               "pads": (1, 1, 1, 1)},
    "yolo": {"shape": (1, 16, 13, 13), "kernel": (2, 2), "pads": (0, 0, 1, 1)},
    "global": {"shape": (2, 40, 9, 11), "kernel": (9, 11)},
    "large": {"shape": (1, 5, 7, 9), "kernel": (7, 9), "pads": (3, 4, 3, 4)},
    "border": {"shape": (1, 3, 18, 6), "kernel": (18, 3), "pads": (17, 1, 3, 0),
               "strides": (3, 1)},
    "dilated": {"shape": (1, 5, 12, 12), "kernel": (3, 3), "dilations": (2, 2),
                "pads": (2, 2, 2, 2)},
}  # fmt: skip


@every_config
@pytest.mark.parametrize("name", POOLS)
def test_pool(name: str, config: CoreConfig) -> None:
    _check([pool_layer(**POOLS[name])], config, ("y",), 8)


ADDS: dict[str, dict[str, Any]] = {
    "equal-scales": {"shape": (1, 64, 14, 14), "multipliers": (1, 1)},
    "difference": {"shape": (2, 20, 7, 9), "multipliers": (127, -128)},
    "largest": {"shape": (1, 20, 5, 5), "multipliers": (32639, -32896)},
    "two-digits-and-none": {"shape": (1, 20, 5, 5), "multipliers": (0, 4711)},
    "long-row": {"shape": (1, 3, 1, 1300), "multipliers": (5, 700)},
    "many-channels": {"shape": (1, 700, 1, 1), "multipliers": (99, 98)},
}  # fmt: skip


@every_config
@pytest.mark.parametrize("name", ADDS)
def test_add(name: str, config: CoreConfig) -> None:
    _check([add_layer(np.random.default_rng(9), **ADDS[name])], config, ("y",), 9)


def test_one_value_added_to_itself() -> None:
    layer = add_layer(
        np.random.default_rng(1), shape=(1, 20, 6, 6), multipliers=(3, 400), sources=("x", "x")
    )
    _check([layer], CoreConfig(), ("y",), 1)


@every_config
def test_layers_on_a_tensor_with_a_border(config: CoreConfig) -> None:
    """One reader's wide padding lies in DRAM; the others skip it."""
    rng = np.random.default_rng(2)
    same: dict[str, Any] = {"shape": (1, 9, 8, 7), "outs": 9, "pads": (1, 1, 1, 1)}
    first = conv_layer(rng, kernel=(3, 3), name="first", result="t", **same)
    wide = conv_layer(
        rng, shape=(1, 9, 8, 7), outs=9, kernel=(2, 2), pads=(16, 0, 2, 18), name="wide",
        source="t", result="a",
    )  # fmt: skip
    layers = [
        first,
        wide,
        pool_layer(shape=(1, 9, 8, 7), kernel=(2, 3), source="t", result="b"),
        conv_layer(rng, kernel=(3, 3), group=9, name="dw", source="t", result="c", **same),
        add_layer(rng, shape=(1, 9, 8, 7), multipliers=(7, -600), sources=("t", "c"), result="d"),
    ]
    _check(layers, config, ("a", "b", "c", "d"), 2)


def test_weights_that_all_channels_share_are_loaded_once() -> None:
    layer = average(np.random.default_rng(0), shape=(1, 512, 7, 7))
    loads = [i for i in compile_layers([layer], CoreConfig()).instructions if isinstance(i, Load)]
    weights = [insn.x_size for insn in loads if insn.memory is Memory.WGT]
    assert weights == [7 * 2]


@pytest.mark.parametrize(
    "layer",
    [
        conv_layer(np.random.default_rng(7), outs=20, group=20, **DEPTHWISE["odd-dilation"]),
        pool_layer(**POOLS["resnet"]),
        add_layer(np.random.default_rng(9), **ADDS["equal-scales"]),
        add_layer(np.random.default_rng(9), **ADDS["largest"]),
    ],
    ids=["depthwise", "pool", "add", "add-of-two-digits"],
)
def test_layer_on_the_rtl(layer: AccelLayer) -> None:
    _check([layer], CoreConfig(), ("y",), 7, engines=("tsim",))


def test_network_on_the_rtl() -> None:
    layers = network(np.random.default_rng(5), channels=20, size=15)
    _check(layers, CoreConfig(), ("t4", "y"), 5, engines=("tsim",))


def test_operations_of_an_output() -> None:
    """A 3x3 kernel takes one operation per row, a kernel of five columns two of three taps."""
    cases = {(3, 3): (3, 3), (5, 5): (10, 3), (7, 7): (14, 4), (2, 4): (2, 4), (3, 1): (3, 1)}
    for kernel, (operations, taps) in cases.items():
        layer = conv_layer(
            np.random.default_rng(0), shape=(1, 16, 8, 8), outs=16, kernel=kernel, group=16
        )
        geometry = windows.WindowGeometry.of(layer, CoreConfig())
        assert (geometry.block_weights, geometry.taps) == (operations, taps), kernel


def test_multipliers_of_two_digits() -> None:
    for m in range(-32896, 32640, 61):
        digits = windows.add_digits((m, 3))
        assert all(-128 <= digit <= 127 for pair in digits for digit in pair)
        assert sum(pair[0] * 256**n for n, pair in enumerate(reversed(digits))) == m
        assert len(digits) == 1 + (not -128 <= m <= 127)


@pytest.mark.parametrize("multipliers", [(32640, 0), (1, -32897)])
def test_multipliers_too_large_are_refused(multipliers: tuple[int, int]) -> None:
    layer = add_layer(np.random.default_rng(0), shape=(1, 4, 4, 4), multipliers=multipliers)
    with pytest.raises(CompileError, match=r"add: multipliers must be -32896\.\.32639, got"):
        compile_layers([layer], CoreConfig())


def test_pool_of_contradicting_shapes_is_refused() -> None:
    layer = replace(pool_layer(shape=(1, 4, 6, 6), kernel=(2, 2)), out_shape=(1, 4, 6, 6))
    with pytest.raises(CompileError, match=r"pool: input .* give an output of \(1, 4, 5, 5\)"):
        compile_layers([layer], CoreConfig())


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
