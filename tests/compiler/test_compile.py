"""From ONNX to bytes on a simulator: compile, open a session, compare with what is known."""

import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ConvCase, ModelBuilder, build_qdq, build_qoperator, conv_rows, small_convs
from digits import INT8_MODEL, load_images, model_input
from graphs import random_graph

import vitral
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.pipeline import lower
from vitral.config import CoreConfig
from vitral.errors import CompileError, ConfigError
from vitral.runtime.module import CpuStep, Segment

CASES = (*conv_rows(), *small_convs())
SMALL = CoreConfig(
    block=4, inp_buffer=1 << 10, wgt_buffer=2 << 10, acc_buffer=4 << 10, uop_buffer=1 << 10
)


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], **options: Any) -> dict[str, Any]:
    """Outputs by name on the functional simulator."""
    with vitral.Session(vitral.compile(model, **options), device="fsim") as session:
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(None, feeds), strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case_gives_the_known_bytes_in_qdq_form(case: ConvCase) -> None:
    case.check(run(build_qdq(case), {"x": case.x})["y"])


@pytest.mark.parametrize("case", [c for c in CASES if c.clip is None], ids=str)
def test_qoperator_form_lowers_to_the_same_layers(case: ConvCase) -> None:
    """Equal layers compile to equal programs, so the bytes follow from the QDQ form's."""
    qdq, qoperator = (lower(import_onnx(build(case))) for build in (build_qdq, build_qoperator))
    assert [op.kind for op in qdq.ops] == [op.kind for op in qoperator.ops]
    for a, b in zip(qdq.ops, qoperator.ops, strict=True):
        if a.kind == "vta.conv2d":
            _same_layer(a, b)


def _same_layer(a: Any, b: Any) -> None:
    geometry = ("strides", "pads", "dilations", "group", "pad_value", "inputs", "output")
    assert [getattr(a, g) for g in geometry] == [getattr(b, g) for g in geometry]
    np.testing.assert_array_equal(a.weight, b.weight)
    for name in ("bias", "mult", "shift", "zero_point", "low", "high"):
        np.testing.assert_array_equal(getattr(a.params, name), getattr(b.params, name))
    assert a.params.rounding is b.params.rounding


@pytest.mark.parametrize("seed", range(200, 240))
def test_random_network_on_the_default_core(seed: int) -> None:
    _check_random(seed, CoreConfig())


@pytest.mark.parametrize("seed", range(300, 315))
def test_random_network_on_a_small_core(seed: int) -> None:
    _check_random(seed, SMALL)


def _check_random(seed: int, config: CoreConfig) -> None:
    model, feeds = random_graph(seed)
    expected = oracle.evaluate(model, feeds, outputs_only=True)
    actual = run(model, feeds, target=config)
    assert list(actual) == list(expected)
    for name, want in expected.items():
        assert actual[name].dtype == want.dtype, f"seed {seed}, {name}"
        np.testing.assert_array_equal(actual[name], want, err_msg=f"seed {seed}, {name}")


def test_digits_network_gives_the_bytes_of_the_oracle() -> None:
    module = vitral.compile(INT8_MODEL)
    assert module.notices == ()
    assert sum(s.macs for s in module.steps if isinstance(s, CpuStep)) == 0
    layers = [layer for s in module.steps if isinstance(s, Segment) for layer in s.layers]
    assert module.macs == sum(layer.macs for layer in layers) > 2_000_000
    images = load_images("demo")
    with vitral.Session(module, device="fsim") as session:
        for pixels in images.pixels[:10]:
            feeds = {"image": model_input(pixels)}
            want = oracle.evaluate(INT8_MODEL, feeds, outputs_only=True)
            (logits,) = session.run(None, feeds)
            np.testing.assert_array_equal(logits, want["logits"])


def test_digits_network_without_its_edges_gives_the_codes_of_the_oracle() -> None:
    pixels = load_images("demo").pixels[3]
    feeds = {"image": model_input(pixels)}
    want = oracle.evaluate(INT8_MODEL, feeds)
    model = onnx.load(INT8_MODEL)
    first = next(n for n in model.graph.node if "image" in n.input).output[0]
    last = next(n for n in model.graph.node if "logits" in n.output).input[0]
    codes = run(model, {"image": want[first]}, io="quantized")["logits"]
    np.testing.assert_array_equal(codes, want[last])


