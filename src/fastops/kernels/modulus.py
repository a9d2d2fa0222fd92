"""The two remainders of the twelve dtypes: formulas on SIMD lanes, each with the argument why it is exact.

Every formula works on magnitudes (absolute values) and puts the signs right at the end:

* truncated division (`fmod`): the remainder takes the dividend's sign;
* floored division (`remainder`): it takes the divisor's, and `|y| - r` replaces `r` where the signs differ and `r` is not zero.

Division by zero never happens: an integer zero divisor is replaced by 1, whose remainder is the wanted 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .lanes import (
    DOUBLE,
    FLOAT,
    Lane,
    bfloat16_to_float,
    float_to_bfloat16,
    float_to_half,
    fused_multiply_add,
    half_to_float,
    larger,
    smaller,
    where,
)

Formula = Callable[[Lane, Lane], Lane]


class Processor(NamedTuple):
    """What the formulas ask of the processor that they are compiled for."""

    fused: bool  # has a fused multiply-add
    half: bool  # converts between half and single precision


# --- integers ---
def integer_remainder(x: Lane, y: Lane) -> Lane:
    """x mod y of unsigned integers, y >= 1, by one floating-point reciprocal.

    The reciprocal is made too small by a relative 2**-50 (2**-21 in single precision), more than all roundings together (five of 2**-53),
    so a quotient q is never too large and x - q*y never negative: it is below y + x * 2**-49. Up to 32 bits that is at most y, which one
    conditional subtraction mends. With 64 bits it is at most y + 2**15, a second quotient leaves less than 2*y, and again one subtraction
    ends it. `min(r, r - y)` is that subtraction: modulo 2**bits, r - y is the smaller just where r >= y.
    """
    number, shrink = (FLOAT, 1 - 2.0**-21) if x.bits <= 16 else (DOUBLE, 1 - 2.0**-50)
    inverse = 1.0 / y.to_float(number) * shrink
    r = x
    for _ in range(2 if x.bits == 64 else 1):
        r = r - (r.to_float(number) * inverse).to_integer(x.bits) * y
    return smaller(r, r - y)


def one_for_zero(y: Lane) -> Lane:
    return where(y == 0, y.constant(1), y)


def negate_where(mask: Lane, x: Lane) -> Lane:
    """Two's complement -x where all bits of `mask` are set, x where none is."""
    return (x ^ mask) - mask


def divided_remainder(x: Lane, y: Lane) -> Lane:
    """The same by the processor's division: for one element it is faster, for many it is not, since SIMD has none for integers."""
    return x - x / y * y


def unsigned(remainder: Formula, x: Lane, y: Lane) -> Lane:
    return remainder(x, one_for_zero(y))


def truncated(remainder: Formula, x: Lane, y: Lane) -> Lane:
    """MIN is its own magnitude as an unsigned integer, so nothing overflows: MIN by -1 is 0."""
    sign_x, sign_y = x.sign_mask(), y.sign_mask()
    return negate_where(sign_x, remainder(negate_where(sign_x, x), one_for_zero(negate_where(sign_y, y))))


def floored(remainder: Formula, x: Lane, y: Lane) -> Lane:
    sign_x, sign_y = x.sign_mask(), y.sign_mask()
    divisor = one_for_zero(negate_where(sign_y, y))
    r = remainder(negate_where(sign_x, x), divisor)
    differ = sign_x ^ sign_y
    complement = negate_where(differ, r) + (divisor & differ)
    return negate_where(sign_y, where(r == 0, r, complement))


# --- floats ---
# All four formats compute in double precision: |x|, |y| are exact there, and so is |y| - r rounded to double and then to single, half or
# bfloat16 (53 >= 2 * 24 + 2 bits: the double rounding is innocuous; Figueroa, "When is double rounding innocuous?", 1995).
INFINITY = float("inf")
SIGN, FRACTION, QUIET = 1 << 63, (1 << 52) - 1, 1 << 51
TINY = 2.0**-1022  # the smallest normal number
OFFSET = 4096  # keeps differences of exponents positive, since lanes are unsigned
NOT_A_NUMBER = SIGN | 0x7FF << 52 | QUIET  # what x86 makes of an invalid operation; here on every processor


class Format(NamedTuple):
    """A floating-point format: bits of its significand, and the way to double precision and back."""

    significand: int
    widen: Callable[[Lane], Lane]
    round: Callable[[Lane], Lane]


def formats(processor: Processor) -> dict[str, Format]:
    return {
        "float64": Format(53, lambda x: x, lambda x: x),
        "float32": Format(24, lambda x: x.extend(DOUBLE), lambda x: x.narrow(FLOAT)),
        "float16": Format(
            11,
            lambda x: half_to_float(x, processor.half).extend(DOUBLE),
            lambda x: float_to_half(x.narrow(FLOAT), processor.half),
        ),
        "bfloat16": Format(8, lambda x: bfloat16_to_float(x).extend(DOUBLE), lambda x: float_to_bfloat16(x.narrow(FLOAT))),
    }


