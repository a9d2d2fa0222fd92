# mypy: ignore-errors
"""The native entry of `scatter_div`: its checks for plain small operands, and the call of the kernel, as machine code.

Plain are arrays that do not overlap, input_x and updates of one dtype whose kernel is compiled, with an index or more and an element or
more in each row. In input_x and in updates the axes of a row lie as one, and so do in indices and in updates those of the indices. What is
not plain, and what the kernel finds wrong before it writes anything, is for Python. If floating-point flags come up, Python has the last
word too: it warns or raises.

Objects come as addresses, borrowed; what goes back is a new reference, or null with an exception set.
"""

import ctypes

from ..kernels.primitives import WORD, address, call_loop, read_word, scratch, write_word
from ..kernels.scatter_plan import (
    DIVISION,
    FOUND,
    INDEX_STEP,
    INDICES,
    INTEGER,
    LAST,
    LENGTH,
    NARROW,
    OFFSETS,
    OUTSIDE,
    PHASE,
    ROWS,
    RUNS,
    UPDATE_ROW,
    UPDATE_STEP,
    UPDATES,
    WHOLE,
    X_ROW,
    X_STEP,
    Plan,
    X,
)
from .direct import EACH, NOT_WRITTEN, SERVED
from .headers import WRITEABLE
from .objects import (
    canonical,
    count_up,
    data_of,
    dtype_of,
    field,
    flags_of,
    inline,
    limit_of,
    loop_of,
    ndarray_of,
    ndim_of,
    number_of,
    other_of,
    plain_of,
    product,
    release_gil,
    same_list,
    shape_of,
    size_of,
    small_limit,
    strides_of,
    take_gil,
    type_of,
    vectorcall,
    word_at,
)
from .vectorcall import BUILT_IN, ScatterGate

SIGNATURE = WORD(WORD, WORD, WORD, WORD)
ROOM = 0  # where in the object its room begins: given when this is compiled
NOT_FOR_HERE, LAST_INTEGER = -1, 10  # NPY_ULONGLONG
NUMBERS = ScatterGate.numbers.offset
index_32, index_64, work_of, far = (field(ScatterGate, name) for name in ("index_32", "index_64", "work", "far"))
plan_memory, call_memory, table_memory = scratch(ctypes.sizeof(Plan)), scratch(16), scratch(16)
WORDS = ctypes.sizeof(Plan)


@inline
def step_of(shape, strides, axes, size):
    """The stride of the one axis that the first axes are, in row-major order (`size` if they have one element); 0 if they are not one, or
    are one element many times."""
    step, following, seen = size, 0, False
    for axis in range(axes - 1, -1, -1):
        length, stride = word_at(shape + 8 * axis), word_at(strides + 8 * axis)
        if length != 1:
            if not seen:
                step, seen = stride, True
            elif stride != following:
                return 0
            following = stride * length
    return step


@inline
def meet(low_a, high_a, low_b, high_b):
    return low_a < high_b and low_b < high_a


@inline
def low(start, step, count):
    return start + min(step, 0) * (count - 1)


@inline
def high(start, step, count, size):
    return start + max(step, 0) * (count - 1) + size


@inline
def are_apart(row, rows, step, length, size):
    """Whether rows share no memory: each lies between two neighbours, or all of them lie between two neighbours of a row."""
    return row >= step * (length - 1) + size or (row >= size and step >= row * (rows - 1) + size)


