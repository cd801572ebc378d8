"""Graphs of integers run as plain VTA programs, with the interpreter's bytes on every device."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from vta_graphs import random_graph

import vitral
from vitral.cli.main import main
from vitral.compiler.ir import Graph, GraphBuilder, TensorType, evaluate
from vitral.compiler.quantize.global_scale import QConfig, quantize
from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import CompileError, ExecutionFault, ModuleError
from vitral.isa import Alu, AluOp, Gemm, InstructionSet, Load, Memory, Profile, Store

DEVICES = ("reference", "fsim", "tsim")
CORES = {
    "default": CoreConfig(),
    "batch of 2": CoreConfig(
        batch=2,
        block=8,
        uop_buffer=1 << 10,
        inp_buffer=4 << 10,
        wgt_buffer=8 << 10,
        acc_buffer=8 << 10,
    ),
    "small": CoreConfig(inp_buffer=8 << 10, wgt_buffer=32 << 10, acc_buffer=16 << 10, acc_banks=2),
    "narrow": CoreConfig(
        block=4, uop_buffer=4 << 10, inp_buffer=4 << 10, wgt_buffer=4 << 10, acc_buffer=16 << 10
    ),
}


def uniform(rng: np.random.Generator, *shape: int, limit: float) -> np.ndarray:
    return rng.uniform(-limit, limit, shape).astype(np.float32)


def one_conv() -> Graph:
    build = GraphBuilder({"data": TensorType((1, 1, 16, 16), "float32")})
    conv = build.call("nn.conv2d", "data", np.full((1, 1, 1, 1), 0.8, np.float32))
    graph = build.graph(build.call("nn.relu", conv))
    return quantize(graph, qconfig=QConfig(skip_k_conv=0))


def network() -> Graph:
    """Three convolutions, one of them depthwise, a residual, a pool and a dense layer."""
    rng = np.random.default_rng(5)
    build = GraphBuilder({"data": TensorType((1, 3, 14, 12), "float32")})
    x = build.call("nn.conv2d", "data", uniform(rng, 24, 3, 3, 3, limit=0.3), padding=[1, 1])
    x = build.call("nn.relu", build.call("nn.bias_add", x, uniform(rng, 24, limit=1)))
    x = build.call("nn.max_pool2d", x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1])
    y = build.call("nn.conv2d", x, uniform(rng, 24, 24, 3, 3, limit=0.1), padding=[1, 1])
    y = build.call("nn.bias_add", y, uniform(rng, 24, limit=1))
    x = build.call("nn.relu", build.call("add", y, x))
    x = build.call("nn.conv2d", x, uniform(rng, 24, 1, 3, 3, limit=0.5), groups=24)
    x = build.call("nn.batch_flatten", x)
    x = build.call("nn.dense", x, uniform(rng, 10, 24 * 5 * 4, limit=0.1))
    return quantize(build.graph(build.call("nn.softmax", x)), qconfig=QConfig(skip_k_conv=0))


def feeds(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    """Values beyond the scale's range at either end."""
    rng = np.random.default_rng(seed)
    (name,) = graph.inputs
    type_ = graph.types[name]
    if type_.dtype == "int8":
        return {name: rng.integers(-128, 128, type_.shape).astype(np.int8)}
    return {name: uniform(rng, *type_.shape, limit=9)}


def check(graph: Graph, device: str, config: CoreConfig, seed: int = 0) -> vitral.Module:
    module = vitral.compile(graph, target=config, profile="vta")
    inputs = feeds(graph, seed)
    with vitral.Session(module, device=device) as session:
        results = session.run(None, inputs)
    for got, wanted in zip(results, evaluate(graph, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=f"seed {seed}")
    return module


@pytest.mark.parametrize("device", DEVICES)
def test_one_convolution(device: str) -> None:
    check(one_conv(), device, CoreConfig())


@pytest.mark.parametrize("device", DEVICES)
def test_a_network_is_one_program(device: str) -> None:
    module = check(network(), device, CoreConfig())
    assert len(module.segments) == 1
    assert len(module.segments[0].layers) == 5
    assert not module.notices


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("seed", range(3))
def test_random_graphs(seed: int, core: str) -> None:
    module = check(random_graph(seed, layers=3), "fsim", CORES[core], seed)
    assert not any("on the CPU" in notice for notice in module.notices)


@pytest.mark.parametrize("seed", [100, 101])
def test_random_graphs_on_the_reference(seed: int) -> None:
    check(random_graph(seed, layers=3, most=8), "reference", CoreConfig(), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 212))
def test_random_graphs_on_the_rtl(seed: int) -> None:
    check(random_graph(seed), "tsim", CoreConfig(), seed)


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("seed", range(300, 330))
def test_large_random_graphs(seed: int, core: str) -> None:
    check(random_graph(seed, most=40), "fsim", CORES[core], seed)


def instructions(module: vitral.Module, profile: Profile) -> list:
    (segment,) = module.segments
    data = module.image[segment.insn_offset].tobytes()
    isa = InstructionSet.of(module.config)
    words = [data[n : n + INSN_BYTES] for n in range(0, len(data), INSN_BYTES)]
    return [isa.decode(int.from_bytes(word, "little"), profile) for word in words]


