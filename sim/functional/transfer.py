"""Native LOAD and STORE."""

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import Advance, Cause, ConfigRegister, Format, InstructionSet, Memory, Rounding
from vitral.sim.functional.context import Context
from vitral.sim.functional.decode import field_of
from vitral.sim.functional.emit import I8, I32, I64, Code, Ptr, Value, vector
from vitral.sim.functional.requant import Lane, requantized
from vitral.sim.functional.requant_float import FloatLanes
from vitral.sim.functional.shadow import Shadow

__all__ = ["Transfers", "emit_locate"]

_PAD_REGISTER = {
    Memory.INP: ConfigRegister.INP_PAD,
    Memory.WGT: ConfigRegister.WGT_PAD,
    Memory.ACC: ConfigRegister.ACC_PAD,
    Memory.ACC_8BIT: ConfigRegister.ACC_PAD,
}
_BYTES_IN_WORD = 0x01010101


def emit_locate(module: ir.Module) -> Code:
    """``locate(context, start, last row's offset, row bytes)``: 0, DRAM_BOUNDS or BUS_READ.

    All arguments are unsigned; a sum past 2**64 is out of bounds.
    """
    code = Code(module, "locate", 4)
    address, start, offset, size = code.arguments()
    context = Context(code, address)
    last = start + offset + size - 1
    wrapped = (start + offset).below(start) | last.below(start + offset)
    outside = wrapped | start.below(context["limit_low"]) | context["limit_last"].below(last)
    code.fail_when(outside, Cause.DRAM_BOUNDS)
    absent = start.below(context["dram_first"]) | context["dram_last"].below(last)
    code.fail_when(absent, Cause.BUS_READ)
    code.ret(0)
    return code