def magnitude(x: Lane) -> Lane:
    return (x.as_bits() & ~SIGN & (2**64 - 1)).as_float(DOUBLE)


def round_to_integer(q: Lane) -> Lane:
    """The nearest integer, for 0 <= q <= 2**51: there 1.5 * 2**52 + q has units of 1. (No call of a library's rint, as old processors
    need.)"""
    return (q + 1.5 * 2.0**52) - 1.5 * 2.0**52


class Reduction:
    """One step r -> r mod s of a floating-point remainder, on magnitudes in double precision.

    q is the integer nearest to the rounded r / s, so |r - q*s| is at most 5/8 s; it is a multiple of the smaller unit of r and s, and
    hence a double: a fused multiply-add gives it exactly for q up to 2**51. Without one, q is kept so small that q*s is exact by itself
    (short significands), or s is split in two whose products with q are (double precision, q up to 2**24: then |r - q*high| is at most
    s/2 + s/4, a multiple of that unit too, and stays within 53 bits). A negative result is short by s: adding it gives r mod s, again a
    double.
    """

    def __init__(self, significand: int, fused: bool):
        self.significand, self.fused = significand, fused
        self.bits = 50 if fused else 52 - significand if significand < 53 else 23  # q < 2**(bits + 1)
        self.limit = 2.0**self.bits

    def residual(self, r: Lane, q: Lane, s: Lane) -> Lane:
        if self.fused:
            return fused_multiply_add(q * -1.0, s, r)
        if self.significand < 53:
            return r - q * s
        huge = r >= 2.0**1000  # q, if rounded up, times s might be infinite
        scale, back = where(huge, r.constant(2.0**-64), 1.0), where(huge, r.constant(2.0**64), 1.0)
        r, s = r * scale, s * scale
        high = (s.as_bits() & (2**64 - 2**26)).as_float(DOUBLE)
        return ((r - q * high) - q * (s - high)) * back

    def step(self, r: Lane, s: Lane) -> Lane:
        q = round_to_integer(r / s)
        reduced = self.residual(r, q, s)
        reduced = where(reduced < 0.0, reduced + s, reduced)
        return where(q == 0.0, r, reduced)  # also where s is infinite

    def unfinished(self, x: Lane, y: Lane) -> Lane:
        """Whether |x| / |y| is too large for one step: then `partial_step` goes on until r < y."""
        return (x / y >= self.limit) & (x < INFINITY) & (y.constant(0.0) < y)

    def partial_step(self, r: Lane, y: Lane) -> Lane:
        """r mod s for s = y * 2**k, where k >= 0 puts the exponent of s `bits` below that of r (k = 0 where that of y is no further
        below), so that the quotient is small enough. Since
        y divides s, (r mod s) mod y = r mod y. A subnormal y is first made normal; 2**k comes in two factors, for it may exceed a
        double."""
        normal = where(y < TINY, y * 2.0**54, y)
        k = self.exponent(r) - (normal.as_bits() >> 52) - self.bits
        k = larger(k, k.constant(OFFSET - 54))
        half = k >> 1
        power = [((part - (OFFSET // 2 - 1023)) << 52).as_float(DOUBLE) for part in (half, k - half)]
        return self.step(r, larger(y, normal * power[0] * power[1]))

    def exponent(self, r: Lane) -> Lane:
        """The exponent as it is biased in a double, plus OFFSET; right for subnormal numbers too."""
        normal = (r * 2.0**54).as_bits() >> 52
        return where(r < TINY, normal - 54, r.as_bits() >> 52) + OFFSET

    def more_steps(self, r: Lane, y: Lane) -> Lane:
        return (r >= y) & (r < INFINITY) & (y.constant(0.0) < y)


def with_sign(x: Lane, sign: Lane) -> Lane:
    return (x.as_bits() | sign).as_float(DOUBLE)


def finish(by_floor: bool, r: Lane, x: Lane, y: Lane) -> Lane:
    """The remainder from r = |x| mod |y|: signs, then what IEEE 754 calls invalid, then NaN operands, kept with their payload."""
    sign_x, sign_y = x.as_bits() & SIGN, y.as_bits() & SIGN
    if by_floor:
        differ = (sign_x ^ sign_y) == SIGN
        r = where((r == 0.0) | ~differ, r, magnitude(y) - r)
    result = with_sign(r, sign_y if by_floor else sign_x).as_bits()
    result = where(is_invalid(magnitude(x), magnitude(y)), result.constant(NOT_A_NUMBER), result)
    result = where(y.is_nan(), y.as_bits() | QUIET, result)
    return where(x.is_nan(), x.as_bits() | QUIET, result).as_float(DOUBLE)


def is_invalid(x: Lane, y: Lane) -> Lane:
    """Of magnitudes: an infinite dividend or a zero divisor; what is wrong of a NaN is not wrong here."""
    return ((x == INFINITY) & ~y.is_nan()) | ((y == 0.0) & ~x.is_nan())
