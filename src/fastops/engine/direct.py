# mypy: ignore-errors
"""The plainest calls, as machine code: the inner loop is called on the arrays as they lie, without NumPy's machine.

One array, or two of one shape, C-contiguous and of one dtype whose loop is compiled; the other operand may be a scalar. If a floating-point
flag comes up the result is dropped and the call not done: the ufunc computes it once more, and warns or raises as NumPy does. Loops of few
elements keep the GIL, as NumPy's do.

Objects come as addresses, borrowed.
"""

import ctypes

from numba import types

from ..kernels.flags import DIVIDE, INVALID, restore_flags, save_flags
from ..kernels.primitives import WORD, address, call_loop, inlined, overlaps, scratch, writer
from .headers import ALIGNED, C_CONTIGUOUS, HEAD, WARN_ON_WRITE, WRITEABLE, WRITEBACKIFCOPY
from .objects import (
    as_integer,
    canonical,
    count_down,
    count_up,
    data_of,
    dtype_of,
    field,
    flags_of,
    float_of,
    forget_error,
    high,
    int_of,
    largest,
    limit_of,
    loop_of,
    low,
    ndarray_of,
    ndim_of,
    new_like,
    none_of,
    number_of,
    pack,
    product,
    release_gil,
    same_list,
    scalar_of,
    shape_of,
    size_of,
    small_limit,
    smallest,
    take_gil,
    type_of,
    value_of,
    word_at,
)
from .vectorcall import BUILT_IN, Gate

READ = C_CONTIGUOUS | ALIGNED
WRITTEN, NOT_WRITTEN = READ | WRITEABLE, WRITEBACKIFCOPY | WARN_ON_WRITE
RAISED = DIVIDE | INVALID
SERVED, EACH = Gate.served.offset, Gate.served.size // (BUILT_IN + 1)
MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF  # the bits of a float64 without the sign


class Call(ctypes.Structure):
    """What the loop is given, and memory beside it."""

    _fields_ = [
        ("data", ctypes.c_ssize_t * 3),
        ("length", ctypes.c_ssize_t),
        ("steps", ctypes.c_ssize_t * 3),
        ("value", ctypes.c_int64),  # of a scalar of Python
        ("overflow", ctypes.c_int),
    ]


memory, write_word = scratch(ctypes.sizeof(Call)), writer(WORD)
LENGTH, STEPS, VALUE, OVERFLOW = Call.length.offset, Call.steps.offset, Call.value.offset, Call.overflow.offset
overflow, length = field(Call, "overflow"), field(Call, "length")


@inlined
def alike(gate, x, array):
    """Whether x is such an array too, of the same dtype and shape."""
    if type_of(x) != ndarray_of(gate) or dtype_of(x) != dtype_of(array) or flags_of(x) & READ != READ or ndim_of(x) != ndim_of(array):
        return False
    return same_list(gate, shape_of(x), shape_of(array), ndim_of(x)) != 0


@inlined
def constant(gate, served, array, x, call):
    """Where the value of the scalar x is to be read, in its object or in `call`; 0 if it is beyond what NumPy converts without a doubt."""
    kind = type_of(x)
    if kind == scalar_of(dtype_of(array)):
        return x + HEAD
    if kind == int_of(gate):
        value, least, most = as_integer(gate, x, call + OVERFLOW), low(served), high(served)
        if overflow(call) != 0:
            return 0
    elif kind == float_of(gate):
        value, least, most = value_of(x) & MAGNITUDE, smallest(served), largest(served)
    else:
        return 0
    if value < least or value > most:
        return 0
    if pack(gate, dtype_of(array), call + VALUE, x) != 0:
        forget_error(gate)
        return 0
    return call + VALUE


@inlined
def writable(gate, out, array, call, size):
    """Whether `out` is such an array that can be written, and shares no memory with the operands (for then it cannot be done again)."""
    if not alike(gate, out, array) or flags_of(out) & WRITTEN != WRITTEN or flags_of(out) & NOT_WRITTEN != 0:
        return False
    a, b, start, n = word_at(call), word_at(call + 8), data_of(out), length(call)
    if a == start or overlaps(a, word_at(call + STEPS), start, size, n, size):
        return False
    return b != start and not overlaps(b, word_at(call + STEPS + 8), start, size, n, size)


@inlined
def run(loop, call):
    """Call the loop; whether it raised a flag. All flags stay as they are."""
    state = save_flags()
    if state & RAISED:
        restore_flags(state & ~types.uint32(RAISED))
    call_loop(loop, call, call + LENGTH, call + STEPS, 0)
    raised = save_flags() & RAISED
    if raised or state & RAISED:
        restore_flags(state)
    return raised != 0


@inlined
def direct(gate, x1, x2, out):
    """The result, a new reference; 0 if this call is for the ufunc."""
    array = x1 if type_of(x1) == ndarray_of(gate) else x2
    if type_of(array) != ndarray_of(gate):
        return 0
    number = number_of(dtype_of(array))
    served = gate + SERVED + EACH * (number if 0 <= number < BUILT_IN else BUILT_IN)
    # The dtype itself: an equal one may have metadata or fields.
    if canonical(served) != dtype_of(array) or ndim_of(array) == 0 or flags_of(array) & READ != READ:
        return 0
    elements, size, place = product(gate, shape_of(array), ndim_of(array)), size_of(served), memory()
    if elements >= limit_of(served):
        return 0
    call = address(place)
    write_word(place, LENGTH, elements)
    write_word(place, STEPS + 16, size)
    k = 0
    while k < 16:
        x = x2 if k else x1
        is_array = type_of(x) == ndarray_of(gate)
        if is_array and x != array and not alike(gate, x, array):
            return 0
        data = data_of(x) if is_array else constant(gate, served, array, x, call)
        if data == 0:
            return 0
        write_word(place, k, data)
        write_word(place, STEPS + k, size if is_array else 0)
        k += 8
    if out == none_of(gate):
        out = new_like(gate, array, 0, 0, 0)
        if out == 0:
            forget_error(gate)  # no memory: may the ufunc say so
            return 0
    elif writable(gate, out, array, call, size):
        count_up(gate, out)
    else:
        return 0
    write_word(place, 16, data_of(out))
    thread = 0 if elements < small_limit(gate) else release_gil(gate)
    raised = run(loop_of(served), call)
    if thread != 0:
        take_gil(gate, thread)
    if raised:
        count_down(gate, out)
        return 0
    return out
