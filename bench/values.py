"""What is right, and where a result differs from it: to the bit, but for the payload of NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from fastops import info

Array = np.ndarray[Any, Any]
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in info.DTYPES}
BLOCK = 1 << 22  # elements that are compared at a time, for arrays that fill the memory


def right_remainder(operation: str, x: Array, y: Array) -> Array:
    """NumPy's; of bfloat16, for which it runs loops of ml_dtypes with other signs, what float32 and one rounding give."""
    dtype, ufunc = x.dtype, getattr(np, operation)
    with np.errstate(all="ignore"):
        if dtype.name == "bfloat16":
            return np.asarray(ufunc(x.astype(np.float32), np.asarray(y).astype(np.float32))).astype(dtype)
        return np.asarray(ufunc(x, y))


def right_scatter(x: Array, rows: Array, updates: Array) -> Array:
    """The loop in order, each step rounded to the dtype, integers towards zero."""
    result = x.copy()
    with np.errstate(all="ignore"):
        for row, update in zip(rows.tolist(), updates, strict=True):
            result[row] = truncated(result[row], update) if x.dtype.kind in "iu" else result[row] / update
    return result


def truncated(x: Array, y: Array) -> Array:
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)


def different(result: Array, expected: Array) -> Array:
    """Where, as an array of bool."""
    bits = f"u{expected.itemsize}"
    unlike = np.asarray(result).view(bits) != np.asarray(expected).view(bits)
    return unlike if expected.dtype.kind in "iub" else unlike & ~(np.isnan(result) & np.isnan(expected))


def differences(result: Array, expected: Array) -> tuple[int, int]:
    """How many elements differ, and the place of the first in the flat arrays; or -1."""
    result, expected = np.ascontiguousarray(result).reshape(-1), np.ascontiguousarray(expected).reshape(-1)
    count, first = 0, -1
    for start in range(0, expected.size, BLOCK):
        where = different(result[start : start + BLOCK], expected[start : start + BLOCK])
        if where.any():
            first = start + int(where.argmax()) if count == 0 else first
            count += int(where.sum())
    return count, first


def example(operation: str, operands: tuple[Array, ...], result: Array, expected: Array, place: int) -> str:
    """The element at a place of the flat result, in words."""
    given = ", ".join(str(np.broadcast_to(operand, expected.shape).flat[place]) for operand in operands)
    return f"{operation}({given}) = {result.flat[place]!s}, not {expected.flat[place]!s}"


def compared(operation: str, operands: tuple[Array, ...], result: Array, expected: Array) -> dict[str, Any]:
    """How many elements are wrong, and if any are: their share, and the first."""
    count, place = differences(result, expected)
    if not count:
        return {"wrong": 0}
    return {"wrong": count, "share": count / expected.size, "example": example(operation, operands, result, expected, place)}
