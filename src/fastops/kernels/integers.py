"""The two remainders of integers: formulas on SIMD lanes, each with the argument why it is exact.

SIMD units do not divide integers, so a quotient q near x / y is had otherwise: by a floating-point reciprocal, by a multiply-high, or bit
by bit. Integer arithmetic is modulo 2**bits, so x - q*y is right if it fits, however large the product. D is the magnitude of the divisor,
as an unsigned integer; a zero divisor is replaced by 1, whose remainder is the wanted 0.
"""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ir

from .lanes import (
    DOUBLE,
    FLOAT,
    INT16,
    INT32,
    MAGIC,
    MAGIC_BITS,
    Lane,
    Processor,
    absolute,
    integer_part,
    maximum,
    minimum,
    multiply_add,
    negated_where,
    saturating_double,
    where,
)

LOWER_HALF = (1 << 32) - 1
SHRINK = {FLOAT: 1 - 2.0**-21, DOUBLE: 1 - 2.0**-50}  # more than all roundings on the way to a quotient together: at most five


def divisor_magnitude(y: Lane, signed: bool) -> Lane:
    return maximum(absolute(y) if signed else y, y.constant(1))


def into_range(r: Lane, divisor: Lane) -> Lane:
    """r, in (-D, D) as a signed number, to [0, D): of r and r + D, read as unsigned, the smaller is the one that is not negative."""
    return minimum(r, r + divisor)


def signed_remainder(floored: bool, r: Lane, x: Lane, y: Lane, divisor: Lane) -> Lane:
    """The remainder from any r with r = x modulo D and |r| < D: the one in [0, D), if its sign is that of the divisor (floored) or of the
    dividend (truncated); otherwise the same with all signs turned. MIN by -1 is 0, for nothing overflows that is not modulo 2**bits."""
    turned = (y if floored else x).is_negative()
    return negated_where(turned, into_range(negated_where(turned, r), divisor))


def with_signs(floored: bool, r: Lane, x: Lane, y: Lane, divisor: Lane) -> Lane:
    """The same from r = |x| mod D."""
    if not floored:
        return negated_where(x.is_negative(), r)
    return negated_where(y.is_negative(), into_range(negated_where((x ^ y).is_negative(), r), divisor))


# --- 8 bits by 8 bits: the school's long division ---
def bit_by_bit(x: Lane, y: Lane, bits: int) -> Lane:
    """x mod y for x < 2**bits, y >= 1: of r and r - y * 2**k, modulo 2**8 and unsigned, the smaller is the rest, from the highest k down.
    Multiples of y that overflow are taken as 255, which is larger than any x here; so they change nothing."""
    multiples = [y]
    for _ in range(bits - 1):
        multiples.append(saturating_double(multiples[-1]))
    for multiple in reversed(multiples):
        x = minimum(x, x - multiple)
    return x


def byte_remainder(x: Lane, y: Lane) -> Lane:
    """Of unsigned bytes, the last bit by itself, since 255 must not occur: 2 * r + 1 < 256 for r < 128."""
    y = divisor_magnitude(y, signed=False)
    r = bit_by_bit(x >> 1, y, 7)
    r = r + r + (x & 1)
    return minimum(r, r - y)


def signed_byte_remainder(floored: bool, x: Lane, y: Lane) -> Lane:
    """By magnitudes, up to 128."""
    divisor = divisor_magnitude(y, signed=True)
    return with_signs(floored, bit_by_bit(absolute(x), divisor, 8), x, y, divisor)


# --- 16 to 64 bits: a reciprocal in floating point ---
def to_float(x: Lane, number: ir.Type, signed: bool) -> Lane:
    """The number of an integer, rounded to single or double precision."""
    return x.extend(INT32, signed).to_float(number, signed=True) if x.bits == 16 else x.to_float(number, signed)


def to_integer(q: Lane, bits: int, signed: bool) -> Lane:
    """A number rounded to an integer, towards zero."""
    return q.to_integer(max(bits, 32), signed).low_bits(bits)


