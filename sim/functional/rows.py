"""Which iterations of a GEMM are computed together: rows of one group share a weight element.

A row is one iteration of the loops that a group spans; all micro-ops are computed for it. Rows
have different dst at any one micro-op, so that their sums are of different elements.
"""

from vitral.sim.functional.emit import I64, Code, Ptr, Value
from vitral.sim.functional.loops import Loops

__all__ = ["ROW_WORDS", "Groups"]

ROW_WORDS = 2
"""Words of a row in the table: what its iteration adds to dst and to src."""

_NAMES = ("dst", "src", "wgt")


class Groups:
    """Chooses which of the two loops a group spans, at run time.

    Both, where weights are the same in both and dst is different in all iterations; else one
    that has these properties; else none, and every iteration is a group of one row.
    """

    def __init__(self, code: Code, loops: Loops) -> None:
        self.code = code
        self.loops = loops
        self.rows = loops.context.memory("rows", I64)
        fields = loops.fields
        self.inner, self.outer = code.var(1), code.var(1)
        self.count_out, self.count_in = code.var(fields["iter_out"]), code.var(fields["iter_in"])
        self._choose()

    def _choose(self) -> None:
        """Takes the loops that a group spans out of those over groups."""
        code, fields = self.code, self.loops.fields
        out, in_ = fields["iter_out"], fields["iter_in"]
        far, near = fields["dst_factor_out"], fields["dst_factor_in"]
        shared_out = out.eq(1) | (fields["wgt_factor_out"].eq(0) & far.ne(0))
        shared_in = in_.eq(1) | (fields["wgt_factor_in"].eq(0) & near.ne(0))
        nested = out.eq(1) | in_.eq(1) | (far >= near * in_) | (near >= far * out)
        in_order = fields["overwrite"].eq(0)
        with code.choose(shared_in) as (inner, not_inner):
            with inner:
                self.inner.set(in_)
                self.count_in.set(1)
                with code.when(shared_out & nested):
                    self.outer.set(out)
                    self.count_out.set(1)
            with not_inner, code.when(shared_out & in_order):
                self.outer.set(out)
                self.count_out.set(1)

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
