"""The operands of `scatter_div`: what they may be, how they convert, and the texts of what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from .engine import errors
from .engine.iteration import cells_apart
from .real_ufuncs import is_served

_Array = np.ndarray[Any, Any]
_INT, _NUMBERS, _SEQUENCES = {int}, {bool, int, float}, {list, tuple}  # of Python
INT32, INT64, FLOAT64 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float64)
INDICES = {INT32, INT64}
SOME = 1 << 16  # elements that are looked at, at a time


def target(input_x: _Array) -> _Array:
    if not isinstance(input_x, np.ndarray) or isinstance(input_x, np.ma.MaskedArray):
        raise TypeError(f"input_x must be a numpy.ndarray (and not masked), got {type(input_x).__name__}: {input_x!r:.200}")
    x = input_x.view(np.ndarray)
    if not is_served(x.dtype):
        raise TypeError(f"input_x must be of an integer dtype, float16, bfloat16, float32 or float64, got {x.dtype}")
    if x.ndim == 0:
        raise ValueError(f"input_x must have rank 1 or more, got a 0-d array: {input_x!r}")
    if not x.flags.writeable:
        raise ValueError(f"input_x is read-only: {x.dtype} of shape {x.shape}")
    if overlaps_itself(x):
        raise ValueError(f"input_x has elements that share memory: shape {x.shape}, strides {x.strides}, {x.dtype}")
    return x


def overlaps_itself(x: _Array) -> bool:
    if x.flags.forc or x.size < 2:
        return False
    if x.ndim == 1:
        return abs(x.strides[0]) < x.itemsize
    if cells_apart(x):
        return False
    low, high = byte_bounds(x)
    if x.nbytes > high - low:
        return True
    return bool((np.diff(np.sort(offsets(x.shape, x.strides))) < x.itemsize).any())  # axes that interlock: rare


def offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> _Array:
    """Offsets in bytes of all elements, in row-major order."""
    total = np.zeros(1, np.intp)
    for length, stride in zip(shape, strides, strict=True):
        total = np.add.outer(total, np.arange(length) * stride).ravel()
    return total


def is_line(x: _Array, axes: int | None = None) -> bool:
    """Whether all axes, or so many, are one, in row-major order: each steps over the following ones."""
    following = None
    for length, stride in zip(reversed(x.shape[:axes]), reversed(x.strides[:axes]), strict=True):
        if length != 1:
            if following not in (None, stride):
                return False
            following = stride * length
    return True


def why_copied(x: _Array, index: _Array, by: _Array) -> str:
    """What keeps the kernel from walking the operands where they lie; nothing, if it can."""
    if not x.dtype.isnative:
        return "input_x has another byte order"
    if by.dtype != x.dtype:
        return "updates have another dtype or byte order"
    if not index.dtype.isnative:
        return "indices have another byte order"
    if not is_line(index):
        return "the axes of indices do not lie as one"
    return "" if is_line(by, index.ndim) else "the axes that updates share with indices do not lie as one"


def pieces(shape: tuple[int, ...], limit: int) -> Iterator[tuple[int | slice, ...]]:
    """The leading indices of parts of an array, in row-major order, each of at most so many elements."""
    rest = prod(shape[1:])
    if prod(shape) <= limit:
        yield ()
    elif rest > limit:
        for k in range(shape[0]):
            for cells in pieces(shape[1:], limit):
                yield k, *cells
    else:
        for k in range(0, shape[0], limit // rest):
            yield (slice(k, k + limit // rest),)


def share_memory(x: _Array, y: _Array) -> bool:
    """Whether they may; views that interleave, such as columns of one array, do not."""
    effort: Any = 1  # as much as NumPy's ufuncs make
    return np.may_share_memory(x, y, max_work=effort)


def _leaf_types(values: Any) -> set[type]:
    """The types of the elements of nested lists and tuples, or of a single value."""
    if not isinstance(values, (list, tuple)):
        return {type(values)}
    kinds = set(map(type, values))
    if kinds <= _SEQUENCES and (leaves := set(map(type, chain.from_iterable(values)))) <= _NUMBERS:
        return leaves
    if not kinds <= _NUMBERS and any(issubclass(kind, (list, tuple)) for kind in kinds):
        kinds = set().union(*map(_leaf_types, values))
    return kinds


def index_array(indices: Any) -> _Array:
    """An int32 or int64 array; Python integers beyond that remain objects, out of any range."""
    if _leaf_types(indices) <= _INT:
        try:
            return np.array(indices, INT64)
        except OverflowError:
            return np.array(indices, object)
    index = np.asarray(indices)
    if isinstance(indices, np.ma.MaskedArray) or index.dtype.kind != "i" or index.dtype.itemsize not in (4, 8):
        raise TypeError(f"indices must be an int32 or int64 array or Python integers, got {_described(indices, index.dtype)}")
    return index


def divisor_array(updates: Any, dtype: np.dtype[Any]) -> tuple[_Array, Sequence[str]]:
    """`updates` as an array that converts to the dtype of input_x, and what NumPy had to say of it."""
    kinds = _leaf_types(updates)
    if kinds <= _NUMBERS:  # weak, as in NEP 50
        if dtype.kind not in "iu":
            numbers = np.array(updates, FLOAT64)
            return (numbers, ()) if dtype is FLOAT64 else errors.noted_at_hand(numbers.astype, dtype)
        if float not in kinds:
            return np.array(updates, dtype), ()
        raise RuntimeError(f"updates are Python floats, which do not convert to {dtype}, the dtype of input_x: {updates!r:.200}")
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        raise TypeError(f"updates must not be a masked array, nor have one in it, got {updates!r:.200}")
    array: _Array = np.asarray(updates) if _is_numpys(kinds) else errors.as_caller(np.asarray, (updates,), {})
    if not converts(array.dtype, dtype):
        raise RuntimeError(
            f"updates, {_described(updates, array.dtype)}, do not convert to {dtype}, the dtype of input_x (updates.astype does)"
        )
    return array, ()


def _is_numpys(kinds: set[type]) -> bool:
    """Whether making an array of elements of these types runs no code of others, which may warn."""
    return all(kind in _NUMBERS or issubclass(kind, (np.generic, np.ndarray)) for kind in kinds)


@lru_cache(1024)
def converts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether their common type is the target."""
    if source.num and not is_served(source):
        return False
    if target.kind in "iu":
        return source.kind in "biu" and np.promote_types(source, target) == target
    return source.kind in "biu" or source.newbyteorder("=") == target or source.itemsize < target.itemsize


