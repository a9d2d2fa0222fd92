"""From operands of any rank and strides to long one-dimensional loops, shared out among threads.

`plan` broadcasts the operands, allocates the output in NumPy's memory order, sorts and merges the axes (by `numpy.nditer`, which does
just that for NumPy's own ufuncs) and takes the addresses. `driving` walks a plan with any inner loop, by address.

Two patterns are slow row by row, and are cut into tiles: short rows, for the loop is called too often, and operands whose memory runs along
different axes, for each element then costs a cache line.
"""

from __future__ import annotations

from ctypes import addressof
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from . import threads

CHUNK = 1 << 14  # elements that a thread takes at a time, about: a few microseconds of work, and within the second-level cache
LINE, CACHE = 64, 1 << 18  # bytes of a cache line, and of a second-level cache
SHORT = 128  # elements of a row that is long enough for a call of the loop
SHORTEST = 32  # shorter rows are left to NumPy's iterator, which gathers them in buffers, where tiles do not serve
TILE, TILE_BYTES = 1 << 12, 1 << 13  # of short rows: elements, and bytes of an operand
BUFFER = 1 << 15  # bytes that a thread has for a tile of an operand
LEAST = 256  # elements of a tile that is worth its while
WORTHWHILE = 20_000  # elements that save more by tiles than a plan costs

_READ: Any = ["readonly"]
_ACCESS: Any = [_READ, _READ, ["writeonly", "allocate", "no_broadcast", "no_subtype"]]
_FLAGS: Any = ["external_loop"]


class Plan(NamedTuple):
    """Operands and output as a stack of equal matrices, in tiles. What is in threes is for the two operands and the output."""

    out: np.ndarray[Any, Any]
    operands: tuple[np.ndarray[Any, Any], ...]  # kept alive, for only their addresses go on
    addresses: list[int]
    shape: list[int]  # of the stack
    strides: list[list[int]]  # from matrix to matrix
    matrix: tuple[int, int]  # rows and columns
    row_strides: list[int]
    steps: list[int]  # from column to column
    tile: tuple[int, int]  # rows and columns
    by_row: bool  # whether each row of a tile is a call of the loop, or the tile is one
    buffered: list[bool]  # what goes through a buffer, since it does not lie as the loop's calls need it


def plan(x1: Any, x2: Any, out: np.ndarray[Any, Any] | None, dtype: np.dtype[Any]) -> Plan | None:
    """The plan for operands that loops of `dtype` can read where they lie and, if given, write to `out` in any order; otherwise None.

    Also None where shapes do not fit or every axis is short: what is not plain is left to the ufunc, and to NumPy's words.
    """
    a, b = _operand(x1, dtype), _operand(x2, dtype)
    if a is None or b is None or not (out is None or _is_simple_output(out, a, b)):
        return None
    arrays = [x for x in (a, b) if x.ndim]
    if arrays and all(x.flags.c_contiguous and x.shape == arrays[0].shape for x in (*arrays, *(() if out is None else (out,)))):
        return _line(a, b, np.empty(arrays[0].shape, dtype) if out is None else out)
    if out is None and all(x.flags.fnc and x.shape == arrays[0].shape for x in arrays):
        out = np.empty(arrays[0].shape, dtype, order="F")  # as the ufunc; the iterator gives other strides to axes of one element
    try:
        iterator = np.nditer((a, b, out), _FLAGS, _ACCESS, (dtype, dtype, dtype), order="K")
    except ValueError:
        return None
    views = iterator.itviews
    shape, strides = views[2].shape, [view.strides for view in views]
    *others, inner = range(len(shape))
    columns, axis = shape[inner], _row_axis(shape, strides, dtype.itemsize)
    rows, tile = 1, (1, _segment(columns))
    if axis is not None:
        rows, tile = shape[axis], _tile(shape[axis], columns, dtype.itemsize)
        if tile[0] * tile[1] < LEAST:
            rows, tile, axis = 1, (1, columns), None
    if axis is None and columns < SHORTEST:
        return None
    if axis is not None:
        others.remove(axis)
    row_strides = [0 if axis is None else stride[axis] for stride in strides]
    steps = [stride[inner] for stride in strides]
    by_row = columns >= SHORT
    pairs = zip(row_strides, steps, strict=True)
    return Plan(
        iterator.operands[2],
        (a, b),
        [view.ctypes.data for view in views],
        [shape[k] for k in others],
        [[stride[k] for k in others] for stride in strides],
        (rows, columns),
        row_strides,
        steps,
        tile,
        by_row,
        [tile[0] > 1 and (0 < abs(row) < abs(step) if by_row else row != step * columns) for row, step in pairs],
    )


