"""Native fetch, queues and tokens: the whole program runs without returning to Python."""

from llvmlite import ir

from vitral.config import INSN_BYTES, CoreConfig
from vitral.isa import Cause, ConfigRegister, InstructionSet, Memory, Opcode, Stage
from vitral.sim.functional.alu import emit_alu
from vitral.sim.functional.context import Context
from vitral.sim.functional.decode import Decoder, field_of
from vitral.sim.functional.emit import I64, Code, Value, Var
from vitral.sim.functional.gemm import emit_gemm
from vitral.sim.functional.transfer import Transfers, emit_locate
from vitral.sim.functional.window import emit_window
from vitral.sim.functional.words import ENTRY, QUEUE_WORDS, RUNNING, TOKENS

__all__ = ["emit_machine"]

OPCODE_MASK = 7
_REGISTER_STRIDE = 128
_FLAG = {"prev": -1, "next": 1}


def emit_machine(config: CoreConfig, extensions: str) -> ir.Module:
    """The simulator of one configuration as an LLVM module."""
    module = ir.Module(f"vitral_{config.digest[:16]}")
    isa = InstructionSet.of(config)
    locate = emit_locate(module)
    transfers = Transfers(module, config, isa, locate, extensions)
    execute = _emit_execute(module, isa, transfers, {
        Opcode.GEMM: emit_gemm(module, config, isa, extensions),
        Opcode.ALU: emit_alu(module, config, isa),
        Opcode.WINDOW: emit_window(module, config, isa),
    })  # fmt: skip
    fetch = _emit_fetch(module, config, Decoder(module, isa), locate)
    stages = [_Stage(config, isa, stage).emit(module, execute) for stage in Stage]
    _emit_run(module, config, transfers, [fetch, *stages])
    return module


def _emit_run(
    module: ir.Module, config: CoreConfig, transfers: Transfers, actors: list[Code]
) -> None:
    """Let every actor go on as far as it can until none can."""
    code = Code(module, ENTRY, 1, exported=True)
    (address,) = code.arguments()
    context = Context(code, address)
    zero, layout = code.number(0), config.layout
    for memory, depth in ((Memory.INP, layout.inp_depth), (Memory.WGT, layout.wgt_depth)):
        transfers.shadow.refresh(code, context, memory, zero, code.number(depth))
    moved = code.var(1)
    with code.repeat(lambda: moved.get().ne(0)):
        moved.set(0)
        for actor in actors:
            moved.set(moved.get() | code.call(actor, address))
            over = context["cause"].ne(0) | context["finished"].ne(RUNNING)
            code.fail_when(over, 0)
    code.ret(0)


def _fail(context: Context, cause: Value | int, index: Value) -> None:
    context["cause"] = cause
    context["index"] = index
    context.code.ret(1)


def _return_when(condition: Value, result: Var) -> None:
    with condition.code.when(condition):
        condition.code.ret(result.get())


def _emit_fetch(module: ir.Module, config: CoreConfig, decoder: Decoder, locate: Code) -> Code:
    """Append instructions to their queues until one is full; 1 when any was appended."""
    code = Code(module, "fetch", 1)
    (address,) = code.arguments()
    context = Context(code, address)
    moved, full = code.var(0), code.var(0)

    def more() -> Value:
        return (context["fetched"] < context["insn_count"]) & full.get().eq(0)

    with code.repeat(more):
        index = context["fetched"]
        low, high = _read_word(code, context, index, locate)
        entry = decoder.lookup(code, context["profile"], low, high)
        with code.when(entry[0].ne(0)):
            _fail(context, entry[0], index)
        with code.when(((low & entry[6]) | (high & entry[7])).ne(0)):
            _fail(context, Cause.UNDEFINED_FIELD, index)
        with code.when(((low & entry[4]) | (high & entry[5])).ne(0)):
            _fail(context, Cause.RESERVED_BITS, index)
        early = (index + 1).ne(context["insn_count"])
        with code.when((low & OPCODE_MASK).eq(Opcode.FINISH) & early):
            _fail(context, Cause.FINISH_NOT_LAST, index)
        full.set(1)
        for stage in Stage:
            room = context[f"count_{stage.name}"] < config.queue_depth
            with code.when(entry[1].eq(int(stage)) & room):
                _append(context, config, stage, (low & entry[2], high & entry[3], index))
                full.set(0)
                moved.set(1)
    code.ret(moved.get())
    return code


def _read_word(code: Code, context: Context, index: Value, locate: Code) -> tuple[Value, Value]:
    start = context["insn_base"] + index * INSN_BYTES
    cause = code.var(
        code.call(locate, context.address, start, code.number(0), code.number(INSN_BYTES))
    )
    with code.when(start.below(context["insn_base"])):
        cause.set(Cause.DRAM_BOUNDS)
    with code.when(cause.get().ne(0)):
        _fail(context, cause.get(), index)
    words = code.pointer(context["dram"] + (start - context["dram_first"]), I64)
    return words[0], words[1]


def _append(
    context: Context, config: CoreConfig, stage: Stage, words: tuple[Value, Value, Value]
) -> None:
    head, count = context[f"head_{stage.name}"], context[f"count_{stage.name}"]
    position = head + count
    position = (position >= config.queue_depth).where(position - config.queue_depth, position)
    queue = context.memory(f"queue_{stage.name}", I64) + position * QUEUE_WORDS
    for number, word in enumerate(words):
        queue[number] = word
    context[f"count_{stage.name}"] = count + 1
    context["fetched"] = context["fetched"] + 1


