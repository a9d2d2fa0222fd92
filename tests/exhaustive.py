"""All pairs of operands, by brute force: `python tests/exhaustive.py [--minutes M] [--dtypes int8 float16 …]`.

Each remainder of every pair of int8, uint8, int16, uint16, float16 and bfloat16 is compared with NumPy's, to the bit (zero signs count;
any NaN equals any NaN). bfloat16's right result is NumPy's in float32, rounded once. Divisors are taken in random order, so that a run
that ends by its minutes has covered a random part of the pairs, which it states. Uses all processors; exits 1 if a result differs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time

import numpy as np

import fastops

OPERATIONS = ("remainder", "fmod")
DTYPES = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16")
ROWS = 64  # divisors at a time


def dtype_of(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def all_values(dtype: np.dtype) -> np.ndarray:
    bits = np.dtype(f"u{dtype.itemsize}")
    return np.arange(2 ** (8 * dtype.itemsize), dtype=np.uint64).astype(bits).view(dtype)


def expected(operation: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    function = getattr(np, operation)
    if x.dtype.name == "bfloat16":
        return function(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return function(x, y)


def check(task: tuple[str, str, int, float]) -> tuple[str, str, int, list[str]]:
    """Every dividend by the ROWS divisors of one task: pairs compared, and those that differ. None are compared after the deadline."""
    name, operation, first, deadline = task
    if time.time() > deadline:
        return name, operation, 0, []
    values = all_values(dtype_of(name))
    order = np.random.default_rng(0).permutation(len(values))
    divisors = values[order[first : first + ROWS]][:, None]
    with np.errstate(all="ignore"):
        want = expected(operation, values, divisors)
        got = getattr(fastops, operation)(values, divisors)
        bits = np.dtype(f"u{values.itemsize}")
        differs = (got.view(bits) != want.view(bits)) & ~((got != got) & (want != want))
    wrong = [
        f"{operation}({values[column]!r}, {divisors[row, 0]!r}) gave {got[row, column]!r}, right is {want[row, column]!r}"
        for row, column in np.argwhere(differs)[:5]
    ]
    return name, operation, got.size, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many minutes (default 60)")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES, metavar="DTYPE", help="of " + ", ".join(DTYPES))
    options = parser.parse_args()
    deadline = time.time() + 60 * options.minutes
    tasks = [
        (name, operation, first, deadline)
        for first in range(0, 2**16, ROWS)
        for name in options.dtypes
        for operation in OPERATIONS
        if first < 2 ** (8 * dtype_of(name).itemsize)
    ]
    compared: dict[tuple[str, str], int] = {}
    wrong: list[str] = []
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for name, operation, pairs, texts in pool.imap_unordered(check, tasks):
            compared[name, operation] = compared.get((name, operation), 0) + pairs
            wrong += texts
    for (name, operation), pairs in compared.items():
        print(f"{name:9} {operation:9} {pairs:>13,} of {2 ** (16 * dtype_of(name).itemsize):>13,} pairs compared")
    print("\n".join(wrong[:20]) if wrong else "all equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
