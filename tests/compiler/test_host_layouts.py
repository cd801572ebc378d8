"""Images laid out by the host for first layers: the same bytes in fewer blocks."""

from typing import Any

import numpy as np
import oracle
import pytest
from cases import ModelBuilder
from plans import run_plan

import vitral
from vitral.compiler.assemble import plan
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.ir import Graph, verify
from vitral.compiler.ir.ops import AccelConv2d, Patches
from vitral.compiler.pipeline import lower
from vitral.compiler.place.host_layouts import host_layouts, lay_out_images, read_taps
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.runtime.cpu import OPERATORS
from vitral.runtime.module import CpuStep, Segment

CORE = CoreConfig()
SMALL = CoreConfig(
    block=4, inp_buffer=1 << 10, wgt_buffer=2 << 10, acc_buffer=4 << 10, uop_buffer=1 << 10
)
FIRST_LAYERS = [
    # input, weights, strides, pads, dilations
    ((1, 3, 23, 20), (5, 3, 7, 7), (2, 2), (3, 3, 3, 3), (1, 1)),
    ((2, 3, 12, 13), (18, 3, 3, 3), (2, 2), (0, 0, 1, 1), (1, 1)),
    ((1, 1, 15, 11), (4, 1, 5, 2), (1, 3), (2, 0, 1, 4), (1, 1)),
    ((1, 2, 17, 17), (3, 2, 3, 4), (3, 1), (1, 2, 0, 3), (2, 3)),
    ((1, 4, 9, 30), (6, 4, 1, 11), (1, 4), (0, 5, 0, 5), (1, 1)),
    ((1, 3, 21, 22), (7, 3, 5, 6), (4, 5), (0, 0, 0, 0), (1, 1)),
]
LAYOUTS = ["auto", "channels", "rows", "windows", "2x2", "3x1", "2x5", "99x99"]


def first_layer(case: Any, zero: int = -7) -> Any:
    shape, weights, strides, pads, dilations = case
    rng = np.random.default_rng(list(shape + weights))
    b = ModelBuilder()
    w = rng.integers(-127, 128, weights).astype(np.int8)
    names = [
        b.dequantize("x", "x_real", 1 / 32, np.array(zero, np.int8)),
        b.dequantize(b.constant("w", w), "w_real", 1 / 64, None),
    ]
    geometry = {"strides": strides, "pads": pads, "dilations": dilations}
    b.node("Conv", names, "sum", **{name: list(value) for name, value in geometry.items()})
    b.quantize("sum", "y", float(np.prod(weights[1:])) ** 0.5 / 20, np.array(3, np.int8))
    size = [
        (shape[2 + i] + pads[i] + pads[2 + i] - (weights[2 + i] - 1) * dilations[i] - 1)
        // strides[i]
        + 1
        for i in range(2)
    ]
    out = (shape[0], weights[0], *size)
    return b.model({"x": (np.int8, shape)}, {"y": (np.int8, out)})


def image(case: Any) -> np.ndarray:
    return np.random.default_rng(case[0][2]).integers(-128, 128, case[0]).astype(np.int8)


def laid_out(model: Any, layout: str, config: CoreConfig = CORE) -> Graph:
    graph = lay_out_images(lower(import_onnx(model)), config, layout)
    verify(graph)
    return graph


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", FIRST_LAYERS, ids=lambda c: "x".join(map(str, c[1])))
def test_every_layout_has_the_bytes_of_the_model(case: Any, layout: str) -> None:
    model, x = first_layer(case), image(case)
    values = run_plan(plan(laid_out(model, layout)), {"x": x})
    np.testing.assert_array_equal(values["y"], oracle.evaluate(model, {"x": x})["y"])


@pytest.mark.parametrize("config", [CORE, SMALL], ids=["default", "small"])
@pytest.mark.parametrize("layout", ["auto", "rows", "windows", "2x2"])
def test_windows_reach_the_program_in_its_own_form(layout: str, config: CoreConfig) -> None:
    case = FIRST_LAYERS[1]
    model, x = first_layer(case), image(case)
    module = vitral.compile(model, target=config, host_layout=layout)
    (step,) = (s for s in module.steps if isinstance(s, CpuStep))
    assert step.attributes["packed"] == [config.batch, config.block]
    assert sum(layer.macs for s in module.segments for layer in s.layers) == module.macs
    with vitral.Session(module, device="fsim") as session:
        (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, oracle.evaluate(model, {"x": x})["y"])


