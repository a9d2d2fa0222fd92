"""The two remainders of floating-point numbers: formulas on SIMD lanes, each with the argument why it is exact.

They work on magnitudes and put the signs right at the end. `Quick` serves what nearly all elements are, in few instructions: a finite
dividend, a divisor that is not zero, a quotient that is not huge. It notes where that does not hold. A block with such an element is
computed again by `Careful`, in double precision with all special values; and, for huge quotients, in many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import llvmlite.ir as ir

from .lanes import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    MAGIC,
    Lane,
    Processor,
    bfloat16_to_float,
    float_to_bfloat16,
    float_to_half,
    fused_multiply_add,
    half_to_float,
    maximum,
    minimum,
    where,
)

INFINITY = float("inf")
LARGEST = {FLOAT: (2 - 2.0**-23) * 2.0**127, DOUBLE: (2 - 2.0**-52) * 2.0**1023}
TINY = 2.0**-1022  # the smallest normal number in double precision
OFFSET = 4096  # keeps differences of exponents positive, since lanes are unsigned
SIGN, QUIET = 1 << 63, 1 << 51
NOT_A_NUMBER = SIGN | 0x7FF << 52 | QUIET  # what x86 makes of an invalid operation; here on every processor


class Format(NamedTuple):
    """A floating-point format: its storage, the bits of its significand, and the way to a number of single or double precision and back."""

    storage: ir.Type
    significand: int
    load: Callable[[Lane], Lane]
    store: Callable[[Lane], Lane]


def formats(processor: Processor) -> dict[str, Format]:
    return {
        "float64": Format(DOUBLE, 53, lambda x: x, lambda x: x),
        "float32": Format(FLOAT, 24, lambda x: x, lambda x: x),
        "float16": Format(
            ir.IntType(16), 11, lambda x: half_to_float(x, processor.half), lambda x: float_to_half(x, processor.half)
        ),
        "bfloat16": Format(ir.IntType(16), 8, bfloat16_to_float, float_to_bfloat16),
    }  # fmt: skip


def to_double(x: Lane) -> Lane:
    return x if x.bits == 64 else x.extend(DOUBLE)


def sign_of(x: Lane) -> Lane:
    return x.as_bits() & (1 << (x.bits - 1))


def magnitude(x: Lane) -> Lane:
    return (x.as_bits() & ((1 << (x.bits - 1)) - 1)).as_float(x.type)


def with_sign(x: Lane, sign: Lane) -> Lane:
    return (x.as_bits() | sign).as_float(x.type)


def round_to_integer(q: Lane) -> Lane:
    return (q + MAGIC[q.type]) - MAGIC[q.type]


class Reduction:
    """One step r -> r mod s of a remainder, on magnitudes, in single or double precision.

    q is the integer nearest to r / s, a quotient with at most two roundings. For q below 2**(precision - 4), or below twice that with one
    rounding (partial steps), it is within 5/8 of r / s, so |r - q*s| is at most 5/8 s; it is a multiple of the smaller unit of r and s, and
    hence a number of that precision: a fused multiply-add gives it exactly. Without one, q is kept so small that q*s is exact by itself
    (short significands), or s is split in two whose products with q are (double precision, q up to 2**24: then |r - q*high| is at most
    s/2 + s/4, or below 2**52 units of a subnormal s, a multiple of that unit too, and stays within 53 bits). A negative result is short by
    s: adding it gives r mod s, again such a number.
    """

    def __init__(self, number: ir.Type, significand: int, processor: Processor):
        precision = 53 if number == DOUBLE else 24
        self.number, self.fused, self.exact = number, processor.fused, significand < precision
        self.bits = precision - 4 if self.fused else precision - 1 - significand if self.exact else 23  # q < 2**(bits + 1)
        self.limit = 2.0**self.bits

    def residual(self, r: Lane, q: Lane, s: Lane) -> Lane:
        """r - q*s. (q is 0 for an infinite s: any finite one then does.)"""
        s = minimum(s, s.constant(LARGEST[self.number]))
        if self.fused:
            return fused_multiply_add(-q, s, r)
        if self.exact:
            return r - q * s
        huge = r >= 2.0**1000  # q, if rounded up, times s might be infinite
        scale, back = where(huge, r.constant(2.0**-64), 1.0), where(huge, r.constant(2.0**64), 1.0)
        r, s = r * scale, s * scale
        high = (s.as_bits() & (2**64 - 2**26)).as_float(DOUBLE)
        return ((r - q * high) - q * (s - high)) * back

    def step(self, r: Lane, s: Lane) -> Lane:
        reduced = self.residual(r, round_to_integer(r / s), s)
        return where(reduced < 0.0, reduced + s, reduced)


class Quick:
    """The remainder in the narrowest precision that serves: single for float16 and, with fused multiply-add, for bfloat16 and float32 (the
    product q*s of a bfloat16 by itself might overflow).

    The sum of |y| and a negative remainder is rounded to that precision, as NumPy's is; from single precision to half or bfloat16 a second
    time, which changes nothing (24 >= 2 * 11 + 2 bits; Figueroa, "When is double rounding innocuous?", 1995).
    """

    def __init__(self, form: Format, floored: bool, processor: Processor):
        single = form.significand == 11 or (form.significand < 53 and processor.fused)
        self.form, self.floored, self.number = form, floored, FLOAT if single else DOUBLE
        self.reduction = Reduction(self.number, form.significand, processor)
        self.notes = INT32 if single else INT64

    def load(self, x: Lane) -> Lane:
        x = self.form.load(x)
        return x if x.type == self.number else x.extend(self.number)

    def store(self, r: Lane) -> Lane:
        stored = FLOAT if self.form.significand < 53 else DOUBLE
        return self.form.store(r if r.type == stored else r.narrow(stored))

    def prepare(self, y: Lane) -> tuple[Lane, Lane]:
        """What by one divisor need be computed but once: its reciprocal. (That of the largest numbers is subnormal, with two bits less, but
        their quotients are below 4.)"""
        return y, 1.0 / magnitude(self.load(y))

    def quotient(self, x: Lane, y: Lane, inverse: Lane | None) -> Lane:
        x = magnitude(self.load(x))
        return x / magnitude(self.load(y)) if inverse is None else x * inverse

    def remainder(self, x: Lane, y: Lane, inverse: Lane | None = None) -> Lane:
        q = round_to_integer(self.quotient(x, y, inverse))
        x, y = self.load(x), self.load(y)
        divisor, sign = magnitude(y), sign_of(y if self.floored else x)
        r = self.reduction.residual(magnitude(x), q, divisor)
        if self.floored:  # r, with the dividend's sign turned by the divisor's
            r = (r.as_bits() ^ sign_of(x) ^ sign).as_float(self.number)
        return self.store(with_sign(magnitude(self.completed(r, divisor)), sign))

    def completed(self, r: Lane, divisor: Lane) -> Lane:
        """A negative r is short by the divisor."""
        return where(r < 0.0, r + divisor, r)

    def note(self, x: Lane, y: Lane, *rest: Lane) -> Lane:
        """Counts the elements that are not served."""
        *inverse, notes = rest
        served = self.quotient(x, y, inverse[0] if inverse else None) < self.reduction.limit
        return notes + where(served, notes.constant(0), notes.constant(1))


class Single(Quick):
    """Of one element of single or double precision, in double, where more quotients are small enough; and without flags."""

    def __init__(self, form: Format, floored: bool, processor: Processor):
        super().__init__(form, floored, processor)
        self.number, self.reduction = DOUBLE, Reduction(DOUBLE, form.significand, processor)

    def quotient(self, x: Lane, y: Lane, inverse: Lane | None) -> Lane:
        """Below 1 it is 0, lest it underflow."""
        x, y = magnitude(self.load(x)), magnitude(self.load(y))
        return where(x < y, x.constant(0.0), x) / y

    def completed(self, r: Lane, divisor: Lane) -> Lane:
        """By a sum that does not overflow where it is not needed."""
        return r + where(r < 0.0, divisor, 0.0)

    def serves(self, x: Lane, y: Lane) -> Lane:
        """Whether x is finite, y normal, and the exponent of x not so much larger: so the quotient is below the limit."""
        fraction = self.form.significand - 1
        infinity, normal = ((1 << (x.bits - 1 - fraction)) - 1) << fraction, 1 << fraction
        x, y = magnitude(x).as_bits(), magnitude(y).as_bits()
        reach = minimum(y + (self.reduction.bits << fraction), y.constant(infinity))
        return (x < reach) & (y - normal < infinity - normal)


class Careful:
    """The remainder of any numbers, in double precision. All formats are exact there, and so is |y| - r rounded to double and then to
    single, half or bfloat16 (53 >= 2 * 24 + 2 bits)."""

    def __init__(self, form: Format, floored: bool, processor: Processor):
        self.form, self.floored = form, floored
        self.reduction = Reduction(DOUBLE, form.significand, processor)

    def load(self, x: Lane) -> Lane:
        return to_double(self.form.load(x))

    def start(self, x: Lane) -> Lane:
        return magnitude(self.load(x))

    def remainder(self, x: Lane, y: Lane) -> Lane:
        return self.finish(self.reduction.step(self.start(x), self.start(y)), x, y)

    def note(self, x: Lane, y: Lane, notes: Lane) -> Lane:
        """Counts invalid operations, and in the upper half quotients that are too large for one step."""
        x, y = self.start(x), self.start(y)
        unfinished = (x / y >= self.reduction.limit) & (x < INFINITY) & (y.constant(0.0) < y)
        return notes + (is_invalid(x, y).extend(notes.type) + (unfinished.extend(notes.type) << 32))

    def partial_step(self, r: Lane, y: Lane) -> Lane:
        """Of magnitudes, r mod s for s = y * 2**k, where k >= 0 puts the exponent of s `bits` below that of r (k = 0 where that of y is no
        further below), so that the quotient is small enough. Since y divides s, (r mod s) mod y = r mod y. A subnormal y is first made
        normal; 2**k comes in two factors, for it may exceed a double."""
        normal = where(y < TINY, y * 2.0**54, y)
        k = biased_exponent(r) - (normal.as_bits() >> 52) - self.reduction.bits
        k = maximum(k, k.constant(OFFSET - 54))
        half = k >> 1
        power = [((part - (OFFSET // 2 - 1023)) << 52).as_float(DOUBLE) for part in (half, k - half)]
        return self.reduction.step(r, maximum(y, normal * power[0] * power[1]))

    def is_left(self, r: Lane, y: Lane) -> Lane:
        """Whether r mod y takes more steps."""
        return (r >= y) & (r < INFINITY) & (y.constant(0.0) < y)

    def count_left(self, r: Lane, y: Lane, notes: Lane) -> Lane:
        """Counts what this partial step does not finish."""
        return notes + self.is_left(self.partial_step(r, y), y).extend(notes.type)

    def finish(self, r: Lane, x: Lane, y: Lane) -> Lane:
        """The remainder from r = |x| mod |y|: signs, then what IEEE 754 calls invalid, then NaN operands, kept with their payload."""
        x, y = self.load(x), self.load(y)
        if self.floored:
            differ = (sign_of(x) ^ sign_of(y)) == SIGN
            r = where((r == 0.0) | ~differ, r, magnitude(y) - r)
        result = with_sign(r, sign_of(y if self.floored else x)).as_bits()
        result = where(is_invalid(magnitude(x), magnitude(y)), result.constant(NOT_A_NUMBER), result)
        result = where(y.is_nan(), y.as_bits() | QUIET, result)
        number = where(x.is_nan(), x.as_bits() | QUIET, result).as_float(DOUBLE)
        return self.form.store(number if self.form.significand == 53 else number.narrow(FLOAT))


def biased_exponent(r: Lane) -> Lane:
    """The exponent as it is biased in a double, plus OFFSET; right for subnormal numbers too."""
    normal = (r * 2.0**54).as_bits() >> 52
    return where(r < TINY, normal - 54, r.as_bits() >> 52) + OFFSET


def is_invalid(x: Lane, y: Lane) -> Lane:
    """Of magnitudes: an infinite dividend or a zero divisor; what is wrong of a NaN is not wrong here."""
    return ((x == INFINITY) & ~y.is_nan()) | ((y == 0.0) & ~x.is_nan())
