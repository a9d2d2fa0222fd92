# mypy: disable-error-code="name-defined, no-untyped-def, no-untyped-call, call-arg, var-annotated"
# ruff: noqa: F821  (the names of the template are bound when it is compiled)
"""Division of rows in a given order: one formula for each of the twelve dtypes, and one template that walks the rows.

Formulas have two steps, `quotient` and `rounded`, and `note` says what is to be remembered of a quotient: that a 16-bit format overflowed
or underflowed, which the processor's flags do not tell where bits are rounded by integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numba import types

from .lanes import (
    DOUBLE,
    FLOAT,
    Lane,
    absolute,
    bfloat16_to_float,
    float_to_bfloat16,
    float_to_half,
    half_to_float,
    negated_where,
    operation,
    where,
)
from .primitives import (
    ALL_FLAGS,
    DIVIDE,
    INVALID,
    OVERFLOW,
    UNDERFLOW,
    default_control,
    pointer,
    reader,
    restore_control,
    restore_flags,
    save_flags,
    writer,
)

INDEX_OUTSIDE, ZERO_DIVISOR = -1, -2  # what the template returns instead of flags when it refuses to begin
RAISED_DIVIDE, RAISED_OVERFLOW, RAISED_UNDERFLOW, RAISED_INVALID = 1, 2, 4, 8  # its flags: NumPy's numbers, on every processor
HEAD = 12  # words before the offsets of the runs


def divide_rows(words):
    """input_x[indices[k]] /= updates[k] for k = 0, 1, …, once every index and every integer divisor was seen to be right.

    A row is a stack of equal runs, whose offsets from the row's beginning, in input_x and in updates, follow the head of `words`.
    """
    indices, narrow, count, rows, runs, length = words[0], words[1], words[2], words[3], words[4], words[5]
    x, row_x, step_x = words[6], words[7], words[8]
    u, row_u, step_u = words[9], words[10], words[11]

    place, found = pointer(indices), numpy.uint32(0)
    if narrow:
        limit = numpy.uint32(min(rows, 1 << 31))
        for k in range(count):
            found = note_outside_32(read_32(place, k * 4), limit, found)
    else:
        limit_64, found_64 = numpy.uint64(rows), numpy.uint64(0)
        for k in range(count):
            found_64 = note_outside_64(read_64(place, k * 8), limit_64, found_64)
        found |= numpy.uint32(found_64)
    if found:
        return INDEX_OUTSIDE

    if INTEGER:
        repeat, span = count, length
        if runs == 1 and row_u == length * step_u:  # rows that follow one another are one long run
            repeat, span = 1, count * length
        zeros = no_zero
        for k in range(repeat):
            for r in range(runs):
                b = pointer(u + k * row_u + words[HEAD + 2 * r + 1])
                if step_u == SIZE:
                    for j in range(span):
                        zeros = note_zero(read(b, j * SIZE), zeros)
                else:
                    for j in range(span):
                        zeros = note_zero(read(b, j * step_u), zeros)
        if zeros:
            return ZERO_DIVISOR

    state, control = save_flags(), default_control()
    restore_flags(save_flags() & ~numpy.uint32(ALL_FLAGS))
    notes = numpy.uint32(0)
    if runs == 1 and length == 1:
        a, b = pointer(x + words[HEAD]), pointer(u + words[HEAD + 1])
        for k in range(count):
            row = numpy.intp(read_32_signed(place, k * 4)) if narrow else numpy.intp(read_64_signed(place, k * 8))
            q = quotient(read(a, row * row_x), read(b, k * row_u))
            write(a, row * row_x, rounded(q))
            notes = note(q, notes)
    else:
        contiguous = step_x == SIZE and step_u == SIZE
        for k in range(count):
            row = numpy.intp(read_32_signed(place, k * 4)) if narrow else numpy.intp(read_64_signed(place, k * 8))
            for r in range(runs):
                a, b = pointer(x + row * row_x + words[HEAD + 2 * r]), pointer(u + k * row_u + words[HEAD + 2 * r + 1])
                if contiguous:
                    for j in range(length):
                        q = quotient(read(a, j * SIZE), read(b, j * SIZE))
                        write(a, j * SIZE, rounded(q))
                        notes = note(q, notes)
                else:
                    for j in range(length):
                        q = quotient(read(a, j * step_x), read(b, j * step_u))
                        write(a, j * step_x, rounded(q))
                        notes = note(q, notes)
    flags = save_flags()
    restore_control(control)
    restore_flags(state)
    raised = numpy.intp(notes)
    if not INTEGER:  # conversions of integers may raise false ones
        raised |= RAISED_DIVIDE if flags & DIVIDE else 0
        raised |= RAISED_OVERFLOW if flags & OVERFLOW else 0
        raised |= RAISED_UNDERFLOW if flags & UNDERFLOW else 0
        raised |= RAISED_INVALID if flags & INVALID else 0
    return raised


# --- integers -----------------------------------------------------------------------------------------------------------------------------
def unsigned_quotient(x: Lane, y: Lane) -> Lane:
    """floor(x / y) for y >= 1. Up to 32 bits in floating point, which has SIMD lanes for it: below a whole number m, x / y is at most
    m - 1 / y, and m * y <= x + y stays so far below 2**53 (2**24 for 16 bits) that the quotient is not rounded up to m."""
    if x.bits == 64:
        return x / y
    number = FLOAT if x.bits <= 16 else DOUBLE
    return (x.to_float(number) / y.to_float(number)).to_integer(x.bits)


def signed_quotient(x: Lane, y: Lane) -> Lane:
    """x / y toward zero. MIN is its own magnitude as an unsigned integer, and so is MIN / -1: no trap."""
    return negated_where((x ^ y).is_negative(), unsigned_quotient(absolute(x), absolute(y)))


# --- half precision and bfloat16 ----------------------------------------------------------------------------------------------------------
# Both divide in single precision and round once more, which is correctly rounded. Halfway between two neighbours lies a number m of p + 1
# bits (p = 11 or 8): a quotient that is one is exact in single precision, and the tie goes to even. Any other quotient X / Y of p-bit
# integers (times powers of two) lies at least 2**-p of half a unit away from m, for X - m * Y is not zero. Single precision has 13 or 16
# bits more than the format, among the subnormals of bfloat16 too (their unit is 2**-133, single precision's 2**-149): its own rounding
# is too small to reach m.
INFINITY = 0x7F800000


def short_formulas(dtype: str, half: bool) -> tuple[Callable[..., Lane], Callable[..., Lane], Callable[..., Lane]]:
    """`quotient`, `rounded` and `note` of a 16-bit format; `half`: the processor converts half precision."""
    if dtype == "float16":
        smallest_normal = (127 - 14) << 23

        def widen(x: Lane) -> Lane:
            return half_to_float(x, half)

        def rounded(q: Lane) -> Lane:
            return float_to_half(q, half)
    else:
        smallest_normal = 1 << 23

        def widen(x: Lane) -> Lane:
            return bfloat16_to_float(x)

        def rounded(q: Lane) -> Lane:
            return float_to_bfloat16(q)

    def note(q: Lane, notes: Lane) -> Lane:
        exact, result = q.as_bits() & 0x7FFFFFFF, widen(rounded(q)).as_bits() & 0x7FFFFFFF
        overflow = (result == INFINITY) & (exact < INFINITY)
        underflow = (exact < smallest_normal) & ~(exact == result)
        raised = where(overflow, notes.constant(RAISED_OVERFLOW), where(underflow, notes.constant(RAISED_UNDERFLOW), 0))
        return notes | raised

    return (lambda x, y: widen(x) / widen(y)), rounded, note


# --- what the template is made of ---------------------------------------------------------------------------------------------------------
def note_outside(index: Lane, limit: Lane, found: Lane) -> Lane:
    """A negative index is a huge unsigned one."""
    return found | where(index < limit, index.constant(0), 1)


def note_zero(y: Lane, found: Lane) -> Lane:
    return found | where(y == 0, y.constant(1), 0)


def names(dtype: str, half: bool) -> dict[str, Any]:
    """The names in `divide_rows` for one dtype; `half`: the processor converts half precision."""
    integer = "int" in dtype
    if integer:
        kind = wide = getattr(types, dtype.lstrip("u").replace("int", "uint"))
    else:
        kind = {"float64": types.float64, "float32": types.float32}.get(dtype, types.uint16)
        wide = types.float64 if dtype == "float64" else types.float32
    quotient: Callable[..., Lane] = signed_quotient if dtype.startswith("int") else unsigned_quotient if integer else Lane.__truediv__
    rounded: Callable[..., Lane] = lambda q: q  # noqa: E731
    note: Callable[..., Lane] = lambda q, notes: notes  # noqa: E731
    if dtype in ("float16", "bfloat16"):
        quotient, rounded, note = short_formulas(dtype, half)
    word, double_word = types.uint32, types.uint64
    return {
        "INTEGER": integer,
        "SIZE": kind.bitwidth // 8,
        "read": reader(kind),
        "write": writer(kind),
        "quotient": operation(quotient, wide, kind, kind),
        "rounded": operation(rounded, kind, wide),
        "note": operation(note, word, wide, word),
        "note_zero": operation(note_zero, kind, kind, kind) if integer else None,
        "no_zero": numpy.dtype(kind.name).type(0),
        "read_32": reader(word),
        "read_64": reader(double_word),
        "read_32_signed": reader(types.int32),
        "read_64_signed": reader(types.int64),
        "note_outside_32": operation(note_outside, word, word, word, word),
        "note_outside_64": operation(note_outside, double_word, double_word, double_word, double_word),
    }
