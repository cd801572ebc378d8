"""Native GEMM."""

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import InstructionSet
from vitral.sim.functional.emit import I32, I64, Code, Value
from vitral.sim.functional.loops import Loops
from vitral.sim.functional.product import Sums, Tile
from vitral.sim.functional.rows import ROW_WORDS, Groups

__all__ = ["emit_gemm"]


def emit_gemm(module: ir.Module, config: CoreConfig, isa: InstructionSet, extensions: str) -> Code:
    """``gemm(context, low, high)``: cause, 0 when done.

    Additions wrap and therefore commute: where nothing is overwritten, iterations are taken in
    the order that reuses weights and sums best. Where something is, only if no two products of
    a group go to one element.
    """
    layout = config.layout
    depths = {"dst": layout.acc_depth, "src": layout.inp_depth, "wgt": layout.wgt_depth}
    blocks = _Blocks(module, config, isa, extensions)
    code = Code(module, "gemm", 3)
    loops = Loops(code, config, isa.gemm, isa.gemm_uop)
    loops.return_when_empty()
    with code.when(loops.fields["reset"].ne(0)):
        loops.check(("dst",), depths)
        _reset(code, loops, config)
        code.ret(0)
    loops.check(("dst", "src", "wgt"), depths)
    groups = Groups(code, loops)
    with code.when(loops.fields["overwrite"].ne(0) & ~_apart(code, loops, groups.span)):
        _overwrite(code, loops, Tile(code, loops.context, config, extensions))
        code.ret(0)
    with code.loop(groups.count_out.get()) as i, code.loop(groups.count_in.get()) as j:
        groups.fill(i, j)
        blocks.run(code, groups, loops.offset("wgt", i, j))
    code.ret(0)
    return code


def _apart(code: Code, loops: Loops, span: Value) -> Value:
    """Whether each micro-op's dst is more than `span` past that of the one before."""
    apart = code.var(1)
    before = code.var(loops.operand(loops.uop(code.number(0)), "dst"))
    with code.loop(loops.count, 1) as k:
        dst = loops.operand(loops.uop(k), "dst")
        with code.when(dst <= before.get() + span):
            apart.set(0)
        before.set(dst)
    return apart.get().ne(0)


def _reset(code: Code, loops: Loops, config: CoreConfig) -> None:
    lanes = config.batch * config.block
    acc = loops.context.memory("acc", ir.VectorType(I32, config.block))
    zero = Value(code, ir.Constant(acc.kind, [0] * config.block))
    with (
        code.loop(loops.fields["iter_out"]) as i,
        code.loop(loops.fields["iter_in"]) as j,
        code.loop(loops.count) as k,
    ):
        dst = loops.operand(loops.uop(k), "dst") + loops.offset("dst", i, j)
        for b in range(lanes // config.block):
            acc[dst * config.batch + b] = zero


def _overwrite(code: Code, loops: Loops, tile: Tile) -> None:
    """In order, as the last product of an element stays."""
    with (
        code.loop(loops.fields["iter_out"]) as i,
        code.loop(loops.fields["iter_in"]) as j,
        code.loop(loops.count) as k,
    ):
        word = loops.uop(k)
        dst, src, wgt = (
            loops.operand(word, name) + loops.offset(name, i, j) for name in ("dst", "src", "wgt")
        )
        acc, sums = [tile.acc_of(dst)], Sums(tile, 1)
        sums.open(acc, code.number(0).ne(0))
        sums.add([tile.inp_of(src)], tile.wgt_of(wgt))
        sums.close(acc)


class _Blocks:
    """Functions for several sizes, each of which computes that many adjacent rows of a group.

    ``block(context, low, high, first row, weights, times, src step, wgt step)`` computes the
    micro-ops `times` times, with indices that grow by these steps. Sums stay in registers while
    dst repeats.
    """

    def __init__(
        self, module: ir.Module, config: CoreConfig, isa: InstructionSet, extensions: str
    ) -> None:
        self.module = module
        self.config = config
        self.isa = isa
        self.extensions = extensions
        self.functions = {size: self._function(size) for size in self._sizes()}

    def run(self, code: Code, groups: Groups, weights: Value) -> None:
        """All rows of a group: as many as possible in blocks of the largest size, and so on."""
        row = code.var(0)
        rest = [weights, groups.sum_count.get(), *(var.get() for var in groups.summed.values())]
        for size, function in self.functions.items():
            with code.repeat(lambda size=size: row.get() + size <= groups.size):
                code.call(function, *code.arguments(), row.get(), *rest)
                row.add(size)

    def _sizes(self) -> list[int]:
        """Falling, the first one fills the registers for sums."""
        probe = Code(ir.Module("probe"), "probe", 3)
        loops = Loops(probe, self.config, self.isa.gemm, self.isa.gemm_uop)
        tile = Tile(probe, loops.context, self.config, self.extensions)
        most = max(1, tile.extension.sums // tile.vectors)
        return sorted({most, max(1, most * 2 // 3), max(1, most // 3), 1}, reverse=True)

    def _function(self, size: int) -> Code:
        code = Code(self.module, f"gemm_{size}", 8)
        loops = Loops(code, self.config, self.isa.gemm, self.isa.gemm_uop)
        *_, first, weights, times, src_step, wgt_step = code.arguments()
        tile = Tile(code, loops.context, self.config, self.extensions)
        table = loops.context.memory("rows", I64) + first * ROW_WORDS
        dst = [table[n * ROW_WORDS] for n in range(size)]
        rows = [tile.inp_of(table[n * ROW_WORDS + 1]) for n in range(size)]
        sums = Sums(tile, size)
        start, position, more = code.var(0), code.var(0), code.var(0)
        with code.repeat(lambda: start.get() < loops.count):
            current = loops.operand(loops.uop(start.get()), "dst")
            accs = [tile.acc_of(current + offset) for offset in dst]
            sums.open(accs, loops.fields["overwrite"].eq(0))
            with code.loop(times) as time:
                position.set(start.get())
                more.set(1)
                with code.repeat(lambda: more.get().ne(0)):
                    word = loops.uop(position.get())
                    src = tile.inp_words(loops.operand(word, "src") + time * src_step)
                    wgt = loops.operand(word, "wgt") + time * wgt_step + weights
                    sums.add([row + src for row in rows], tile.wgt_of(wgt))
                    position.add(1)
                    left = position.get() < loops.count
                    following = loops.uop(left.where(position.get(), 0))
                    same = loops.operand(following, "dst").eq(current)
                    more.set((left & same).zext(I64))
            start.set(position.get())
            sums.close(accs)
        code.ret(0)
        return code