class Transfers:
    """Emits one function per memory: ``f(context, low, high)`` returns a cause, 0 when done."""

    def __init__(
        self,
        module: ir.Module,
        config: CoreConfig,
        isa: InstructionSet,
        locate: Code,
        extensions: str,
    ) -> None:
        self.module = module
        self.config = config
        self.layout = config.layout
        self.isa = isa
        self.locate = locate
        self.shadow = Shadow(module, config, extensions)
        self.fill = _emit_fill(module)
        self.loads = {memory: self._load(memory) for memory in Memory if memory is not Memory.OUT}
        self.store_narrow = self._store(Memory.OUT)
        self.store_wide = self._store(Memory.ACC)

    def _element_bytes(self, memory: Memory) -> int:
        return {
            Memory.UOP: self.layout.uop_bytes,
            Memory.WGT: self.layout.wgt_bytes,
            Memory.INP: self.layout.inp_bytes,
            Memory.ACC: self.layout.acc_bytes,
            Memory.OUT: self.layout.out_bytes,
            Memory.ACC_8BIT: self.layout.acc8_bytes,
            Memory.PARAM: self.layout.param_bytes,
        }[memory]

    def _source(
        self, code: Code, context: Context, memory: Memory, fields: dict[str, Value], fault: Cause
    ) -> Ptr:
        """Address of the first row's bytes, after the checks of all rows."""
        size = self._element_bytes(memory)
        base = context[f"base_{memory.name}"]
        start = base + fields["dram_base"] * size
        code.fail_when(start.below(base), Cause.DRAM_BOUNDS)
        offset = (fields["y_size"] - 1) * fields["x_stride"] * size
        cause = code.call(self.locate, context.address, start, offset, fields["x_size"] * size)
        code.fail_when(cause.eq(Cause.BUS_READ), fault)
        code.fail_when(cause.ne(0), Cause.DRAM_BOUNDS)
        return code.pointer(context["dram"] + (start - context["dram_first"]), I8)

    def _load(self, memory: Memory) -> Code:
        code = Code(self.module, f"load_{memory.name}", 3)
        address, low, high = code.arguments()
        context = Context(code, address)
        fields = _fields(low, high, self.isa.load)
        code.fail_when(fields["y_size"].eq(0) | fields["x_size"].eq(0), 0)
        name = "acc" if memory is Memory.ACC_8BIT else memory.name.lower()
        height = fields["y_pad_0"] + fields["y_size"] + fields["y_pad_1"]
        width = fields["x_pad_0"] + fields["x_size"] + fields["x_pad_1"]
        count = height * width
        end = fields["sram_base"] + count
        code.fail_when(end > getattr(self.layout, f"{name}_depth"), Cause.SRAM_BOUNDS)
        source = self._source(code, context, memory, fields, Cause.BUS_READ)
        size = getattr(self.layout, f"{name}_bytes")
        target = context.memory(name, I8) + fields["sram_base"] * size
        rows = _Rows(code, self.fill, target, size, self._pad_word(context, memory, fields))
        rows.fill(fields["y_pad_0"] * width)
        with code.loop(fields["y_size"]) as row:
            stride = fields["x_stride"] * self._element_bytes(memory)
            rows.fill(fields["x_pad_0"])
            rows.copy(source + row * stride, fields["x_size"], memory is Memory.ACC_8BIT)
            rows.fill(fields["x_pad_1"])
        rows.fill(fields["y_pad_1"] * width)
        self.shadow.refresh(code, context, memory, fields["sram_base"], count)
        code.ret(0)
        return code

    def _pad_word(self, context: Context, memory: Memory, fields: dict[str, Value]) -> Value:
        """32 bits that repeat through the padding."""
        if memory not in _PAD_REGISTER:
            return context.code.number(0)
        value = context[f"register_{_PAD_REGISTER[memory].name}"]
        if memory in (Memory.INP, Memory.WGT):
            value = (value & 0xFF) * _BYTES_IN_WORD
        return fields["pad_value"].ne(0).where(value, 0)

    def _store(self, memory: Memory) -> Code:
        code = Code(self.module, f"store_{memory.name}", 3)
        address, low, high = code.arguments()
        context = Context(code, address)
        fields = _fields(low, high, self.isa.store)
        count = fields["y_size"] * fields["x_size"]
        code.fail_when(count.eq(0), 0)
        end = fields["sram_base"] + count
        code.fail_when(end > self.layout.acc_depth, Cause.SRAM_BOUNDS)
        if memory is Memory.OUT:
            entries = _entries(fields, count)
            too_far = fields["param_base"] + entries > self.layout.param_depth
            code.fail_when(fields["requant"].ne(0) & too_far, Cause.PARAM_BOUNDS)
        target = self._source(code, context, memory, fields, Cause.BUS_WRITE)
        stride = fields["x_stride"] * self._element_bytes(memory)
        lanes = self.config.batch * self.config.block
        source = context.memory("acc", I32) + fields["sram_base"] * lanes
        if memory is Memory.ACC:
            self._rows_wide(code, target, source, fields, stride)
        else:
            with code.choose(fields["requant"].eq(0)) as (plain, requantising):
                with plain:
                    self._rows_narrow(code, target, source, fields, stride)
                with requantising:
                    self._rows_requantized(code, context, target, source, fields, stride)
        code.ret(0)
        return code

    def _rows_wide(
        self, code: Code, target: Ptr, source: Ptr, fields: dict[str, Value], stride: Value
    ) -> None:
        size = fields["x_size"] * self.layout.acc_bytes
        with code.loop(fields["y_size"]) as row:
            code.copy(target + row * stride, source.of(I8) + row * size, size)

    def _rows_narrow(
        self, code: Code, target: Ptr, source: Ptr, fields: dict[str, Value], stride: Value
    ) -> None:
        size = fields["x_size"] * self.layout.out_bytes
        with code.loop(fields["y_size"]) as row:
            to, values = target + row * stride, source + row * size
            with code.loop(size) as n:
                to[n] = values[n].trunc(I8)

    def _rows_requantized(
        self,
        code: Code,
        context: Context,
        target: Ptr,
        source: Ptr,
        fields: dict[str, Value],
        stride: Value,
    ) -> None:
        """One specialised loop per rounding mode."""
        param = context.memory("param", I64) + fields["param_base"] * (2 * self.config.block)
        for mode in Rounding:
            with code.when(fields["rounding"].eq(int(mode))):
                self._rows_of_mode(code, mode, param, target, source, fields, stride)

    def _rows_of_mode(
        self,
        code: Code,
        mode: Rounding,
        param: Ptr,
        target: Ptr,
        source: Ptr,
        fields: dict[str, Value],
        stride: Value,
    ) -> None:
        size, advance = self.layout.out_bytes, fields["advance"]
        lanes = FloatLanes(code, self.config.block) if mode is Rounding.FLOAT32 else None
        loaded = code.var(-1)
        with code.loop(fields["y_size"]) as y, code.loop(fields["x_size"]) as x:
            number = y * fields["x_size"] + x
            step = advance.eq(int(Advance.ROW)).where(y, 0)
            step = advance.eq(int(Advance.ELEMENT)).where(number, step)
            entry = param + step * (2 * self.config.block)
            to, values = target + y * stride + x * size, source + number * size
            if lanes is None:
                self._element(code, mode, entry, to, values)
            else:
                with code.when(step.ne(loaded.get())):
                    lanes.load(entry)
                    loaded.set(step)
                self._float_element(code, lanes, entry, to, values)

    def _element(self, code: Code, mode: Rounding, entry: Ptr, to: Ptr, values: Ptr) -> None:
        block = self.config.block
        with code.loop(block) as lane:
            parameters = Lane(entry + lane * 2)
            for b in range(self.config.batch):
                value = values[lane + b * block].sext(I64)
                to[lane + b * block] = requantized(value, parameters, mode).trunc(I8)

    def _float_element(
        self, code: Code, lanes: FloatLanes, entry: Ptr, to: Ptr, values: Ptr
    ) -> None:
        block = self.config.block
        with code.choose(lanes.exact.get().ne(0)) as (exact, wide):
            with exact:
                for b in range(self.config.batch):
                    row = values.of(vector(I32, block))[b]
                    lanes.store(to + b * block, row)
            with wide:
                self._element(code, Rounding.FLOAT32, entry, to, values)