def test_programs_are_plain_in_either_profile() -> None:
    graph = network()
    plain = vitral.compile(graph, profile="vta")
    other = vitral.compile(graph)
    assert [segment.profile for segment in plain.segments] == ["vta"]
    assert [segment.profile for segment in other.segments] == ["vitral"]
    insns = instructions(plain, Profile.VTA)
    assert insns == instructions(other, Profile.VITRAL)
    assert any(isinstance(insn, Gemm) and insn.reset for insn in insns)
    assert not any(isinstance(insn, Gemm) and insn.overwrite for insn in insns)
    assert not any(isinstance(insn, Store) and insn.requant for insn in insns)
    assert {i.memory for i in insns if isinstance(i, Load)} == {
        Memory.UOP,
        Memory.INP,
        Memory.WGT,
        Memory.ACC,
        Memory.ACC_8BIT,
    }
    used = {i.alu_opcode for i in insns if isinstance(i, Alu)}
    assert used == {AluOp.ADD, AluOp.MAX, AluOp.MIN, AluOp.SHR}


def with_spare_bit(module: vitral.Module, profile: str) -> vitral.Module:
    """A bit of the first LOAD that only the Vitral profile minds."""
    (segment,) = module.segments
    words = module.image[segment.insn_offset].copy()
    used = InstructionSet.of(module.config).load.used_mask(Profile.VITRAL)
    spare = next(bit for bit in range(8 * INSN_BYTES) if not used >> bit & 1)
    words[spare // 8] |= 1 << spare % 8
    steps = tuple(
        replace(step, profile=profile) if step is segment else step for step in module.steps
    )
    return replace(module, image={**module.image, segment.insn_offset: words}, steps=steps)


@pytest.mark.parametrize("device", DEVICES)
def test_the_profile_reaches_the_device(device: str) -> None:
    graph = one_conv()
    module = vitral.compile(graph, profile="vta")
    inputs = feeds(graph)
    with vitral.Session(with_spare_bit(module, "vta"), device=device) as session:
        np.testing.assert_array_equal(session.run(None, inputs)[0], evaluate(graph, inputs)[0])
    with vitral.Session(with_spare_bit(module, "vitral"), device=device) as session:
        with pytest.raises(ExecutionFault, match=r"(?i)reserved"):
            session.run(None, inputs)


def test_a_saved_module_keeps_its_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.vitral"
    vitral.compile(one_conv(), profile="vta").save(path)
    assert [segment.profile for segment in vitral.Module.load(path).segments] == ["vta"]
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().err == ""


def test_a_module_of_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    module = vitral.compile(one_conv(), profile="vta")
    steps = tuple(
        replace(step, profile="vtb") if step in module.segments else step for step in module.steps
    )
    replace(module, steps=steps).save(tmp_path / "net.vitral")
    with pytest.raises(ModuleError, match="profile must be vta or vitral, got 'vtb'"):
        vitral.Module.load(tmp_path / "net.vitral")


def test_layers_that_do_not_fit_run_on_the_cpu() -> None:
    build = GraphBuilder({"data": TensorType((1, 4, 1, 300), "int8")})
    weight = np.full((4, 4, 1, 300), 1, np.int8)
    sums = build.call("nn.conv2d", "data", weight, out_dtype="int32", name="wide")
    shifted = build.call("right_shift", sums, np.int32(8))
    module = check(build.graph(build.call("cast", shifted, dtype="int8")), "fsim", CORES["narrow"])
    (notice, *_) = [text for text in module.notices if "runs on the CPU: wide" in text]
    assert "use larger buffers" in notice


def test_float_models_have_no_plain_programs(tmp_path: Path) -> None:
    build = GraphBuilder({"data": TensorType((1, 1, 4, 4), "float32")})
    graph = build.graph(build.call("nn.relu", "data"))
    with pytest.raises(CompileError, match="profile 'vta' needs a graph of integers"):
        vitral.compile(graph, profile="vta")
    with pytest.raises(CompileError, match="profile must be 'vitral' or 'vta', got 'vtb'"):
        vitral.compile(graph, profile="vtb")
    with pytest.raises(CompileError, match="io must be 'float'"):
        vitral.compile(one_conv(), io="quantized")


def test_layers_name_what_they_compute() -> None:
    module = vitral.compile(one_conv(), profile="vta")
    (layer,) = module.segments[0].layers
    assert layer.kernel == "fused_nn_conv2d_nn_relu_add_right_shift_clip_cast"


def test_operators_that_the_registry_lacks_run_on_the_cpu(tmp_path: Path) -> None:
    build = GraphBuilder({"data": TensorType((1, 3, 4, 4), "float32")})
    conv = build.call("nn.conv2d", "data", np.ones((2, 3, 1, 1), np.float32))
    type_ = TensorType((1, 2, 4, 4), "float32")
    norm = build.call("onnx.LRN", conv, size=3, opset=18, inputs=(0,), result=type_)
    graph = quantize(build.graph(norm), qconfig=QConfig(skip_k_conv=0))
    path = tmp_path / "net.vitral"
    vitral.compile(graph, profile="vta").save(path)
    inputs = feeds(graph)
    with vitral.Session(path) as session:
        np.testing.assert_array_equal(session.run(None, inputs)[0], evaluate(graph, inputs)[0])
