"""Division, as `scatter_div` needs it: of integers toward zero, of floats by IEEE 754, rounded to the dtype at each step.

For each dtype there is a formula for SIMD lanes and one for a single element, for which the processor's own division may be the faster
one. `note` says what is to be remembered of a quotient: that a 16-bit format overflowed or underflowed, which the processor's flags do not
tell where bits are rounded by integer arithmetic. Divisors of integers are not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import llvmlite.ir as ir

from .integers import SHORT, SHRINK, by_halves, from_number, to_float, to_integer, to_number
from .lanes import (
    DOUBLE,
    FLOAT,
    INT32,
    Lane,
    Processor,
    absolute,
    bfloat16_to_float,
    float_to_bfloat16,
    float_to_half,
    half_to_float,
    integer_part,
    negated_where,
    where,
)

RAISED_DIVIDE, RAISED_OVERFLOW, RAISED_UNDERFLOW, RAISED_INVALID = 1, 2, 4, 8  # NumPy's numbers, on every processor
INFINITY = 0x7F800000  # of single precision

Formula = Callable[[Lane, Lane], Lane]
Note = Callable[[Lane, Lane, Lane], Lane]


class Division(NamedTuple):
    """A dtype's storage and formulas: x, y -> x / y in lanes and for one element, and x, y, notes -> notes. `short`: of numbers that leave
    those notes as they are, a quicker formula. `width`: see `Elementwise`."""

    kind: ir.Type
    lanes: Formula
    single: Formula
    note: Note | None = None
    short: tuple[Note, Formula] | None = None
    width: int = 0


def of_dtype(dtype: str, processor: Processor) -> Division:
    if dtype in ("float64", "float32"):
        return Division({"float64": DOUBLE, "float32": FLOAT}[dtype], Lane.__truediv__, Lane.__truediv__)
    if dtype == "float16":
        return _short(
            partial(half_to_float, native=processor.half), partial(float_to_half, native=processor.half), processor.half, 0x477FF000, 113
        )
    if dtype == "bfloat16":
        return _short(bfloat16_to_float, float_to_bfloat16, False, 0x7F7F8000, 1)
    kind, signed = ir.IntType(int(dtype.lstrip("uint"))), not dtype.startswith("u")
    single = single_signed if signed else single_unsigned
    if kind.width < 64:
        return Division(kind, partial(in_floats, processor, signed), single)
    lanes = partial(signed_in_two_steps if signed else in_two_steps, processor)
    return Division(kind, lanes, single, short=(partial(note_long, signed), partial(in_doubles, processor, signed)))


# --- integers -----------------------------------------------------------------------------------------------------------------------------
def in_floats(processor: Processor, signed: bool, x: Lane, y: Lane) -> Lane:
    """x / y toward zero, of up to 32 bits, by a division in floating point. Above a whole number below m, x / y is at most m - 1 / y, and
    m * y <= x + y stays so far below 2**53 (2**24 for 16 bits) that the quotient is not rounded up to m; nor for any other signs.

    MIN / -1, which is no number of the dtype, is MIN."""
    bits, number = x.bits, FLOAT if x.bits <= 16 else DOUBLE
    if bits == 32 and not signed:
        quotient = x.to_float(number) / y.to_float(number)
        if processor.rounds:
            return (integer_part(quotient, floored=True) + 2.0**52).as_bits().low_bits(32)
        return quotient.to_integer(64, signed=True).low_bits(32)
    wide, divisor = (operand if bits == 32 else operand.extend(INT32, signed) for operand in (x, y))
    quotient = (wide.to_float(number, signed=True) / divisor.to_float(number, signed=True)).to_integer(32, signed=True)
    return where(y == -1, -x, quotient) if bits == 32 else quotient.low_bits(bits)


def note_long(signed: bool, x: Lane, y: Lane, notes: Lane) -> Lane:
    """Other bits than those of a number up to 2**51 in magnitude."""
    least = 1 << SHORT[DOUBLE] if signed else 0
    return notes | (((x + least) | (y + least)) >> SHORT[DOUBLE] + signed)


def in_doubles(processor: Processor, signed: bool, x: Lane, y: Lane) -> Lane:
    """x / y toward zero of 64 bits, as `in_floats`, for numbers that `note_long` does not note."""
    quotient = to_number(x, DOUBLE, signed, processor) / to_number(y, DOUBLE, signed, processor)
    if processor.rounds:
        return from_number(integer_part(quotient, floored=False), 64, signed, processor)
    return quotient.to_integer(64, signed=True)


def in_two_steps(processor: Processor, x: Lane, y: Lane) -> Lane:
    """floor(x / y) of 64 bits, by halves or as `integers.from_below`: no quotient is too large, what is left is less than 2 * y, and maybe
    there is one more in it."""
    if not processor.wide:
        return by_halves(x, y, processor)[0]
    inverse = SHRINK[DOUBLE] / to_float(y, DOUBLE, signed=False)
    total = x.constant(0)
    for _ in range(2):
        quotient = to_integer(to_float(x, DOUBLE, signed=False) * inverse, 64, signed=False)
        x, total = x - quotient * y, total + quotient
    return total + where(x < y, x.constant(0), 1)


def signed_in_two_steps(processor: Processor, x: Lane, y: Lane) -> Lane:
    """By the magnitudes: MIN is its own, read as unsigned, and so is MIN / -1."""
    return negated_where((x ^ y).is_negative(), in_two_steps(processor, absolute(x), absolute(y)))


def single_signed(x: Lane, y: Lane) -> Lane:
    """By the processor's instruction, which traps for MIN / -1, and for the 0 that another thread may have written since the check."""
    negated = y == -1
    return where(negated, -x, x.over(where(negated | (y == 0), y.constant(1), y)))


