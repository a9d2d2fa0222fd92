# mypy: ignore-errors
"""The template of `scatter_div`: rows of input_x by rows of updates, in the order of the indices.

It is compiled once for each dtype, by the contract of inner loops, so that `engine.driving` shares its work out as it does theirs: `args`
are the address of a plan and the number of a task. The plan says which phase of the work that is a task of:

CHECK        the indices of some updates, and whether one of their integers is 0
WHOLE        all updates: checked, then divided
DIVIDE       all updates, for a part of every row: the columns, or the runs, that this task owns
OWN          all updates, block by block, together with the other tasks: each part of a block owns rows

Whatever the phase, each element has one owner, who divides it in the order of the updates.
"""

import numpy as np

from .division import RAISED_DIVIDE, RAISED_INVALID, RAISED_OVERFLOW, RAISED_UNDERFLOW
from .primitives import (
    ALL_FLAGS,
    INVALID,
    OVERFLOW,
    UNDERFLOW,
    add_atomically,
    address,
    call_loop,
    default_control,
    or_atomically,
    pointer,
    prefetch,
    read_atomically,
    read_word,
    restore_control,
    restore_flags,
    save_flags,
    scratch,
    write_word,
)
from .primitives import DIVIDE as BY_ZERO
from .scatter_indices import BY_32, BY_64, BY_LIST, DISTANCE, read_byte, row_of
from .scatter_plan import (
    BLOCK,
    CAPACITY,
    CHECK,
    CLAIMED,
    DIVIDE,
    DONE,
    FIRST,
    FOUND,
    INDEX_STEP,
    INDICES,
    LAST,
    LENGTH,
    LENGTHS,
    LISTS,
    LOOK,
    MARKS,
    NARROW,
    OFFSETS,
    OWN,
    PARTS,
    PHASE,
    PIECES,
    REFUSED,
    ROWS,
    RUNS,
    SHARE,
    STATE_SIZE,
    STATES,
    UPDATE_ROW,
    UPDATE_STEP,
    UPDATES,
    WHOLE,
    X_ROW,
    X_STEP,
    ZERO,
    X,
)

CACHE = 1 << 18  # bytes of an input_x that is near anyway
ONE_BY_ONE, MOST_ONE_BY_ONE = 32, 1024  # updates after one that names the row of its neighbour; and twice as many if it happens again
call_memory = scratch(16)


def work(args, dims, steps, data):
    """See above. The names that stand nowhere in this file (INTEGER, divide …) are given when this is compiled, by `names`."""
    plan, task = pointer(args[0]), args[1]
    phase, length, runs = read_word(plan, PHASE), read_word(plan, LENGTH), read_word(plan, RUNS)
    share, first, last = read_word(plan, SHARE), read_word(plan, FIRST), read_word(plan, LAST)
    indices, index_step, narrow = read_word(plan, INDICES), read_word(plan, INDEX_STEP), read_word(plan, NARROW)
    u, u_row, u_step, offsets = (
        read_word(plan, UPDATES),
        read_word(plan, UPDATE_ROW),
        read_word(plan, UPDATE_STEP),
        pointer(read_word(plan, OFFSETS)),
    )
    if phase <= WHOLE:
        call = call_memory()
        write_word(call, 0, args[0])
        write_word(call, 8, task)
        call_loop(read_word(plan, LOOK), address(call), 0, 0, 0)
        found = read_word(plan, FOUND)
        if INTEGER and not found:
            start, end = (first, last) if phase == WHOLE else (first + task * share, min(first + task * share + share, last))
            repeat, span = end - start, length
            if runs == 1 and u_row == length * u_step:  # rows that follow one another are one long run
                repeat, span = 1, span * repeat
            for k in range(repeat):
                for r in range(runs):
                    place = pointer(u + (start + k) * u_row + read_word(offsets, 16 * r + 8))
                    if any_zero(place, u_step, span):
                        found = ZERO
                if found:
                    break
            if found:
                or_atomically(args[0] + FOUND, found)
        if found or phase == CHECK:
            return
    state, control = save_flags(), default_control()
    restore_flags(save_flags() & ~np.uint32(ALL_FLAGS))
    if phase == OWN:
        notes = together(args[0])
    else:
        first_run, column = 0, 0
        if phase == DIVIDE and runs > 1:
            first_run, runs = task * share, min(task * share + share, runs)
        elif phase == DIVIDE:
            column, length = task * share, min(share, length - task * share)
        source, kind = pointer(indices + first * index_step), BY_32 if narrow else BY_64
        notes = divide(plan, source, index_step, kind, last - first, 0, 0, u + first * u_row, first_run, runs, column, length)
    flags = save_flags()
    restore_control(control)
    restore_flags(state)
    raised = np.intp(notes)
    if not INTEGER:  # conversions of integers may raise false ones
        raised |= RAISED_DIVIDE if flags & BY_ZERO else 0
        raised |= RAISED_OVERFLOW if flags & OVERFLOW else 0
        raised |= RAISED_UNDERFLOW if flags & UNDERFLOW else 0
        raised |= RAISED_INVALID if flags & INVALID else 0
    if raised:
        or_atomically(args[0] + FOUND, raised)


