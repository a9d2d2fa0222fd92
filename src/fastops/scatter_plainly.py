"""The division of `scatter_div` by NumPy alone: where there is little to do, and where nothing can be compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from .engine import errors
from .engine.operands import MOST_OF_AT

FLAGS = ((errors.DIVIDE, 1), (errors.OVERFLOW, 2), (errors.UNDERFLOW, 4), (errors.INVALID, 8))  # kinds and NumPy's numbers for them
_Array = np.ndarray[Any, Any]


def divide_plainly(x: _Array, index: _Array, by: _Array) -> int:
    """input_x[index[k]] /= by[k] for k = 0, 1, …, all checked before; the floating-point flags that this raised, by NumPy's numbers."""
    if x.dtype.kind == "f" and x.ndim <= MOST_OF_AT:
        _, messages = errors.noted(np.divide.at, (x, index, by), {})
        raised = 0
    else:
        step = _truncate if x.dtype.kind in "iu" else _divide if x.dtype.kind == "f" else _round_each
        raised, messages = errors.noted(_row_by_row, (step, x, index, by), {})
        if x.dtype.kind in "iu":  # NumPy's remarks on MIN // -1
            return 0
    kinds = {message.partition(" encountered in ")[0] for message in messages}
    return int(raised) | sum(number for kind, number in FLAGS if kind in kinds)


def _row_by_row(step: Any, x: _Array, index: _Array, by: _Array) -> int:
    raised = 0
    for k, row in enumerate(index.tolist()):
        raised |= step(x[row : row + 1], by[k : k + 1])
    return raised


def _divide(cells: _Array, by: _Array) -> int:
    np.divide(cells, by, cells)
    return 0


def _truncate(cells: _Array, by: _Array) -> int:
    cells[...] = (cells - np.fmod(cells, by)) // by
    return 0


def _round_each(cells: _Array, by: _Array) -> int:
    """For bfloat16: see kernels/division.py on why single precision and one more rounding are right."""
    quotient = cells.astype(np.float32) / by.astype(np.float32)
    cells[...] = quotient.astype(cells.dtype)
    result = cells.astype(np.float32)
    overflow = np.isinf(result) & np.isfinite(quotient)
    underflow = (np.abs(quotient) < np.finfo(np.float32).tiny) & (result != quotient)
    return (2 if overflow.any() else 0) | (4 if underflow.any() else 0)
