"""LOAD and STORE: two-dimensional copies between DRAM and the on-chip memories."""

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.isa import (
    PARAM_FIELDS,
    Advance,
    Cause,
    ConfigRegister,
    Load,
    Memory,
    Store,
)
from vitral.program import OnChip
from vitral.sim.reference.memory import Fault, MemoryPort

__all__ = ["load", "store"]

PAD_REGISTER = {
    Memory.INP: ConfigRegister.INP_PAD,
    Memory.WGT: ConfigRegister.WGT_PAD,
    Memory.ACC: ConfigRegister.ACC_PAD,
    Memory.ACC_8BIT: ConfigRegister.ACC_PAD,
}


def load(insn: Load, onchip: OnChip, port: MemoryPort, pads: dict[ConfigRegister, int]) -> None:
    """Copy rows to consecutive elements, with padding on four sides."""
    if not insn.y_size or not insn.x_size:
        return
    target = _array_of(insn.memory, onchip)
    height = insn.y_pad_0 + insn.y_size + insn.y_pad_1
    width = insn.x_pad_0 + insn.x_size + insn.x_pad_1
    if insn.sram_base + height * width > len(target):
        raise Fault(Cause.SRAM_BOUNDS)
    rows = port.rows(
        insn.memory, insn.dram_base, insn.y_size, insn.x_size, insn.x_stride, Cause.BUS_READ
    )
    kind = np.dtype(np.int8) if insn.memory is Memory.ACC_8BIT else target.dtype
    data = np.stack(rows).view(kind).reshape(insn.y_size, insn.x_size, *target.shape[1:])
    pad = pads[PAD_REGISTER[insn.memory]] if insn.pad_value else 0
    padded = np.full((height, width, *target.shape[1:]), _as(pad, target.dtype), target.dtype)
    padded[insn.y_pad_0 : insn.y_pad_0 + insn.y_size, insn.x_pad_0 : insn.x_pad_0 + insn.x_size] = (
        data
    )
    flat = padded.reshape(height * width, *target.shape[1:])
    target[insn.sram_base : insn.sram_base + height * width] = flat


def store(insn: Store, onchip: OnChip, port: MemoryPort) -> None:
    """Copy consecutive ACC elements to rows: int32, their low bytes, or requantised."""
    count = insn.y_size * insn.x_size
    if not count:
        return
    if insn.sram_base + count > len(onchip.acc):
        raise Fault(Cause.SRAM_BOUNDS)
    values = onchip.acc[insn.sram_base : insn.sram_base + count]
    if insn.requant:
        values = _requantized(insn, values, onchip.param)
    if insn.memory is Memory.OUT:
        values = values.astype(np.int8)  # keeps the low 8 bits
    rows = port.rows(
        insn.memory, insn.dram_base, insn.y_size, insn.x_size, insn.x_stride, Cause.BUS_WRITE
    )
    data = np.ascontiguousarray(values).view(np.uint8).reshape(insn.y_size, -1)
    for window, row in zip(rows, data, strict=True):
        window[:] = row


def _array_of(memory: Memory, onchip: OnChip) -> npt.NDArray[np.generic]:
    return {
        Memory.UOP: onchip.uop,
        Memory.WGT: onchip.wgt,
        Memory.INP: onchip.inp,
        Memory.ACC: onchip.acc,
        Memory.ACC_8BIT: onchip.acc,
        Memory.PARAM: onchip.param,
    }[memory]


def _as(value: int, kind: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """The low bits of an int32 value as one of `kind`."""
    return np.array(value, np.int64).astype(kind)


def _requantized(
    insn: Store, values: npt.NDArray[np.int32], memory: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]:
    """int64 (count, batch, block) of int32 values of the same shape."""
    number = np.arange(len(values))
    steps = {
        Advance.NONE: 0 * number,
        Advance.ROW: number // insn.x_size,
        Advance.ELEMENT: number,
    }[insn.advance]
    entries = insn.param_base + steps
    if entries[-1] >= len(memory):
        raise Fault(Cause.PARAM_BOUNDS)
    lanes = _lanes(memory[entries])
    return requantize(
        values,
        bias=lanes["bias"],
        mult=lanes["mult"],
        shift=lanes["shift"],
        zero_point=lanes["zero_point"],
        low=lanes["low"],
        high=lanes["high"],
        rounding=insn.rounding,
    )


def _lanes(entries: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[np.int64]]:
    """Parameter fields as int64 (count, 1, block), to broadcast over the batch."""
    words = np.ascontiguousarray(entries).view(np.uint64)
    fields = {}
    for field in PARAM_FIELDS:
        word = words[..., field.low // 64]
        raw = (word >> np.uint64(field.low % 64)) & np.uint64((1 << field.width) - 1)
        value = raw.astype(np.int64)
        if field.signed:
            value = np.where(value > field.range[1], value - (1 << field.width), value)
        fields[field.name] = value[:, None, :]
    return fields