def centred(x: Lane, divisor: Lane, processor: Processor) -> Lane:
    """r = x modulo D of signed integers, |r| < D.

    16 bits: q is x times the reciprocal in single precision, to the nearest integer: within 1/2 + 2**-4 of x / D. 32 bits: a first
    quotient, which errs by less than 1 + 2**11 / D and towards zero, leaves |r| < D + 2**11, and no more than |x|, so that it fits; the
    second is then within 1/2 + 2**-8. 64 bits go the same way in double precision, with 2**14 for 2**11.
    A divisor of 2**(bits - 1) is negative as a signed number, and so is its quotient; but modulo 2**bits, their product is the same.
    """
    number = FLOAT if x.bits <= 32 else DOUBLE
    inverse = SHRINK[number] / to_float(divisor, number, signed=x.bits > 16)
    if x.bits > 16:
        x = x - to_integer(to_float(x, number, signed=True) * inverse, x.bits, signed=True) * divisor
    nearest = multiply_add(processor, to_float(x, number, signed=True), inverse, inverse.constant(MAGIC[number])).as_bits()
    return x - (nearest - MAGIC_BITS[number]).low_bits(x.bits) * divisor


def from_below(x: Lane, divisor: Lane, processor: Processor) -> Lane:
    """x mod D of unsigned integers.

    The reciprocal is made too small by more than all roundings, so a quotient q is never too large and x - q * D never negative. One step
    in single precision for 16 bits, or in double for 32, leaves less than 2 * D. Otherwise a first step leaves less than 2 * D + 2**13 (32
    bits, single precision) or 2 * D + 2**15 (64 bits, double), and a second one less than 2 * D. Then of r and r - D, modulo 2**bits, the
    smaller is in [0, D).
    """
    single = x.bits == 16 or (x.bits == 32 and processor.wide)
    number = FLOAT if single else DOUBLE
    inverse = SHRINK[number] / to_float(divisor, number, signed=False)
    for _ in range(1 if x.bits == 16 or (x.bits == 32 and not single) else 2):
        x = x - to_integer(to_float(x, number, signed=False) * inverse, x.bits, signed=False) * divisor
    return minimum(x, x - divisor)


# --- 64 bits where they do not convert to double precision in one instruction: long division again, by digits of 32 bits ---
def by_halves(x: Lane, divisor: Lane, processor: Processor) -> tuple[Lane, Lane]:
    """floor(x / D) and x mod D of unsigned integers: r = h mod D of the upper half h of x, then v mod D of v = r * 2**32 + the lower half.
    Both quotients are below 2**32: the second one since r is less than D, or all of v is x, where D is 2**32 and more.

    The reciprocal is too small by more than all roundings, as in `from_below`; but by less than 2**-49, so quotients err by less than
    2**-17. The first one is rounded to the nearest integer. Where it is not 0, D is below 2**33, and a double, and so are its product with
    the quotient, which is at most h + D, and r, which if negative is short by D. The second one less 1/2, rounded to the nearest, is never
    too large, and too small by less than 1 + 2**-17: what is left is less than 2 * D. Quotients and r stand in the lowest bits of sums with
    a number that has none of them.
    """
    number = to_float(divisor, DOUBLE, signed=False)
    inverse = SHRINK[DOUBLE] / number
    magic = inverse.constant(MAGIC[DOUBLE])
    high, low = (((half + MAGIC_BITS[DOUBLE]).as_float(DOUBLE) - magic) for half in (x >> 32, x & LOWER_HALF))
    first = multiply_add(processor, high, inverse, magic)
    r = multiply_add(processor, magic - first, number, high)
    is_short = r < 0.0
    r = r + where(is_short, number, 0.0)
    second = multiply_add(processor, multiply_add(processor, r, r.constant(2.0**32), low), inverse, r.constant(-0.5)) + magic
    rest = ((r + magic).as_bits() << 32 | (x & LOWER_HALF)) - (second.as_bits() & LOWER_HALF) * divisor
    quotient = ((first.as_bits() - where(is_short, x.constant(1), 0)) << 32) + (second.as_bits() & LOWER_HALF)
    return quotient + where(rest < divisor, x.constant(0), 1), minimum(rest, rest - divisor)


