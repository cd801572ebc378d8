"""What GEMM, WINDOW and ALU share in native code: loops, micro-ops and the index check."""

from collections.abc import Iterable

from vitral.config import CoreConfig
from vitral.isa import Cause, Format
from vitral.sim.functional.context import Context
from vitral.sim.functional.decode import field_of
from vitral.sim.functional.emit import I32, I64, Code, Value

__all__ = ["Loops"]


class Loops:
    """The loop fields of the instruction that the function `code` executes.

    Parameters
    ----------
    code : Code
        A function of (context, low, high) and perhaps more.
    config : CoreConfig
        Sizes.
    fmt, uop_fmt : Format
        Encodings of the instruction and of its micro-ops.
    """

    def __init__(self, code: Code, config: CoreConfig, fmt: Format, uop_fmt: Format) -> None:
        address, low, high, *_ = code.arguments()
        self.code = code
        self.config = config
        self.context = Context(code, address)
        self.fields = {field.name: field_of(low, high, field) for field in fmt}
        self.uop_fmt = uop_fmt
        self.count = self.fields["uop_end"] - self.fields["uop_bgn"]
        self.uops = self.context.memory("uop", I32) + self.fields["uop_bgn"]

    def return_when_empty(self) -> None:
        """Zero iterations or micro-ops: done, whatever the other fields say."""
        fields = self.fields
        empty = (self.count <= 0) | fields["iter_out"].eq(0) | fields["iter_in"].eq(0)
        self.code.fail_when(empty, 0)
        too_far = fields["uop_end"] > self.config.layout.uop_depth
        self.code.fail_when(too_far, Cause.INDEX_OVERFLOW)

    def check(
        self, names: Iterable[str], depths: dict[str, int], *, reach: dict[str, Value] | None = None
    ) -> None:
        """INDEX_OVERFLOW when any iteration names an element past its memory.

        Factors are not negative, so the last iteration has each micro-op's largest index. `reach`
        is the distance to the furthest element that goes with an index.
        """
        names = tuple(names)
        largest = {name: self.code.var(0) for name in names}
        with self.code.loop(self.count) as k:
            word = self.uop(k)
            for name in names:
                largest[name].set(largest[name].get().max(self.operand(word, name)))
        for name in names:
            last = (self.fields["iter_out"] - 1) * self.fields[f"{name}_factor_out"]
            last = last + (self.fields["iter_in"] - 1) * self.fields[f"{name}_factor_in"]
            if reach and name in reach:
                last = last + reach[name]
            beyond = largest[name].get() + last >= depths[name]
            self.code.fail_when(beyond, Cause.INDEX_OVERFLOW)

    def uop(self, k: Value) -> Value:
        """Micro-op number `k` of the range, as int64."""
        return self.uops[k].zext(I64)

    def operand(self, word: Value, name: str) -> Value:
        """An index field of a micro-op."""
        field = self.uop_fmt[name]
        return (word >> field.low) & ((1 << field.width) - 1)

    def offset(self, name: str, outer: Value, inner: Value) -> Value:
        """What two loop counters add to an operand."""
        out = outer * self.fields[f"{name}_factor_out"]
        return out + inner * self.fields[f"{name}_factor_in"]
