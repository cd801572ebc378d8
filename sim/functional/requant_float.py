"""Native requantisation in the FLOAT32 mode, all lanes of an element at once.

The mode is defined in integers, but is what IEEE arithmetic does: fl32(fl32(acc + bias) * m) with
m = mult / 2**shift, rounded to an integer, ties to even.

Where m is a normal float32 number and acc + bias an int32, that is what the host's float32
instructions do. Else in float64, in which the sum (33 bits) and the product of two 24-bit numbers
are exact, so that each conversion to float32 is the only rounding. Multipliers of more than
24 bits need the integer form.
"""

from llvmlite import ir

from vitral.isa import PARAM_FIELDS
from vitral.sim.functional.emit import I8, I32, I64, Code, Ptr, Value, Var, constant, vector

__all__ = ["FloatLanes"]

LANE_WORDS = 4
MULT_BITS = 24
EXPONENT_BIAS = 1023
MANTISSA_BITS = 52
SINGLE_BIAS = 127
SINGLE_MANTISSA_BITS = 23
LAST_SINGLE_SHIFT = 126
"""Multipliers of at least 2**-126 are normal numbers, however small `mult` is."""
DOUBLE = ir.DoubleType()
FLOAT = ir.FloatType()


class FloatLanes:
    """The parameters of one entry as vectors, kept in variables until another entry is wanted.

    Parameters
    ----------
    code : Code
        The function being written.
    block : int
        Lanes.
    """

    def __init__(self, code: Code, block: int) -> None:
        self.code = code
        self.block = block
        self.doubles = ir.VectorType(DOUBLE, block)
        self.floats = ir.VectorType(FLOAT, block)
        zero = Value(code, ir.Constant(self.doubles, [0.0] * block))
        names = ("bias", "scale", "zero_point", "low", "high")
        self.values = {name: Var(code, zero) for name in names}
        zero = Value(code, ir.Constant(self.floats, [0.0] * block))
        self.singles = {name: Var(code, zero) for name in names[1:]}
        self.bias = Var(code, Value(code, constant(vector(I32, block), 0)))
        self.exact, self.single = code.var(0), code.var(0)

    def load(self, entry: Ptr) -> None:
        """Take the parameters at an address; `exact` tells whether they fit one of these forms."""
        words = entry.of(vector(I32, LANE_WORDS * self.block))[0]
        self._load_doubles(words)
        self._load_singles(words)

    def _load_singles(self, words: Value) -> None:
        shift = self._field(words, "shift")
        large = self._any(shift > LAST_SINGLE_SHIFT)
        self.single.set((~large).zext(I64))
        self.bias.set(self._field(words, "bias"))
        for name in ("zero_point", "low", "high"):
            self.singles[name].set(self._single(self._field(words, name)))
        power = Value(self.code, constant(shift.type, SINGLE_BIAS)) - shift
        power = (power << SINGLE_MANTISSA_BITS).bitcast(self.floats)
        self.singles["scale"].set(self._times(self._single(self._field(words, "mult")), power))

    def _load_doubles(self, words: Value) -> None:
        mult = self._field(words, "mult")
        self.exact.set((~self._any((mult >> MULT_BITS).ne(0))).zext(I64))
        for name in ("bias", "zero_point", "low", "high"):
            self.values[name].set(self._double(self._field(words, name)))
        shift = self._field(words, "shift").zext(vector(I64, self.block))
        power = Value(self.code, constant(shift.type, EXPONENT_BIAS)) - shift
        power = (power << MANTISSA_BITS).bitcast(self.doubles)
        self.values["scale"].set(self._times(self._double(mult), power))

    def store(self, to: Ptr, values: Value) -> None:
        """int8 (block) of int32 (block) accumulators, with parameters that are `exact`."""
        bias = self.bias.get()
        total = values + bias
        wraps = self._any(((values ^ total) & (bias ^ total)) < 0)
        where = to.of(vector(I8, self.block))
        with self.code.choose(self.single.get().ne(0) & ~wraps) as (single, double):
            with single:
                where[0] = self._in_single(total)
            with double:
                where[0] = self._in_double(values)

    def _in_single(self, total: Value) -> Value:
        get = {name: var.get() for name, var in self.singles.items()}
        rounded = self._rounded(self._times(self._single(total), get["scale"]))
        return self._clamped(self._plus(rounded, get["zero_point"]), get["low"], get["high"])

    def _in_double(self, values: Value) -> Value:
        get = {name: var.get() for name, var in self.values.items()}
        total = self._through_float(self._plus(self._double(values), get["bias"]))
        scaled = self._narrow(self._times(total, get["scale"]))
        result = self._plus(self._widen(self._rounded(scaled)), get["zero_point"])
        return self._clamped(result, get["low"], get["high"])

    def _rounded(self, value: Value) -> Value:
        return self.code.intrinsic(f"llvm.roundeven.v{self.block}f32", self.floats, value)

    def _clamped(self, value: Value, low: Value, high: Value) -> Value:
        """Whole numbers as int8; float32 keeps those that are not clamped exactly."""
        result = self._pick("<", self._pick(">", value, low), high)
        whole = self.code.ir.fptosi(result.raw, vector(I32, self.block))
        return Value(self.code, whole).trunc(vector(I8, self.block))

    def _any(self, lanes: Value) -> Value:
        """Whether a truth value holds in any lane."""
        return lanes.bitcast(ir.IntType(self.block)).ne(0)

    def _field(self, words: Value, name: str) -> Value:
        """One field of all lanes, int32; none crosses a 32-bit word."""
        field = PARAM_FIELDS[name]
        number, position = divmod(field.low, 32)
        lanes = words.shuffle(range(number, LANE_WORDS * self.block, LANE_WORDS))
        lanes = lanes << (32 - position - field.width)
        return lanes.shr(32 - field.width) if field.signed else lanes >> (32 - field.width)

    def _single(self, value: Value) -> Value:
        return Value(self.code, self.code.ir.sitofp(value.raw, self.floats))

    def _double(self, value: Value) -> Value:
        return Value(self.code, self.code.ir.sitofp(value.raw, self.doubles))

    def _narrow(self, value: Value) -> Value:
        return Value(self.code, self.code.ir.fptrunc(value.raw, self.floats))

    def _widen(self, value: Value) -> Value:
        return Value(self.code, self.code.ir.fpext(value.raw, self.doubles))

    def _through_float(self, value: Value) -> Value:
        return self._widen(self._narrow(value))

    def _plus(self, one: Value, other: Value) -> Value:
        return Value(self.code, self.code.ir.fadd(one.raw, other.raw))

    def _times(self, one: Value, other: Value) -> Value:
        return Value(self.code, self.code.ir.fmul(one.raw, other.raw))

    def _pick(self, how: str, one: Value, other: Value) -> Value:
        """Lane by lane the one that is larger or smaller."""
        better = self.code.ir.fcmp_ordered(how, one.raw, other.raw)
        return Value(self.code, self.code.ir.select(better, one.raw, other.raw))
