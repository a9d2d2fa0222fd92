"""A few updates of `scatter_div`: operands made plain, so that the native entry takes them.

What is wrong with operands, and what is to be said of their conversion, is left to `_scatter_div` in scatter.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from . import scatter_compiled
from .engine import errors
from .scatter_operands import INDICES, INT32, INT64, converts, divisor_array, index_array

LARGE = 10_000  # elements that are not few

_Array = np.ndarray[Any, Any]
_Entry = Callable[[_Array, _Array, _Array], object]
_LISTED = (list, tuple, int, bool, float)  # of Python


def divide(entry: _Entry, input_x: Any, indices: Any, updates: Any) -> bool:
    """Whether operands could be made plain, and were divided by the entry: where input_x is of a subclass, or where a few of the others are
    no arrays yet, have another dtype or layout, or lie where input_x does."""
    if type(input_x) is np.ndarray:
        x = input_x
    elif isinstance(input_x, np.ndarray) and not isinstance(input_x, np.ma.MaskedArray):
        x = input_x.view(np.ndarray)
    else:
        return False
    dtype = _plain_dtype(x.dtype)
    if dtype not in scatter_compiled.kernels:
        return False
    try:
        index, by = _plain_indices(indices), _plain_updates(updates, dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return False
    if index is None or by is None:
        return False
    if x.dtype is not dtype and x.dtype == dtype:
        x = x.view(dtype)
    if x is input_x and index is indices and by is updates:
        if by.size < LARGE and (by.base is not None or np.may_share_memory(by, x)):  # most that share are views, and to ask takes longer
            by = by.copy()
        elif index.size < LARGE and np.may_share_memory(index, x):
            index = index.copy()
        else:
            return False
    entry(x, index, by)  # which may come here again
    return True


@lru_cache(1024)
def _plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The one that the entry knows, of NumPy's equal ones and in the native byte order."""
    return np.dtype(dtype.type)


def _plain_indices(indices: Any) -> _Array | None:
    """As they are, if there are many; None if they are for `_scatter_div`, if that is not an exception."""
    kind = type(indices)
    if kind is int:
        return np.array(indices, INT64)
    if kind is not np.ndarray:
        indices = index_array(indices) if kind in _LISTED else _base_array(indices)
        if indices is None:
            return None
    dtype: np.dtype[Any] = indices.dtype
    if ((dtype is INT64 or dtype is INT32) and indices.flags.c_contiguous) or indices.size >= LARGE:
        return indices  # type: ignore[no-any-return]
    return indices.astype(INT64 if dtype.itemsize == 8 else INT32, "C") if dtype in INDICES or dtype.newbyteorder() in INDICES else None


def _plain_updates(updates: Any, dtype: np.dtype[Any]) -> _Array | None:
    """The same of updates, converted; None also if there is something to be said of it."""
    said: Sequence[str] = ()
    kind = type(updates)
    if kind is not np.ndarray:
        updates, said = divisor_array(updates, dtype) if kind in _LISTED else (_base_array(updates), ())
        if updates is None or said:
            return None
    source: np.dtype[Any] = updates.dtype
    if (source is dtype and updates.flags.c_contiguous) or updates.size >= LARGE:
        return updates  # type: ignore[no-any-return]
    reports = _reports(source, dtype)
    if reports is None:
        return None
    by, said = errors.noted_at_hand(updates.astype, dtype, "C") if reports else (updates.astype(dtype, "C"), ())
    return None if said else by


@lru_cache(1024)
def _reports(source: np.dtype[Any], dtype: np.dtype[Any]) -> bool | None:
    """Whether NumPy may have something to say of the conversion: of an integer beyond float16, or of a NaN that is not quiet. None if there
    is no such conversion."""
    if not converts(source, dtype):
        return None
    if source.kind in "biu":
        return dtype == np.float16
    return source.newbyteorder("=") != dtype


def _base_array(x: Any) -> _Array | None:
    """A scalar of NumPy or a subclass of ndarray that is not masked, if it is not large."""
    if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray) and x.size < LARGE):
        return np.asarray(x)
    return None
