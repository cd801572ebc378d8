"""The requantiser: accumulators to 8 bits, a few lanes per cycle, exact in all rounding modes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl._ast import Assign
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import PARAM_LANE_BYTES
from vitral.hw.core.decode import select
from vitral.isa import PARAM_FIELDS, Rounding

__all__ = ["LATENCY", "Requantizer"]

LATENCY = 7
"""Enabled cycles from an input to its output."""

LANE = 32
MAGNITUDE = 33
"""Bits of |acc + bias|."""

PRODUCT = 63
"""Bits of |acc + bias| * mult: at most 2**32 * (2**31 - 1)."""

SPLIT = 17
"""Bits of the magnitude that the first of two multiplications takes."""

SIGNIFICANT = 24
"""Bits that a float32 keeps."""

FIRST_SHIFT = 31
"""DOUBLE rounds by at most this many bits first, and then by the rest."""

WHOLE = 16
"""Integer bits that matter: with more, every 16-bit zero point leaves every 16-bit range."""

FRACTION = 25
"""Fraction bits kept. Of the bits below these, it only matters whether any is set."""


class Requantizer(wiring.Component):
    """y = clamp(round((acc + bias) * mult / 2**shift) + zero_point), the low 8 bits, per lane.

    `acc` is int32 (lanes), `params` the parameter memory's 16 bytes (lanes), `y` 8 bits (lanes);
    `rounding` is common to the lanes. All stages move with `enable`: `y` and `out_valid`
    belong to the inputs `LATENCY` enabled cycles before; `busy` says that any stage is valid.
    Sign and magnitude are kept apart, so that rounding is a decision whether to add one::

        stage  1         2           3          4           5          6            7
               acc+bias  FLOAT32:    two        product     whole and  whole + 1?   + zero point,
               sign,     24 bits     partial    (DOUBLE:    fraction                clamp
               magnitude             products   by 2**31)

    docs/architecture.md defines the rounding modes.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(
            {
                "enable": In(1),
                "valid": In(1),
                "rounding": In(2),
                "acc": In(LANE * lanes),
                "params": In(8 * PARAM_LANE_BYTES * lanes),
                "out_valid": Out(1),
                "busy": Out(1),
                "y": Out(8 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid = Signal(LATENCY)
        modes = [Signal(2, name=f"rounding_{n}", reset_less=True) for n in range(1, LATENCY)]
        with m.If(self.enable):
            m.d.sync += valid.eq(Cat(self.valid, valid[:-1]))
        m.d.comb += [self.out_valid.eq(valid[-1]), self.busy.eq(valid.any())]

        pipes = [_Pipe(m, f"lane_{number}") for number in range(self.lanes)]
        outputs = [self._lane(pipe, n, [self.rounding, *modes]) for n, pipe in enumerate(pipes)]
        m.d.comb += self.y.eq(Cat(outputs))
        # Nothing moves, in hardware or in a simulator, unless something valid does.
        with m.If(self.enable & (self.valid | valid[:-1].any())):
            before = [self.rounding, *modes[:-1]]
            m.d.sync += [now.eq(last) for now, last in zip(modes, before, strict=True)]
            m.d.sync += [move for pipe in pipes for move in pipe.moves]
        return m

    def _lane(self, pipe: "_Pipe", number: int, modes: list[Value]) -> Value:
        """The seven stages of one lane; `modes[n]` is the rounding of what enters stage n + 1."""
        word = self.params.word_select(number, 8 * PARAM_LANE_BYTES)
        param = {field.name: select(word, PARAM_FIELDS, field.name) for field in PARAM_FIELDS}

        acc = self.acc.word_select(number, LANE).as_signed()
        total = pipe.wire("total", acc + param.pop("bias"))
        x = pipe.stage(
            param, negative=total[-1], magnitude=Mux(total[-1], -total, total)[:MAGNITUDE]
        )
        float32 = modes[1] == Rounding.FLOAT32
        magnitude = x.pop("magnitude")
        x = pipe.stage(x, magnitude=Mux(float32, _to_significant(pipe, magnitude), magnitude))

        mult, magnitude = x.pop("mult"), x.pop("magnitude")
        x = pipe.stage(x, lower=magnitude[:SPLIT] * mult, upper=magnitude[SPLIT:] * mult)

        twice = (modes[3] == Rounding.DOUBLE) & (x["shift"] >= FIRST_SHIFT)
        product = _product(pipe, x.pop("lower"), x.pop("upper"), twice, x["negative"])
        x = pipe.stage(x, product=product, twice=twice)

        whole, fraction, sticky = _divide(pipe, x.pop("product"), x.pop("shift"))
        x = pipe.stage(x, whole=whole, fraction=fraction, sticky=sticky)

        whole = x.pop("whole")
        up = _rounds_up(
            pipe,
            modes[5],
            whole=whole,
            fraction=x.pop("fraction"),
            sticky=x.pop("sticky"),
            twice=x.pop("twice"),
            negative=x["negative"],
        )
        x = pipe.stage(x, rounded=whole + up)

        signed = Mux(x["negative"], -x["rounded"], x["rounded"])
        value = pipe.wire("value", signed + x["zero_point"])
        value = pipe.wire("raised", Mux(value < x["low"], x["low"], value))
        value = Mux(value > x["high"], x["high"], value)
        return pipe.stage({}, y=value[:8])["y"]


class _Pipe:
    """Names the values between stages; `moves` are the assignments that a step executes."""

    def __init__(self, m: Module, prefix: str) -> None:
        self.m, self.prefix, self.number = m, prefix, 0
        self.moves: list[Assign] = []

    def wire(self, name: str, value: Value) -> Signal:
        """A combinational signal."""
        signal = Signal(value.shape(), name=f"{self.prefix}_{name}_{self.number}")
        self.m.d.comb += signal.eq(value)
        return signal

    def stage(self, kept: dict[str, Value], **new: Value) -> dict[str, Value]:
        """Registers for `kept` and `new`, by the same names."""
        self.number += 1
        registers: dict[str, Value] = {}
        for name, value in {**kept, **new}.items():
            register = Signal(
                value.shape(), name=f"{self.prefix}_{name}_{self.number}", reset_less=True
            )
            self.moves.append(register.eq(value))
            registers[name] = register
        return registers

    def below_top(self, name: str, value: Value) -> Signal:
        """Ones in every place up to the highest one of `value`."""
        result = self.wire(f"{name}_0", value)
        step = 1
        while step < len(value):
            result = self.wire(f"{name}_{step}", result | (result >> step))
            step *= 2
        return result


def _to_significant(pipe: _Pipe, magnitude: Value) -> Value:
    """Rounded to 24 significant bits, ties to even."""
    dropped = pipe.below_top("dropped", magnitude[SIGNIFICANT:])
    odd = (magnitude & (dropped + 1)).any() & dropped[0]
    total = (magnitude + (dropped >> 1) + odd)[:MAGNITUDE]
    return total & ~Cat(dropped, Const(0, MAGNITUDE - len(dropped)))


def _product(pipe: _Pipe, lower: Value, upper: Value, twice: Value, negative: Value) -> Value:
    """The sum of the partial products; with `twice` rounded to a multiple of 2**31, half up."""
    half = 1 << (FIRST_SHIFT - 1)
    addend = Mux(twice, Mux(negative, Const(half - 1, FIRST_SHIFT), half), 0)
    total = pipe.wire("total", (lower + Cat(Const(0, SPLIT), upper) + addend)[:PRODUCT])
    return Cat(Mux(twice, 0, total[:FIRST_SHIFT]), total[FIRST_SHIFT:])


def _divide(pipe: _Pipe, product: Value, shift: Value) -> tuple[Value, Value, Value]:
    """Whole part of product / 2**shift, at most 2**WHOLE; fraction; whether bits below are set.

    One right shift of 64 bits: of the product with FRACTION zeros below it, or, from a shift of
    FRACTION - 1 on, of the product with the one zero that then is left.
    """
    width = PRODUCT + 1
    near = width - FRACTION
    far = shift >= FRACTION - 1
    distance = (shift - (FRACTION - 1))[: len(shift)]
    amount = Mux(far, Mux(distance[6:].any(), width - 1, distance[:6]), shift[:6])
    amount = pipe.wire("amount", amount)
    word = pipe.wire(
        "word", Mux(far, Cat(Const(0, 1), product), Cat(Const(0, FRACTION), product[:near]))
    )
    shifted = pipe.wire("shifted", word >> amount)
    over = shifted[FRACTION + WHOLE :].any() | (~far & product[near:].any())
    whole = Cat(Mux(over, 0, shifted[FRACTION:][:WHOLE]), over)
    sticky = (word & (Const((1 << PRODUCT) - 1, PRODUCT) >> ~amount)).any()
    return whole, shifted[:FRACTION], sticky


def _rounds_up(
    pipe: _Pipe,
    mode: Value,
    *,
    whole: Value,
    fraction: Value,
    sticky: Value,
    twice: Value,
    negative: Value,
) -> Value:
    """Whether the magnitude whole + fraction rounds to whole + 1."""
    half = fraction[-1]
    exact = ~(fraction[:-1].any() | sticky)
    odd = whole[0]
    # FLOAT32: a tie within 2**(log2(whole) - 24) of one half, which is `reach` in fraction units.
    top = pipe.below_top("top", Cat(Const(1, 1), whole[:WHOLE]))
    reach = pipe.wire("reach", top ^ (top >> 1))
    offset = Cat(fraction[:-1], ~half).as_signed()
    tie = (offset + reach >= 0) & (offset + sticky <= reach)
    away = half & (~exact | ~negative)
    return Mux(
        mode[1],
        Mux(mode[0], Mux(tie, odd, half), Mux(twice, half, away)),
        Mux(mode[0], away, half & (~exact | odd)),
    )
