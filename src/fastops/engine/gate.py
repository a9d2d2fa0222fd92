# mypy: ignore-errors
"""The native entry of a ufunc-like object: the checks of a `__call__` for plain small operands, as machine code.

It is a `vectorcallfunc` of CPython. Objects come as addresses, borrowed; what the function called in the end returns, the caller is given:
a new reference, or null with an exception set.
"""

import llvmlite.ir as ir
from numba import njit, types
from numba.extending import intrinsic

from ..kernels.primitives import WORD, pointer, reader
from .operands import PLAIN_NUMBERS
from .vectorcall import HEAD, Array, Dtype, Gate

SIGNATURE = WORD(WORD, WORD, WORD, WORD)
ROOM = 0  # where in the object its room begins: given when this is compiled
TYPE, LENGTH, ITEMS = HEAD - 8, HEAD, tuple.__basicsize__
NDIM, SHAPE, DTYPE, NUM = Array.ndim.offset, Array.shape.offset, Array.dtype.offset, Dtype.num.offset
VECTORCALL, PLAIN, OTHER, LARGE = Gate.vectorcall.offset, Gate.plain.offset, Gate.other.offset, Gate.large.offset
USER_NUM, OUT, NONE, NDARRAY, SCALARS = (field.offset for field in (Gate.user_num, Gate.out, Gate.none, Gate.ndarray, Gate.scalars))
NUMBERS = sum(1 << number for number in PLAIN_NUMBERS)  # as bits
read_int = reader(types.int32)


@intrinsic
def vectorcall(typing, function, callable, arguments, count, keywords):
    """Call PyObject_Vectorcall at the address `function`."""

    def generate(context, builder, signature, values):
        word = ir.IntType(WORD.bitwidth)
        return builder.call(builder.inttoptr(values[0], ir.FunctionType(word, [word] * 4).as_pointer()), values[1:])

    return WORD(WORD, WORD, WORD, WORD, WORD), generate


@intrinsic
def at(typing, place, offset):
    """The word in memory. (An intrinsic, for Numba would compile a function anew for every constant offset.)"""

    def generate(context, builder, signature, values):
        word = ir.IntType(WORD.bitwidth)
        return builder.load(builder.inttoptr(builder.add(values[0], values[1]), word.as_pointer()))

    return WORD(WORD, WORD), generate


@njit(forceinline=True)
def size(gate, x):
    """The number of elements of a plain operand; -1 of any other."""
    kind = at(x, TYPE)
    if kind == at(gate, NDARRAY):
        number, elements = read_int(pointer(at(x, DTYPE)), NUM), 1
        if number != at(gate, USER_NUM) and not (0 <= number < 64 and NUMBERS >> number & 1):
            return -1
        for axis in range(read_int(pointer(x), NDIM)):
            elements *= at(at(x, SHAPE), 8 * axis)
        return elements
    scalar = gate + SCALARS
    while at(scalar, 0) != 0:
        if at(scalar, 0) == kind:
            return 1
        scalar += 8
    return -1


@njit(forceinline=True)
def same_shape(x1, x2):
    """Of two arrays."""
    ndim = read_int(pointer(x1), NDIM)
    same = ndim == read_int(pointer(x2), NDIM)
    for axis in range(ndim if same else 0):
        same &= at(at(x1, SHAPE), 8 * axis) == at(at(x2, SHAPE), 8 * axis)
    return same


@njit(forceinline=True)
def is_plain(gate, arguments, count, keywords):
    """Whether it is (x1, x2), (x1, x2, out) or (x1, x2, out=out), plain and small."""
    outs = count - 2
    if keywords != 0:
        if at(keywords, LENGTH) != 1 or at(keywords, ITEMS) != at(gate, OUT):
            return False
        outs += 1
    if count < 2 or outs > 1:
        return False
    if outs == 1:
        out = at(arguments, 16)
        if out != at(gate, NONE) and at(out, TYPE) != at(gate, NDARRAY):
            return False
    x1, x2, large = at(arguments, 0), at(arguments, 8), at(gate, LARGE)
    size1, size2 = size(gate, x1), size(gate, x2)
    return 0 <= size1 < large and 0 <= size2 < large and (size1 * size2 < large or same_shape(x1, x2))


def entry(callable, arguments, count, keywords):
    """`count` has the number of positional arguments, and in its highest bit what CPython may do with the word before them."""
    gate = at(callable, ROOM + 8)
    target = at(gate, OTHER)
    if is_plain(gate, arguments, count & 0x7FFF_FFFF_FFFF_FFFF, keywords):
        target = at(gate, PLAIN)
    return vectorcall(at(gate, VECTORCALL), target, arguments, count, keywords)