def test_layer_too_large_for_the_core_runs_on_the_cpu_with_a_notice() -> None:
    """A kernel of 40 x 40 taps needs more micro-ops than this core holds; 1 x 1 does not."""
    tiny = CoreConfig(
        block=4, inp_buffer=64, wgt_buffer=256, acc_buffer=256, uop_buffer=64, param_depth=2
    )
    rng = np.random.default_rng(5)
    b = ModelBuilder()
    source = "x"
    for number, kernel in enumerate((1, 40)):
        w = rng.integers(-127, 128, (3, 3, kernel, kernel)).astype(np.int8)
        names = [b.dequantize(source, f"real{number}", 1.0, np.array(0, np.int8))]
        names.append(b.dequantize(b.constant(f"w{number}", w), f"w{number}_real", 1.0, None))
        last = b.node("Conv", names, f"sum{number}")
        source = ("h", "y")[number]
        b.quantize(last, source, 200.0 * kernel, np.array(3, np.int8))
    model = b.model({"x": (np.int8, (1, 3, 41, 41))}, {"y": (np.int8, (1, 3, 2, 2))})
    x = rng.integers(-128, 128, (1, 3, 41, 41)).astype(np.int8)
    module = vitral.compile(model, target=tiny)
    with vitral.Session(module, device="fsim") as session:
        (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, oracle.evaluate(model, {"x": x})["y"])
    on_cpu = [s.name for s in module.steps if isinstance(s, CpuStep) and s.macs]
    assert all("runs on the CPU" in notice for notice in module.notices)
    assert len(module.notices) == len(on_cpu)


def test_quantized_edges_are_described_by_the_module() -> None:
    case = next(c for c in conv_rows() if c.name == "V2")
    model = build_qdq(case, float_edges=True)
    module = vitral.compile(model, io="quantized")
    (given,), (result,) = module.inputs, module.outputs
    assert (given.name, given.dtype, given.scale, given.zero_point) == (
        "x_float",
        "int8",
        case.x_scale,
        case.x_zero,
    )
    assert (result.dtype, result.scale, result.zero_point) == ("int8", case.y_scale, case.y_zero)
    case.check(run(model, {"x_float": case.x}, io="quantized")["y_float"])


def test_symbolic_batch_is_bound() -> None:
    case = next(c for c in conv_rows() if c.name == "V11")
    model = build_qdq(case)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    with pytest.raises(CompileError, match=r"input 'x'.*symbolic \('N'\)"):
        vitral.compile(model)
    case.check(run(model, {"x": case.x}, shapes={"N": 3})["y"])


def test_path_bytes_and_protobuf_compile_to_equal_programs(tmp_path: Any) -> None:
    case = next(c for c in conv_rows() if c.name == "V2")
    model = build_qdq(case)
    path = tmp_path / "v2.onnx"
    onnx.save(model, path)
    modules = [vitral.compile(m) for m in (model, model.SerializeToString(), path, str(path))]
    for module in modules[1:]:
        assert list(module.image) == list(modules[0].image)
        for offset, array in module.image.items():
            np.testing.assert_array_equal(array, modules[0].image[offset])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"target": "pynq-z9"}, ConfigError, "no target 'pynq-z9'"),
        ({"profile": "vta"}, CompileError, "profile 'vta' needs a graph of integers"),
        ({"io": "int"}, CompileError, "io must be"),
    ],
)
def test_wrong_option_is_refused(options: dict[str, Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        vitral.compile(build_qdq(conv_rows()[0]), **options)


def test_progress_is_told_in_words() -> None:
    told: list[str] = []
    vitral.compile(INT8_MODEL, progress=told.append)
    assert told[0] == "reading the model"
    assert told[-1] == "verifying"
    assert any("segment0, layer 2 of" in text for text in told)


def test_progress_rises_from_nothing_towards_all() -> None:
    shares: list[float] = []
    vitral.compile(INT8_MODEL, progress=lambda doing: shares.append(doing.share))
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert 0.5 < shares[-1] < 1


def test_import_vitral_needs_numpy_only() -> None:
    code = (
        "import sys, vitral; vitral.Module; "
        "print([m for m in ('onnx', 'llvmlite', 'amaranth', 'google') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_memory_that_is_too_small_is_refused_with_both_sizes() -> None:
    needed = vitral.compile(INT8_MODEL).arena_bytes
    assert vitral.compile(INT8_MODEL, memory=needed).arena_bytes == needed
    with pytest.raises(CompileError, match=rf"needs {needed} bytes .* {needed - 1} are available"):
        vitral.compile(INT8_MODEL, memory=needed - 1)
