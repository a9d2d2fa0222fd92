"""A roofline of each loop: what arithmetic and memory let one expect on any number of threads, beside what was measured.

    python bench/roofline.py                             prints the tables
    python bench/roofline.py --write docs/scaling.md     and puts them between the markers there
    python bench/roofline.py --cores 64 --bandwidth 300  predicts for other machines (default: 64 cores, 300 GB/s)

A loop takes `arithmetic` nanoseconds an element while its operands are in the first-level cache, and moves so many bytes an element; memory
gives so many bytes a nanosecond to one thread, and so many to all. The prediction for n threads is the larger of arithmetic / n and
bytes / bandwidth. Medians of turns, in one run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numba
import numpy as np
from report import exit_code, table_of
from table import write
from tqdm import tqdm
from values import DTYPES, Array

import fastops
from fastops import info
from fastops.engine import costs, threads

LARGE = 1 << 25  # bytes of an operand, beyond all caches
TURNS = 7


class Loop(NamedTuple):
    """Nanoseconds an element: in the cache, and from memory on one and on all threads."""

    name: str
    bytes: int  # an element: two operands read, or one, and the output, whose lines are read before they are written
    arithmetic: float
    one: float
    every: float


def nanoseconds(run: Callable[[], object], elements: int) -> float:
    """An element, the median of some calls that take a millisecond or more together."""
    run()
    repeats, times = max(1, (1 << 18) // elements), []
    for _ in range(TURNS):
        start = time.perf_counter_ns()
        for _ in range(repeats):
            run()
        times.append((time.perf_counter_ns() - start) / repeats / elements)
    return median(times)


def bandwidth(count: int) -> float:
    """Bytes a nanosecond that so many threads move: read, and written to lines that are read before. (A copy might go past the caches.)"""
    source, target = np.ones(LARGE // 8), np.zeros(LARGE // 8)
    bounds = np.linspace(0, len(source), count + 1, dtype=int)
    parts = [slice(low, high) for low, high in pairwise(bounds)]
    with ThreadPoolExecutor(count) as pool:
        return 24 / nanoseconds(lambda: list(pool.map(lambda part: np.negative(source[part], target[part]), parts)), len(source))


def operands(dtype: np.dtype[Any], size: int, scalar: bool) -> tuple[Any, Any, Array]:
    random = np.random.default_rng(0)
    low = -100 if dtype.kind != "u" else 0
    x = random.integers(low, 100, size).astype(dtype)
    y = random.integers(3, 100, size).astype(dtype)
    return x, y[0] if scalar else y, np.zeros(size, dtype)


def measured(name: str, dtype_name: str, scalar: bool) -> Loop:
    dtype = DTYPES[dtype_name]
    operation = getattr(fastops, name)
    run = partial(operation, *operands(dtype, LARGE // dtype.itemsize, scalar))
    cost = costs.of_loop(operation.loop(dtype), dtype)
    times, most = [], numba.get_num_threads()
    for count in (1, most):
        numba.set_num_threads(count)
        times.append(nanoseconds(run, LARGE // dtype.itemsize))
    label = f"`{name}`, {'by a scalar' if scalar else 'array by array'}, {dtype_name}"
    return Loop(label, (3 if scalar else 4) * dtype.itemsize, cost.by_scalar if scalar else cost.by_array, *times)


def predicted(loop: Loop, cores: int, speed: float) -> float:
    return max(loop.arithmetic / cores, loop.bytes / speed)


def table(loops: list[Loop], speeds: tuple[float, float], cores: int, speed: float) -> list[str]:
    count = threads.limit()
    columns = [
        "in the cache",
        "bytes",
        "one thread: predicted",
        "measured",
        f"{count} threads: predicted",
        "measured",
        f"{cores} cores: predicted",
        "bound by",
    ]
    head = f"Nanoseconds an element, operands of {LARGE >> 20} MiB; memory: {speeds[0]:.1f} GB/s by one thread, {speeds[1]:.1f} by {count}."
    lines = []
    for loop in loops:
        one, every, many = predicted(loop, 1, speeds[0]), predicted(loop, count, speeds[1]), predicted(loop, cores, speed)
        bound = "memory" if many > loop.arithmetic / cores else "arithmetic"
        figures = (one, loop.one, every, loop.every, many)
        lines.append([loop.name, f"{loop.arithmetic:.2f}", str(loop.bytes), *(f"{figure:.3g}" for figure in figures), bound])
    ratios = [
        geometric_mean(getattr(loop, field) / predicted(loop, n, by) for loop in loops)
        for field, n, by in (("one", 1, speeds[0]), ("every", count, speeds[1]))
    ]
    means = f"Measured by predicted, geometric means: {ratios[0]:.2f} on one thread, {ratios[1]:.2f} on {count}."
    return [head, "", *table_of(["", *columns], lines), "", means]


def tabulate(options: argparse.Namespace) -> None:
    fastops.warmup()
    speeds = bandwidth(1), bandwidth(threads.limit())
    cells = [(name, dtype, scalar) for name in ("mod", "fmod") for scalar in (False, True) for dtype in DTYPES]
    loops = [measured(*cell) for cell in tqdm(cells, "measuring", disable=None)]
    made = f"{info.summary()}; {date.today()}. Made by `python bench/roofline.py`."
    text = "\n".join([*table(loops, speeds, options.cores, options.bandwidth), "", made])
    if options.write:
        write(options.write, {"roofline": text})
    else:
        print(text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="the file with the markers <!-- roofline:begin --> and end")
    parser.add_argument("--cores", type=int, default=64, help="of the machine to predict for")
    parser.add_argument("--bandwidth", type=float, default=300.0, metavar="GB/s", help="of its memory")
    options = parser.parse_args(arguments)
    return exit_code("roofline.py", lambda: tabulate(options))


if __name__ == "__main__":
    sys.exit(main())
