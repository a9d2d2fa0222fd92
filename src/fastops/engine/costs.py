"""What running costs on this machine, measured when a function is first made: by it `threads` tells where a second thread pays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

BYTES = 8192  # of an operand: three of them fit in the first-level cache
BOUNDS = 0.01, 100.0  # nanoseconds that an element may be measured to take
TURNS = 3  # of the measurements of a loop
ENOUGH = 1_000_000  # nanoseconds after which a measurement ends early

_Loop = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 4)  # it keeps the GIL, so that no other Python thread is in the time


class Cost(NamedTuple):
    """Nanoseconds that an element takes in an inner loop, with its operands in the cache."""

    by_array: float
    by_scalar: float


def best(run: Callable[[], object], runs: int) -> float:
    """Nanoseconds of the fastest of some runs, since whatever disturbs a run makes it longer."""
    run()  # the first one finds everything cold
    times: list[int] = []
    while len(times) < 3 or (len(times) < runs and sum(times) < ENOUGH):
        start = perf_counter_ns()
        run()
        times.append(perf_counter_ns() - start)
    return float(min(times))


def operands(dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Dividends and divisors that raise no flag, and that one step of any formula reduces. (They differ, for a processor may divide equal
    ones faster.)"""
    numbers = np.arange(BYTES // dtype.itemsize)
    return (numbers * 37 % 101).astype(dtype), (numbers % 89 + 7).astype(dtype)


def of_loop(loop: int, dtype: np.dtype[Any]) -> Cost:
    """What the inner loop at that address costs, array by array and by a scalar."""
    size, n = dtype.itemsize, BYTES // dtype.itemsize
    arrays = *operands(dtype), np.empty(n, dtype)
    addresses = [x.__array_interface__["data"][0] for x in arrays]
    function = _Loop(loop)

    def time(length: int, step: int) -> float:
        words = np.array([*addresses, length, size, step, size], np.intp)
        start = words.__array_interface__["data"][0]
        return best(lambda: function(start, start + 3 * words.itemsize, start + 4 * words.itemsize, None), 5)

    turns = [(time(0, size), time(n, size), time(n, 0)) for _ in range(TURNS)]  # for a slow moment may last
    call, *whole = map(min, *turns)
    low, high = BOUNDS
    return Cost(*(min(max((least - call) / n, low), high) for least in whole))
