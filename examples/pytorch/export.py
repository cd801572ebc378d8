"""A PyTorch network to the RTL: torch.export, ONNX, int8, program.

    pip install torch onnxscript
    python examples/pytorch/export.py --device tsim

The network is a small residual one with weights of a seed; any `torch.nn.Module` whose operators
the compiler knows goes the same way.
"""

import argparse
import io
import sys

import numpy as np
import onnx
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

import vitral
from vitral.compiler.quantize import quantize_model

SHAPE = (1, 3, 32, 32)
LEAST_SIGNAL = 25.0


class Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.inner(x))


def network() -> nn.Module:
    """32 x 32 pixels to ten classes."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        Block(16),
        Block(16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    ).eval()


def exported(module: nn.Module) -> onnx.ModelProto:
    """The ONNX model of a module, by way of torch.export."""
    program = torch.export.export(module, (torch.zeros(SHAPE),))
    made = torch.onnx.export(program, dynamo=True, verbose=False)
    assert made is not None
    buffer = io.BytesIO()
    made.save(buffer)
    model = onnx.load_from_string(buffer.getvalue())
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.input, model.graph):
        del part.metadata_props[:]  # traces of where the exporter was called
    return model


def main() -> int:
    parser = argparse.ArgumentParser(description="A PyTorch network to the RTL.")
    parser.add_argument("--device", default="tsim", help="tsim (the RTL), fsim or reference")
    parser.add_argument("--output", metavar="FILE.onnx", help="where to write the float model")
    options = parser.parse_args()
    module = network()
    model = exported(module)
    if options.output:
        onnx.save(model, options.output)
    (name,) = (value.name for value in model.graph.input)
    images = np.random.default_rng(0).random((32, *SHAPE[1:]), np.float32)
    compiled = vitral.compile(quantize_model(model, {name: images}))
    with vitral.Session(compiled, options.device) as session:
        (codes,) = session.run(None, {name: images[:1]})
        for entry in session.profile():
            print(f"{entry.name:40} {entry.kernel:36} {entry.device:8} {entry.cycles or ''}")
    with torch.no_grad():
        real = module(torch.from_numpy(images[:1])).numpy()
    noise = float(np.square(real - codes).mean())
    signal = 10 * np.log10(float(np.square(real).mean()) / noise)
    print(f"{options.device}: {signal:.1f} dB of signal over the noise of rounding")
    return 0 if signal >= LEAST_SIGNAL else 1


if __name__ == "__main__":
    sys.exit(main())
