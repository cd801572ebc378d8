"""A core without a processor: the host's driver through the pins of its serial line."""

from pathlib import Path

import numpy as np
import pytest
from cases import ModelBuilder
from convs import small_configs
from cosim.runner import run_cocotb

import vitral
from vitral.hw.bridge.verilog import SERIAL_TOP, emit_serial

pytestmark = [pytest.mark.xdist_group("cosim"), pytest.mark.slow]  # builds a core of its own

CONFIG = small_configs()["block4"]
MEMORY_BYTES = 64 << 10
BIT_CYCLES = 4
IDLE_CYCLES = 400


def small_network(seed: int) -> tuple[bytes, np.ndarray]:
    """Two convolutions, the second one with a stride, and images for them."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(opset=13)
    zero = builder.constant("zero", -3, np.int8)
    names = [builder.scale(f"scale_{number}", 0.05) for number in range(3)]

    def conv(source: str, ins: int, outs: int, output: str, scales: list[str], stride: int) -> None:
        weight = rng.integers(-127, 128, (outs, ins, 3, 3)).astype(np.int8)
        bias = rng.integers(-2000, 2000, outs).astype(np.int32)
        scale = builder.scale(f"{output}_scale", rng.uniform(0.001, 0.006, outs))
        zeros = builder.constant(f"{output}_zeros", np.zeros(outs, np.int8))
        builder.node(
            "QLinearConv",
            [
                *(source, scales[0], zero),
                *(builder.constant(f"{output}_w", weight), scale, zeros),
                *(scales[1], zero, builder.constant(f"{output}_b", bias)),
            ],
            output,
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
            strides=[stride, stride],
        )

    conv("x", 5, 6, "middle", names[:2], 1)
    conv("middle", 6, 9, "y", names[1:], 2)
    model = builder.model({"x": (np.int8, (1, 5, 6, 6))}, {"y": (np.int8, (1, 9, 3, 3))})
    feeds = rng.integers(-128, 128, (2, 1, 5, 6, 6)).astype(np.int8)
    return model.SerializeToString(), feeds


def test_a_network_through_the_pins(tmp_path: Path) -> None:
    model, feeds = small_network(5)
    module = vitral.compile(model, target=CONFIG)
    module.save(tmp_path / "module.vitral")
    with vitral.Session(module, "fsim") as session:
        wanted = [session.run(None, {"x": feed})[0] for feed in feeds]
    np.savez(tmp_path / "values.npz", feeds=feeds, wanted=np.stack(wanted))
    verilog = emit_serial(
        CONFIG, memory_bytes=MEMORY_BYTES, bit_cycles=BIT_CYCLES, idle_cycles=IDLE_CYCLES
    )
    settings = {
        "MODULE": str(tmp_path / "module.vitral"),
        "VALUES": str(tmp_path / "values.npz"),
        "BIT_CYCLES": str(BIT_CYCLES),
        "IDLE_CYCLES": str(IDLE_CYCLES),
    }
    run_cocotb(verilog, "cosim.serial_line", tmp_path, settings=settings, top=SERIAL_TOP)
