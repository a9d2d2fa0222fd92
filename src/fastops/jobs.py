"""Jobs that people have, done by NumPy and by fastops, timed and compared bit for bit: what `python -m fastops` runs."""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import pi
from typing import Any, NamedTuple

import numpy as np

import fastops

from . import info, scatter, ufuncs

REPETITIONS = 5
DAY = 86_400 * 10**9  # nanoseconds
Arrays = tuple[np.ndarray[Any, Any], ...]


class Job(NamedTuple):
    """`make(random, n)` gives the operands, of about n elements; `run(library, *operands)` does the job with numpy or with fastops."""

    name: str
    elements: int
    make: Callable[[np.random.Generator, int], Arrays]
    run: Callable[..., Arrays]
    loops: tuple[str, ...]  # what it needs compiled
    in_place: bool = False  # changes its first operand
    package: str | None = None  # to be installed beside fastops


class Outcome(NamedTuple):
    """Median seconds of NumPy and of fastops, and whether every result had the same bits."""

    numpy_seconds: float
    fastops_seconds: float
    equal: bool


# --- the jobs -----------------------------------------------------------------------------------------------------------------------------
def angles(dtype: str) -> Callable[[np.random.Generator, int], Arrays]:
    return lambda random, n: (random.normal(0, 1000, n).astype(dtype),)


def to_two_pi(library: Any, phases: np.ndarray[Any, Any]) -> Arrays:
    return (library.remainder(phases, 2 * pi),)


def hashes(random: np.random.Generator, n: int) -> Arrays:
    return (random.integers(0, 2**64, n, np.uint64),)


def to_buckets(library: Any, hashed: np.ndarray[Any, Any]) -> Arrays:
    return (library.remainder(hashed, 1_000_003),)


def timestamps(random: np.random.Generator, n: int) -> Arrays:
    """Nanoseconds since 1970, of the years 1900 to 2100, and their days counted from a Monday."""
    stamps = random.integers(-25_567 * DAY, 47_482 * DAY, n)
    return stamps, stamps // DAY + 3  # 1 January 1970 was a Thursday


def time_and_weekday(library: Any, stamps: np.ndarray[Any, Any], days: np.ndarray[Any, Any]) -> Arrays:
    return library.remainder(stamps, DAY), library.remainder(days, 7)


def coordinates(random: np.random.Generator, n: int) -> Arrays:
    """Pixels that a warp threw off an image of tiles: each column has its own width, each row its own height."""
    side = max(1, round(n**0.5))
    x, y = random.integers(-20_000, 20_000, (2, side, side), np.int32)
    widths, heights = random.integers(100, 2_000, (2, side), np.int32)
    return x, y, widths, heights[:, np.newaxis]


def wrap(library: Any, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], widths: Any, heights: Any) -> Arrays:
    return library.remainder(x, widths), library.remainder(y, heights)


