"""Native WINDOW: sums of products, or maxima, lane by lane over a few INP elements."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import WINDOW_FIELDS, InstructionSet
from vitral.sim.functional.decode import field_of
from vitral.sim.functional.emit import I8, I16, I32, Code, Ptr, Value, vector
from vitral.sim.functional.loops import Loops

__all__ = ["emit_window"]

TAPS = range(1, 2 + WINDOW_FIELDS["extra_taps"].range[1])


def emit_window(module: ir.Module, config: CoreConfig, isa: InstructionSet) -> Code:
    """``window(context, low, high)``: cause, 0 when done.

    Iterations are executed in program order, by a loop of its own for each number of taps.
    """
    layout = config.layout
    depths = {"dst": layout.acc_depth, "src": layout.inp_depth, "wgt": layout.wgt_depth}
    code = Code(module, "window", 3)
    loops = Loops(code, config, isa.window, isa.gemm_uop)
    loops.return_when_empty()
    register = loops.context["register_WINDOW"]
    extra = field_of(register, register, WINDOW_FIELDS["extra_taps"])
    distance = (field_of(register, register, WINDOW_FIELDS["half_step"]) << 1) + 1
    lanes = _Lanes(code, loops, config, distance)
    with code.choose(loops.fields["maximum"].ne(0)) as (maximum, products):
        with maximum:
            loops.check(("dst", "src"), depths, reach={"src": extra * distance})
            for taps in TAPS:
                with code.when(extra.eq(taps - 1)):
                    lanes.run(taps, lanes.largest, Value.max)
        with products:
            loops.check(("dst", "src", "wgt"), depths, reach={"src": extra * distance})
            for taps in TAPS:
                with code.when(extra.eq(taps - 1)):
                    lanes.run(taps, lanes.products, Value.__add__)
    code.ret(0)
    return code


@dataclass(frozen=True)
class _Place:
    """The rows of one iteration's operands: `batch` of acc and inp, `block` of wgt."""

    acc: Ptr
    inp: Ptr
    wgt: Ptr


class _Lanes:
    """Emits the loops for one number of taps; all lanes of a row are one value."""

    def __init__(self, code: Code, loops: Loops, config: CoreConfig, distance: Value) -> None:
        self.code = code
        self.loops = loops
        self.batch = config.batch
        self.block = config.block
        self.step = distance * config.batch
        self.wide = vector(I32, config.block)
        narrow = vector(I8, config.block)
        self.acc = loops.context.memory("acc", self.wide)
        self.inp = loops.context.memory("inp", narrow)
        self.wgt = loops.context.memory("wgt", narrow)

    def run(
        self,
        taps: int,
        result: Callable[[_Place, int, int], Value],
        combine: Callable[[Value, Value], Value],
    ) -> None:
        with self.code.choose(self.loops.fields["overwrite"].ne(0)) as (overwrite, update):
            with overwrite, self._iterations() as place:
                for b in range(self.batch):
                    place.acc[b] = result(place, b, taps)
            with update, self._iterations() as place:
                for b in range(self.batch):
                    place.acc[b] = combine(place.acc[b], result(place, b, taps))

    def largest(self, place: _Place, b: int, taps: int) -> Value:
        values = [place.inp[self.step * tap + b] for tap in range(taps)]
        best = values[0]
        for value in values[1:]:
            best = best.max(value)
        return best.sext(self.wide)

    def products(self, place: _Place, b: int, taps: int) -> Value:
        """Each product fits int16, their sum does not."""
        half = vector(I16, self.block)
        one, *others = [
            (place.inp[self.step * tap + b].sext(half) * place.wgt[tap].sext(half)).sext(self.wide)
            for tap in range(taps)
        ]
        for other in others:
            one = one + other
        return one

    @contextmanager
    def _iterations(self) -> Iterator[_Place]:
        code, loops = self.code, self.loops
        with (
            code.loop(loops.fields["iter_out"]) as i,
            code.loop(loops.fields["iter_in"]) as j,
        ):
            offset = {name: loops.offset(name, i, j) for name in ("dst", "src", "wgt")}
            with code.loop(loops.count) as k:
                word = loops.uop(k)
                dst, src, wgt = (loops.operand(word, name) + offset[name] for name in offset)
                acc, inp = self.acc + dst * self.batch, self.inp + src * self.batch
                yield _Place(acc, inp, self.wgt + wgt * self.block)