# --- by the quotient in floating point: short numbers, whose remainders a float holds ---
SHORT = {FLOAT: 22, DOUBLE: 51}  # bits of a magnitude; one less where a reciprocal takes the place of the division


def note_bits(signed: bool, bits: int, x: Lane, y: Lane, notes: Lane) -> Lane:
    """Collects the bits of the operands, signed ones shifted to begin at 0, and the top bit for a divisor of 0."""
    x, y_bits = (x + (1 << bits), y + (1 << bits)) if signed else (x, y)
    return notes | x | where(y == 0, y.constant(1 << (y.bits - 1)), y_bits)


def are_short(signed: bool, bits: int, notes: Lane) -> Lane:
    """Whether all operands whose bits were noted have magnitudes of so many bits, and no divisor is 0."""
    return notes < 1 << (bits + signed)


def to_number(x: Lane, number: ir.Type, signed: bool, processor: Processor) -> Lane:
    """A short integer, exactly."""
    if number == DOUBLE and not processor.wide:
        return (x + MAGIC_BITS[DOUBLE]).as_float(DOUBLE) - MAGIC[DOUBLE]
    return x.to_float(number, signed=signed or number == FLOAT)


def from_number(x: Lane, bits: int, signed: bool, processor: Processor) -> Lane:
    if bits == 64 and not processor.wide:
        return (x + MAGIC[DOUBLE]).as_bits() - MAGIC_BITS[DOUBLE]
    return x.to_integer(max(bits, 32), signed=signed or bits < 64).low_bits(bits)


def by_quotient(floored: bool, signed: bool, number: ir.Type, processor: Processor, x: Lane, y: Lane, inverse: Lane | None = None) -> Lane:
    """The remainder of short integers, y not 0, by a division of floats, of which single precision has 24 bits. (Double has 53.)

    Between x / y and its rounded quotient there is no integer: if k were one, they would differ by at least |x / y - k| >= 1 / |y|, but a
    quotient that is rounded as far as k errs by at most |k| / 2**24, and |k * y| <= |x| + |y| is below 2**24. So the integer part is that
    of x / y, and its product with y and the remainder are integers that a float holds. (16 bits are always short.)

    The product with a reciprocal that is 1 + 2**-22 too large has two more roundings: it is too large by a factor between 1 and
    1 + 1.6 / 2**22, and errs by less than 1 / |y| for |x| <= 2**21. So its integer part is that of x / y too, but for one case: if it is
    rounded down from a negative integer, that is taken for the next one, which leaves y for 0.
    """
    bits = x.bits
    if bits == 16:
        x, y = x.extend(INT32, signed), y.extend(INT32, signed)
    x, y = (to_number(operand, number, signed, processor) for operand in (x, y))
    quotient = x / y if inverse is None else x * inverse
    r = multiply_add(processor, -integer_part(quotient, floored), y, x)
    if floored and signed and inverse is not None:
        r = where(r == y, r.constant(0.0), r)
    return from_number(r, bits, signed, processor)


def prepare_reciprocal(signed: bool, number: ir.Type, processor: Processor, y: Lane) -> tuple[Lane, Lane]:
    """The divisor, and its reciprocal, which is a little too large."""
    return y, (1 + 2.0 ** -SHORT[number]) / to_number(y, number, signed, processor)


def prepare_in_doubles(signed: bool, processor: Processor, y: Lane) -> tuple[Lane, Lane]:
    """The divisor, and its reciprocal."""
    return y, 1.0 / to_number(where(y == 0, y.constant(1), y), DOUBLE, signed, processor)


