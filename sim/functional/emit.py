"""A thin layer over llvmlite's IR builder, so that kernels read like the loops they are.

Everything is generated at build time: Python's `for` and `if` unroll and specialise, `Code.loop`
and `Code.when` become native loops and branches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Union

from llvmlite import ir

__all__ = ["I1", "I8", "I16", "I32", "I64", "Code", "Ptr", "Value", "Var", "vector"]

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I16 = ir.IntType(16)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
_POINTER = ir.PointerType()

Operand = Union["Value", int]


def vector(kind: ir.IntType, lanes: int) -> ir.VectorType:
    """The type of `lanes` integers; kernels use it as one value."""
    return ir.VectorType(kind, lanes)


class Value:
    """An integer, a truth value, or a vector of them; operators emit instructions.

    Numbers are signed where it matters: comparisons, `shr`. `>>` shifts in zeros.
    """

    def __init__(self, code: "Code", raw: Any) -> None:
        self.code = code
        self.raw = raw  # an ir.Value; llvmlite has no annotations

    @property
    def type(self) -> Any:
        return self.raw.type

    def _operand(self, other: Operand) -> Any:
        return other.raw if isinstance(other, Value) else constant(self.type, other)

    def _new(self, raw: Any) -> "Value":
        return Value(self.code, raw)

    def __add__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.add(self.raw, self._operand(other)))

    def __sub__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.sub(self.raw, self._operand(other)))

    def __mul__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.mul(self.raw, self._operand(other)))

    def __and__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.and_(self.raw, self._operand(other)))

    def __or__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.or_(self.raw, self._operand(other)))

    def __xor__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.xor(self.raw, self._operand(other)))

    def __lshift__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.shl(self.raw, self._operand(other)))

    def __rshift__(self, other: Operand) -> "Value":
        return self._new(self.code.ir.lshr(self.raw, self._operand(other)))

    def shr(self, other: Operand) -> "Value":
        """Arithmetic shift right."""
        return self._new(self.code.ir.ashr(self.raw, self._operand(other)))

    def __invert__(self) -> "Value":
        return self._new(self.code.ir.not_(self.raw))

    def __neg__(self) -> "Value":
        return self._new(self.code.ir.neg(self.raw))

    def _compare(self, how: str, other: Operand) -> "Value":
        return self._new(self.code.ir.icmp_signed(how, self.raw, self._operand(other)))

    def __lt__(self, other: Operand) -> "Value":
        return self._compare("<", other)

    def __le__(self, other: Operand) -> "Value":
        return self._compare("<=", other)

    def __gt__(self, other: Operand) -> "Value":
        return self._compare(">", other)

    def __ge__(self, other: Operand) -> "Value":
        return self._compare(">=", other)

    def eq(self, other: Operand) -> "Value":
        return self._compare("==", other)

    def ne(self, other: Operand) -> "Value":
        return self._compare("!=", other)

    def below(self, other: Operand) -> "Value":
        """Unsigned less-than."""
        raw = self.code.ir.icmp_unsigned("<", self.raw, self._operand(other))
        return self._new(raw)

    def where(self, then: "Value", otherwise: Operand) -> "Value":
        """`then` where this truth value holds, lane by lane for vectors."""
        return self._new(self.code.ir.select(self.raw, then.raw, then._operand(otherwise)))

    def min(self, other: Operand) -> "Value":
        return (self < other).where(self, other)

    def max(self, other: Operand) -> "Value":
        return (self > other).where(self, other)

    def abs(self) -> "Value":
        return (self < 0).where(-self, self)

    def bit_length(self) -> "Value":
        """Bits of an unsigned number: 0 for 0."""
        zeros = self.code.ir.ctlz(self.raw, constant(I1, 0))
        return -self._new(zeros) + self.raw.type.width

    def sext(self, kind: ir.Type) -> "Value":
        return self._new(self.code.ir.sext(self.raw, kind))

    def zext(self, kind: ir.Type) -> "Value":
        return self._new(self.code.ir.zext(self.raw, kind))

    def trunc(self, kind: ir.Type) -> "Value":
        return self._new(self.code.ir.trunc(self.raw, kind))

    def bitcast(self, kind: ir.Type) -> "Value":
        return self._new(self.code.ir.bitcast(self.raw, kind))

    def splat(self, lanes: int) -> "Value":
        """A vector with this number in each lane."""
        one = ir.Constant(vector(self.type, lanes), ir.Undefined)
        first = self.code.ir.insert_element(one, self.raw, constant(I32, 0))
        zeros = constant(vector(I32, lanes), 0)
        return self._new(self.code.ir.shuffle_vector(first, one, zeros))

    def lane(self, number: int) -> "Value":
        """One number of a vector."""
        return self._new(self.code.ir.extract_element(self.raw, constant(I32, number)))

    def shuffle(self, lanes: Sequence[int], other: "Value | None" = None) -> "Value":
        """The named lanes of this vector, continued by `other`, in that order."""
        mask = ir.Constant(vector(I32, len(lanes)), list(lanes))
        behind = ir.Constant(self.type, ir.Undefined) if other is None else other.raw
        return self._new(self.code.ir.shuffle_vector(self.raw, behind, mask))


class Var:
    """A local variable."""

    def __init__(self, code: "Code", init: Value) -> None:
        self.code = code
        self.type = init.type
        with code.ir.goto_entry_block():
            self.slot = code.ir.alloca(self.type)
        self.set(init)

    def get(self) -> Value:
        return Value(self.code, self.code.ir.load(self.slot, typ=self.type))

    def set(self, value: Operand) -> None:
        raw = value.raw if isinstance(value, Value) else constant(self.type, value)
        self.code.ir.store(raw, self.slot)

    def add(self, value: Operand) -> None:
        self.set(self.get() + value)


class Ptr:
    """An address of elements of one type: ``p[i]`` loads, ``p[i] = v`` stores, ``p + i`` moves."""

    def __init__(self, code: "Code", raw: Any, kind: Any) -> None:
        self.code = code
        self.raw = raw
        self.kind = kind

    def __add__(self, elements: Operand) -> "Ptr":
        index = elements.raw if isinstance(elements, Value) else constant(I64, elements)
        moved = self.code.ir.gep(self.raw, [index], source_etype=self.kind)
        return Ptr(self.code, moved, self.kind)

    def address(self) -> Value:
        return Value(self.code, self.code.ir.ptrtoint(self.raw, I64))

    def of(self, kind: ir.Type) -> "Ptr":
        """The same address as elements of another type."""
        return Ptr(self.code, self.raw, kind)

    def __getitem__(self, elements: Operand) -> Value:
        # alignment 1: rows in DRAM start anywhere
        return Value(self.code, self.code.ir.load((self + elements).raw, typ=self.kind, align=1))

    def __setitem__(self, elements: Operand, value: Operand) -> None:
        raw = value.raw if isinstance(value, Value) else constant(self.kind, value)
        self.code.ir.store(raw, (self + elements).raw, align=1)


class Code:
    """A native function being written; arguments and result are int64.

    Parameters
    ----------
    module : ir.Module
        Where it goes.
    name : str
        Its symbol.
    count : int
        Number of arguments.
    exported : bool
        Whether it is called from outside the module.
    """

    def __init__(self, module: ir.Module, name: str, count: int, exported: bool = False) -> None:
        self.function = ir.Function(module, ir.FunctionType(I64, [I64] * count), name)
        if not exported:
            self.function.linkage = "internal"
            self.function.attributes.add("noinline")  # kernels are large and called rarely
        self.module = module
        self.ir: Any = ir.IRBuilder(self.function.append_basic_block("entry"))
        body = self.function.append_basic_block("body")
        self.ir.branch(body)
        self.ir.position_at_end(body)

    def arguments(self) -> list[Value]:
        return [Value(self, raw) for raw in self.function.args]

    def number(self, value: int) -> Value:
        return Value(self, constant(I64, value))

    def var(self, init: Operand) -> Var:
        return Var(self, init if isinstance(init, Value) else self.number(init))

    def pointer(self, address: Value, kind: ir.Type) -> Ptr:
        return Ptr(self, self.ir.inttoptr(address.raw, _POINTER), kind)

    def call(self, function: "Code", *arguments: Value) -> Value:
        return Value(self, self.ir.call(function.function, [a.raw for a in arguments]))

    def intrinsic(self, name: str, result: ir.Type, *arguments: Value) -> Value:
        """Call an LLVM intrinsic of the target."""
        kind = ir.FunctionType(result, [a.type for a in arguments])
        known = self.module.globals.get(name)
        function = known or ir.Function(self.module, kind, name)
        return Value(self, self.ir.call(function, [a.raw for a in arguments]))

    def opaque(self, value: Value) -> Value:
        """The same vector, in a register, behind a fence for the optimiser on x86.

        Keeps sums from being regrouped into trees that need more registers than there are.
        """
        kind = ir.FunctionType(value.type, [value.type])
        return Value(self, self.ir.asm(kind, "", "=v,0", [value.raw], False))

    def copy(self, target: Ptr, source: Ptr, size: Value) -> None:
        """`size` bytes; the ranges do not overlap."""
        name = "llvm.memcpy.p0.p0.i64"
        kind = ir.FunctionType(ir.VoidType(), [_POINTER, _POINTER, I64, I1])
        known = self.module.globals.get(name)
        function = known or ir.Function(self.module, kind, name)
        self.ir.call(function, [target.raw, source.raw, size.raw, constant(I1, 0)])

    def ret(self, value: Operand) -> None:
        self.ir.ret(value.raw if isinstance(value, Value) else constant(I64, value))

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        with self.ir.if_then(condition.raw):
            yield

    @contextmanager
    def choose(self, condition: Value) -> Iterator[tuple]:
        """``with code.choose(c) as (then, otherwise): with then: ... with otherwise: ...``"""
        with self.ir.if_else(condition.raw) as branches:
            yield branches

    @contextmanager
    def repeat(self, condition: Callable[[], Value]) -> Iterator[None]:
        """Runs the body while the condition, evaluated before each round, holds."""
        head = self.function.append_basic_block("head")
        body = self.function.append_basic_block("body")
        end = self.function.append_basic_block("end")
        self.ir.branch(head)
        self.ir.position_at_end(head)
        self.ir.cbranch(condition().raw, body, end)
        self.ir.position_at_end(body)
        yield
        if not self.ir.block.is_terminated:
            self.ir.branch(head)
        self.ir.position_at_end(end)

    @contextmanager
    def loop(self, count: Operand, start: Operand = 0, step: int = 1) -> Iterator[Value]:
        """Runs the body for `start`, `start + step`, ... below `count`; yields the number."""
        index = self.var(start)
        limit = count if isinstance(count, Value) else self.number(count)
        with self.repeat(lambda: index.get() < limit):
            yield index.get()
            index.add(step)

    def fail_when(self, condition: Value, code: int) -> None:
        """Return `code` from the function when the condition holds."""
        with self.when(condition):
            self.ret(code)


def constant(kind: ir.Type, value: int) -> ir.Constant:
    """A number of that type, in every lane of a vector."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [value] * kind.count)
    return ir.Constant(kind, value)
