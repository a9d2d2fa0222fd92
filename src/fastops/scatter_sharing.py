"""How threads share the division of `scatter_div`.

They own parts of input_x, so that every element sees its updates in their order, and the results are those of one thread. What is one's
depends on the shape, and on the order of the indices:

- Indices that ascend, or descend, or do so from one part to the next: each part of the updates names rows that no other one names, unless
  they are few. A few indices tell whether that may be; the check of all of them, whether it is.
- Rows of a cache line and more, and many of them: the updates are taken in blocks, and each thread has a part of every block, which lies in
  one piece in memory. A row that two parts name belongs to the first of them, for this block.
- Narrower rows: updates of a block are listed by owners first (rows of one cache line have the same), and then each goes through its lists.
  It pays if rows come from beyond the nearer caches, and not one after another.
- Few wide rows: each thread goes through all updates, for its own columns.
- Otherwise one thread is as fast. It also does what is left from a block on of which a single part would have most.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .kernels import scatter_plan

COLUMNS = 2048  # bytes of a row that are worth a thread of their own
NARROW = 64  # bytes of a row: threads that took turns with narrower ones in a block would each have to read all updates from memory
BLOCK = 1 << scatter_plan.BLOCK_BITS  # updates that threads divide before they wait for each other, at most; and
NAMED = 8  # so few that of as many rows only one is named: then most rows are named once
LEAST_BLOCK, LEAST_UPDATES = 5_000.0, 16  # nanoseconds of work, and updates for each thread, that are worth it
MOST_ROWS = 1 << 28  # that have marks, two bytes each; and many times as many have a number in lists
SORTED = 1 << 15  # updates of a block that a thread sorts
# Bytes of an input_x of narrow rows, and of rows of one element, from which it pays to sort; and of both if many threads do.
FAR, FAR_ALONE, FAR_FOR_MANY, MANY_THREADS = 1 << 20, 1 << 24, 1 << 18, 4
TASKS = 4  # of each thread, where updates are checked, or rows come in ranges
PAGE = 1 << 12  # bytes between the rows of one update and the next, up to which the processor knows where the following ones will be
BY_RANGES, BY_COLUMNS, BY_BLOCKS, BY_SORTED_BLOCKS, ALONE = "ranges", "columns", "blocks", "sorted blocks", "alone"

_Array = np.ndarray[Any, Any]


class Sharing(NamedTuple):
    """How threads divide, and why so."""

    way: str = ALONE
    why: str = ""
    block: int = 0  # updates, if by blocks


class Order(NamedTuple):
    """What a few indices tell of all."""

    ranges: bool = False  # whether each task may have rows that no other one has
    near: bool = False  # whether rows follow one another in memory


def may_have_ranges(updates: int, workers: int) -> bool:
    """Whether so many are enough."""
    return updates >= max(2, LEAST_UPDATES * workers)


def order_of(index: _Array, row: int, workers: int) -> Order:
    """Of indices into rows of so many bytes, for so many threads."""
    flat = index.reshape(-1)
    if not may_have_ranges(flat.size, workers):
        return Order()
    share = -(-flat.size // (TASKS * workers))
    first, second = flat[::share].tolist(), flat[1::share].tolist()  # of each task
    steps = [after - before for before, after in pairwise(first)]
    distances = sorted(abs(after - before) * row for before, after in zip(first, second, strict=False))
    ranges = first[0] != first[-1] and (min(steps) >= 0 or max(steps) <= 0)
    return Order(ranges, distances[len(distances) // 2] <= PAGE)


def are_apart(extents: _Array) -> bool:
    """Whether the rows of tasks ascend, or descend, from one to the next."""
    lowest, highest = extents[extents[:, 0] <= extents[:, 1]].T  # of the tasks that have any
    return bool((highest[:-1] < lowest[1:]).all() or (lowest[:-1] > highest[1:]).all())


def far(workers: int, alone: bool) -> int:
    """Bytes of an input_x of narrow rows, or of rows of one element, from which sorting for so many threads pays."""
    return FAR_FOR_MANY if workers >= MANY_THREADS else FAR_ALONE if alone else FAR


def sharing(plan: scatter_plan.Plan, row_size: int, alone: bool, work: float, workers: int, order: Order) -> Sharing:
    """How so many threads share so many nanoseconds of work on rows of so many bytes, or of one element: not at all, where they would not
    be faster than one."""
    if order.ranges:
        return Sharing(BY_RANGES, "indices that ascend or descend, as far as a few of them tell")
    if plan.rows > MOST_ROWS:
        return _of_columns(row_size, "more rows than have marks")
    if row_size < NARROW or alone:
        least = far(workers, alone)
        if plan.rows * abs(plan.x_row) < least:
            return Sharing(ALONE, f"narrow rows of less than {least:,} bytes, which one thread divides as fast")
        if order.near:
            return Sharing(ALONE, "narrow rows that follow one another in memory, which one thread divides as fast")
        return Sharing(BY_SORTED_BLOCKS, "narrow rows from beyond the nearer caches", min(plan.last, BLOCK, SORTED * workers))
    block = min(plan.last, BLOCK, plan.rows // NAMED)
    if block >= LEAST_UPDATES * workers and block * work / plan.last >= LEAST_BLOCK:
        return Sharing(BY_BLOCKS, "many rows of a cache line and more", block)
    return _of_columns(row_size, "rows or updates too few for blocks")


def _of_columns(row_size: int, why: str) -> Sharing:
    if row_size >= 2 * COLUMNS:
        return Sharing(BY_COLUMNS, f"{why}, but wide rows")
    return Sharing(ALONE, f"{why}, and rows of less than {2 * COLUMNS:,} bytes")
