"""From operands of any rank and strides to long one-dimensional loops, shared out among threads.

`plan` broadcasts the operands, allocates the output in NumPy's memory order, sorts and merges the axes (by `numpy.nditer`, which does
just that for NumPy's own ufuncs) and takes the addresses. `drive` walks a plan with any inner loop, by address.
"""

from __future__ import annotations

from functools import cache
from math import gcd, inf, prod
from typing import Any, NamedTuple

import numpy as np

from . import compiler, costs, threads

CHUNK = 1 << 14  # elements that a thread takes at a time, about: some 10 microseconds of work, and within the second-level cache


_READ: Any = ["readonly"]
_ACCESS: Any = [_READ, _READ, ["writeonly", "allocate", "no_broadcast", "no_subtype"]]
_FLAGS: Any = ["external_loop"]
TINY = 8  # a last axis so short leaves its place to the longest
SHORT = 32  # loops of fewer elements cost more to call than to run: NumPy's iterator, which gathers them in buffers, does better


class Plan(NamedTuple):
    """Operands and output as a stack of equal loops: outer `shape`, loop length, and for each operand address, outer strides and step."""

    out: np.ndarray[Any, Any]
    operands: tuple[np.ndarray[Any, Any], ...]  # kept alive, for only their addresses go on
    shape: tuple[int, ...]
    length: int
    addresses: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]


def plan(x1: Any, x2: Any, out: np.ndarray[Any, Any] | None, dtype: np.dtype[Any]) -> Plan | None:
    """The plan for operands that loops of `dtype` can read where they lie and, if given, write to `out` in any order; otherwise None.

    Also None where shapes do not fit or every axis is short: what is not plain is left to the ufunc, and to NumPy's words.
    """
    a, b = _operand(x1, dtype), _operand(x2, dtype)
    if a is None or b is None or not (out is None or _is_simple_output(out, a, b)):
        return None
    arrays = [x for x in (a, b) if x.ndim]
    if out is None and all(x.flags.fnc and x.shape == arrays[0].shape for x in arrays):
        out = np.empty(arrays[0].shape, dtype, order="F")  # as the ufunc; the iterator gives other strides to axes of one element
    try:
        iterator = np.nditer((a, b, out), _FLAGS, _ACCESS, (dtype, dtype, dtype), order="K")
    except ValueError:
        return None
    result, views = iterator.operands[2], list(iterator.itviews)
    shape = views[2].shape
    longest = max(range(len(shape)), key=shape.__getitem__)
    if shape[-1] < TINY:
        views, shape = [view.swapaxes(longest, -1) for view in views], views[2].swapaxes(longest, -1).shape
    if shape[-1] < SHORT:
        return None
    return Plan(
        result,
        (a, b),
        shape[:-1],
        shape[-1],
        tuple(view.__array_interface__["data"][0] for view in views),
        tuple(view.strides[:-1] for view in views),
        tuple(view.strides[-1] for view in views),
    )


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
    extent, apart = x.itemsize, True
    for stride, length in sorted((abs(stride), length) for stride, length in zip(x.strides, x.shape, strict=True) if length > 1):
        apart &= stride >= extent
        extent += stride * (length - 1)
    return apart


def _same_cells(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    return x.shape == y.shape and x.strides == y.strides and x.ctypes.data == y.ctypes.data


def _words(plan: Plan, loop: int) -> list[int]:
    """The plan as the words that `kernels.driver` reads; the first counts the tasks taken. Tasks are segments of long loops or groups of
    short ones, and begin on cache lines."""
    rows, size = prod(plan.shape), plan.out.dtype.itemsize
    per_task, segments = 1, 1
    if plan.length < CHUNK:
        line = 64 // gcd(64, abs(plan.strides[2][-1])) if plan.shape else 1
        per_task = -(-max(1, CHUNK // plan.length) // line) * line
    else:
        segments = -(-(plan.length + 64 // size) // CHUNK)
    tasks = -(-rows // per_task) * segments
    return [0, loop, tasks, per_task, segments, CHUNK, rows, plan.length, size, len(plan.shape),
            *plan.addresses, *plan.steps, *plan.shape, *plan.strides[0], *plan.strides[1], *plan.strides[2]]  # fmt: skip


@cache
def driver() -> Any:
    threads.launch()  # a cached parallel function must not be loaded before: Numba ends the process
    with compiler.compiling():
        from ..kernels import driver as kernel

        word = compiler.numba().types.intp
        return compiler.function(kernel.drive_tasks, {}, "drive_tasks", word(word, word), parallel=True).function


def drive(plan: Plan, loop: int, workers: int) -> int:
    """Run the inner loop at the address `loop` over a plan by `workers` threads; the floating-point flags that it raised."""
    if not threads.start_is_known():
        threads.learn_start(costs.best(lambda: _drive_nothing(workers), 30))
    return _run(plan, loop, workers)


def _drive_nothing(workers: int) -> None:
    """All that the parallel way adds to a call: for the clock."""
    x = np.empty(2 * SHORT, np.int8)
    empty = plan(x, x, None, x.dtype)
    with threads.Team(inf):
        if empty is not None:
            _run(empty._replace(shape=(0,), strides=((0,),) * 3), 0, workers)  # there is no row, so no loop is called


def _run(plan: Plan, loop: int, workers: int) -> int:
    words = np.array(_words(plan, loop), np.intp)
    return int(driver()(words.__array_interface__["data"][0], workers))
