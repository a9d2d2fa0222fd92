# mypy: ignore-errors
"""The template of the division of rows by updates, which is compiled once for each dtype. Scatter.py says which rows, and when.

The names that stand nowhere in this file (SIZE, divide_four …) are given when it is compiled, by `scatter_bindings.names`.
"""

import numpy as np

from .primitives import pointer, prefetch, prefetch_to_write, read_word
from .scatter_indices import BY_64, DISTANCE, FOR_ZEROS, named, read_byte, row_of
from .scatter_plan import OFFSETS, ROWS, UPDATE_ROW, UPDATE_STEP, X_ROW, X_STEP, X

CACHE, FAR = 1 << 18, 1 << 21  # bytes of an input_x that is near anyway, and of one that is far
AHEAD = 64  # updates of rows of one element
ALIKE = 8  # updates of which the first four and the last name one row, so that a branch on the next one's row will be guessed mostly
ONE_BY_ONE, MOST_ONE_BY_ONE = 32, 1024  # updates after one that names the row of its neighbour; and twice as many if it happens again


def divide(args, dims, steps, data):
    """The updates that `source` tells of, if there are marks only those of rows of that part, for some runs of each row, or for some
    columns of its only run. While some are divided, the rows of the next ones come nearer. FOR_ZEROS looks for a divisor of 0 instead,
    among elements that are a step apart."""
    plan, source, step, kind, n = pointer(args[0]), pointer(args[1]), args[2], args[3], args[4]
    if kind == FOR_ZEROS:
        args[12] = any_zero(source, step, n)
    else:
        args[12] = np.intp(divide_rows(plan, source, step, kind, n, args[5], args[6], args[7], args[8], args[9], args[10], args[11]))


def divide_rows(plan, source, step, kind, n, marks, part, u, first_run, runs, column, length):
    """See `divide`."""
    x, x_row, x_step = read_word(plan, X), read_word(plan, X_ROW), read_word(plan, X_STEP)
    u_row, u_step, offsets = read_word(plan, UPDATE_ROW), read_word(plan, UPDATE_STEP), pointer(read_word(plan, OFFSETS))
    rows = read_word(plan, ROWS)
    size = rows * abs(x_row)
    x += column * x_step
    u += column * u_step
    notes = np.uint32(0)
    if length == 1 and runs == 1 and not marks:
        a, b = pointer(x + read_word(offsets, 0)), pointer(u + read_word(offsets, 8))
        if kind == BY_64 and x_row == SIZE and u_row == SIZE and step == 8:
            return divide_singly(a, SIZE, b, SIZE, source, 8, BY_64, n, rows, size)  # compiled for these constants
        return divide_singly(a, x_row, b, u_row, source, step, kind, n, rows, size)
    reach = min(length * SIZE, 1024) if size > CACHE and x_step == SIZE else 0
    ahead, stream = 4 if reach > 256 else 8, length * SIZE if u_step == SIZE and runs == 1 else 0
    for k in range(n):
        row, number = row_of(source, step, kind, k, rows)
        if reach and k + ahead < n:
            later, _ = named(source, step, kind, k + ahead)
            near = pointer(x + later * x_row + read_word(offsets, 16 * first_run))
            for line in range(0, reach, 64):
                prefetch_to_write(near, line)
        if marks and np.intp(read_byte(pointer(marks), row)) != part:
            continue
        for line in range(0, stream, 64):
            prefetch(pointer(u + number * u_row), line + DISTANCE)
        for r in range(first_run, runs):
            a = pointer(x + row * x_row + read_word(offsets, 16 * r))
            b = pointer(u + number * u_row + read_word(offsets, 16 * r + 8))
            if x_step == SIZE and u_step == SIZE:
                notes |= by_short_array(a, b, length) if length < LONG else by_array(a, b, length)
            elif x_step == SIZE and u_step == 0:
                notes |= by_scalar(a, b, length)
            else:
                for j in range(length):
                    value, divisor = read(a, j * x_step), read(b, j * u_step)
                    notes = note(value, divisor, notes)
                    write(a, j * x_step, quotient(value, divisor))
    return notes


def divide_singly(x, x_row, u, u_row, source, step, kind, n, rows, size):
    """Rows of one element, of an input_x of so many bytes, four at a time. Where two of the four are one row, the next updates go one by
    one, for its like may follow; and where all four are, and one further on, a row that is named again at once stays in a register."""
    notes, k, known, patience, last = np.uint32(0), 0, n - AHEAD - 4, ONE_BY_ONE, rows - 1
    while k < n:
        few, again = n - k, False
        if few >= 4:
            (row_0, a), (row_1, b) = named(source, step, kind, k), named(source, step, kind, k + 1)
            (row_2, c), (row_3, d) = named(source, step, kind, k + 2), named(source, step, kind, k + 3)
            if are_four(row_0, row_1, row_2, row_3, last):  # and rows at all, by now: see `row_of`
                prefetch(source, k * step + DISTANCE)
                prefetch(u, k * u_row + DISTANCE)
                if size > CACHE and k < known:
                    for j in range(4):
                        row, _ = named(source, step, kind, k + AHEAD + j)
                        prefetch(x, row * x_row)
                notes |= divide_four(
                    x, row_0 * x_row, row_1 * x_row, row_2 * x_row, row_3 * x_row, u, a * u_row, b * u_row, c * u_row, d * u_row
                )
                k, patience = k + 4, ONE_BY_ONE
                continue
            few, again = min(few, patience), (row_0 == row_1) & (row_1 == row_2) & (row_2 == row_3) & (k + ALIKE <= n)
            if again:
                row, _ = named(source, step, kind, k + ALIKE - 1)
                again = row == row_0
        if again:
            value, before = NOTHING, -1
            for j in range(k, k + few):
                prefetch(source, j * step + DISTANCE)
                prefetch(u, j * u_row + DISTANCE)
                row, number = row_of(source, step, kind, j, rows)
                if row != before:
                    value = read(x, row * x_row)
                divisor = read(u, number * u_row)
                notes = note(value, divisor, notes)
                value = next_quotient(value, divisor)
                write(x, row * x_row, value)
                before = row
        elif size > FAR and k + few <= known:
            for j in range(k, k + few):
                row, _ = named(source, step, kind, j + AHEAD)
                prefetch(x, row * x_row)
                notes = divide_one(x, x_row, u, u_row, source, step, kind, j, rows, notes)
        else:
            for j in range(k, k + few):
                notes = divide_one(x, x_row, u, u_row, source, step, kind, j, rows, notes)
        k, patience = k + few, min(2 * patience, MOST_ONE_BY_ONE)
    return notes


def divide_one(x, x_row, u, u_row, source, step, kind, k, rows, notes):
    """See `divide_singly`."""
    prefetch(source, k * step + DISTANCE)
    prefetch(u, k * u_row + DISTANCE)
    row, number = row_of(source, step, kind, k, rows)
    value, divisor = read(x, row * x_row), read(u, number * u_row)
    write(x, row * x_row, next_quotient(value, divisor))
    return note(value, divisor, notes)


def any_zero(place, step, n):
    """Of integers."""
    zeros = NOTHING
    if step != SIZE:
        for j in range(n):
            zeros = note_zero(read(place, j * step), zeros)
        return zeros != 0
    first = 0
    while first < n:
        last = min(first + 4096 // SIZE, n)
        for line in range(first * SIZE, last * SIZE, 64):
            prefetch(place, line + DISTANCE)
        for j in range(first, last):
            zeros = note_zero(read(place, j * SIZE), zeros)
        first = last
    return zeros != 0
