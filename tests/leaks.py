"""Whether calls leave anything behind: Python's memory blocks, references to the operands, and the resident memory of the process.

python tests/leaks.py            100 000 calls of each form: some minutes
python tests/leaks.py 2000
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import fastops

MOST = 2 << 20  # bytes that the process may grow by while a form is called: the allocator's, once for all
x, y, out = (np.arange(1.0, 60.0) for _ in range(3))
few, many, half = np.arange(1, 60), np.arange(1, 30_001), np.ones(59, np.float16)
brain, other, large = np.ones(59, ml_dtypes.bfloat16), np.ones(59, ">f8"), np.arange(1.0, 30_001.0)
rows, updates, wide, text = np.array([3, 0, 3]), np.ones((3, 4)), np.ones((6, 4)), np.array(["a"])
zeros, ones, again = np.zeros(59), np.ones((6, 4), np.int32), np.ones((300, 70))


class Duck:
    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> int:
        return 7


def many_rows() -> Any:
    return fastops.scatter_div(again, many % 300, np.broadcast_to(2.0, (len(many), 70)))


FORMS: dict[str, Callable[[], Any]] = {
    "arrays": lambda: fastops.mod(x, y),
    "out": lambda: fastops.mod(x, y, out=out),
    "out in place": lambda: fastops.fmod(out, y, out),
    "by a number": lambda: fastops.mod(x, 3),
    "numbers": lambda: fastops.fmod(7.5, 2),
    "NumPy's numbers": lambda: fastops.mod(np.int64(7), np.int64(3)),
    "bfloat16": lambda: fastops.mod(brain, 2.5),
    "lists": lambda: fastops.mod([7, 8], [3, 5]),
    "two dtypes": lambda: fastops.fmod(few, half),
    "other byte order": lambda: fastops.fmod(other, y),
    "strided": lambda: fastops.mod(x[::2], y[::-2]),
    "where": lambda: fastops.mod(x, y, where=few > 3, out=out),
    "dtype": lambda: fastops.mod(few, 3, dtype=np.float32),
    "reduce": lambda: fastops.mod.reduce(few),
    "outer": lambda: fastops.fmod.outer(x, y),
    "at": lambda: fastops.mod.at(out, few - 1, y),
    "an object that handles ufuncs": lambda: fastops.mod(Duck(), x),
    "ONNX's attribute": lambda: fastops.mod(x, y, fmod=1),
    "no such dtype": lambda: fastops.mod(text, 3),
    "shapes that do not fit": lambda: fastops.mod(x, y[1:]),
    "a warning": lambda: fastops.mod(few, 0),
    "an error of floats": lambda: raising(lambda: fastops.fmod(x, zeros)),
    "large": lambda: fastops.mod(large, 7.0),
    "large, by rows": lambda: fastops.fmod(large.reshape(300, 100).T, large.reshape(100, 300)),
    "large, of two dtypes": lambda: fastops.mod(many, large),
    "scatter_div": lambda: fastops.scatter_div(wide, rows, updates),
    "scatter_div by keywords": lambda: fastops.scatter_div(input_x=wide, indices=rows, updates=updates),
    "scatter_div of lists": lambda: fastops.scatter_div(wide, [3, 0], [[1.0] * 4] * 2),
    "scatter_div of another dtype": lambda: fastops.scatter_div(wide, rows, updates.astype(np.int16)),
    "scatter_div of columns": lambda: fastops.scatter_div(wide[:, ::2], rows, updates[:, :2]),
    "scatter_div, no such row": lambda: fastops.scatter_div(wide, [9], updates[:1]),
    "scatter_div by zero": lambda: fastops.scatter_div(ones, rows, np.zeros((3, 4), np.int32)),
    "scatter_div, a warning": lambda: fastops.scatter_div(x, rows, zeros[:3]),
    "scatter_div, wrong shapes": lambda: fastops.scatter_div(wide, rows, updates[1:]),
}
SLOW: dict[str, Callable[[], Any]] = {  # called a hundredth as often: some milliseconds each
    "scatter_div of many rows": many_rows,
    "patched": lambda: patched(),
}


def raising(call: Callable[[], Any]) -> None:
    with np.errstate(all="raise"):
        call()


def patched() -> None:
    with fastops.patched():
        np.mod(many, 7)


def resident() -> int:
    """Bytes of the process in memory; of systems that do not tell in /proc, 0."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0


def state() -> tuple[int, list[int]]:
    """After the interpreter's cache of attributes is emptied: it holds 4096 of the names looked up, each new string at another place (NumPy
    makes such strings for the name of a dtype), until it is full."""
    sys._clear_internal_caches() if hasattr(sys, "_clear_internal_caches") else sys._clear_type_cache()
    gc.collect()
    kept = (
        x,
        y,
        out,
        few,
        many,
        half,
        brain,
        other,
        large,
        rows,
        updates,
        wide,
        zeros,
        ones,
        x.dtype,
        few.dtype,
        brain.dtype,
        None,
        7,
        np.ndarray,
    )
    return sys.getallocatedblocks(), [sys.getrefcount(thing) for thing in kept]


def left_by(call: Callable[[], Any], times: int) -> str:
    """What so many calls leave behind."""
    before, memory = state(), resident()
    for _ in range(times):
        with suppress(TypeError, ValueError, IndexError, ZeroDivisionError, FloatingPointError):
            call()
    (blocks, references), grown = state(), resident() - memory
    moved = sum(abs(now - then) for now, then in zip(references, before[1], strict=True))
    most = max(50, times // 100)
    wrong = blocks - before[0] > most or moved > most or grown > MOST
    return f"{blocks - before[0]} blocks, {moved} references, {grown} bytes" if wrong else ""


def leak(call: Callable[[], Any], times: int) -> str:
    """What is left each time, of up to three: a leak is, and what fills up once for all is not."""
    left_by(call, min(max(times, 50), 2_000))
    for _ in range(3):
        left = left_by(call, times)
        if not left:
            break
    return left


def main(times: int = 100_000) -> None:
    warnings.simplefilter("ignore")
    fastops.warmup("float16", "float32", "float64", "int32", "int64", "bfloat16")
    forms = [*((name, call, times) for name, call in FORMS.items()), *((name, call, times // 100) for name, call in SLOW.items())]
    found = {name: left for name, call, count in forms if (left := leak(call, count))}
    for name, left in found.items():
        print(f"{name}: {left}")
    print(f"{len(forms)} forms, {times} calls of each ({times // 100} of the slow ones): {len(found)} leave something behind")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
