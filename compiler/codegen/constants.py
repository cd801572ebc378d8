"""Weights and requantisation parameters in the order and form in which the core loads them."""

import numpy as np
import numpy.typing as npt

from vitral.compiler.schedule.geometry import Geometry, Task, blocks_of
from vitral.compiler.schedule.layer import AddLayer, ConvLayer
from vitral.compiler.schedule.steps import Chunk
from vitral.config import PARAM_LANE_BYTES, CoreConfig
from vitral.errors import CompileError
from vitral.isa import PARAM_FIELDS

__all__ = ["pack_bias", "pack_params", "pack_weights", "split_planes"]

_INT8_MIN, _INT8_MAX = -128, 127


def pack_weights(
    layer: ConvLayer, geometry: Geometry, chunks: list[list[Chunk]], config: CoreConfig
) -> npt.NDArray[np.int8]:
    """int8 (elements, block out, block in): by task, output block, chunk, then tap.

    `chunks` are those of each task. Taps run over input block, kernel row, column, and plane.
    Weights between channels of different groups, and of channels that do not exist, are 0.
    """
    parts = []
    for task, pieces in zip(geometry.tasks, chunks, strict=True):
        dense = split_planes(_dense(layer, task, config.block), geometry.planes)
        blocked = _blocked(dense, task, config.block)
        flat = [
            blocked[:, i : i + ins, k : k + taps].reshape(task.outs, -1, config.block, config.block)
            for (i, ins), (k, taps) in ((piece.ins, piece.taps) for piece in pieces)
        ]
        parts.append(np.concatenate(flat, axis=1).reshape(-1, config.block, config.block))
    return np.concatenate(parts)


def _dense(layer: ConvLayer, task: Task, block: int) -> npt.NDArray[np.int16]:
    """Weights of a task as of one group: int16 (outs · block, ins · block, KH, KW)."""
    weight = layer.weight
    outs, ins = weight.shape[0] // layer.group, weight.shape[1]
    dense = np.zeros((task.outs * block, task.ins * block, *weight.shape[2:]), np.int16)
    first_out, first_in = task.first_out * block, task.first_in * block
    end = min(first_out + task.outs * block, weight.shape[0])
    for group in range(first_out // outs, (end - 1) // outs + 1):
        low, high = max(first_out, group * outs), min(end, (group + 1) * outs)
        start = group * ins - first_in
        dense[low - first_out : high - first_out, start : start + ins] = weight[low:high]
    return dense


def split_planes(weight: npt.NDArray[np.int16], planes: int) -> npt.NDArray[np.int8]:
    """int8 (..., planes) whose sum over the last axis is the weight."""
    rest, parts = weight.astype(np.int32), []
    for _ in range(planes):
        parts.append(np.clip(rest, _INT8_MIN, _INT8_MAX))
        rest = rest - parts[-1]
    if rest.any():
        raise AssertionError(f"{planes} planes do not hold weights up to {np.abs(weight).max()}")
    return np.stack(parts, axis=-1).astype(np.int8)


def _blocked(dense: npt.NDArray[np.int8], task: Task, block: int) -> npt.NDArray[np.int8]:
    """(outs, ins, KH, KW, planes, block out, block in)."""
    tail = dense.shape[2:]
    shaped = dense.reshape(task.outs, block, task.ins, block, *tail)
    return shaped.transpose(0, 2, 4, 5, 6, 1, 3)


def pack_bias(bias: npt.NDArray[np.int32], config: CoreConfig) -> npt.NDArray[np.int32]:
    """int32 (output channel blocks, batch, block); lanes without a channel are 0."""
    blocks = blocks_of(len(bias), config.block)
    lanes = np.zeros(blocks * config.block, np.int32)
    lanes[: len(bias)] = bias
    return lanes.reshape(-1, 1, config.block).repeat(config.batch, axis=1)


def pack_params(layer: ConvLayer | AddLayer, config: CoreConfig) -> npt.NDArray[np.uint8]:
    """uint8 (output channel blocks, block, 16); lanes without a channel give 0.

    Raises
    ------
    CompileError
        When an array has not one value per output channel, or a value does not fit its field.
    """
    params, channels = layer.params, layer.out_shape[1]
    lanes = np.zeros((blocks_of(channels, config.block) * config.block, PARAM_LANE_BYTES), np.uint8)
    columns = []
    for field in PARAM_FIELDS:
        values = getattr(params, field.name)
        if values.shape != (channels,):
            raise CompileError(
                f"{layer.name}: {field.name} needs one value per output channel,"
                f" ({channels},), got {values.shape}"
            )
        columns.append([field.insert(int(value), layer.name) for value in values])
    for lane, fields in enumerate(zip(*columns, strict=True)):
        lanes[lane] = np.frombuffer(sum(fields).to_bytes(PARAM_LANE_BYTES, "little"), np.uint8)
    return lanes.reshape(-1, config.block, PARAM_LANE_BYTES)