def _described(values: Any, dtype: np.dtype[Any]) -> str:
    return f"{type(values).__name__} of {dtype}" if isinstance(values, np.ndarray) else f"{values!r:.200} ({dtype})"


def check_shapes(x: tuple[int, ...], index: tuple[int, ...], divisors: tuple[int, ...]) -> None:
    if divisors != index + x[1:]:
        raise ValueError(
            f"updates must have shape indices.shape + input_x.shape[1:] = {index + x[1:]}, got input_x of shape {x}, "
            f"indices of shape {index} and updates of shape {divisors}"
        )


def index_error(index: _Array, rows: int, start: tuple[int, ...] = ()) -> IndexError:
    """For indices, or for a block of them that starts there in the whole."""
    place = _first(index, lambda index: (index < 0) | (index >= rows))
    return IndexError(f"{_cell('indices', place, start)} is {index[place]}, outside of the valid range [0, {rows}) of rows of input_x")


def zero_error(divisors: _Array, dtype: np.dtype[Any], start: tuple[int, ...] = ()) -> ZeroDivisionError:
    place = _first(divisors, lambda divisors: divisors == 0)
    return ZeroDivisionError(f"{_cell('updates', place, start)} is 0, by which {dtype.newbyteorder('=')} cannot be divided")


def _first(x: _Array, is_wrong: Callable[[_Array], _Array]) -> tuple[int, ...]:
    """Where the first wrong element is, in row-major order: there is one. It is looked for a piece at a time."""
    before = 0
    for cells in pieces(x.shape, SOME):
        wrong = is_wrong(x[(*cells, ...)])
        if wrong.any():
            break
        before += wrong.size
    return tuple(map(int, np.unravel_index(before + int(np.argmax(wrong)), x.shape)))


def _cell(name: str, place: tuple[int, ...], start: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(str(k + first) for k, first in zip_longest(place, start, fillvalue=0))}]" if place else name
