"""Which iterations of a GEMM are computed together.

A row is one iteration of the loops that a group spans; rows of a group share the weights and have
different dst at any one micro-op, so that their sums are of different elements. Each row may sum
over the other loop, where that does not change dst. All micro-ops are computed for it.
"""

from vitral.sim.functional.emit import I64, Code, Ptr, Value, Var
from vitral.sim.functional.loops import Loops

__all__ = ["ROW_WORDS", "Groups"]

ROW_WORDS = 2
"""Words of a row in the table: what its iteration adds to dst and to src."""

_NAMES = ("dst", "src", "wgt")


class Groups:
    """Chooses what becomes of the two loops, at run time.

    A loop goes over the rows of a group, when weights are the same and dst is not, or is the one
    that each row sums over, when dst is the same, or else goes over groups. Both can go over
    rows when dst is different in all iterations. Overwriting needs the order of the iterations
    that name one element, so that there are no sums, and the outer loop gives no rows alone.
    """

    def __init__(self, code: Code, loops: Loops) -> None:
        self.code = code
        self.loops = loops
        self.rows = loops.context.memory("rows", I64)
        fields = loops.fields
        self.inner, self.outer = code.var(1), code.var(1)
        self.count_out, self.count_in = code.var(fields["iter_out"]), code.var(fields["iter_in"])
        self.summed = {name: code.var(0) for name in ("src", "wgt")}
        self.sum_count = code.var(1)
        self._choose()

    def _choose(self) -> None:
        code, fields = self.code, self.loops.fields
        out, in_ = fields["iter_out"], fields["iter_in"]
        far, near = fields["dst_factor_out"], fields["dst_factor_in"]
        rows_out = out.eq(1) | (fields["wgt_factor_out"].eq(0) & far.ne(0))
        rows_in = in_.eq(1) | (fields["wgt_factor_in"].eq(0) & near.ne(0))
        nested = out.eq(1) | in_.eq(1) | (far >= near * in_) | (near >= far * out)
        adds = fields["overwrite"].eq(0)
        with code.choose(rows_in) as (inner, not_inner):
            with inner:
                self._take(self.inner, "in")
                with code.choose(rows_out & nested) as (both, one):
                    with both:
                        self._take(self.outer, "out")
                    with one, code.when(far.eq(0) & adds):
                        self._sum("out")
            with not_inner:
                with code.when(rows_out & adds):
                    self._take(self.outer, "out")
                with code.when(near.eq(0) & adds):
                    self._sum("in")

    def _take(self, rows: Var, loop: str) -> None:
        """Rows go over a loop, which then does not go over groups."""
        rows.set(self.loops.fields[f"iter_{loop}"])
        {"out": self.count_out, "in": self.count_in}[loop].set(1)

    def _sum(self, loop: str) -> None:
        """Each row sums over a loop."""
        self._take(self.sum_count, loop)
        for name, step in self.summed.items():
            step.set(self.loops.fields[f"{name}_factor_{loop}"])

    @property
    def size(self) -> Value:
        """Rows of a group."""
        return self.inner.get() * self.outer.get()

    @property
    def span(self) -> Value:
        """The largest difference of dst within a group at one micro-op."""
        fields = self.loops.fields
        far = (self.outer.get() - 1) * fields["dst_factor_out"]
        return far + (self.inner.get() - 1) * fields["dst_factor_in"]

    def fill(self, i: Value, j: Value) -> None:
        """Write the table of the group that starts at an iteration."""
        code, loops = self.code, self.loops
        first = {name: loops.offset(name, i, j) for name in _NAMES[:2]}
        with code.loop(self.outer.get()) as a:
            start = {name: first[name] + a * loops.fields[f"{name}_factor_out"] for name in first}
            with code.loop(self.inner.get()) as b:
                row = self.row(a * self.inner.get() + b)
                for number, name in enumerate(first):
                    row[number] = start[name] + b * loops.fields[f"{name}_factor_in"]

    def row(self, number: Value) -> Ptr:
        return self.rows + number * ROW_WORDS
