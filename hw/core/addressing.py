"""DRAM addresses inside the core: wide enough never to wrap, compared with the limits as they are.

A base or limit register has 64 bits, the bus fewer. Values at or above 2**addr_bits are all alike
(no byte there can be reached), so `clamp` shortens them to one more bit than the bus has, and
sums of a clamped base and any offset of an instruction fit `address_bits`.
"""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from vitral.config import CoreConfig
from vitral.isa import Memory

__all__ = ["Limits", "address_bits", "clamp", "clamped_bits", "element_bytes", "element_shift"]

OFFSET_BITS = 44
"""Holds dram_base * element bytes + rows * stride * element bytes of the largest block."""


def element_bytes(config: CoreConfig, memory: Memory) -> int:
    """Bytes of one element of that memory in DRAM; a power of two."""
    layout = config.layout
    return {
        Memory.UOP: layout.uop_bytes,
        Memory.WGT: layout.wgt_bytes,
        Memory.INP: layout.inp_bytes,
        Memory.ACC: layout.acc_bytes,
        Memory.OUT: layout.out_bytes,
        Memory.ACC_8BIT: layout.acc8_bytes,
        Memory.PARAM: layout.param_bytes,
    }[memory]


def element_shift(config: CoreConfig, memory: Memory) -> int:
    """log2 of `element_bytes`."""
    return element_bytes(config, memory).bit_length() - 1


def clamped_bits(config: CoreConfig) -> int:
    """Width of a clamped base or limit."""
    return config.addr_bits + 1


def address_bits(config: CoreConfig) -> int:
    """Width in which address sums are formed."""
    return max(config.addr_bits, OFFSET_BITS) + 2


def clamp(m: Module, config: CoreConfig, value: Value) -> Signal:
    """``min(value, 2**addr_bits)``, registered."""
    top = 1 << config.addr_bits
    clamped = Signal(clamped_bits(config))
    beyond = value[config.addr_bits :].any() if len(value) > config.addr_bits else Const(0)
    m.d.sync += clamped.eq(Mux(beyond, top, value[: config.addr_bits]))
    return clamped


class Limits(wiring.Signature):
    """Clamped bounds of the bytes a program may touch: ``low <= byte < high``."""

    def __init__(self, config: CoreConfig) -> None:
        bits = clamped_bits(config)
        super().__init__({"low": Out(bits), "high": Out(bits)})


def row_layout(config: CoreConfig, count_bits: int) -> data.StructLayout:
    """A run of `count` DRAM elements from byte `address` on; `last` of its command."""
    return data.StructLayout({"address": config.addr_bits, "count": count_bits, "last": 1})