def activations(dtype: str) -> Callable[[np.random.Generator, int], Arrays]:
    def make(random: np.random.Generator, n: int) -> Arrays:
        kind = np.dtype(importlib.import_module("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
        return random.normal(0, 20, n).astype(kind), np.array(6, kind)

    return make


def truncate(library: Any, values: np.ndarray[Any, Any], limit: np.ndarray[Any, Any]) -> Arrays:
    return (library.fmod(values, limit[()]),)


def mixed_signs(random: np.random.Generator, n: int) -> Arrays:
    """The operands of the ONNX specification's examples of Mod, repeated: every combination of signs, and exact multiples."""
    whole, broken = ([-4, 7, 5, 4, -7, 8], [2, -3, 8, -2, 3, 5]), ([-4.3, 7.2, 5.0, 4.3, -7.2, 8.0], [2.1, -3.4, 8.0, -2.1, 3.4, 5.0])
    return tuple(
        np.resize(np.array(values, dtype), max(6, n))
        for dtype in ("int8", "int16", "int32", "int64", "float16", "float32", "float64")
        for values in (broken if dtype.startswith("float") else whole)
    )


def onnx_mod(library: Any, *operands: np.ndarray[Any, Any]) -> Arrays:
    """ONNX's Mod as its specification has it: fmod=0 for integers, fmod=1 for floats and, in one official example, for int64."""
    from . import onnx  # here, since it loads the onnx package if that is there

    results = []
    for a, b in zip(operands[::2], operands[1::2], strict=True):
        for fmod in {"f": (1,), "i": (0, 1) if a.dtype == np.int64 else (0,)}[a.dtype.kind]:
            if library is np:
                results.append(np.fmod(a, b) if fmod else np.remainder(a, b))
            else:
                results.append(onnx.mod(a, b, fmod=fmod))
    return tuple(results)


def embeddings(random: np.random.Generator, n: int) -> Arrays:
    """A table of 128 columns, row numbers of which many repeat, and a divisor for each of the n elements that these name."""
    updates = max(1, n // 128)
    rows = max(1, updates // 10)
    table = random.normal(0, 1, (rows, 128)).astype(np.float32)
    return table, random.integers(0, rows, updates), random.uniform(1, 1.5, (updates, 128)).astype(np.float32)


def scale_down(library: Any, table: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], divisors: np.ndarray[Any, Any]) -> Arrays:
    """In order, so that a row named twice is divided twice. NumPy's `np.divide.at` says the same and takes longer than this loop."""
    if library is np:
        for row, divisor in zip(rows, divisors, strict=True):
            table[row] /= divisor
    else:
        scatter.scatter_div(table, rows, divisors)
    return (table,)


JOBS = [
    Job("phases wrapped to 2 pi, float32", 5_000_000, angles("float32"), to_two_pi, ("remainder float32",)),
    Job("phases wrapped to 2 pi, float64", 5_000_000, angles("float64"), to_two_pi, ("remainder float64",)),
    Job("64-bit hashes into buckets, uint64", 25_000_000, hashes, to_buckets, ("remainder uint64",)),
    Job("time of day and weekday, int64 ns", 8_000_000, timestamps, time_and_weekday, ("remainder int64",)),
    Job("coordinates by row and column, int32", 9_000_000, coordinates, wrap, ("remainder int32",)),
    Job("activations by fmod, float16", 5_000_000, activations("float16"), truncate, ("fmod float16",)),
    Job("activations by fmod, bfloat16", 10_000_000, activations("bfloat16"), truncate, ("fmod bfloat16",), package="ml_dtypes"),
    Job("ONNX Mod, mixed signs, 7 dtypes", 3_000_000, mixed_signs, onnx_mod,
        ("remainder int8", "remainder int16", "remainder int32", "remainder int64",
         "fmod int64", "fmod float16", "fmod float32", "fmod float64")),
    Job("embedding rows scaled down, float32", 25_600_000, embeddings, scale_down, ("scatter_div float32",), in_place=True),
]  # fmt: skip


# --- running them -------------------------------------------------------------------------------------------------------------------------
def missing(job: Job) -> bool:
    """Whether the package that the job is about is not there."""
    try:
        return job.package is not None and not importlib.import_module(job.package)
    except ImportError:
        return True


def progress(items: Iterable[Any], text: str, total: int) -> Iterator[Any]:
    """The items, under a progress bar if stderr is a terminal and tqdm is installed, after a line there otherwise."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm if sys.stderr and sys.stderr.isatty() else None
    except ImportError:
        tqdm = None
    if tqdm is None and sys.stderr:  # which is None where it was closed
        print(f"{text}: {total} …", file=sys.stderr, flush=True)
    yield from items if tqdm is None else tqdm(items, text, total, leave=False)


def compile_loops(jobs: Iterable[Job]) -> None:
    """Compile what the jobs need, or load it from the cache: the first run on a machine takes about a second for each loop."""
    needed = {"driver", *(loop for job in jobs for loop in job.loops)}
    calls = [make for name, make in ufuncs.parts() if name in needed]
    for make in progress(calls, "compiling", len(calls)):
        make()


def same_bits(results: Arrays, expected: Arrays) -> bool:
    return len(results) == len(expected) and all(
        x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}"))
        for x, y in zip(results, expected, strict=True)
    )


def elements(job: Job, size: float) -> int:
    return max(1, round(job.elements * size))


def measure(job: Job, size: float) -> Outcome:
    """Run it by NumPy and by fastops in turn, once to warm up and then against the clock; compare every time."""
    operands = job.make(np.random.default_rng(2024), elements(job, size))
    times: dict[Any, list[float]] = {np: [], fastops: []}  # by library, NumPy first
    equal = True
    for _ in range(1 + REPETITIONS):
        results = []
        for library, taken in times.items():
            own = (operands[0].copy(), *operands[1:]) if job.in_place else operands
            start = time.perf_counter()
            results.append(job.run(library, *own))
            taken.append(time.perf_counter() - start)
        equal &= same_bits(results[1], results[0])
    return Outcome(statistics.median(times[np][1:]), statistics.median(times[fastops][1:]), equal)


def run(size: float) -> dict[str, Outcome | None]:
    """The outcome of every job by its name; None where a job's package is missing."""
    able = [job for job in JOBS if not missing(job)]
    if not info.why_unavailable():  # else NumPy's loops serve every call; the checks still hold
        compile_loops(able)
    outcomes: dict[str, Outcome | None] = {job.name: None for job in JOBS}
    for job in progress(able, "running the jobs", len(able)):
        outcomes[job.name] = measure(job, size)
    return outcomes


def verdict(results: Sequence[tuple[str, bool]]) -> str:
    """Of names, and whether the results of that name are equal."""
    different = [name for name, equal in results if not equal]
    return f"DIFFERENT from NumPy's: {'; '.join(different)}." if different else f"All {len(results)} results equal NumPy's, bit for bit."


def data(outcomes: dict[str, Outcome | None], size: float) -> list[dict[str, Any]]:
    """For programs."""
    return [
        {
            "job": job.name,
            "elements": elements(job, size),
            **(outcome._asdict() if (outcome := outcomes[job.name]) else {"not_run": f"{job.package} is not installed"}),
        }
        for job in JOBS
    ]


def table(outcomes: dict[str, Outcome | None], size: float) -> Iterator[str]:
    """The lines that tell a newcomer what was compared, and how it came out."""
    yield "The same jobs by NumPy and by fastops, on the same data. Each result of fastops is compared with NumPy's, bit for bit"
    yield f"(scatter_div's with the plain loop's). Times are medians of {REPETITIONS} runs; compiling, which is done once, is not in them."
    yield ""
    yield f"{'job':38}{'elements':>12}{'NumPy ms':>12}{'fastops ms':>12}{'speed-up':>10}  equal"
    for job in JOBS:
        outcome = outcomes[job.name]
        if outcome is None:
            yield f"{job.name:38}{'not run: ' + str(job.package) + ' is not installed':>46}"
            continue
        row = f"{job.name:38}{elements(job, size):12,}{outcome.numpy_seconds * 1e3:12.2f}{outcome.fastops_seconds * 1e3:12.2f}"
        yield f"{row}{outcome.numpy_seconds / outcome.fastops_seconds:9.1f}x  {'yes' if outcome.equal else 'NO'}"
    yield ""
    yield verdict([(name, outcome.equal) for name, outcome in outcomes.items() if outcome is not None])
