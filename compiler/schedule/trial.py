"""Measures a tiling by the instructions that it leads to: those of the layer on its own."""

import numpy as np

from vitral.compiler.codegen.emit import Operands
from vitral.compiler.codegen.stream import compute_calls, emit_stream
from vitral.compiler.codegen.tensors import TensorView, tensor_bytes
from vitral.compiler.cycles import predict
from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.layer import AccelLayer, AddLayer, ChannelParams, ConvLayer, PoolLayer
from vitral.compiler.schedule.plan import LayerPlan
from vitral.compiler.schedule.tiling import Buffers, Tiling
from vitral.compiler.schedule.unroll import Placement, unroll
from vitral.compiler.schedule.window_steps import unroll_window
from vitral.compiler.schedule.windows import WindowGeometry, WindowKind
from vitral.config import CoreConfig
from vitral.isa import Rounding
from vitral.runtime.module import ArenaTensor

__all__ = ["trial_cycles"]

_SOURCES = ("a", "b")
_RESULT = "y"


def trial_cycles(
    geometry: Geometry | WindowGeometry, tiling: Tiling, buffers: Buffers, config: CoreConfig
) -> int:
    """Cycles of a layer on its own at the yardstick memory, from its instructions."""
    place = Placement()
    if isinstance(geometry, WindowGeometry):
        steps = unroll_window(0, geometry, tiling, buffers, place)
    else:
        steps = unroll(0, geometry, tiling, buffers, place)
    plan = LayerPlan(_stand_in(geometry), geometry, tiling, buffers, place, tuple(steps))
    uops, calls = compute_calls([plan], config)
    operands, end = _operands(geometry, config)
    uop_dram = end // config.layout.uop_bytes
    insns, _ = emit_stream([plan], [operands], calls, uops, uop_dram, config)
    return predict(insns, config).cycles


def _operands(geometry: Geometry | WindowGeometry, config: CoreConfig) -> tuple[Operands, int]:
    """Tensors, parameters and weights one after the other, and the byte after them."""
    ins, outs = _blocks(geometry)
    end = 0

    def place(name: str, blocks: int, y: int, x: int) -> TensorView:
        nonlocal end
        shape = (geometry.batches * config.batch, blocks * config.block, y, x)
        view = TensorView.of(ArenaTensor(name=name, offset=end, shape=shape), 0, 0, config)
        end = _aligned(end + tensor_bytes(shape, (0, 0, 0, 0), config))
        return view

    y, x = geometry.y, geometry.x
    sources = tuple(place(name, ins, y.size, x.size) for name in _SOURCES)
    result = place(_RESULT, outs, y.out, x.out)
    params = end
    weights = end = _aligned(params + outs * config.layout.param_bytes)
    pooled = isinstance(geometry, WindowGeometry) and geometry.kind is WindowKind.MAXIMUM
    operands = Operands(
        name="",
        sources=sources,
        result=result,
        weights=weights // config.layout.wgt_bytes,
        params=None if pooled else params // config.layout.param_bytes,
        blocks=outs,
        pad_value=0,
        rounding=Rounding.FLOAT32,
    )
    return operands, _aligned(end + _weights(geometry) * config.layout.wgt_bytes)


def _aligned(size: int) -> int:
    return -(-size // 4096) * 4096


def _blocks(geometry: Geometry | WindowGeometry) -> tuple[int, int]:
    """Channel blocks of input and output."""
    if isinstance(geometry, WindowGeometry):
        return geometry.blocks, geometry.blocks
    ins = max(task.first_in + task.ins for task in geometry.tasks)
    return ins, max(task.first_out + task.outs for task in geometry.tasks)


def _weights(geometry: Geometry | WindowGeometry) -> int:
    if isinstance(geometry, WindowGeometry):
        return geometry.blocks * geometry.block_weights + geometry.row_weights
    return geometry.block_pairs * geometry.taps


def _stand_in(geometry: Geometry | WindowGeometry) -> AccelLayer:
    """A layer of the same kind and value names; nothing else of it is looked at."""
    shape = (1, 1, 1, 1)
    sides, ones = (0, 0, 0, 0), (1, 1)
    kind = geometry.kind if isinstance(geometry, WindowGeometry) else None
    if kind is WindowKind.ADD:
        return AddLayer(
            name="",
            sources=("a", "b"),
            result=_RESULT,
            shape=shape,
            multipliers=(1, 1),
            params=_PARAMS,
        )
    if kind is WindowKind.MAXIMUM:
        return PoolLayer(
            name="",
            source="a",
            result=_RESULT,
            in_shape=shape,
            out_shape=shape,
            kernel=ones,
            strides=ones,
            pads=sides,
            dilations=ones,
        )
    return ConvLayer(
        name="",
        source="a",
        result=_RESULT,
        in_shape=shape,
        out_shape=shape,
        weight=np.zeros(shape, np.int16),
        group=1,
        strides=ones,
        pads=sides,
        dilations=ones,
        pad_value=0,
        params=_PARAMS,
    )


_PARAMS = ChannelParams(
    bias=np.zeros(1, np.int32),
    mult=np.zeros(1, np.uint32),
    shift=np.zeros(1, np.uint8),
    zero_point=np.zeros(1, np.int16),
    low=np.zeros(1, np.int16),
    high=np.zeros(1, np.int16),
    rounding=Rounding.FLOAT32,
)
