"""What the kernels of `scatter_div` read: a plan, and the phases of its work. (Without Numba, for those who make plans.)"""

from __future__ import annotations

import ctypes

CHECK, WHOLE, DIVIDE, RANGE, OWN = range(5)  # phases, of which kernels/scatter.py tells
OUTSIDE, ZERO = 16, 32  # what is found, beside the floating-point flags: an index, a divisor
CLAIMED, DONE, REFUSED = 0, 8, 16  # of a block: tasks that were taken, tasks that are done, and whether it cannot be shared
STATE_SIZE, MOST_PARTS = 128, 128
AT_ONCE = 64  # updates between two looks at how full lists are, or ahead
BLOCK_BITS = 20  # of the number of an update in its block, in an entry of a list; the bits above are its row's

_NAMES = (
    *("phase", "found", "first", "last", "share"),  # share: updates, columns or runs of a task
    *("divide", "integer"),  # the function of the dtype, by address; whether that is an integer's
    *("indices", "index_step", "narrow"),  # narrow: of 32 bits
    *("x", "rows", "x_row", "x_step", "updates", "update_row", "update_step", "runs", "length", "offsets"),
    # Updates, parts and, if it is sorted, pieces of a block; of two blocks in turn a byte for each row, and lists of the parts; of all
    # blocks, and what comes before them, their states.
    *("block", "parts", "pieces", "marks", "lists", "lengths", "capacity", "states"),
    "left",  # updates, from a block on that was refused
    "extents",  # of each task the lowest row that its updates name, and the highest; 0 if nobody asks
)


class Plan(ctypes.Structure):
    """Updates first, first + 1, …, last - 1, and where they lie: addresses and steps in bytes.

    A row is a stack of equal runs of `length` elements, whose offsets from its beginning, in input_x and in updates, are a table.
    """

    _fields_ = [(name, ctypes.c_ssize_t) for name in _NAMES]


(PHASE, FOUND, FIRST, LAST, SHARE, DIVISION, INTEGER, INDICES, INDEX_STEP, NARROW, X, ROWS, X_ROW, X_STEP, UPDATES, UPDATE_ROW, UPDATE_STEP,
    RUNS, LENGTH, OFFSETS, BLOCK, PARTS, PIECES, MARKS, LISTS, LENGTHS, CAPACITY, STATES, LEFT, EXTENTS) = (
    getattr(Plan, name).offset for name in _NAMES)  # fmt: skip

# What the function of a dtype is given in place of addresses of operands: a plan; where the numbers of rows come from, by which steps and
# in which form, and how many; marks, if there are any, and the part whose rows are meant; where the updates begin; from which run to which,
# from which column on, and how many columns. Last comes what it notes.
CALL = range(13)
