"""Refuses layers whose shapes contradict each other."""

from vitral.compiler.schedule.layer import ConvLayer, PoolLayer
from vitral.errors import CompileError

__all__ = ["check_shapes"]

Shape = tuple[int, ...]


def check_shapes(layer: ConvLayer | PoolLayer, weight: Shape, group: int) -> None:
    """Check a layer as a convolution with weights of that shape, (O, C / group, KH, KW).

    Raises
    ------
    CompileError
        With the shapes, when they do not go together.
    """
    outs, ins, kernel_h, kernel_w = weight
    n, channels, height, width = layer.in_shape
    if min(*layer.in_shape, *layer.out_shape, *weight, *layer.strides) < 1:
        raise CompileError(
            f"{layer.name}: all sizes must be positive, got input {layer.in_shape}, output"
            f" {layer.out_shape}, weight {weight}, strides {layer.strides}"
        )
    if min(layer.pads) < 0 or min(layer.dilations) < 1 or group < 1:
        raise CompileError(
            f"{layer.name}: pads must be 0 or more and dilations and group positive, got"
            f" {layer.pads}, {layer.dilations}, {group}"
        )
    if ins * group != channels or outs % group:
        raise CompileError(
            f"{layer.name}: weight {weight} with group {group} needs {ins * group} input"
            f" channels, got {channels}"
        )
    wanted = (
        n,
        outs,
        _out_size(height, layer.pads[0] + layer.pads[2], kernel_h, layer, 0),
        _out_size(width, layer.pads[1] + layer.pads[3], kernel_w, layer, 1),
    )
    if wanted != layer.out_shape:
        raise CompileError(
            f"{layer.name}: input {layer.in_shape} and weight {weight} give an output of"
            f" {wanted}, got {layer.out_shape}"
        )


def _out_size(size: int, pads: int, kernel: int, layer: ConvLayer | PoolLayer, axis: int) -> int:
    extent = (kernel - 1) * layer.dilations[axis] + 1
    return (size + pads - extent) // layer.strides[axis] + 1