class _Rows:
    """Writes consecutive on-chip elements of `size` bytes."""

    def __init__(self, code: Code, fill: Code, target: Ptr, size: int, pad: Value) -> None:
        self.code = code
        self.filler = fill
        self.target = target
        self.size = size
        self.pad = pad
        self.position = code.var(0)

    def fill(self, elements: Value) -> None:
        with self.code.when(elements.ne(0)):
            to = self.target + self.position.get() * self.size
            words = elements * (self.size // 4)
            self.code.call(self.filler, to.address(), words, self.pad)
        self.position.add(elements)

    def copy(self, source: Ptr, elements: Value, widen: bool) -> None:
        to = self.target + self.position.get() * self.size
        if widen:
            with self.code.loop(elements * (self.size // 4)) as n:
                to.of(I32)[n] = source[n].sext(I32)
        else:
            self.code.copy(to, source, elements * self.size)
        self.position.add(elements)


def _emit_fill(module: ir.Module) -> Code:
    """``fill(address, count, word)``: `count` times the low 32 bits of `word`."""
    code = Code(module, "fill", 3)
    address, count, word = code.arguments()
    to = code.pointer(address, I32)
    with code.loop(count) as n:
        to[n] = word.trunc(I32)
    code.ret(0)
    return code


def _fields(low: Value, high: Value, fmt: Format) -> dict[str, Value]:
    return {field.name: field_of(low, high, field) for field in fmt}


def _entries(fields: dict[str, Value], count: Value) -> Value:
    """Parameter entries that a requantising STORE reads."""
    advance = fields["advance"]
    rows = advance.eq(int(Advance.ROW)).where(fields["y_size"], 1)
    return advance.eq(int(Advance.ELEMENT)).where(count, rows)
