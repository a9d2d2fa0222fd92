# mypy: ignore-errors
"""How the operands of `scatter_div` lie in memory, for its native entry: shapes and strides by address."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..kernels.primitives import WORD, inlined, read_word
from .objects import data_of, ndim_of, shape_of, strides_of, word_at

SEVERAL = -(1 << 63)  # in place of a stride: of several axes that are not one


@inlined
def step_of(shape, strides, axes, size):
    """The stride of the one axis that the first axes are, in row-major order (`size` if they have one element), or SEVERAL."""
    step, following, seen = size, 0, False
    for axis in range(axes - 1, -1, -1):
        length, stride = word_at(shape + 8 * axis), word_at(strides + 8 * axis)
        if length != 1:
            if not seen:
                step, seen = stride, True
            elif stride != following:
                return SEVERAL
            following = stride * length
    return step


@inlined
def before_run(shape, strides, others, axes):
    """How many of the axes come before the last ones that are one in both layouts."""
    following, other, seen = 0, 0, False
    for axis in range(axes - 1, -1, -1):
        length, stride, beside = word_at(shape + 8 * axis), word_at(strides + 8 * axis), word_at(others + 8 * axis)
        if length != 1:
            if seen and (stride != following or beside != other):
                return axis + 1
            following, other, seen = stride * length, beside * length, True
    return 0


@inlined
def offset(number, shape, strides, axes):
    """Of the element of that number, in row-major order."""
    place = 0
    for axis in range(axes - 1, -1, -1):
        length = word_at(shape + 8 * axis)
        place += number % length * word_at(strides + 8 * axis)
        number //= length
    return place


@inlined
def are_apart(shape, strides, axes, size):
    """Whether each axis steps over all that the shorter strides span, so that no two elements share memory."""
    extent, seen = size, 0
    for _ in range(axes):
        next, least = 0, 0
        for axis in range(axes):
            stride = abs(word_at(strides + 8 * axis))
            if (seen >> axis) & 1 == 0 and ((seen >> next) & 1 or stride < least or axis == 0):
                next, least = axis, stride
        seen |= 1 << next
        length = word_at(shape + 8 * next)
        if length > 1:
            if least < extent:
                return False
            extent += least * (length - 1)
    return True


@inlined
def low(x):
    """Where its memory begins."""
    start, shape, strides = data_of(x), shape_of(x), strides_of(x)
    for axis in range(ndim_of(x)):
        start += min(word_at(strides + 8 * axis), 0) * (word_at(shape + 8 * axis) - 1)
    return start


@inlined
def high(x, size):
    """And where it ends."""
    start, shape, strides = data_of(x), shape_of(x), strides_of(x)
    for axis in range(ndim_of(x)):
        start += max(word_at(strides + 8 * axis), 0) * (word_at(shape + 8 * axis) - 1)
    return start + size


def turner(size):
    """An intrinsic (address) that turns the bytes of a word of that size around."""

    def generate(context, builder, signature, values):
        place = builder.inttoptr(values[0], ir.IntType(8 * size).as_pointer())
        builder.store(builder.bswap(builder.load(place, align=1)), place, align=1)
        return context.get_dummy_value()

    return intrinsic(lambda typing, place: (types.none(WORD), generate))


turn_2, turn_4, turn_8 = turner(2), turner(4), turner(8)


@inlined
def turn_row(start, table, runs, length, step, size):
    """Turn the bytes of every element of a row, whose runs begin where the table says."""
    for r in range(runs):
        place = start + read_word(table, 16 * r)
        for _ in range(length):
            if size == 8:
                turn_8(place)
            elif size == 4:
                turn_4(place)
            else:
                turn_2(place)
            place += step
