"""From operands of any rank and strides to long one-dimensional loops, shared out among threads.

`plan` broadcasts the operands, allocates the output in NumPy's memory order, sorts and merges the axes (by `numpy.nditer`, which does just that
for NumPy's own ufuncs) and takes the addresses. `drive` walks a plan with any inner loop, by address.
"""

from __future__ import annotations

from functools import cache
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from . import compiler, threads

CHUNK = 1 << 14  # elements that a thread takes at a time, about: some 10 microseconds of work, and within the second-level cache


class Plan(NamedTuple):
    """Operands and output as a stack of equal loops: outer `shape`, loop length, and for each operand address, outer strides and step."""

    out: np.ndarray[Any, Any]
    shape: tuple[int, ...]
    length: int
    addresses: tuple[int, int, int]
    strides: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    steps: tuple[int, int, int]


def operand(x: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """`x` as an array that loops of `dtype` can read where it lies, or a scalar converted without loss of range; otherwise None."""
    if type(x) in (int, float):
        try:
            converted = np.asarray(x, dtype) if dtype.kind in "iu" else np.asarray(float(x)).astype(dtype)
        except OverflowError:
            return None  # the ufunc reports it
        return converted if dtype.kind in "iu" or x == 0 or 2.0**-14 <= abs(x) < 2.0**15 or x != x else None
    x = np.asarray(x)
    return x if x.dtype == dtype and x.flags.aligned else None


def is_simple_output(out: np.ndarray[Any, Any], *operands: np.ndarray[Any, Any]) -> bool:
    """Whether loops may write `out` in any order: same dtype, no cell twice, and no memory of an operand except cell by cell."""
    if out.dtype != operands[0].dtype or not out.flags.aligned or not out.flags.writeable:
        return False
    extent = out.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(out.strides, out.shape, strict=True) if length > 1):
        if stride < extent:
            return False
        extent = stride * (length - 1) + extent
    return all(x is out or not np.may_share_memory(x, out) or _same_cells(x, out) for x in operands)


def _same_cells(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    return x.shape == y.shape and x.strides == y.strides and x.ctypes.data == y.ctypes.data


_READ, _WRITE = ["readonly"], ["writeonly", "allocate", "no_broadcast", "no_subtype"]


def plan(x1: np.ndarray[Any, Any], x2: np.ndarray[Any, Any], out: np.ndarray[Any, Any] | None) -> Plan:
    """The plan for two operands of one dtype; ValueError where shapes do not fit, as from the ufunc."""
    iterator = np.nditer((x1, x2, out), ["external_loop"], [_READ, _READ, _WRITE], (x1.dtype,) * 3, order="K")  # type: ignore[arg-type]
    result, views = iterator.operands[2], iterator.itviews
    shape = views[2].shape
    return Plan(
        result,
        shape[:-1],
        shape[-1],
        tuple(view.__array_interface__["data"][0] for view in views),
        tuple(view.strides[:-1] for view in views),
        tuple(view.strides[-1] for view in views),
    )


def _words(plan: Plan, loop: int, workers: int) -> list[int]:
    """The plan as the words that `drive_tasks` reads. Tasks are segments of long loops or groups of short ones, and begin on cache lines."""
    rows = prod(plan.shape)
    size = plan.out.dtype.itemsize
    per_task = 1
    if plan.length < CHUNK:
        line = 64 // gcd(64, abs(plan.strides[2][-1]) if plan.shape else 64)
        per_task = -(-max(1, CHUNK // plan.length) // line) * line
    segments = -(-(plan.length + 64 // size) // CHUNK) if plan.length >= CHUNK else 1
    tasks = -(-rows // per_task) * segments
    outer = [word for k in range(3) for word in plan.strides[k]]
    return [0, loop, workers, tasks, per_task, segments, CHUNK, rows, plan.length, size, len(plan.shape),
            *plan.addresses, *plan.steps, *plan.shape, *outer]  # fmt: skip


@cache
def _driver() -> Any:
    threads.launch()  # a cached parallel function must not be loaded before: Numba ends the process
    from ..kernels import driver

    numba = compiler.numba()
    signature = numba.types.intp(numba.types.Array(numba.types.intp, 1, "C"))
    return compiler.function(driver.drive_tasks, {}, "drive_tasks", signature, parallel=True).function


def drive(plan: Plan, loop: int, workers: int) -> int:
    """Run the inner loop at the address `loop` over a plan by `workers` threads; the floating-point flags that it raised."""
    return int(_driver()(np.array(_words(plan, loop, workers), np.intp)))
