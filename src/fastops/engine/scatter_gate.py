# mypy: ignore-errors
"""The native entry of `scatter_div`: its checks for plain small operands, and the call of the kernel, as machine code.

Plain are arrays that do not overlap, input_x and updates of one dtype whose kernel is compiled, with an index or more and an element or
more in each row. The axes of indices lie as one, there and in updates. What is not plain, and what the kernel finds wrong before it writes
anything, is for Python. If floating-point flags come up, Python has the last word too: it warns or raises.

Plain is also a small input_x in the other byte order: each row has its bytes turned before it is divided, and back.

Objects come as addresses, borrowed; what goes back is a new reference, or null with an exception set.
"""

import ctypes
import sys

from numba import types

from ..kernels.primitives import WORD, address, call_loop, inlined, pointer, read_word, reader, scratch, write_word
from ..kernels.scatter_plan import (
    CHECK,
    DIVIDE,
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
    SHARE,
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
    limit_of,
    loop_of,
    ndarray_of,
    ndim_of,
    number_of,
    order_of,
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
from .scatter_layout import SEVERAL, are_apart, before_run, high, low, offset, step_of, turn_row
from .team import most, threads_of, usable
from .vectorcall import BUILT_IN, ScatterGate

SIGNATURE = WORD(WORD, WORD, WORD, WORD)
ROOM = 0  # where in the object its room begins: given when this is compiled
NOT_FOR_HERE, LAST_INTEGER = -1, 10  # NPY_ULONGLONG
NUMBERS = ScatterGate.numbers.offset
index_32, index_64, work_of, far, team_of = (field(ScatterGate, name) for name in ("index_32", "index_64", "work", "far", "team"))
OTHER_ORDER = ord(">" if sys.byteorder == "little" else "<")
MOST_RUNS, WORDS = 256, ctypes.sizeof(Plan)  # of a row
PLACES = 8  # of indices that are asked for their order
WORTH_PYTHON = 2  # times as much work as threads pay from pays for the Python around them, too
plan_memory, call_memory, table_memory, index_memory = scratch(WORDS), scratch(16), scratch(16 * MOST_RUNS), scratch(8)
index_as_32, index_as_64 = reader(types.int32, aligned=False), reader(types.int64, aligned=False)


@inlined
def divide_turned(gate, plan, call, table, size, count, runs, length):
    """All of the plan that is made, where input_x is in the other byte order: a row at a time, for the same may be named again."""
    write_word(plan, PHASE, CHECK)
    write_word(plan, SHARE, count)
    call_loop(work_of(gate), address(call), 0, 0, 0)
    if read_word(plan, FOUND) >= OUTSIDE:
        return
    index, index_step, narrow = pointer(read_word(plan, INDICES)), read_word(plan, INDEX_STEP), read_word(plan, NARROW)
    x, rows, x_row, x_step = read_word(plan, X), read_word(plan, ROWS), read_word(plan, X_ROW), read_word(plan, X_STEP)
    one, update, update_row = index_memory(), read_word(plan, UPDATES), read_word(plan, UPDATE_ROW)
    write_word(plan, PHASE, DIVIDE)
    write_word(plan, SHARE, max(runs, length))
    write_word(plan, LAST, 1)
    write_word(plan, INDICES, address(one))
    write_word(plan, NARROW, 0)
    for k in range(count):
        row = index_as_32(index, k * index_step) if narrow else index_as_64(index, k * index_step)
        if 0 <= row < rows:  # another thread may have changed it
            write_word(one, 0, row)
            write_word(plan, UPDATES, update + k * update_row)
            turn_row(x + row * x_row, table, runs, length, x_step, size)
            call_loop(work_of(gate), address(call), 0, 0, 0)
            turn_row(x + row * x_row, table, runs, length, x_step, size)


@inlined
def has_threads(team):
    """Whether there are several, or it is not known as long as none were launched."""
    return most(team) == 0 or (usable(team) != 0 and threads_of(team) > 1)


@inlined
def may_be_in_order(indices, step, narrow, count):
    """Whether a few of so many indices ascend, or descend: then threads may have ranges of rows (`scatter_sharing.order_of`)."""
    share, ascend, descend = count // PLACES * step, True, True
    first = index_as_32(pointer(indices), 0) if narrow else index_as_64(pointer(indices), 0)
    before = first
    for k in range(1, PLACES):
        index = index_as_32(pointer(indices), k * share) if narrow else index_as_64(pointer(indices), k * share)
        ascend, descend, before = ascend and before <= index, descend and index <= before, index
    return before != first and (ascend or descend)


@inlined
def divide(gate, x, indices, updates):
    """What the call gives, or NOT_FOR_HERE."""
    array = ndarray_of(gate)
    if type_of(x) != array or type_of(indices) != array or type_of(updates) != array:
        return NOT_FOR_HERE
    number = number_of(dtype_of(x))
    served = gate + SERVED + EACH * (number if 0 <= number < BUILT_IN else BUILT_IN)
    dtype = canonical(served)
    if dtype == 0 or dtype_of(updates) != dtype:
        return NOT_FOR_HERE
    turned = dtype_of(x) != dtype
    if turned and (number_of(dtype) != number or order_of(dtype_of(x)) != OTHER_ORDER):
        return NOT_FOR_HERE
    narrow = dtype_of(indices) == index_32(gate)
    if not narrow and dtype_of(indices) != index_64(gate):
        return NOT_FOR_HERE
    if flags_of(x) & WRITEABLE == 0 or flags_of(x) & NOT_WRITTEN != 0:
        return NOT_FOR_HERE
    rank, more, size, index_size = ndim_of(x), ndim_of(indices), size_of(served), 4 if narrow else 8
    if rank == 0 or ndim_of(updates) != more + rank - 1 or same_list(gate, shape_of(indices), shape_of(updates), more) == 0:
        return NOT_FOR_HERE
    row, x_strides, u_strides = shape_of(x) + 8, strides_of(x) + 8, strides_of(updates) + 8 * more
    if same_list(gate, row, shape_of(updates) + 8 * more, rank - 1) == 0:
        return NOT_FOR_HERE
    rows, row_elements, count = word_at(shape_of(x)), product(gate, row, rank - 1), product(gate, shape_of(indices), more)
    elements, row_size = count * row_elements, row_elements * size
    x_row = word_at(strides_of(x)) if rows > 1 else row_size
    index_step = step_of(shape_of(indices), strides_of(indices), more, index_size)
    if elements == 0 or rows == 0 or index_step == SEVERAL:
        return NOT_FOR_HERE
    if elements >= limit_of(served) and (
        row_elements > 1
        or rows * abs(x_row) >= far(gate)
        or (
            elements >= WORTH_PYTHON * limit_of(served)
            and may_be_in_order(data_of(indices), index_step, narrow, count)
            and has_threads(team_of(gate))
        )
    ):
        return NOT_FOR_HERE  # for threads
    if turned and elements >= small_limit(gate):
        return NOT_FOR_HERE
    outer = before_run(row, x_strides, u_strides, rank - 1)
    runs, axes = product(gate, row, outer), rank - 1 - outer
    update_row = step_of(shape_of(updates), strides_of(updates), more, row_size) if count > 1 else row_size
    if runs > MOST_RUNS or update_row == SEVERAL or not are_apart(shape_of(x), strides_of(x), rank, size):
        return NOT_FOR_HERE
    begin, end = low(x), high(x, size)
    if (begin < high(updates, size) and low(updates) < end) or (begin < high(indices, index_size) and low(indices) < end):
        return NOT_FOR_HERE
    plan, table, call = plan_memory(), table_memory(), call_memory()
    for place in range(0, WORDS, 8):
        write_word(plan, place, 0)
    for k in range(runs):
        write_word(table, 16 * k, offset(k, row, x_strides, outer))
        write_word(table, 16 * k + 8, offset(k, row, u_strides, outer))
    write_word(plan, PHASE, WHOLE)
    write_word(plan, DIVISION, loop_of(served))
    write_word(plan, INTEGER, 1 <= number <= LAST_INTEGER)
    write_word(plan, LAST, count)
    write_word(plan, INDICES, data_of(indices))
    write_word(plan, INDEX_STEP, index_step)
    write_word(plan, NARROW, narrow)
    write_word(plan, X, data_of(x))
    write_word(plan, ROWS, rows)
    write_word(plan, X_ROW, x_row)
    write_word(plan, X_STEP, step_of(row + 8 * outer, x_strides + 8 * outer, axes, size))
    write_word(plan, UPDATES, data_of(updates))
    write_word(plan, UPDATE_ROW, update_row)
    write_word(plan, UPDATE_STEP, step_of(row + 8 * outer, u_strides + 8 * outer, axes, size))
    write_word(plan, RUNS, runs)
    write_word(plan, LENGTH, row_elements // runs)
    write_word(plan, OFFSETS, address(table))
    write_word(call, 0, address(plan))
    write_word(call, 8, 0)
    if turned:
        divide_turned(gate, plan, call, table, size, count, runs, row_elements // runs)
    else:
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
