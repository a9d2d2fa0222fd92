"""`fastops bench`: NumPy against fastops on one thread and on all, on this machine, bit for bit."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import fastops

from .engine import compiler, threads
from .jobs import progress, same_bits, verdict

DTYPES = ("int32", "int64", "float32", "float64")
OPERATIONS = ("mod, array by array", "mod, by a scalar", "fmod, array by array", "fmod, by a scalar", "scatter_div, rows of 128")
SECONDS = 20.0  # for all cells, but for what their first turns take
LEAST, MOST = 3, 15  # turns of a cell
SHORT = 1e-4  # seconds of a turn, in which quick calls are repeated


class Calls(NamedTuple):
    """A first operand, and what NumPy and fastops make of it."""

    x: np.ndarray[Any, Any]
    numpys: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    ours: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    in_place: bool


class Outcome(NamedTuple):
    """Median seconds of NumPy's, the medians of how many times as fast fastops was, and whether all results had the same bits."""

    operation: str
    dtype: str
    elements: int
    numpy_seconds: float
    one_thread_speed_up: float
    all_threads_speed_up: float
    equal: bool


# --- the calls ----------------------------------------------------------------------------------------------------------------------------
def values(dtype: np.dtype[Any], n: int, low: int, high: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(n)
    if dtype.kind not in "iu":
        return random.uniform(low, high, n).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(max(low, limits.min), min(high, limits.max), n, dtype, endpoint=True)


def calls(operation: str, dtype: np.dtype[Any], n: int) -> Calls:
    """Of bfloat16 only positive numbers, for which ml_dtypes gives the bits that NumPy has for the other floats."""
    name, _, form = operation.partition(", ")
    if name == "scatter_div":
        return scatter_calls(dtype, n)
    x, y = values(dtype, n, -10_000 if dtype.kind in "if" else 0, 10_000), values(dtype, n, 1, 100)
    divisor, outs = y if form == "array by array" else y[0], (np.empty_like(x), np.empty_like(x))
    return Calls(x, lambda x: getattr(np, name)(x, divisor, outs[0]), lambda x: getattr(fastops, name)(x, divisor, outs[1]), False)


def scatter_calls(dtype: np.dtype[Any], n: int) -> Calls:
    """Of positive numbers, for NumPy's division of integers is another one."""
    columns = min(n, 128)
    updates = max(1, n // columns)
    rows = max(1, updates // 10)
    index = np.random.default_rng(n).integers(0, rows, updates)
    divisors = values(dtype, updates * columns, 1, 2).reshape(updates, columns)
    divide = np.floor_divide if dtype.kind in "iu" else np.divide

    def by_rows(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        for row, divisor in zip(index, divisors, strict=True):
            divide(x[row], divisor, x[row])
        return x

    x = values(dtype, rows * columns, 1, 100).reshape(rows, columns)
    return Calls(x, by_rows, lambda x: fastops.scatter_div(x, index, divisors), True)


# --- measuring ----------------------------------------------------------------------------------------------------------------------------
def run(dtypes: Sequence[str], sizes: Sequence[int], parts: Sequence[tuple[str, Callable[[], object]]]) -> list[Outcome]:
    """All cells, after their loops were made."""
    threads.launch()  # before Numba launches them itself
    for _, make in progress(parts, "compiling", len(parts)):
        make()
    cells = list(product(OPERATIONS, dict.fromkeys(dtypes), sizes))
    return [measure(cell, SECONDS / len(cells)) for cell in progress(cells, "measuring", len(cells))]


def measure(cell: tuple[str, str, int], seconds: float) -> Outcome:
    """In turns, so that a moment in which the machine is slow is one for all. The first turn finds everything cold, and does not count."""
    numba = compiler.numba()
    operation, dtype, n = cell
    x, numpys, ours, in_place = calls(operation, np.dtype(dtype), n)
    most, equal, turns, repeats = int(numba.get_num_threads()), True, list[list[float]](), [1, 1, 1]
    end = perf_counter() + seconds
    try:
        while len(turns) <= LEAST or (len(turns) <= MOST and perf_counter() < end):
            results, times = [], []
            for call, limit, repeat in zip((numpys, ours, ours), (most, 1, most), repeats, strict=True):
                numba.set_num_threads(limit)
                own = x.copy() if in_place else x
                start = perf_counter()
                for _ in range(repeat):
                    result = call(own)
                times.append((perf_counter() - start) / repeat)
                results.append(result.copy())
            equal &= all(same_bits((result,), (results[0],)) for result in results[1:])
            turns.append(times)
            if not in_place:
                repeats = [max(1, int(SHORT / min(taken))) for taken in zip(*turns, strict=True)]
    finally:
        numba.set_num_threads(most)
    one, all_threads = (median(times[0] / times[k] for times in turns[1:]) for k in (1, 2))
    return Outcome(operation, dtype, n, median(times[0] for times in turns[1:]), one, all_threads, equal)


# --- showing ------------------------------------------------------------------------------------------------------------------------------
def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "How many times as fast as NumPy (scatter_div: as a loop over rows), medians of turns; results are compared bit for bit."
    yield "Remainders: of random numbers of up to 10,000 by such from 1 to 100, or by one, into an array that is given by out=."
    yield "scatter_div: of random numbers from 1 to 100 by such from 1 to 2, in place. All arrays are C-contiguous, and of one dtype."
    yield ""
    yield f"{'operation':26}{'dtype':10}{'elements':>12}{'NumPy ms':>12}{'one thread':>12}{'all threads':>13}  equal"
    for outcome in outcomes:
        row = f"{outcome.operation:26}{outcome.dtype:10}{outcome.elements:12,}{outcome.numpy_seconds * 1e3:12.3f}"
        yield f"{row}{outcome.one_thread_speed_up:11.1f}x{outcome.all_threads_speed_up:12.1f}x  {'yes' if outcome.equal else 'NO'}"
    one, all_threads = (geometric_mean(ratios) for ratios in zip(*map(_speed_ups, outcomes), strict=True))
    yield f"{'geometric mean':60}{one:11.1f}x{all_threads:12.1f}x"
    yield ""
    yield verdict([(f"{outcome.operation} {outcome.dtype}", outcome.equal) for outcome in outcomes])


def _speed_ups(outcome: Outcome) -> tuple[float, float]:
    return outcome.one_thread_speed_up, outcome.all_threads_speed_up


def why_no_plot(file: Path) -> str:
    """What keeps a chart from being drawn there; nothing, if it can."""
    if importlib.util.find_spec("matplotlib") is None:
        return "--plot needs the package matplotlib, which is not installed"
    if file.suffix != ".png":
        return f"--plot wants a name that ends in .png, got {str(file)!r}"
    return "" if file.absolute().parent.is_dir() else f"--plot: there is no folder {str(file.absolute().parent)!r}"


def plot(outcomes: Sequence[Outcome], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure((8, 1.5 + 0.3 * len(outcomes)), layout="constrained")
    axes, places = figure.subplots(), np.arange(len(outcomes))[::-1]
    for k, (ratios, label) in enumerate(zip(zip(*map(_speed_ups, outcomes), strict=True), ("one thread", "all threads"), strict=True)):
        axes.barh(places + 0.2 - 0.4 * k, ratios, 0.4, label=label)
    axes.set_yticks(places, [f"{x.operation}, {x.dtype}, {x.elements:,}" for x in outcomes])
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as NumPy")
    axes.axvline(1, color="black")
    axes.legend()
    figure.savefig(file)
