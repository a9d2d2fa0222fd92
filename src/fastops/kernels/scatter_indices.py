# mypy: ignore-errors
"""What `scatter_div` does with indices alone, for all dtypes: it checks them, and notes updates in lists of the owners of rows."""

import numpy as np
from numba import njit, types

from .lanes import Lane, operation
from .primitives import address, or_atomically, pointer, prefetch, read_word, reader, scratch, write_word
from .scatter_plan import (
    AT_ONCE,
    BLOCK_BITS,
    CAPACITY,
    CROWDED,
    FIRST,
    FOUND,
    INDEX_STEP,
    INDICES,
    LAST,
    LENGTHS,
    LISTS,
    MOST_OWNERS,
    NARROW,
    OUTSIDE,
    OWNERS,
    PARTITION,
    PHASE,
    ROWS,
    SHARE,
    WHOLE,
    X_ROW,
    X,
)

NUMBERS = (1 << BLOCK_BITS) - 1
MIXER = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio: its products spread neighbours evenly
FAR = 8192  # bytes that a check looks ahead, for the processor does not look far enough
BY_32, BY_64, BY_LIST = range(3)  # where the numbers of rows come from

inlined = njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
read_32, read_64 = reader(types.int32, aligned=False), reader(types.int64, aligned=False)
owner_memory = scratch(8 * MOST_OWNERS)


def note_outside(index: Lane, last: Lane, found: Lane) -> Lane:
    """Of a negative index, and of one above the last row, a difference is negative."""
    return found | index | (last - index)


outside_32 = operation(note_outside, types.int32, types.int32, types.int32, types.int32)
outside_64 = operation(note_outside, types.int64, types.int64, types.int64, types.int64)


@inlined
def are_outside(indices, step, narrow, first, last, rows):
    """Whether one of the indices first, first + 1, …, last - 1 is no row."""
    found_32, found_64 = np.int32(0), np.int64(0)
    last_32 = np.int32(min(rows - 1, 0x7FFFFFFF))
    ahead = first
    while ahead < last:
        end = min(ahead + AT_ONCE, last)
        place = pointer(indices + ahead * step)
        for line in range(0, (end - ahead) * step, 64):
            prefetch(place, line + FAR)
        if narrow and step == 4:
            for k in range(end - ahead):
                found_32 = outside_32(read_32(place, k * 4), last_32, found_32)
        elif narrow:
            for k in range(end - ahead):
                found_32 = outside_32(read_32(place, k * step), last_32, found_32)
        elif step == 8:
            for k in range(end - ahead):
                found_64 = outside_64(read_64(place, k * 8), rows - 1, found_64)
        else:
            for k in range(end - ahead):
                found_64 = outside_64(read_64(place, k * step), rows - 1, found_64)
        ahead = end
    return found_32 < 0 or found_64 < 0


@inlined
def row_of(source, step, kind, k):
    """The row that the update of number k names, and where it is among the updates."""
    if kind == BY_32:
        return np.intp(read_32(source, k * step)), k
    if kind == BY_64:
        return np.intp(read_64(source, k * step)), k
    entry = read_64(source, k * 8)
    return entry >> BLOCK_BITS, entry & NUMBERS


@inlined
def partition(plan, first, last, sub):
    """Note the updates in lists, one for each owner of rows: rows whose first bytes share a cache line have the same owner. Not if an index
    is no row, nor if a list is full, for then one owner would have far more to do than the others; what was found."""
    owners, capacity, block = read_word(plan, OWNERS), read_word(plan, CAPACITY), read_word(plan, FIRST)
    indices, step, narrow = pointer(read_word(plan, INDICES)), read_word(plan, INDEX_STEP), read_word(plan, NARROW)
    x, x_row = read_word(plan, X), read_word(plan, X_ROW)
    lists, lengths = read_word(plan, LISTS) + sub * owners * capacity * 8, pointer(read_word(plan, LENGTHS) + sub * owners * 8)
    ends, bits = owner_memory(), 0
    while (1 << bits) < owners:
        bits += 1
    for owner in range(owners):
        write_word(ends, owner * 8, 0)
    for start in range(first, last, AT_ONCE):
        end = min(start + AT_ONCE, last)
        if are_outside(address(indices), step, narrow, start, end, read_word(plan, ROWS)):
            return OUTSIDE
        for k in range(start, end):
            row = np.intp(read_32(indices, k * step)) if narrow else np.intp(read_64(indices, k * step))
            mixed = np.int64((x + row * x_row) >> 6) * MIXER
            owner = np.intp((mixed >> (64 - bits)) & (owners - 1))
            place = read_word(ends, owner * 8)
            write_word(pointer(lists), (owner * capacity + place) * 8, (row << BLOCK_BITS) | (k - block))
            write_word(ends, owner * 8, place + 1)
        for owner in range(owners):
            if read_word(ends, owner * 8) + AT_ONCE > capacity:
                return CROWDED
    for owner in range(owners):
        write_word(lengths, owner * 8, read_word(ends, owner * 8))
    return 0


def look(args, dims, steps, data):
    """What needs to see no more than the indices: a task of CHECK, WHOLE or PARTITION. It is compiled once for all dtypes."""
    plan, task = pointer(args[0]), args[1]
    phase, share, first, last = read_word(plan, PHASE), read_word(plan, SHARE), read_word(plan, FIRST), read_word(plan, LAST)
    if phase != WHOLE:
        first += task * share
        last = min(first + share, last)
    if phase == PARTITION:
        found = partition(plan, first, last, task)
    else:
        outside = are_outside(
            read_word(plan, INDICES), read_word(plan, INDEX_STEP), read_word(plan, NARROW), first, last, read_word(plan, ROWS)
        )
        found = OUTSIDE if outside else 0
    if found:
        or_atomically(args[0] + FOUND, found)