def single_unsigned(x: Lane, y: Lane) -> Lane:
    return x / where(y == 0, y.constant(1), y)


# --- half precision and bfloat16 ----------------------------------------------------------------------------------------------------------
# Both divide in single precision and round once more, which is correctly rounded. Halfway between two neighbours lies a number m of p + 1
# bits (p = 11 or 8): a quotient that is one is exact in single precision, and the tie goes to even. Any other quotient X / Y of p-bit
# integers (times powers of two) lies at least 2**-p of half a unit away from m, for X - m * Y is not zero. Single precision has 13 or 16
# bits more than the format, among the subnormals of bfloat16 too (their unit is 2**-133, single precision's 2**-149): its own rounding
# is too small to reach m.
def _short(widen: Callable[[Lane], Lane], narrow: Callable[[Lane], Lane], flagged: bool, overflowing: int, exponent: int) -> Division:
    """A 16-bit format whose results are infinite from a magnitude with the bits `overflowing` on, and normal from that exponent on.
    `flagged`: the processor narrows, and raises its flags."""
    smallest_normal = exponent << 23

    def quotient(x: Lane, y: Lane) -> Lane:
        x, y = widen(x), widen(y)
        if flagged:
            # LLVM would divide halves, and where it fills four of them up to eight, the others' 0 / 0 raises the invalid flag. That these
            # bits are 0 anyway it does not know.
            y = (y.as_bits() & -0x2000).as_float(FLOAT)
        return x / y

    def note(x: Lane, y: Lane, notes: Lane) -> Lane:
        exact = quotient(x, y).as_bits() & 0x7FFFFFFF
        rounded = widen(narrow(quotient(x, y))).as_bits() & 0x7FFFFFFF
        overflow = (exact - overflowing) < INFINITY - overflowing
        underflow = (exact < smallest_normal) & ~(exact == rounded)
        return notes | where(overflow, exact.constant(RAISED_OVERFLOW), where(underflow, exact.constant(RAISED_UNDERFLOW), 0))

    def divide(x: Lane, y: Lane) -> Lane:
        return narrow(quotient(x, y))

    return Division(ir.IntType(16), divide, divide, None if flagged else note, width=8 if flagged else 0)
