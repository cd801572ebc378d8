"""What the profile says about each layer of a segment."""

from collections.abc import Sequence

import numpy as np

from vitral.compiler.schedule.layer import AccelLayer, AddLayer, ConvLayer, PoolLayer
from vitral.compiler.schedule.plan import LayerPlan
from vitral.compiler.schedule.vta_layer import VtaConv
from vitral.config import PARAM_LANE_BYTES
from vitral.runtime.module import TOGETHER, Layer

__all__ = ["layer_records"]


def layer_records(plans: Sequence[LayerPlan], lasts: Sequence[int]) -> list[Layer]:
    """A record per layer, one for two joined layers; `lasts` are the numbers of the layers' last
    instructions, in order."""
    records: list[Layer] = []
    for plan, last in zip(plans, lasts, strict=True):
        layer = plan.layer
        record = Layer(
            name=layer.name,
            op=_operator(layer),
            macs=layer.macs,
            first=records[-1].last + 1 if records else 0,
            last=last,
            read_bytes=_read_bytes(plan),
            write_bytes=int(np.prod(layer.out_shape)),
        )
        records.append(_together(records.pop(), record) if plan.joined else record)
    return records


def _together(first: Layer, second: Layer) -> Layer:
    """Two layers whose instructions alternate."""
    return Layer(
        name=TOGETHER.join((first.name, second.name)),
        op=TOGETHER.join((first.op, second.op)),
        macs=first.macs + second.macs,
        first=first.first,
        last=max(first.last, second.last),
        read_bytes=first.read_bytes + second.read_bytes,
        write_bytes=first.write_bytes + second.write_bytes,
    )


def _operator(layer: AccelLayer) -> str:
    match layer:
        case AddLayer():
            return "add"
        case VtaConv() if not layer.macs:
            return "alu"
        case PoolLayer():
            return "maxpool"
        case ConvLayer():
            return "depthwise" if 1 < layer.group == layer.in_shape[1] else "conv"


def _read_bytes(plan: LayerPlan) -> int:
    """Every needed byte of inputs, weights and parameters once."""
    layer = plan.layer
    n, channels, _, width = layer.in_shape
    data = n * channels * _rows_read(plan) * width * len(set(layer.sources))
    params = layer.out_shape[1] * PARAM_LANE_BYTES
    match layer:
        case AddLayer():
            return data + params
        case PoolLayer():
            return data
        case VtaConv():
            added = sum(int(np.prod(shape)) for shape in layer.source_shapes[1:])
            biases = 0 if layer.bias is None else layer.bias.nbytes
            return n * channels * _rows_read(plan) * width + added + layer.weight.size + biases
        case ConvLayer():
            return data + layer.weight.size + params


def _rows_read(plan: LayerPlan) -> int:
    """Rows of the real input that any window touches."""
    layer, axis, height = plan.layer, plan.geometry.y, plan.layer.in_shape[2]
    top = 0 if isinstance(layer, AddLayer) else layer.pads[0]
    rows = {
        out * axis.stride + tap * axis.dilation - top
        for out in range(axis.out)
        for tap in range(axis.kernel)
    }
    return sum(0 <= row < height for row in rows)
