# mypy: ignore-errors
"""`scatter_div`: rows of input_x by rows of updates, in the order of the indices, whatever the dtype.

Its two functions are compiled once, by the contract of inner loops, so that `engine.driving` shares their work out as it does theirs:
`args` are the address of a plan and the number of a task. The plan says which function divides, and which phase of the work that is a
task of. `work` is for these:

CHECK        the indices of some updates, and whether one of their integers is 0
WHOLE        all updates: checked, then divided
DIVIDE       all updates, for a part of every row: the columns, or the runs, that this task owns
RANGE        some updates, which name rows that those of no other task do

Where extents are asked for, CHECK notes those of the tasks that RANGE has with the same plan (`scatter_indices.beginning`).


`work_together`, which only threads need:

OWN          all updates, block by block, together with the other tasks: each part of a block owns rows

Whatever the phase, each element has one owner, who divides it in the order of the updates.
"""

import numpy as np

from .division import RAISED_DIVIDE, RAISED_INVALID, RAISED_OVERFLOW, RAISED_UNDERFLOW
from .flags import ALL_FLAGS, INVALID, OVERFLOW, UNDERFLOW, default_control, restore_control, restore_flags, save_flags
from .flags import DIVIDE as BY_ZERO
from .primitives import add_atomically, address, call_loop, inlined, or_atomically, pointer, read_atomically, read_word, scratch, write_word
from .scatter_indices import BY_32, BY_64, BY_LIST, FOR_ZEROS, beginning, extent, prepare
from .scatter_plan import (
    BLOCK,
    CALL,
    CAPACITY,
    CHECK,
    CLAIMED,
    DIVIDE,
    DIVISION,
    DONE,
    EXTENTS,
    FIRST,
    FOUND,
    INDEX_STEP,
    INDICES,
    INTEGER,
    LAST,
    LENGTH,
    LENGTHS,
    LISTS,
    MARKS,
    NARROW,
    OFFSETS,
    OUTSIDE,
    PARTS,
    PHASE,
    PIECES,
    RANGE,
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
    ZERO,
)

call_memory = scratch(8 * len(CALL))


@inlined
def divide(plan, source, step, kind, count, marks, part, updates, first_run, runs, column, length):
    """Call the function of the dtype; what it notes."""
    call = call_memory()
    words = (address(plan), address(source), step, kind, count, marks, part, updates, first_run, runs, column, length)
    for k in range(12):
        write_word(call, 8 * k, words[k])
    call_loop(read_word(plan, DIVISION), address(call), 0, 0, 0)
    return read_word(call, 96)


@inlined
def divide_part(plan, number, part):
    """A part of the block of that number: what it has itself of the rows that it owns, then what is in its lists."""
    share, parts, pieces, capacity = read_word(plan, SHARE), read_word(plan, PARTS), read_word(plan, PIECES), read_word(plan, CAPACITY)
    index_step, u_row, length = read_word(plan, INDEX_STEP), read_word(plan, UPDATE_ROW), read_word(plan, LENGTH)
    first, turn, notes = number * read_word(plan, BLOCK), number % 2, 0
    last, u = min(first + read_word(plan, BLOCK), read_word(plan, LAST)), read_word(plan, UPDATES)
    for piece in range(-1 if pieces == 0 else 0, max(pieces, 1)):
        if piece < 0:
            start = min(first + part * share, last)
            source, step = pointer(read_word(plan, INDICES) + start * index_step), index_step
            kind = BY_32 if read_word(plan, NARROW) else BY_64
            entries, updates, marks = min(share, last - start), u + start * u_row, read_word(plan, MARKS) + turn * read_word(plan, ROWS)
        else:
            place = (turn * max(pieces, 1) + piece) * parts + part
            source, step, kind = pointer(read_word(plan, LISTS) + place * capacity * 8), 8, BY_LIST
            entries, updates, marks = read_word(pointer(read_word(plan, LENGTHS)), place * 8), u + first * u_row, 0
        notes |= divide(plan, source, step, kind, entries, marks, part, updates, 0, read_word(plan, RUNS), 0, length)
    return notes


