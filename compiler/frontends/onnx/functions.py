"""Real functions with about 200 bits, so that one rounding of their values is the right one.

Arguments and results are exact rationals where the function is rational (the positive side of Elu),
and otherwise decimals of `DIGITS` digits.
"""

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache

__all__ = [
    "DIGITS",
    "RealFunction",
    "celu",
    "elu",
    "erf",
    "exp",
    "gelu",
    "gelu_tanh",
    "mish",
    "selu",
    "sigmoid",
    "softplus",
    "swish",
    "tanh",
]

RealFunction = Callable[[Fraction], Fraction]

DIGITS = 60
_CONTEXT = Context(prec=DIGITS + 10, rounding=ROUND_HALF_EVEN)
_FLAT = Fraction(160)
"""Beyond this exp(-x) is below 10 ** -69, which no rounding to 60 digits sees beside 1."""
_ERF_FLAT = Fraction(12)
"""Beyond this 1 - erf(x) is below 10 ** -64; its square is within `_FLAT`."""


def _decimal(x: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def _power(x: Fraction) -> Decimal:
    """exp(x); arguments below -160 count as -160."""
    return _CONTEXT.exp(_decimal(max(x, -_FLAT)))


def exp(x: Fraction) -> Fraction:
    """e ** x; float32 overflows long before 160, which larger arguments count as."""
    return Fraction(_power(min(x, _FLAT)))


def sigmoid(x: Fraction) -> Fraction:
    """1 / (1 + exp(-x)), without cancellation on either side."""
    small = _power(-abs(x))
    share = _CONTEXT.divide(Decimal(1) if x >= 0 else small, _CONTEXT.add(1, small))
    return Fraction(share)


def tanh(x: Fraction) -> Fraction:
    """(1 - exp(-2x)) / (1 + exp(-2x)), odd."""
    small = _power(-2 * abs(x))
    size = Fraction(_CONTEXT.divide(_CONTEXT.subtract(1, small), _CONTEXT.add(1, small)))
    return size if x >= 0 else -size


def elu(x: Fraction, alpha: Fraction) -> Fraction:
    """x where positive, alpha (exp(x) - 1) elsewhere."""
    return x if x > 0 else alpha * (exp(x) - 1)


def selu(x: Fraction, alpha: Fraction, gamma: Fraction) -> Fraction:
    """gamma · elu(x, alpha)."""
    return gamma * elu(x, alpha)


def celu(x: Fraction, alpha: Fraction) -> Fraction:
    """x where positive, alpha (exp(x / alpha) - 1) elsewhere."""
    return x if x > 0 else alpha * (exp(x / alpha) - 1)


def softplus(x: Fraction) -> Fraction:
    """ln(1 + exp(x)), as max(x, 0) + ln(1 + exp(-|x|))."""
    return max(x, Fraction(0)) + Fraction(_CONTEXT.ln(_CONTEXT.add(1, _power(-abs(x)))))


def swish(x: Fraction, alpha: Fraction) -> Fraction:
    """x · sigmoid(alpha x)."""
    return x * sigmoid(alpha * x)


def mish(x: Fraction) -> Fraction:
    """x · tanh(softplus(x))."""
    return x * tanh(softplus(x))


def erf(x: Fraction) -> Fraction:
    """2 / sqrt(pi) · exp(-x²) · (x + 2 x³ / 3 + 4 x⁵ / 15 + ...): all terms have one sign."""
    if abs(x) >= _ERF_FLAT:
        return Fraction(1 if x > 0 else -1)
    term = total = _decimal(x)
    factor = _CONTEXT.multiply(2, _CONTEXT.multiply(term, term))
    odd = 1
    while abs(term) > abs(total).scaleb(-DIGITS - 5, _CONTEXT) and term:
        odd += 2
        term = _CONTEXT.divide(_CONTEXT.multiply(term, factor), Decimal(odd))
        total = _CONTEXT.add(total, term)
    scale = _CONTEXT.divide(_power(-x * x), _CONTEXT.sqrt(_pi()))
    return Fraction(_CONTEXT.multiply(2, _CONTEXT.multiply(total, scale)))


def gelu(x: Fraction) -> Fraction:
    """x / 2 · (1 + erf(x / sqrt(2)))."""
    return x / 2 * (1 + erf(Fraction(_CONTEXT.divide(_decimal(x), _CONTEXT.sqrt(Decimal(2))))))


def gelu_tanh(x: Fraction) -> Fraction:
    """x / 2 · (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)))."""
    root = Fraction(_CONTEXT.sqrt(_CONTEXT.divide(2, _pi())))
    return x / 2 * (1 + tanh(root * (x + Fraction(44715, 1_000_000) * x**3)))


@lru_cache(maxsize=1)
def _pi() -> Decimal:
    """Machin's formula in integers."""
    one = 10 ** (DIGITS + 15)

    def arctan_of_inverse(n: int) -> int:
        total = term = one // n
        k, sign = 1, 1
        while term:
            term //= n * n
            k, sign = k + 2, -sign
            total += sign * (term // k)
        return total

    return _CONTEXT.divide(
        Decimal(4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))), Decimal(one)
    )