def in_doubles(floored: bool, signed: bool, processor: Processor, x: Lane, y: Lane, inverse: Lane | None = None) -> Lane:
    """The remainder of short 64-bit integers without rounding to integers, or by a reciprocal. The quotient (by 1 exact, else below 2**50
    and with two roundings at most) is within 1/4 of x / y, and so 3/4 when it is rounded to an integer. Its product with y is an integer
    below 2**52, which a double holds, and |r| < |y|. Then signs as in `signed_remainder`."""
    x, y = (to_number(operand, DOUBLE, signed, processor) for operand in (x, where(y == 0, y.constant(1), y)))
    quotient = x / y if inverse is None else x * inverse
    q = (quotient + MAGIC[DOUBLE]) - MAGIC[DOUBLE]
    sign = (y if floored else x).as_bits() & (1 << 63)
    r = (multiply_add(processor, -q, y, x).as_bits() ^ sign).as_float(DOUBLE)
    r = where(r < 0.0, r + (y.as_bits() & ((1 << 63) - 1)).as_float(DOUBLE), r)
    return from_number((r.as_bits() ^ sign).as_float(DOUBLE), 64, signed, processor)


# --- by one divisor: what depends on it alone is computed once ---
def high_product(x: Lane, y: Lane) -> Lane:
    """The upper half of the product of two unsigned integers."""
    wide = ir.IntType(2 * x.bits)
    return ((x.extend(wide) * y.extend(wide)) >> x.bits).narrow(x.type)


def prepare_unsigned(y: Lane) -> tuple[Lane, Lane]:
    """D, and floor((2**bits - 1) / D)."""
    divisor = divisor_magnitude(y, signed=False)
    return divisor, divisor.constant(2**divisor.bits - 1) / divisor


def by_multiplier(x: Lane, divisor: Lane, multiplier: Lane) -> Lane:
    """x mod D of unsigned integers. D * multiplier is above 2**bits - D - 1, so x * multiplier / 2**bits is too small by less than 1, and
    its floor by at most 1: x - q * D is in [0, 2 * D)."""
    r = x - high_product(x, multiplier) * divisor
    return minimum(r, r - divisor)


def rounded_product(x: Lane, y: Lane) -> Lane:
    """x * y / 2**15 of signed 16-bit integers, to the nearest."""
    product = x.extend(INT32, signed=True) * y.extend(INT32, signed=True)
    return ((product.shift_signed(14) + 1).shift_signed(1)).narrow(INT16)


def prepare_signed(y: Lane) -> tuple[Lane, Lane, Lane, Lane]:
    """D, 2**15 / D to the nearest, a mask that is 0 for D = 1, and what a floored remainder other than 0 lacks."""
    divisor = divisor_magnitude(y, signed=True)
    multiplier = ((divisor.extend(INT32).constant(1 << 16) / divisor.extend(INT32) + 1) >> 1).narrow(INT16)
    mask = where(divisor == 1, y.constant(0), y.constant(-1))
    return divisor, multiplier, mask, where(y.is_negative(), y, y.constant(0))


def by_signed_multiplier(floored: bool, x: Lane, divisor: Lane, multiplier: Lane, mask: Lane, lack: Lane) -> Lane:
    """The remainder of signed 16-bit integers. The multiplier errs by less than 1/2 (by nothing, if D is a power of two), the quotient by
    as much for the largest x, and its rounding by 1/2 again: |r| < D. Only 2**15 / 1 does not fit: there the mask gives the 0."""
    r = x - rounded_product(x, multiplier) * divisor
    if not floored:
        turned = x.is_negative()
        return negated_where(turned, into_range(negated_where(turned, r), divisor) & mask)
    r = into_range(r, divisor) & mask
    return r + where(r == 0, r.constant(0), lack)


# --- one element: the processor's division is faster than to set up a loop ---
def single_remainder(floored: bool, signed: bool, x: Lane, y: Lane, quotient: Callable[[Lane, Lane], Lane] | None = None) -> Lane:
    """By 0 and, of signed integers, by -1 the remainder is 0, as it is by 1; so no division overflows. `quotient`: of a division that takes
    the place of the processor's, toward zero as well."""
    divisor = where(y + 1 < 2, y.constant(1), y) if signed else maximum(y, y.constant(1))
    r = x - quotient(x, divisor) * divisor if quotient else x.rest(divisor, signed)
    if floored and signed:
        r = where((r ^ divisor).is_negative() & ~(r == 0), r + divisor, r)
    return r