# --- what is compiled for each dtype ------------------------------------------------------------------------------------------------------
def together(place):
    """Blocks, one after another. Whoever comes takes the next task of a block: the first tasks prepare the following block, the others are
    the parts of this one. When all are done, the following block begins: nobody waits for more than a task that somebody is at."""
    plan, call, notes = pointer(place), call_memory(), np.uint32(0)
    count, block, parts, pieces = read_word(plan, LAST), read_word(plan, BLOCK), read_word(plan, PARTS), read_word(plan, PIECES)
    prepares, state = max(pieces, 1), read_word(plan, STATES)
    write_word(call, 0, place)
    for number in range(-1, (count + block - 1) // block):
        if read_word(pointer(state), REFUSED):
            break
        tasks = prepares if number < 0 else prepares + parts
        task = add_atomically(state + CLAIMED, 1)
        while task < tasks:
            if task >= prepares:
                notes |= divide_part(plan, number, task - prepares)
            elif (number + 1) * block < count:
                write_word(call, 8, (number + 1) * prepares + task)
                call_loop(read_word(plan, LOOK), address(call), 0, 0, 0)
            add_atomically(state + DONE, 1)
            task = add_atomically(state + CLAIMED, 1)
        while read_atomically(state + DONE) < tasks:
            pass
        state += STATE_SIZE
    return notes


def divide_part(plan, number, part):
    """A part of the block of that number: what it has itself of the rows that it owns, then what is in its lists."""
    share, parts, pieces, capacity = read_word(plan, SHARE), read_word(plan, PARTS), read_word(plan, PIECES), read_word(plan, CAPACITY)
    index_step, u_row, length = read_word(plan, INDEX_STEP), read_word(plan, UPDATE_ROW), read_word(plan, LENGTH)
    first, turn, notes = number * read_word(plan, BLOCK), number % 2, np.uint32(0)
    last, u = min(first + read_word(plan, BLOCK), read_word(plan, LAST)), read_word(plan, UPDATES)
    for piece in range(-1 if pieces == 0 else 0, max(pieces, 1)):
        if piece < 0:
            start = min(first + part * share, last)
            source, step, kind = (
                pointer(read_word(plan, INDICES) + start * index_step),
                index_step,
                BY_32 if read_word(plan, NARROW) else BY_64,
            )
            entries, updates, marks = min(share, last - start), u + start * u_row, read_word(plan, MARKS) + turn * read_word(plan, ROWS)
        else:
            place = (turn * max(pieces, 1) + piece) * parts + part
            source, step, kind = pointer(read_word(plan, LISTS) + place * capacity * 8), 8, BY_LIST
            entries, updates, marks = read_word(pointer(read_word(plan, LENGTHS)), place * 8), u + first * u_row, 0
        notes |= divide(plan, source, step, kind, entries, marks, part, updates, 0, read_word(plan, RUNS), 0, length)
    return notes


def divide_singly(x, x_row, u, u_row, source, step, kind, n, ahead):
    """Rows of one element, four at a time. Where two of the four are one row, the next updates go one by one, for its like may follow; and
    where all four are, a row that is named again at once stays in a register."""
    notes, k, far, patience = np.uint32(0), 0, n - ahead - 4 if ahead else 0, ONE_BY_ONE
    while k < n:
        few, again = n - k, False
        if few >= 4:
            (row_0, a), (row_1, b) = row_of(source, step, kind, k), row_of(source, step, kind, k + 1)
            (row_2, c), (row_3, d) = row_of(source, step, kind, k + 2), row_of(source, step, kind, k + 3)
            same = (row_0 == row_1) | (row_0 == row_2) | (row_0 == row_3) | (row_1 == row_2) | (row_1 == row_3) | (row_2 == row_3)
            if not same:
                prefetch(source, k * step + DISTANCE)
                prefetch(u, k * u_row + DISTANCE)
                if k < far:
                    for j in range(4):
                        row, _ = row_of(source, step, kind, k + ahead + j)
                        prefetch(x, row * x_row)
                notes |= divide_four(
                    x, row_0 * x_row, row_1 * x_row, row_2 * x_row, row_3 * x_row, u, a * u_row, b * u_row, c * u_row, d * u_row
                )
                k, patience = k + 4, ONE_BY_ONE
                continue
            few, again = min(few, patience), (row_0 == row_1) & (row_1 == row_2) & (row_2 == row_3)
        if again:
            value, before = NOTHING, -1
            for j in range(k, k + few):
                row, number = row_of(source, step, kind, j)
                if row != before:
                    value = read(x, row * x_row)
                divisor = read(u, number * u_row)
                notes = note(value, divisor, notes)
                value = quotient(value, divisor)
                write(x, row * x_row, value)
                before = row
        else:
            for j in range(k, k + few):
                row, number = row_of(source, step, kind, j)
                value, divisor = read(x, row * x_row), read(u, number * u_row)
                notes = note(value, divisor, notes)
                write(x, row * x_row, quotient(value, divisor))
        k, patience = k + few, min(2 * patience, MOST_ONE_BY_ONE)
    return notes


def divide(plan, source, step, kind, n, marks, part, u, first_run, runs, column, length):
    """The updates that `source` tells of, if there are marks only those of rows of that part, for some runs of each row, or for some
    columns of its only run. While some are divided, the rows of the next ones come nearer."""
    x, x_row, x_step = read_word(plan, X), read_word(plan, X_ROW), read_word(plan, X_STEP)
    u_row, u_step, offsets = read_word(plan, UPDATE_ROW), read_word(plan, UPDATE_STEP), pointer(read_word(plan, OFFSETS))
    is_far = read_word(plan, ROWS) * abs(x_row) > CACHE
    x += column * x_step
    u += column * u_step
    notes = np.uint32(0)
    if length == 1 and runs == 1 and not marks:
        a, b, ahead = pointer(x + read_word(offsets, 0)), pointer(u + read_word(offsets, 8)), 64 if is_far else 0
        if kind == BY_64 and x_row == SIZE and u_row == SIZE and step == 8:
            return divide_singly(a, SIZE, b, SIZE, source, 8, BY_64, n, ahead)
        return divide_singly(a, x_row, b, u_row, source, step, kind, n, ahead)
    reach = min(length * SIZE, 1024) if is_far and x_step == SIZE else 0
    ahead, stream = 4 if reach > 256 else 8, length * SIZE if u_step == SIZE and runs == 1 else 0
    for k in range(n):
        row, number = row_of(source, step, kind, k)
        if reach and k + ahead < n:
            later, _ = row_of(source, step, kind, k + ahead)
            near = pointer(x + later * x_row + read_word(offsets, 16 * first_run))
            for line in range(0, reach, 64):
                prefetch(near, line)
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


def any_zero(place, step, n):
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