def test_resnet_conv1_takes_ten_blocks_and_160_bytes_a_pixel() -> None:
    case = ((1, 3, 224, 224), (64, 3, 7, 7), (2, 2), (3, 3, 3, 3), (1, 1))
    graph = lower(import_onnx(first_layer(case)))
    (conv,) = (op for op in graph.ops if isinstance(op, AccelConv2d))
    layouts = {layout.taps: layout for layout in host_layouts(graph, conv, CORE)}
    pixels = 112 * 112
    blocks = {taps: layouts[taps].cycles / (4 * pixels) for taps in layouts}
    assert blocks[1, 1] == 49
    assert blocks[2, 2] == 16
    assert blocks[1, 7] == 14
    assert blocks[7, 7] == min(blocks.values()) == 10
    assert layouts[7, 7].host_bytes == 160 * pixels
    assert layouts[2, 2].host_bytes == 115 * 115 * 16
    assert host_layouts(graph, conv, CORE)[0].taps == (7, 7)


def test_layer_that_gains_nothing_reads_its_input_as_it_is() -> None:
    case = ((1, 16, 12, 12), (16, 16, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    assert not any(isinstance(op, Patches) for op in laid_out(first_layer(case), "auto").ops)


def test_only_layers_that_read_values_of_the_host_are_laid_out() -> None:
    b = ModelBuilder()
    rng = np.random.default_rng(3)
    source = "x"
    for number in range(2):
        w = rng.integers(-127, 128, (3, 3, 3, 3)).astype(np.int8)
        real = b.dequantize(source, f"real{number}", 1 / 16, np.array(0, np.int8))
        names = [real, b.dequantize(b.constant(f"w{number}", w), f"w{number}_real", 1 / 64, None)]
        last = b.node("Conv", names, f"sum{number}", pads=[1, 1, 1, 1])
        source = b.quantize(last, ("h", "y")[number], 1 / 4, np.array(0, np.int8))
    shape = (1, 3, 9, 9)
    model = b.model({"x": (np.int8, shape)}, {"y": (np.int8, shape)})
    (patches,) = (op for op in laid_out(model, "auto").ops if isinstance(op, Patches))
    assert patches.inputs == ("x",)


@pytest.mark.parametrize("name", ["", "2", "0x2", "axb", "2x2x2", "window"])
def test_unknown_layout_is_refused(name: str) -> None:
    with pytest.raises(CompileError, match="host_layout must be"):
        read_taps(name, (3, 3))


@pytest.mark.parametrize("packed", [(1, 16), (2, 4), (1, 8)])
def test_packed_windows_are_the_plain_ones_in_blocks(packed: tuple[int, int]) -> None:
    x = np.random.default_rng(1).integers(-128, 128, (3, 3, 9, 8)).astype(np.int8)
    for dilations in ((1, 1), (1, 2), (2, 1)):
        window = {
            "kernel": (3, 2),
            "strides": (2, 1),
            "pads": (1, 0, 2, 3),
            "dilations": dilations,
            "pad_value": 5,
        }
        plain = OPERATORS["patches"](x, **window)
        blocks = OPERATORS["patches"](x, packed=packed, **window)
        n, depth, *size = plain.shape
        whole = blocks.transpose(0, 4, 1, 5, 2, 3)
        whole = whole.reshape(blocks.shape[0] * packed[0], blocks.shape[1] * packed[1], *size)
        np.testing.assert_array_equal(whole[:n, :depth], plain)
        assert not whole[n:].any()
        assert not whole[:, depth:].any()


def test_windows_on_the_host_are_counted_from_the_padded_corner() -> None:
    x = np.arange(9, dtype=np.int8).reshape(1, 1, 3, 3)
    result = OPERATORS["patches"](
        x, kernel=(2, 2), strides=(2, 2), pads=(1, 1, 0, 0), dilations=(1, 1), pad_value=-1
    )
    assert result[0, :, 0, 0].tolist() == [-1, -1, -1, 0]
    assert result[0, :, 1, 1].tolist() == [4, 5, 7, 8]


def test_segments_take_windows_only() -> None:
    module = vitral.compile(first_layer(FIRST_LAYERS[0]), host_layout="windows")
    (segment,) = (s for s in module.steps if isinstance(s, Segment))
    (tensor,) = segment.inputs
    assert tensor.shape[1] == 3 * 7 * 7
    assert tensor.pads == (0, 0, 0, 0)
