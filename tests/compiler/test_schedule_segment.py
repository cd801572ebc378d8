"""Compiled segments give the bytes of exact integer convolutions, in every order of the queues."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from convs import (
    chain,
    compile_layers,
    conv_layer,
    layer_folder,
    random_layer,
    run_exact,
    small_configs,
)
from engines import engine

from vitral.compiler.codegen.arena import Arena
from vitral.compiler.schedule.layer import ConvLayer
from vitral.compiler.schedule.segment import schedule_segment
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import Config, Finish, Gemm, Load, Memory, Store
from vitral.program import Dram, Launch, OnChip, Outcome, ProgramFolder
from vitral.sim.reference import Reference

CONFIGS = small_configs()
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def _inputs(layer: ConvLayer, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed + 1000)
    return {layer.source: rng.integers(-128, 128, layer.in_shape).astype(np.int8)}


def _check(
    layers: list[ConvLayer],
    config: CoreConfig,
    outputs: tuple[str, ...],
    seed: int,
    engines: tuple[str, ...] = ("reference", "fsim"),
) -> None:
    """Compile, verify, run on engines and in shuffled order; compare all outputs."""
    compiled = compile_layers(layers, config, outputs)
    assert compiled.verify().ok, f"seed {seed}: {compiled.verify().message}"
    inputs = _inputs(layers[0], seed)
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
@pytest.mark.parametrize("seed", range(12))
def test_random_convolution(seed: int, config: CoreConfig) -> None:
    largest = 24 if config == CONFIGS["default"] else 10
    layer = random_layer(np.random.default_rng(seed), largest=largest)
    _check([layer], config, ("y",), seed)


@every_config
@pytest.mark.parametrize("seed", range(4))
def test_random_chain(seed: int, config: CoreConfig) -> None:
    rng = np.random.default_rng(seed)
    layers = chain(rng, random_layer(rng, largest=8), 3)
    _check(layers, config, (layers[-1].result,), seed)


@every_config
def test_two_readers_of_a_value_that_is_also_an_output(config: CoreConfig) -> None:
    rng = np.random.default_rng(1)
    first = conv_layer(rng, shape=(2, 9, 8, 7), outs=11, kernel=(3, 3), pads=(1, 1, 1, 1))
    narrow = conv_layer(
        rng, shape=first.out_shape, outs=7, kernel=(3, 3), pads=(1, 2, 1, 0), pad_value=-5,
        name="narrow", source="y", result="a",
    )  # fmt: skip
    wide = conv_layer(
        rng, shape=first.out_shape, outs=6, kernel=(2, 2), pads=(16, 0, 2, 18), pad_value=-5,
        name="wide", source="y", result="b",
    )  # fmt: skip
    _check([first, narrow, wide], config, ("y", "a", "b"), 1)


def test_dead_tensors_make_room() -> None:
    rng = np.random.default_rng(2)
    names = ["x", *(f"y{number}" for number in range(8))]
    layers = [
        conv_layer(rng, shape=(1, 16, 40, 40), outs=16, name=result, source=source, result=result)
        for source, result in pairwise(names)
    ]
    _check(layers, CoreConfig(), (names[-1],), 2, engines=("fsim",))
    compiled = compile_layers(layers, CoreConfig())
    stored = {s.dram_base for s in compiled.instructions if isinstance(s, Store) and s.x_size}
    pages = {base * 16 // 4096 for base in stored}
    assert len(pages) <= 3 * 7, "two tensors in turn and the output, of 7 pages each"


CASES = {
    "depthwise": {"shape": (1, 20, 9, 9), "outs": 20, "kernel": (3, 3), "group": 20,
                  "pads": (1, 1, 1, 1), "pad_value": 7},
    "dense": {"shape": (3, 200, 1, 1), "outs": 130},
    "dense-wide-weights": {"shape": (1, 70, 1, 1), "outs": 30, "wide": True},
    "first-layer": {"shape": (1, 3, 30, 30), "outs": 12, "kernel": (7, 7), "strides": (2, 2),
                    "pads": (3, 3, 3, 3), "pad_value": -128},
    "one-dimensional": {"shape": (2, 5, 1, 60), "outs": 9, "kernel": (1, 9),
                        "pads": (0, 4, 0, 4), "dilations": (1, 2)},
    "padding-only-windows": {"shape": (1, 4, 2, 2), "outs": 4, "pads": (5, 3, 4, 15),
                             "pad_value": 33},
    "stride-beyond-kernel": {"shape": (1, 9, 14, 14), "outs": 9, "strides": (3, 2)},
    "tall-kernel": {"shape": (1, 4, 14, 10), "outs": 5, "kernel": (11, 5),
                    "pads": (5, 2, 5, 2), "pad_value": 1},
    "border-of-forty": {"shape": (1, 3, 4, 3), "outs": 2, "kernel": (3, 3),
                        "pads": (40, 16, 0, 33), "strides": (4, 3), "pad_value": -9},
}  # fmt: skip


@every_config
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, config: CoreConfig) -> None:
    layer = conv_layer(np.random.default_rng(7), name=name, **CASES[name])
    _check([layer], config, ("y",), 7)


@pytest.mark.parametrize("name", ["depthwise", "first-layer", "dense", "border-of-forty"])
def test_case_on_the_rtl(name: str) -> None:
    layer = conv_layer(np.random.default_rng(7), name=name, **CASES[name])
    _check([layer], CoreConfig(), ("y",), 7, engines=("tsim",))


def test_chain_on_the_rtl() -> None:
    rng = np.random.default_rng(5)
    layers = chain(rng, random_layer(rng, largest=24), 4)
    _check(layers, CoreConfig(), (layers[-1].result,), 5, engines=("tsim",))


def test_no_pass_of_the_alu_and_no_reset() -> None:
    layer = conv_layer(
        np.random.default_rng(0), shape=(1, 32, 20, 20), outs=32, kernel=(3, 3), pads=(1, 1, 1, 1)
    )
    compiled = compile_layers([layer], CoreConfig())
    kinds = {type(insn) for insn in compiled.instructions}
    assert kinds == {Load, Gemm, Store, Finish}
    gemms = [insn for insn in compiled.instructions if isinstance(insn, Gemm)]
    assert not any(insn.reset for insn in gemms)
    assert any(insn.overwrite for insn in gemms)
    assert all(s.requant for s in compiled.instructions if isinstance(s, Store) and s.x_size)


def test_padding_of_zero_needs_no_configuration() -> None:
    shape: dict[str, object] = {"shape": (1, 4, 5, 5), "outs": 4, "pads": (1, 1, 1, 1)}
    for value, count in ((0, 0), (3, 1)):
        layer = conv_layer(np.random.default_rng(0), pad_value=value, **shape)  # pyright: ignore[reportArgumentType]  # by name
        insns = compile_layers([layer], CoreConfig()).instructions
        assert sum(isinstance(insn, Config) for insn in insns) == count


def test_weights_that_fit_are_loaded_once() -> None:
    layer = conv_layer(
        np.random.default_rng(0), shape=(1, 64, 56, 56), outs=64, kernel=(3, 3), pads=(1, 1, 1, 1)
    )
    loads = [i for i in compile_layers([layer], CoreConfig()).instructions if isinstance(i, Load)]
    weights = [insn.x_size for insn in loads if insn.memory is Memory.WGT]
    assert sum(weights) == 4 * 4 * 9


def test_layers_of_the_profile() -> None:
    rng = np.random.default_rng(3)
    first = conv_layer(rng, shape=(1, 3, 9, 9), outs=8, kernel=(1, 1), strides=(2, 2))
    second = conv_layer(
        rng, shape=first.out_shape, outs=8, kernel=(3, 3), group=8, name="dw", source="y",
        result="z",
    )  # fmt: skip
    compiled = compile_layers([first, second], CoreConfig())
    one, two = compiled.segment.layers
    assert (one.name, one.op, two.name, two.op) == ("conv", "conv", "dw", "depthwise")
    assert (one.macs, two.macs) == (8 * 3 * 25, 8 * 9 * 9)
    assert one.read_bytes == 3 * 5 * 9 + 24 + 8 * 16
    assert one.write_bytes == 8 * 25
    assert (one.first, one.last + 1) == (0, two.first)
    assert isinstance(compiled.instructions[one.last], Store)
    assert two.last == compiled.segment.insn_count - 2


def test_same_layers_give_the_same_bytes() -> None:
    layer = random_layer(np.random.default_rng(4))
    one, two = (compile_layers([layer], CoreConfig()).arena.image for _ in range(2))
    assert {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in two.items()}


@pytest.mark.parametrize("name", ["default", "block8-batch2"])
def test_layer_as_a_folder_of_raw_files(name: str, tmp_path: Path) -> None:
    layer = conv_layer(
        np.random.default_rng(8), shape=(2, 20, 7, 7), outs=18, kernel=(3, 3), pads=(1, 1, 1, 1)
    )
    layer_folder(layer, CONFIGS[name], _inputs(layer, 8)["x"]).save(tmp_path)
    folder = ProgramFolder.load(tmp_path)
    dram = folder.dram()
    assert folder.differences(dram), "the result must not be there before the run"
    assert Reference(folder.config).run(folder.launch, dram).ok
    assert folder.differences(dram) == []


def test_segments_share_an_arena() -> None:
    arena = Arena()
    rng = np.random.default_rng(6)
    segments = []
    for _ in range(2):
        layers = chain(rng, conv_layer(rng, shape=(1, 8, 6, 6), outs=8), 3)
        outputs = (layers[-1].result,)
        segments.append(
            schedule_segment(
                layers, CoreConfig(), name="s", inputs=("x",), outputs=outputs, arena=arena
            )
        )
    assert segments[0].insn_offset != segments[1].insn_offset
    assert segments[0].inputs[0].offset != segments[1].inputs[0].offset


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"source": "nowhere"}, "second: reads nowhere, which is neither an input of segment test"),
        ({"result": "x"}, "second: x already has a value"),
        ({"in_shape": (1, 4, 5, 6)}, r"second: reads y as \(1, 4, 5, 6\), but its shape is"),
    ],
)
def test_wrong_connections_are_refused(change: dict[str, object], text: str) -> None:
    rng = np.random.default_rng(0)
    first = conv_layer(rng, shape=(1, 4, 6, 6), outs=4)
    second = conv_layer(rng, shape=first.out_shape, outs=4, name="second", source="y", result="z")
    second = replace(second, **change)  # pyright: ignore[reportArgumentType]  # by name
    with pytest.raises(CompileError, match=text):
        schedule_segment(
            [first, second],
            CoreConfig(),
            name="test",
            inputs=("x",),
            outputs=(second.result,),
            arena=Arena(),
        )


def test_segment_without_layers_is_refused() -> None:
    with pytest.raises(CompileError, match="segment empty: needs at least one layer"):
        schedule_segment([], CoreConfig(), name="empty", inputs=(), outputs=(), arena=Arena())


def test_borders_of_two_values_are_refused() -> None:
    rng = np.random.default_rng(0)
    shape = {"shape": (1, 4, 4, 4), "outs": 4, "pads": (20, 0, 0, 0)}
    one = conv_layer(rng, **shape, pad_value=1)
    two = conv_layer(rng, **shape, pad_value=2, name="two", result="z")
    with pytest.raises(CompileError, match="two: pads x with 2, another layer with 1"):
        compile_layers([one, two], CoreConfig())
