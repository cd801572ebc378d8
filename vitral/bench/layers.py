"""The convolutions that the benchmarks measure."""

from dataclasses import dataclass

__all__ = ["OCCURRENCES", "RESNET18", "ConvShape"]


@dataclass(frozen=True)
class ConvShape:
    """A square convolution without bias, stride and pads alike on both axes.

    `size` is the height and width of the input, `kernel` those of the window.
    """

    channels: int
    size: int
    outputs: int
    kernel: int
    stride: int
    pad: int

    @property
    def out_size(self) -> int:
        return (self.size + 2 * self.pad - self.kernel) // self.stride + 1


RESNET18 = {
    "c2": ConvShape(64, 56, 64, 3, 1, 1),
    "c3": ConvShape(64, 56, 128, 3, 2, 1),
    "c4": ConvShape(64, 56, 128, 1, 2, 0),
    "c5": ConvShape(128, 28, 128, 3, 1, 1),
    "c6": ConvShape(128, 28, 256, 3, 2, 1),
    "c7": ConvShape(128, 28, 256, 1, 2, 0),
    "c8": ConvShape(256, 14, 256, 3, 1, 1),
    "c9": ConvShape(256, 14, 512, 3, 2, 1),
    "c10": ConvShape(256, 14, 512, 1, 2, 0),
    "c11": ConvShape(512, 7, 512, 3, 1, 1),
}
"""ResNet-18's convolutions on 224x224 images after the first one, by the names VTA gave them."""

OCCURRENCES = {"c2": 4, "c5": 3, "c8": 3, "c11": 3}
"""How often ResNet-18 has the layers that it has more than once."""
