# mypy: ignore-errors
"""The native entry of a ufunc-like object: the checks of a `__call__` for plain small operands, as machine code.

It is a `vectorcallfunc` of CPython. Objects come as addresses, borrowed; what goes back is a new reference, or null with an exception set.
"""

from ..kernels.primitives import WORD, inlined
from .direct import EACH, SERVED, direct
from .objects import (
    canonical,
    dtype_of,
    first_of,
    float_of,
    int_of,
    keyword_of,
    length_of,
    limit_of,
    ndarray_of,
    ndim_of,
    none_of,
    number_of,
    other_of,
    plain_of,
    product,
    same_list,
    shape_of,
    small_limit,
    type_of,
    user_number,
    vectorcall,
    word_at,
)
from .operands import PLAIN_NUMBERS, PLAIN_SCALARS
from .vectorcall import BUILT_IN, Gate

SIGNATURE = WORD(WORD, WORD, WORD, WORD)
ROOM = 0  # where in the object its room begins: given when this is compiled
SCALARS = Gate.scalars.offset
USERS_SCALAR = SCALARS + 8 * len(PLAIN_SCALARS)
NUMBERS = sum(1 << number for number in PLAIN_NUMBERS)  # as bits


@inlined
def size(gate, x):
    """The number of elements of a plain operand; -1 of any other."""
    kind = type_of(x)
    if kind == ndarray_of(gate):
        number = number_of(dtype_of(x))
        if number != user_number(gate) and not (0 <= number < 64 and NUMBERS >> number & 1):
            return -1
        return product(gate, shape_of(x), ndim_of(x))
    scalar = gate + SCALARS
    while word_at(scalar) != 0:
        if word_at(scalar) == kind:
            return 1
        scalar += 8
    return -1


@inlined
def output(gate, arguments, count, keywords):
    """The output, None if there is none, of (x1, x2), (x1, x2, out) or (x1, x2, out=out); 0 if the call is not one of these."""
    outs = count - 2
    if keywords != 0:
        if length_of(keywords) != 1 or first_of(keywords) != keyword_of(gate):
            return 0
        outs += 1
    if count < 2 or outs > 1:
        return 0
    out = word_at(arguments + 16) if outs == 1 else none_of(gate)
    return out if out == none_of(gate) or type_of(out) == ndarray_of(gate) else 0


@inlined
def is_line(gate, x1, x2, elements):
    """Whether two arrays of one dimension, and of one dtype whose loop is compiled, are too short for threads: they have no tiles."""
    if type_of(x1) != ndarray_of(gate) or type_of(x2) != ndarray_of(gate) or dtype_of(x1) != dtype_of(x2):
        return False
    number = number_of(dtype_of(x1))
    served = gate + SERVED + EACH * (number if 0 <= number < BUILT_IN else BUILT_IN)
    return canonical(served) == dtype_of(x1) and ndim_of(x1) == 1 and ndim_of(x2) == 1 and elements < limit_of(served)


@inlined
def is_weak(gate, x, other):
    """Whether it is a number of Python's beside the user-defined dtype, which may have to take it."""
    if type_of(x) != float_of(gate) and type_of(x) != int_of(gate):
        return False
    if type_of(other) == ndarray_of(gate):
        return number_of(dtype_of(other)) == user_number(gate)
    return type_of(other) == word_at(gate + USERS_SCALAR)


@inlined
def is_small(gate, x1, x2):
    """Whether the operands are plain and small."""
    if is_weak(gate, x1, x2) or is_weak(gate, x2, x1):
        return False
    large, size1, size2 = small_limit(gate), size(gate, x1), size(gate, x2)
    if not (0 <= size1 < large and 0 <= size2 < large):
        return size1 >= 0 and size2 >= 0 and is_line(gate, x1, x2, max(size1, size2))
    if size1 * size2 < large:
        return True
    return ndim_of(x1) == ndim_of(x2) and same_list(gate, shape_of(x1), shape_of(x2), ndim_of(x1)) != 0


def entry(callable, arguments, count, keywords):
    """`count` has the number of positional arguments, and in its highest bit what CPython may do with the word before them."""
    gate = word_at(callable + ROOM + 8)
    target = other_of(gate)
    out = output(gate, arguments, count & 0x7FFF_FFFF_FFFF_FFFF, keywords)
    if out != 0:
        x1, x2 = word_at(arguments), word_at(arguments + 8)
        result = direct(gate, x1, x2, out)
        if result != 0:
            return result
        if is_small(gate, x1, x2):
            target = plain_of(gate)
    return vectorcall(gate, target, arguments, count, keywords)
