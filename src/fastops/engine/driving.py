"""The drivers, on one thread and on several: they walk a plan of `iteration` with any inner loop."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_ssize_t
from functools import cache
from math import inf
from typing import Any

import numpy as np

from . import compiler, costs, iteration, threads


@cache
def driver(parallel: bool) -> Any:
    word = compiler.numba().types.intp
    if parallel:
        threads.launch()  # a cached parallel function must not be loaded before: Numba ends the process
        driver(False)
    with compiler.compiling():
        from ..kernels import driver as kernel

        template = kernel.drive_in_parallel if parallel else kernel.drive_serially
        address = compiler.c_function(template, {}, template.__name__, word(word, word), parallel).address
    if parallel:
        threads.team.drive = address
    else:
        threads.team.run = address
    return CFUNCTYPE(c_ssize_t, c_ssize_t, c_ssize_t)(address)  # which releases the GIL


@cache
def copier(size: int) -> int:
    """The address of the loop that copies tiles of items of so many bytes."""
    compiler.numba()
    with compiler.compiling():
        from ..kernels import tiles

        return compiler.inner_loop(tiles.copy_loop, tiles.names(size), f"copy_{size}").address


def warm_up() -> bool:
    """Compile, or load, all that `drive` may need beside the loop; whether there are threads."""
    launched = bool(threads.launch())
    driver(launched)
    for size in (1, 2, 4, 8):
        copier(size)
    return launched


def drive(plan: iteration.Plan, loop: int, workers: int) -> int:
    """Run the inner loop at the address `loop` over a plan by `workers` threads; the floating-point flags that it raised."""
    if workers > 1 and not threads.start_is_known():
        _measure_start(workers)
    return _run(plan, loop, workers)


def share(loop: int, argument: int, tasks: int, workers: int) -> None:
    """Call a function that has the signature of an inner loop, at the address `loop`, once for each number below `tasks`: with the argument
    and the number in place of two addresses."""
    if not threads.start_is_known():
        _measure_start(workers)
    words = np.array(iteration.task_words(loop, argument, tasks), np.intp)
    driver(True)(words.__array_interface__["data"][0], workers)


def learn_start() -> None:
    """What starting threads costs, if there are any."""
    workers = threads.workers(inf)
    while workers > 1 and not threads.start_is_known():
        _measure_start(workers)


def _measure_start(workers: int) -> None:
    threads.learn_start(costs.best(lambda: _drive_nothing(workers), 30))


def _drive_nothing(workers: int) -> None:
    """All that the parallel way adds to a call: for the clock."""
    x = np.empty(2 * iteration.SHORT, np.int8)
    empty = iteration.plan(x, x, None, x.dtype)
    if empty is not None:
        _run(empty._replace(shape=[0], strides=[[0]] * 3), 0, workers)  # there is no tile, so no loop is called


def _run(plan: iteration.Plan, loop: int, workers: int) -> int:
    copy = copier(plan.out.itemsize) if any(plan.buffered) else 0
    buffers = np.empty(3 * iteration.BUFFER * workers if copy else 0, np.uint8)  # not on the threads' stacks, which may be small
    words = np.array(iteration.words(plan, loop, copy, buffers.__array_interface__["data"][0]), np.intp)
    return int(driver(workers > 1)(words.__array_interface__["data"][0], workers if workers > 1 else 0))  # or the only one's number
