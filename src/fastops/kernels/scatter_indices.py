# mypy: ignore-errors
"""What `scatter_div` does with indices alone, for all dtypes: it checks them, and tells whose rows they are."""

import sys

import numpy as np
from numba import types

from .primitives import inlined, pointer, prefetch, read_word, reader, scratch, write_word, writer
from .scatter_plan import (
    AT_ONCE,
    BLOCK,
    BLOCK_BITS,
    CAPACITY,
    EXTENTS,
    FIRST,
    INDEX_STEP,
    INDICES,
    LAST,
    LEFT,
    LENGTHS,
    LISTS,
    MARKS,
    MOST_PARTS,
    NARROW,
    PARTS,
    PIECES,
    REFUSED,
    ROWS,
    SHARE,
    STATE_SIZE,
    STATES,
    X_ROW,
    X,
)

NUMBERS = (1 << BLOCK_BITS) - 1
MIXER = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio: its products spread neighbours evenly
AT_A_TIME = 512  # indices that a check looks at between two looks ahead, and
DISTANCE = 8192  # bytes that it looks ahead, for the processor does not look far enough
BY_32, BY_64, BY_LIST, FOR_ZEROS = range(4)  # where the numbers of rows come from; and no rows at all

read_32, read_64 = reader(types.int32, aligned=False), reader(types.int64, aligned=False)
ends_memory = scratch(8 * MOST_PARTS)
read_byte, write_byte = reader(types.uint8), writer(types.uint8)


@inlined
def extent(indices, step, narrow, first, last):
    """The least of the indices first, first + 1, …, last - 1, and the greatest; without any, the first is above the second."""
    least_32, most_32, least_64, most_64 = np.int32(0x7FFFFFFF), np.int32(-0x80000000), np.int64(sys.maxsize), np.int64(-sys.maxsize)
    ahead = first
    while ahead < last:
        end = min(ahead + AT_A_TIME, last)
        place = pointer(indices + ahead * step)
        for line in range(0, (end - ahead) * step if step <= 64 else 0, 64):
            prefetch(place, line + DISTANCE)
        if narrow and step == 4:
            for k in range(end - ahead):
                index = read_32(place, k * 4)
                least_32, most_32 = min(index, least_32), max(index, most_32)
        elif narrow:
            for k in range(end - ahead):
                index = read_32(place, k * step)
                least_32, most_32 = min(index, least_32), max(index, most_32)
        elif step == 8:
            for k in range(end - ahead):
                index = read_64(place, k * 8)
                least_64, most_64 = min(index, least_64), max(index, most_64)
        else:
            for k in range(end - ahead):
                index = read_64(place, k * step)
                least_64, most_64 = min(index, least_64), max(index, most_64)
        ahead = end
    return (np.int64(least_32), np.int64(most_32)) if narrow else (least_64, most_64)


@inlined
def named(source, step, kind, k):
    """The row that the update of number k names, and where it is among the updates."""
    if kind == BY_32:
        return np.intp(read_32(source, k * step)), k
    if kind == BY_64:
        return np.intp(read_64(source, k * step)), k
    entry = read_64(source, k * 8)
    return entry >> BLOCK_BITS, entry & NUMBERS


@inlined
def row_of(source, step, kind, k, rows):
    """The same for what is read or written there: always one of so many rows, also where another thread has changed the index since the
    check."""
    row, number = named(source, step, kind, k)
    return row if np.uint64(row) < np.uint64(rows) else 0, number


@inlined
def beginning(plan, task):
    """The number of the update that a task begins with. Where extents are asked for, that is none that names the row of the one before."""
    first, last, share = read_word(plan, FIRST), read_word(plan, LAST), read_word(plan, SHARE)
    k = min(first + task * share, last)
    if read_word(plan, EXTENTS) and first < k:
        indices, step, kind = pointer(read_word(plan, INDICES)), read_word(plan, INDEX_STEP), BY_32 if read_word(plan, NARROW) else BY_64
        before, _ = named(indices, step, kind, k - 1)
        while k + share <= last and named(indices, step, kind, k + share - 1)[0] == before:  # where the next task begins, this one does
            k += share
        while k < last and named(indices, step, kind, k)[0] == before:
            k += 1
    return k


