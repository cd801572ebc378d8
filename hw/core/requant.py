"""The requantiser: accumulators to 8 bits, a few lanes per cycle, exact in all rounding modes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
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
        with m.If(self.enable):
            m.d.sync += valid.eq(Cat(self.valid, valid[:-1]))
        m.d.comb += [self.out_valid.eq(valid[-1]), self.busy.eq(valid.any())]

        # Nothing moves, in hardware or in a simulator, unless something valid does.
        active = self.enable & (self.valid | valid[:-1].any())
        lanes = [self._inputs(lane) for lane in range(self.lanes)]
        mode: Value = self.rounding
        for number, step in enumerate(_STEPS, start=1):
            scopes = [_Scope(m, f"lane_{lane}_stage_{number}") for lane in range(self.lanes)]
            results = [step(*pair, mode) for pair in zip(scopes, lanes, strict=True)]
            with m.If(active):
                held = Signal(2, name=f"rounding_{number}", reset_less=True)
                m.d.sync += held.eq(mode)
                lanes = [scope.register(lane) for scope, lane in zip(scopes, results, strict=True)]
            mode = held
        m.d.comb += self.y.eq(Cat(values["y"] for values in lanes))
        return m

    def _inputs(self, lane: int) -> "_Values":
        word = self.params.word_select(lane, 8 * PARAM_LANE_BYTES)
        params = {field.name: select(word, PARAM_FIELDS, field.name) for field in PARAM_FIELDS}
        return {"acc": self.acc.word_select(lane, LANE).as_signed(), **params}


_Values = dict[str, Value]
"""Named values of one lane, between two stages."""


class _Scope:
    """Names the values of one lane in one stage."""

    def __init__(self, m: Module, prefix: str) -> None:
        self.m, self.prefix = m, prefix

    def wire(self, name: str, value: Value) -> Signal:
        """A combinational signal."""
        signal = Signal(value.shape(), name=f"{self.prefix}_{name}")
        self.m.d.comb += signal.eq(value)
        return signal

    def register(self, values: "_Values") -> "_Values":
        """What the next stage sees, moved under the condition this is called in."""
        held = {
            name: Signal(value.shape(), name=f"{self.prefix}_{name}_held", reset_less=True)
            for name, value in values.items()
        }
        self.m.d.sync += [held[name].eq(value) for name, value in values.items()]
        return dict(held)

    def below_top(self, name: str, value: Value) -> Signal:
        """Ones in every place up to the highest one of `value`."""
        result = self.wire(f"{name}_0", value)
        step = 1
        while step < len(value):
            result = self.wire(f"{name}_{step}", result | (result >> step))
            step *= 2
        return result


def _sum(scope: _Scope, x: _Values, mode: Value) -> _Values:
    total = scope.wire("total", x.pop("acc") + x.pop("bias"))
    return {"negative": total[-1], "magnitude": Mux(total[-1], -total, total)[:MAGNITUDE], **x}


def _significant(scope: _Scope, x: _Values, mode: Value) -> _Values:
    """FLOAT32: rounded to 24 significant bits, ties to even."""
    magnitude = x.pop("magnitude")
    dropped = scope.below_top("dropped", magnitude[SIGNIFICANT:])
    odd = (magnitude & (dropped + 1)).any() & dropped[0]
    total = (magnitude + (dropped >> 1) + odd)[:MAGNITUDE]
    rounded = total & ~Cat(dropped, Const(0, MAGNITUDE - len(dropped)))
    return {"magnitude": Mux(mode == Rounding.FLOAT32, rounded, magnitude), **x}


def _multiply(scope: _Scope, x: _Values, mode: Value) -> _Values:
    magnitude, mult = x.pop("magnitude"), x.pop("mult")
    return {"lower": magnitude[:SPLIT] * mult, "upper": magnitude[SPLIT:] * mult, **x}


def _add_products(scope: _Scope, x: _Values, mode: Value) -> _Values:
    """The product; with DOUBLE, when that comes first, rounded to a multiple of 2**31."""
    twice = scope.wire("twice", (mode == Rounding.DOUBLE) & (x["shift"] >= FIRST_SHIFT))
    half = 1 << (FIRST_SHIFT - 1)
    addend = Mux(twice, Mux(x["negative"], Const(half - 1, FIRST_SHIFT), half), 0)
    upper = Cat(Const(0, SPLIT), x.pop("upper"))
    total = scope.wire("total", (x.pop("lower") + upper + addend)[:PRODUCT])
    product = Cat(Mux(twice, 0, total[:FIRST_SHIFT]), total[FIRST_SHIFT:])
    return {"product": product, "twice": twice, **x}


def _divide(scope: _Scope, x: _Values, mode: Value) -> _Values:
    """Whole part of product / 2**shift, at most 2**WHOLE; fraction; whether bits below are set.

    One right shift of 64 bits: of the product with FRACTION zeros below it, or, from a shift of
    FRACTION - 1 on, of the product with the one zero that then is left.
    """
    product, shift = x.pop("product"), x.pop("shift")
    near = PRODUCT + 1 - FRACTION
    far = shift >= FRACTION - 1
    distance = (shift - (FRACTION - 1))[: len(shift)]
    distance = Mux(distance[6:].any(), PRODUCT, distance[:6])
    amount = scope.wire("amount", Mux(far, distance, shift[:6]))
    scaled = Mux(far, Cat(Const(0, 1), product), Cat(Const(0, FRACTION), product[:near]))
    word = scope.wire("word", scaled)
    shifted = scope.wire("shifted", word >> amount)
    over = shifted[FRACTION + WHOLE :].any() | (~far & product[near:].any())
    return {
        "whole": Cat(Mux(over, 0, shifted[FRACTION:][:WHOLE]), over),
        "fraction": shifted[:FRACTION],
        "sticky": (word & (Const((1 << PRODUCT) - 1, PRODUCT) >> ~amount)).any(),
        **x,
    }


def _round(scope: _Scope, x: _Values, mode: Value) -> _Values:
    """Whether the magnitude whole + fraction rounds to whole + 1."""
    whole, fraction, sticky = x.pop("whole"), x.pop("fraction"), x.pop("sticky")
    half, odd, twice = fraction[-1], whole[0], x.pop("twice")
    exact = ~(fraction[:-1].any() | sticky)
    # FLOAT32: a tie within 2**(log2(whole) - 24) of one half, which is `reach` in fraction units.
    top = scope.below_top("top", Cat(Const(1, 1), whole[:WHOLE]))
    reach = scope.wire("reach", top ^ (top >> 1))
    offset = Cat(fraction[:-1], ~half).as_signed()
    tie = (offset + reach >= 0) & (offset + sticky <= reach)
    away = half & (~exact | ~x["negative"])
    up = Mux(
        mode[1],
        Mux(mode[0], Mux(tie, odd, half), Mux(twice, half, away)),
        Mux(mode[0], away, half & (~exact | odd)),
    )
    return {"rounded": whole + up, **x}


def _clamp(scope: _Scope, x: _Values, mode: Value) -> _Values:
    signed = Mux(x["negative"], -x["rounded"], x["rounded"])
    value = scope.wire("value", signed + x["zero_point"])
    value = scope.wire("raised", Mux(value < x["low"], x["low"], value))
    return {"y": Mux(value > x["high"], x["high"], value)[:8]}


_STEPS = (_sum, _significant, _multiply, _add_products, _divide, _round, _clamp)
"""What happens before each stage's registers: takes a lane's values, and gives the next ones."""