def _line(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> Plan | None:
    """The plan for operands that lie in memory as the output does, or are one element: without an iterator, which takes longer."""
    if out.size < SHORTEST:
        return None
    addresses = [x.__array_interface__["data"][0] for x in (a, b, out)]
    steps = [x.itemsize if x.ndim else 0 for x in (a, b, out)]
    return Plan(out, (a, b), addresses, [], [[], [], []], (1, out.size), [0, 0, 0], steps, (1, _segment(out.size)), True, [False] * 3)


def _segment(columns: int) -> int:
    """Of a long row, the elements that a thread takes at a time: the longer the better for memory, but enough for all threads to end at
    about the same time, and whole cache lines."""
    return min(columns, min(max(columns // 32, CHUNK // 4), 4 * CHUNK) // LINE * LINE or LINE)


def may_have_tiles(x1: Any, x2: Any, out: np.ndarray[Any, Any] | None) -> bool:
    """Whether their plan may consist of tiles: told in a small part of the time that a plan takes, and never in error if not."""
    if getattr(x1, "ndim", 0) < 2 and getattr(x2, "ndim", 0) < 2:
        return False
    arrays = [x for x in (x1, x2, out) if isinstance(x, np.ndarray) and x.ndim]
    longest, strided = 0, False
    for x in arrays:
        length = x.shape[-1]
        if length > 1:
            longest = max(longest, length)
            strided = strided or abs(x.strides[-1]) > x.itemsize
    if longest >= SHORT and not strided:
        return False
    same = all(x.shape == arrays[0].shape for x in arrays)
    return not (same and (all(x.flags.c_contiguous for x in arrays) or all(x.flags.f_contiguous for x in arrays)))


def _row_axis(shape: tuple[int, ...], strides: list[tuple[int, ...]], size: int) -> int | None:
    """The axis along which tiles have their rows, the last being that of their columns; None if the last is enough.

    Items of eight bytes are not worth a tile where the cache keeps the lines of a row for the rows that follow. Of steps by a multiple of
    a power of two it keeps the fewer the larger the power is.
    """
    *others, inner = range(len(shape))
    for stride in strides:
        axis = inner
        for other in others:
            if 0 < abs(stride[other]) < abs(stride[axis]):
                axis = other
        if axis != inner:
            kept = shape[inner] * max(stride[inner] & -stride[inner], LINE) <= CACHE
            return None if size == 8 and kept and shape[inner] >= SHORTEST else axis
    if not others or shape[inner] >= SHORT:
        return None
    return others[-1] if shape[others[-1]] * shape[inner] >= LEAST else max(others, key=shape.__getitem__)


def _tile(rows: int, columns: int, size: int) -> tuple[int, int]:
    """Of short rows whole ones; of others two cache lines down, so that none is fetched twice, and as far across as a buffer reaches."""
    line = LINE // size
    if columns < SHORT:
        height = min(rows, min(TILE, TILE_BYTES // size) // columns)
        return (height // line * line or height), columns
    height = min(rows, 2 * line)
    return height, min(columns, BUFFER // size // height // line * line)


def _operand(x: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """`x` as an aligned array of `dtype`, if nothing can be lost or need a warning."""
    if type(x) is int and dtype.kind in "iu":
        try:
            return np.asarray(x, dtype)
        except OverflowError:
            return None
    if type(x) in (int, float):
        plain = x == 0 or x != x or 2.0**-14 <= abs(x) < 2.0**15  # no format overflows or underflows
        return np.asarray(float(x)).astype(dtype) if plain else None
    x = np.asarray(x)
    return x if x.dtype == dtype and x.flags.aligned else None


def _is_simple_output(out: np.ndarray[Any, Any], *operands: np.ndarray[Any, Any]) -> bool:
    """Whether loops may write `out` in any order: same dtype, no cell twice, and no memory of an operand except cell by cell."""
    if out.dtype != operands[0].dtype or not out.flags.aligned or not out.flags.writeable:
        return False
    return cells_apart(out) and all(x is out or not np.may_share_memory(x, out) or _same_cells(x, out) for x in operands)


def cells_apart(x: np.ndarray[Any, Any]) -> bool:
    """Whether each axis steps over all that the shorter strides span, so that no two elements share memory."""
    if x.flags.c_contiguous:
        return True
    extent, apart = x.itemsize, True
    for stride, length in sorted((abs(stride), length) for stride, length in zip(x.strides, x.shape, strict=True) if length > 1):
        apart &= stride >= extent
        extent += stride * (length - 1)
    return apart


def _same_cells(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    return x.shape == y.shape and x.strides == y.strides and x.ctypes.data == y.ctypes.data


def words(plan: Plan, loop: int, copy: int, buffers: int) -> list[int]:
    """The plan as the words that `kernels.driver` reads; the first counts the tasks taken, the second collects the flags. Tasks are groups
    of tiles, or segments of long rows, and begin on cache lines."""
    (rows, columns), (height, width), size = plan.matrix, plan.tile, plan.out.dtype.itemsize
    per_task, margin = max(1, CHUNK // (height * width)), 0
    if height == 1 and width < columns:
        margin = LINE // size
    elif height == 1 and plan.shape:
        line = LINE // gcd(LINE, abs(plan.strides[2][-1]))
        per_task = -(-per_task // line) * line
    shape = [*plan.shape, -(-(columns + margin) // width), -(-rows // height)]
    strides = [[*stride, width * step, height * row] for stride, step, row in zip(plan.strides, plan.steps, plan.row_strides, strict=True)]
    team = addressof(threads.team)
    return [0, 0, team, loop, 0, copy, per_task, prod(shape), height, width, rows, columns, plan.by_row, size, len(shape), buffers, BUFFER,
            *plan.addresses, *plan.row_strides, *plan.steps, *plan.buffered, *shape, *strides[0], *strides[1], *strides[2]]  # fmt: skip


def task_words(loop: int, argument: int, tasks: int) -> list[int]:
    """The words for calls of `loop` with the same argument and another number each, as if these were addresses of operands."""
    team, stack = addressof(threads.team), [tasks, 1, 1]
    return [0, 0, team, loop, 0, 0, 1, tasks, 1, 1, 1, 1, True, 1, len(stack), 0, BUFFER,
            argument, 0, 0, *[0] * 9, *stack, *[0, 0, 0], *[1, 0, 0], *[0, 0, 0]]  # fmt: skip
