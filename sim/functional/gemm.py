"""Native GEMM."""

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import InstructionSet
from vitral.sim.functional.emit import I32, Code, Value, Var
from vitral.sim.functional.loops import Loops
from vitral.sim.functional.product import Tile

__all__ = ["emit_gemm"]

SUMS = 8
"""Vector registers for sums: as many iterations share a weight element as fill them."""


def emit_gemm(module: ir.Module, config: CoreConfig, isa: InstructionSet, extensions: str) -> Code:
    """``gemm(context, low, high)``: cause, 0 when done.

    Additions wrap and therefore commute: where nothing is overwritten, iterations are taken in
    the order that reuses weights and sums best.
    """
    layout = config.layout
    depths = {"dst": layout.acc_depth, "src": layout.inp_depth, "wgt": layout.wgt_depth}
    code = Code(module, "gemm", 3)
    loops = Loops(code, config, isa.gemm, isa.gemm_uop)
    loops.return_when_empty()
    with code.when(loops.fields["reset"].ne(0)):
        loops.check(("dst",), depths)
        _reset(code, loops, config)
        code.ret(0)
    loops.check(("dst", "src", "wgt"), depths)
    tile = Tile(code, loops.context, config, extensions)
    with code.when(loops.fields["overwrite"].ne(0)):
        _overwrite(code, loops, tile)
        code.ret(0)
    together = max(1, SUMS // len(tile.zero()))
    for inner in ("in", "out"):
        shares = loops.fields[f"wgt_factor_{inner}"].eq(0)
        apart = loops.fields[f"dst_factor_{inner}"].ne(0)
        several = loops.fields[f"iter_{inner}"] > 1
        with code.when(shares & apart & several):
            _accumulate(code, loops, tile, inner, together)
            code.ret(0)
    _accumulate(code, loops, tile, "in", 1)
    code.ret(0)
    return code


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
        index = {
            name: loops.operand(word, name) + loops.offset(name, i, j)
            for name in ("dst", "src", "wgt")
        }
        (sums,) = tile.multiply([tile.zero()], [index["src"]], index["wgt"])
        tile.store(index["dst"], sums)


def _accumulate(code: Code, loops: Loops, tile: Tile, inner: str, together: int) -> None:
    """All iterations, the loop `inner` in blocks of `together`, its rest in smaller ones."""
    outer = "out" if inner == "in" else "in"
    count = loops.fields[f"iter_{inner}"]
    with code.loop(loops.fields[f"iter_{outer}"]) as i:
        start = code.number(0)
        while together:
            end = count & ~code.number(together - 1)
            with code.loop(end, start, together) as j:
                _Block(code, loops, tile, together).run(i, j, inner, outer)
            start, together = end, together // 2


class _Block:
    """Adjacent iterations of one loop over all micro-ops, with their sums in registers.

    A sum is written back when the micro-op's dst changes. The iterations' dst differ at any one
    micro-op, so that the sums are of different elements.
    """

    def __init__(self, code: Code, loops: Loops, tile: Tile, together: int) -> None:
        self.code = code
        self.loops = loops
        self.tile = tile
        self.together = together

    def run(self, i: Value, j: Value, inner: str, outer: str) -> None:
        code, loops, tile = self.code, self.loops, self.tile
        factor = {n: loops.fields[f"{n}_factor_{inner}"] for n in ("dst", "src", "wgt")}
        base = {n: i * loops.fields[f"{n}_factor_{outer}"] + j * factor[n] for n in factor}
        current = code.var(loops.operand(loops.uop(code.number(0)), "dst"))
        sums = self._open(current.get() + base["dst"], factor["dst"])
        with code.loop(loops.count) as k:
            word = loops.uop(k)
            dst = loops.operand(word, "dst")
            with code.when(dst.ne(current.get())):
                self._close(sums, current.get() + base["dst"], factor["dst"])
                current.set(dst)
                fresh = self._read(dst + base["dst"], factor["dst"])
                _assign(sums, fresh)
            first = loops.operand(word, "src") + base["src"]
            sources = [first + factor["src"] * n for n in range(self.together)]
            values = [[var.get() for var in each] for each in sums]
            weights = loops.operand(word, "wgt") + base["wgt"]
            _assign(sums, tile.multiply(values, sources, weights))
        self._close(sums, current.get() + base["dst"], factor["dst"])

    def _read(self, dst: Value, factor: Value) -> list[list[Value]]:
        return [self.tile.load(dst + factor * n) for n in range(self.together)]

    def _open(self, dst: Value, factor: Value) -> list[list[Var]]:
        return [[Var(self.code, value) for value in each] for each in self._read(dst, factor)]

    def _close(self, sums: list[list[Var]], dst: Value, factor: Value) -> None:
        for n, each in enumerate(sums):
            self.tile.store(dst + factor * n, [var.get() for var in each])


def _assign(variables: list[list[Var]], values: list[list[Value]]) -> None:
    for row, fresh in zip(variables, values, strict=True):
        for variable, value in zip(row, fresh, strict=True):
            variable.set(value)