@inlined
def together(plan, state):
    """Blocks, one after another. Whoever comes takes the next task of a block: the first tasks prepare the following block, the others are
    the parts of this one. When all are done, the following block begins: nobody waits for more than a task that somebody is at."""
    notes = 0
    count, block, parts, pieces = read_word(plan, LAST), read_word(plan, BLOCK), read_word(plan, PARTS), read_word(plan, PIECES)
    prepares = max(pieces, 1)
    for number in range(-1, (count + block - 1) // block):
        if read_word(pointer(state), REFUSED):
            break
        tasks = prepares if number < 0 else prepares + parts
        task = add_atomically(state + CLAIMED, 1)
        while task < tasks:
            if task >= prepares:
                notes |= divide_part(plan, number, task - prepares)
            elif (number + 1) * block < count:
                prepare(plan, (number + 1) * prepares + task)
            add_atomically(state + DONE, 1)
            task = add_atomically(state + CLAIMED, 1)
        while read_atomically(state + DONE) < tasks:
            pass
        state += STATE_SIZE
    return notes


@inlined
def begin():
    """Clear the thread's flags; what they were, for `finish`."""
    state, control = save_flags(), default_control()
    restore_flags(save_flags() & ~np.uint32(ALL_FLAGS))
    return state, control


@inlined
def finish(plan, raised, state, control):
    """Put the thread's flags back, and tell what was noted of 16-bit formats, and by the flags."""
    flags = save_flags()
    restore_control(control)
    restore_flags(state)
    if not read_word(plan, INTEGER):  # conversions of integers may raise false ones
        raised |= RAISED_DIVIDE if flags & BY_ZERO else 0
        raised |= RAISED_OVERFLOW if flags & OVERFLOW else 0
        raised |= RAISED_UNDERFLOW if flags & UNDERFLOW else 0
        raised |= RAISED_INVALID if flags & INVALID else 0
    if raised:
        or_atomically(address(plan) + FOUND, raised)


def work(args, dims, steps, data):
    """See above."""
    plan, task = pointer(args[0]), args[1]
    phase, length, runs, integer = read_word(plan, PHASE), read_word(plan, LENGTH), read_word(plan, RUNS), read_word(plan, INTEGER)
    share, first, last = read_word(plan, SHARE), read_word(plan, FIRST), read_word(plan, LAST)
    indices, index_step, narrow = read_word(plan, INDICES), read_word(plan, INDEX_STEP), read_word(plan, NARROW)
    u, u_row, u_step = read_word(plan, UPDATES), read_word(plan, UPDATE_ROW), read_word(plan, UPDATE_STEP)
    offsets = pointer(read_word(plan, OFFSETS))
    if phase in (CHECK, RANGE):
        first, last = beginning(plan, task), beginning(plan, task + 1)
    if phase <= WHOLE:
        least, most = extent(indices, index_step, narrow, first, last)
        found = OUTSIDE if first < last and (least < 0 or most >= read_word(plan, ROWS)) else 0
        if read_word(plan, EXTENTS):
            write_word(pointer(read_word(plan, EXTENTS)), 16 * task, least)
            write_word(pointer(read_word(plan, EXTENTS)), 16 * task + 8, most)
        if integer and not found:
            repeat, span = last - first, length
            if runs == 1 and u_row == length * u_step:  # rows that follow one another are one long run
                repeat, span = 1, span * repeat
            for k in range(repeat):
                for r in range(runs):
                    place = pointer(u + (first + k) * u_row + read_word(offsets, 16 * r + 8))
                    if divide(plan, place, u_step, FOR_ZEROS, span, 0, 0, 0, 0, 0, 0, 0):
                        found = ZERO
                if found:
                    break
        if found:
            or_atomically(args[0] + FOUND, found)
        if found or phase == CHECK:
            return
    first_run, column = 0, 0
    if phase == DIVIDE and runs > 1:
        first_run, runs = task * share, min(task * share + share, runs)
    elif phase == DIVIDE:
        column, length = task * share, min(share, length - task * share)
    source, kind = pointer(indices + first * index_step), BY_32 if narrow else BY_64
    state, control = begin()
    noted = divide(plan, source, index_step, kind, last - first, 0, 0, u + first * u_row, first_run, runs, column, length)
    finish(plan, noted, state, control)


def work_together(args, dims, steps, data):
    """See above."""
    plan = pointer(args[0])
    state, control = begin()
    finish(plan, together(plan, read_word(plan, STATES)), state, control)