def _emit_execute(
    module: ir.Module, isa: InstructionSet, transfers: Transfers, kernels: dict[Opcode, Code]
) -> Code:
    """``execute(context, low, high)``: what one instruction does, tokens aside; its cause."""
    code = Code(module, "execute", 3)
    arguments = code.arguments()
    address, low, high = arguments
    opcode = low & OPCODE_MASK
    for number, kernel in kernels.items():
        with code.when(opcode.eq(int(number))):
            code.ret(code.call(kernel, *arguments))
    with code.when(opcode.eq(Opcode.LOAD)):
        memory = field_of(low, high, isa.load["memory"])
        for number, load in transfers.loads.items():
            with code.when(memory.eq(int(number))):
                code.ret(code.call(load, *arguments))
    with code.when(opcode.eq(Opcode.STORE)):
        wide = field_of(low, high, isa.store["memory"]).eq(Memory.ACC)
        with code.when(wide):
            code.ret(code.call(transfers.store_wide, *arguments))
        code.ret(code.call(transfers.store_narrow, *arguments))
    with code.when(opcode.eq(Opcode.CONFIG)):
        context, fmt = Context(code, address), isa.configure
        number = field_of(low, high, fmt["stage"]) * _REGISTER_STRIDE
        number = number + field_of(low, high, fmt["register"])
        for register in ConfigRegister:
            with code.when(number.eq(int(register))):
                context[f"register_{register.name}"] = field_of(low, high, fmt["value"])
    code.ret(0)
    return code


class _Stage:
    """Emits the function that lets one stage go on as far as it can."""

    def __init__(self, config: CoreConfig, isa: InstructionSet, stage: Stage) -> None:
        self.config = config
        self.isa = isa
        self.stage = stage

    def emit(self, module: ir.Module, execute: Code) -> Code:
        """``stage(context)``: 1 when it executed or pushed anything."""
        code = Code(module, f"stage_{self.stage.name}", 1)
        (address,) = code.arguments()
        context = Context(code, address)
        moved = code.var(0)
        with code.repeat(lambda: self._get(context, "count").ne(0)):
            queue = context.memory(f"queue_{self.stage.name}", I64)
            entry = queue + self._get(context, "head") * QUEUE_WORDS
            low, high, index = entry[0], entry[1], entry[2]
            with code.when(self._get(context, "executed").eq(0)):
                self._pop(context, low, moved)
                cause = code.call(execute, address, low, high)
                with code.when(cause.ne(0)):
                    _fail(context, cause, index)
                context["insns"] = context["insns"] + 1
                self._set(context, "executed", 1)
                self._set(context, "pending", low & self._mask("push"))
                moved.set(1)
            self._push(context, moved)
            self._leave(context, low, index)
        code.ret(moved.get())
        return code

    def _get(self, context: Context, name: str) -> Value:
        return context[f"{name}_{self.stage.name}"]

    def _set(self, context: Context, name: str, value: Value | int) -> None:
        context[f"{name}_{self.stage.name}"] = value

    def _flags(self, action: str) -> list[tuple[int, str]]:
        """(flag's mask, counter) of each token that this stage can pop or push."""
        found = []
        for side, step in _FLAG.items():
            pair = (self.stage + step, self.stage) if action == "pop" else (
                self.stage, self.stage + step)  # fmt: skip
            if pair in [(int(giver), int(taker)) for giver, taker in TOKENS]:
                name = "_".join(Stage(end).name for end in pair)
                found.append((self.isa.finish[f"{action}_{side}"].mask, f"token_{name}"))
        return found

    def _mask(self, action: str) -> int:
        return sum(mask for mask, _ in self._flags(action))

    def _pop(self, context: Context, low: Value, moved: Var) -> None:
        """Take all tokens the instruction wants, or return from the function without any."""
        code = context.code
        for mask, counter in self._flags("pop"):
            missing = (low & mask).ne(0) & context[counter].eq(0)
            _return_when(missing, moved)
        if self.stage is Stage.COMPUTE:
            others = context["count_LOAD"] | context["count_STORE"]
            waits = (low & OPCODE_MASK).eq(Opcode.FINISH) & others.ne(0)
            _return_when(waits, moved)
        for mask, counter in self._flags("pop"):
            with code.when((low & mask).ne(0)):
                context[counter] = context[counter] - 1

    def _push(self, context: Context, moved: Var) -> None:
        """Push each token that has room; return from the function when one has none."""
        code = context.code
        for mask, counter in self._flags("push"):
            wanted = (self._get(context, "pending") & mask).ne(0)
            with code.when(wanted & (context[counter] < self.config.token_capacity)):
                context[counter] = context[counter] + 1
                self._set(context, "pending", self._get(context, "pending") & ~mask)
                moved.set(1)
        _return_when(self._get(context, "pending").ne(0), moved)

    def _leave(self, context: Context, low: Value, index: Value) -> None:
        code = context.code
        head = self._get(context, "head") + 1
        self._set(context, "head", head.eq(self.config.queue_depth).where(code.number(0), head))
        self._set(context, "count", self._get(context, "count") - 1)
        self._set(context, "executed", 0)
        if self.stage is Stage.COMPUTE:
            with code.when((low & OPCODE_MASK).eq(Opcode.FINISH)):
                context["finished"] = index
                code.ret(1)