@inlined
def mark(plan, block):
    """Give each row that the updates of a block name to the part of the block that names it first, and list the updates of other parts that
    are its. False if a list is full, for then one part would have far more to do than the others."""
    share, capacity, parts, rows = read_word(plan, SHARE), read_word(plan, CAPACITY), read_word(plan, PARTS), read_word(plan, ROWS)
    indices, step, kind = pointer(read_word(plan, INDICES)), read_word(plan, INDEX_STEP), BY_32 if read_word(plan, NARROW) else BY_64
    turn, first = block % 2, block * read_word(plan, BLOCK)
    last = min(first + read_word(plan, BLOCK), read_word(plan, LAST))
    marks, lengths = pointer(read_word(plan, MARKS) + turn * rows), pointer(read_word(plan, LENGTHS) + turn * parts * 8)
    lists = pointer(read_word(plan, LISTS) + turn * parts * capacity * 8)
    for part in range(parts - 1, -1, -1):
        write_word(lengths, part * 8, 0)
        for k in range(first + part * share, min(first + part * share + share, last)):
            row, _ = row_of(indices, step, kind, k, rows)
            write_byte(marks, row, np.uint8(part))
    for part in range(1, parts):
        for k in range(first + part * share, min(first + part * share + share, last)):
            row, _ = row_of(indices, step, kind, k, rows)
            owner = min(np.intp(read_byte(marks, row)), parts - 1)  # which another index may have, since it was marked
            if owner != part:
                length = read_word(lengths, owner * 8)
                if length == capacity:
                    return False
                write_word(lists, (owner * capacity + length) * 8, (row << BLOCK_BITS) | (k - first))
                write_word(lengths, owner * 8, length + 1)
    return True


@inlined
def sort(plan, block, piece):
    """List the updates of a piece of a block for the parts that own their rows: rows that begin in one cache line are one part's. False if
    a list is full, as `mark`. There are two parts or more."""
    capacity, parts, pieces, x, x_row, rows = (read_word(plan, CAPACITY), read_word(plan, PARTS), read_word(plan, PIECES),
        read_word(plan, X), read_word(plan, X_ROW), read_word(plan, ROWS))  # fmt: skip
    indices, step, kind = pointer(read_word(plan, INDICES)), read_word(plan, INDEX_STEP), BY_32 if read_word(plan, NARROW) else BY_64
    start = block * read_word(plan, BLOCK)
    first = start + piece * read_word(plan, SHARE)
    last = min(first + read_word(plan, SHARE), start + read_word(plan, BLOCK), read_word(plan, LAST))
    list_number = (block % 2 * pieces + piece) * parts
    lists, lengths, ends, bits = read_word(plan, LISTS), pointer(read_word(plan, LENGTHS)), ends_memory(), 0
    while (1 << bits) < parts:
        bits += 1
    for part in range(parts):
        write_word(ends, part * 8, lists + (list_number + part) * capacity * 8)
    while first < last:
        for k in range(first, min(first + AT_ONCE, last)):
            row, _ = row_of(indices, step, kind, k, rows)
            mixed = np.int64((x + row * x_row) >> 6) * MIXER
            part = np.intp((mixed >> (64 - bits)) & (parts - 1))
            end = read_word(ends, part * 8)
            write_word(pointer(end), 0, (row << BLOCK_BITS) | (k - start))
            write_word(ends, part * 8, end + 8)
        first += AT_ONCE
        for part in range(parts):
            if (read_word(ends, part * 8) - lists) // 8 - (list_number + part) * capacity + AT_ONCE > capacity:
                return False
    for part in range(parts):
        write_word(lengths, (list_number + part) * 8, (read_word(ends, part * 8) - lists) // 8 - (list_number + part) * capacity)
    return True


@inlined
def prepare(plan, task):
    """Of the tasks that prepare blocks, in the blocks' order, the one of that number."""
    pieces = read_word(plan, PIECES)
    block = task // pieces if pieces else task
    if not (sort(plan, block, task % pieces) if pieces else mark(plan, block)):
        write_word(pointer(read_word(plan, STATES)), (block + 1) * STATE_SIZE + REFUSED, 1)
        write_word(plan, LEFT, read_word(plan, LAST) - block * read_word(plan, BLOCK))
