"""More than 2**31 elements, rows and updates. It takes eleven gigabytes of memory and a few minutes.

python tests/large.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fastops

MANY = (1 << 31) + 70_001
PIECE = 1 << 24  # elements that are compared at a time
Array = np.ndarray[Any, Any]


def numbers(period: int) -> Array:
    """int8 numbers that repeat after so many."""
    return np.resize(np.arange(period, dtype=np.int64).astype(np.int8), MANY)


def equal(got: Array, x1: Array, x2: Any, twin: np.ufunc) -> bool:
    """Whether it is what NumPy gives, a piece at a time."""
    pieces, beside = [slice(k, k + PIECE) for k in range(0, len(got), PIECE)], len(np.atleast_1d(x2)) == len(x1)
    return all(np.array_equal(got[piece], twin(x1[piece], x2[piece] if beside else x2)) for piece in pieces)


def remainders() -> None:
    x, y = numbers(251), numbers(127)
    y[y == 0] = 5
    out = np.empty_like(x)
    report("mod, by an array", lambda: fastops.mod(x, y, out=out) is out and equal(out, x, y, np.mod))
    report("fmod, by a scalar", lambda: fastops.fmod(x, np.int8(7), out=out) is out and equal(out, x, 7, np.fmod))
    report("mod, backwards", lambda: fastops.mod(x[::-1], y, out=out) is out and equal(out, x[::-1], y, np.mod))
    report("fmod, every second", lambda: equal(fastops.fmod(x[1::2], y[::-2][:-1], out=out[: MANY // 2]), x[1::2], y[::-2][:-1], np.fmod))
    column = x[: MANY // 3 * 3].reshape(-1, 3)
    grid = out[: column.size].reshape(column.shape)
    report(
        "mod, rows of three",
        lambda: fastops.mod(column, y[:3], out=grid) is grid and equal(grid, column, y[:3], np.mod),
    )
    first, last = out[:PIECE].copy(), out[-PIECE:].copy()
    fastops.fmod(out, y, out=out)
    report("fmod, in place", lambda: equal(out[:PIECE], first, y[:PIECE], np.fmod) and equal(out[-PIECE:], last, y[-PIECE:], np.fmod))


def scatter() -> None:
    last = MANY - 1
    x = np.zeros(MANY, np.int8)  # in memory where it is touched
    x[[last, 0, 1 << 31]] = 100, 50, 25
    fastops.scatter_div(x, np.array([last, 1 << 31, 0, last]), np.array([3, 5, 7, 2], np.int8))
    report("scatter_div, rows beyond 2**31", lambda: x[[last, 1 << 31, 0]].tolist() == [16, 5, 7] and not x[1:PIECE].any())
    wide = np.zeros((70_000, 40_000), np.int8)
    wide[[69_999, 3]] = 90
    fastops.scatter_div(wide, np.array([3, 69_999, 3]), np.broadcast_to(np.int8(3), (3, 40_000)))
    report("scatter_div, elements beyond 2**31", lambda: (wide[3] == 10).all() and (wide[69_999] == 30).all())
    halves, indices = np.array([2.0**100, 1.0], np.float32), np.broadcast_to(np.int64(0), MANY)
    updates = np.broadcast_to(np.float32(1), MANY)
    fastops.scatter_div(halves, indices, updates)
    report("scatter_div, more than 2**31 updates of one row", lambda: halves.tolist() == [2.0**100, 1.0])
    few, many, divisors = np.full(4, 64, np.int8), np.empty(MANY, np.int32), np.ones(MANY, np.int8)
    for k in range(4):
        many[k::4] = k
    divisors[[last, last - 1, 1 << 31, 5]] = 2, 4, 8, 16
    fastops.scatter_div(few, many, divisors)
    want = np.full(4, 64, np.int8)
    for place in (last, last - 1, 1 << 31, 5):
        want[many[place]] //= divisors[place]
    report("scatter_div, more than 2**31 updates", lambda: np.array_equal(few, want))
    many[last], message = 4, ""
    try:
        fastops.scatter_div(few, many, divisors)
    except IndexError as error:
        message = str(error)
    report("scatter_div, a wrong index beyond 2**31", lambda: f"indices[{last}] is 4" in message and np.array_equal(few, want))


def report(name: str, is_right: Any) -> None:
    if not is_right():
        raise SystemExit(f"{name}: wrong")
    print(f"{name}: right", flush=True)


if __name__ == "__main__":
    scatter()
    remainders()