@inline
def divide(gate, x, indices, updates):
    """What the call gives, or NOT_FOR_HERE."""
    array = ndarray_of(gate)
    if type_of(x) != array or type_of(indices) != array or type_of(updates) != array:
        return NOT_FOR_HERE
    number = number_of(dtype_of(x))
    served = gate + SERVED + EACH * (number if 0 <= number < BUILT_IN else BUILT_IN)
    if canonical(served) != dtype_of(x) or dtype_of(updates) != dtype_of(x):
        return NOT_FOR_HERE
    narrow = dtype_of(indices) == index_32(gate)
    if not narrow and dtype_of(indices) != index_64(gate):
        return NOT_FOR_HERE
    if flags_of(x) & WRITEABLE == 0 or flags_of(x) & NOT_WRITTEN != 0:
        return NOT_FOR_HERE
    rank, more, size, index_size = ndim_of(x), ndim_of(indices), size_of(served), 4 if narrow else 8
    if rank == 0 or ndim_of(updates) != more + rank - 1 or same_list(gate, shape_of(indices), shape_of(updates), more) == 0:
        return NOT_FOR_HERE
    row = shape_of(x) + 8
    if same_list(gate, row, shape_of(updates) + 8 * more, rank - 1) == 0:
        return NOT_FOR_HERE
    rows, length, count = word_at(shape_of(x)), product(gate, row, rank - 1), product(gate, shape_of(indices), more)
    elements = count * length
    x_row = word_at(strides_of(x)) if rows > 1 else length * size
    if elements == 0 or rows == 0 or (elements >= limit_of(served) and (length > 1 or rows * abs(x_row) >= far(gate))):
        return NOT_FOR_HERE
    x_step, update_step = step_of(row, strides_of(x) + 8, rank - 1, size), step_of(row, strides_of(updates) + 8 * more, rank - 1, size)
    index_step, update_row = step_of(shape_of(indices), strides_of(indices), more, index_size), length * size
    if count > 1:
        update_row = step_of(shape_of(updates), strides_of(updates), more, size)
    if x_step == 0 or update_step == 0 or index_step == 0 or update_row == 0:
        return NOT_FOR_HERE
    if abs(x_step) < size or (rows > 1 and not are_apart(abs(x_row), rows, abs(x_step), length, size)):
        return NOT_FOR_HERE
    start, divisors, numbers = data_of(x), data_of(updates), data_of(indices)
    low_x, high_x = low(low(start, x_step, length), x_row, rows), high(high(start, x_step, length, 0), x_row, rows, size)
    low_u = low(low(divisors, update_step, length), update_row, count)
    high_u = high(high(divisors, update_step, length, 0), update_row, count, size)
    low_i, high_i = low(numbers, index_step, count), high(numbers, index_step, count, index_size)
    if meet(low_x, high_x, low_u, high_u) or meet(low_x, high_x, low_i, high_i):
        return NOT_FOR_HERE
    plan, table, call = plan_memory(), table_memory(), call_memory()
    for place in range(0, WORDS, 8):
        write_word(plan, place, 0)
    write_word(table, 0, 0)
    write_word(table, 8, 0)
    write_word(plan, PHASE, WHOLE)
    write_word(plan, DIVISION, loop_of(served))
    write_word(plan, INTEGER, 1 <= number <= LAST_INTEGER)
    write_word(plan, LAST, count)
    write_word(plan, INDICES, numbers)
    write_word(plan, INDEX_STEP, index_step)
    write_word(plan, NARROW, narrow)
    write_word(plan, X, start)
    write_word(plan, ROWS, rows)
    write_word(plan, X_ROW, x_row)
    write_word(plan, X_STEP, x_step)
    write_word(plan, UPDATES, divisors)
    write_word(plan, UPDATE_ROW, update_row)
    write_word(plan, UPDATE_STEP, update_step)
    write_word(plan, RUNS, 1)
    write_word(plan, LENGTH, length)
    write_word(plan, OFFSETS, address(table))
    write_word(call, 0, address(plan))
    write_word(call, 8, 0)
    thread = 0 if elements < small_limit(gate) else release_gil(gate)
    call_loop(work_of(gate), address(call), 0, 0, 0)
    if thread != 0:
        take_gil(gate, thread)
    found = read_word(plan, FOUND)
    if found >= OUTSIDE:
        return NOT_FOR_HERE
    if found == 0:
        count_up(gate, x)
        return x
    write_word(call, 0, x)
    write_word(call, 8, word_at(gate + NUMBERS + 8 * found))
    return vectorcall(gate, plain_of(gate), address(call), 2, 0)


def entry(callable, arguments, count, keywords):
    """As `gate.entry`."""
    gate = word_at(callable + ROOM + 8)
    if keywords == 0 and count & 0x7FFF_FFFF_FFFF_FFFF == 3:
        result = divide(gate, word_at(arguments), word_at(arguments + 8), word_at(arguments + 16))
        if result != NOT_FOR_HERE:
            return result
    return vectorcall(gate, other_of(gate), arguments, count, keywords)
