"""What a dispatcher asks of the arguments of a ufunc before it decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from . import errors
from .capi import NUMBERS

INPUTS = {"__call__": (0, 1), "outer": (0, 1), "at": (0, 2), "reduce": (0,), "accumulate": (0,), "reduceat": (0,)}
MOST_OF_AT = 32  # dimensions that `numpy.ufunc.at` takes: with more it ends the process (NumPy 2.4)
_DTYPE_PLACE = {"reduce": 2, "accumulate": 2, "reduceat": 3}

PLAIN_NUMBERS = frozenset({0, *NUMBERS})  # bool counts: NumPy casts it to int8
PLAIN_SCALARS = frozenset({bool, int, float, *(kind for kind in np.sctypeDict.values() if np.dtype(kind).num in PLAIN_NUMBERS)})


def kind_of(x: Any) -> Any:
    """What NumPy's promotion sees: `int` or `float` for Python's scalars, which take the other's dtype (NEP 50); otherwise a dtype."""
    if type(x) is int or type(x) is float:
        return type(x)
    dtype = getattr(x, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) else np.asarray(x).dtype


def as_array(x: Any) -> Any:
    """A sequence, or an object that gives an array, as that array: once, for that may cost much or happen only once. Objects that want to
    wrap the result stay, so that NumPy asks them to."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x
    if isinstance(x, (list, tuple)) or (hasattr(type(x), "__array__") and not hasattr(x, "__array_wrap__")):
        return errors.as_caller(np.asarray, (x,), {})
    return x


def look_at(x: Any) -> Any:
    """The number or array that NumPy takes x for: what x itself says of its dtype and shape may mean anything."""
    if type(x) is int or type(x) is float or isinstance(x, (np.ndarray, np.generic)):
        return x
    return errors.as_caller(np.asarray, (x,), {})


def broadcast_size(x1: Any, x2: Any) -> int:
    """Elements of the operands broadcast together, if they fit. (`numpy.broadcast` knows but 32 dimensions.)"""
    shape1, shape2 = np.shape(x1), np.shape(x2)
    if shape1 == shape2:
        return prod(shape1)
    return prod(n if m == 1 else m for m, n in zip_longest(reversed(shape1), reversed(shape2), fillvalue=1))


def result_size(method: str, operands: list[Any]) -> int:
    """Elements that a call of the ufunc or of one of its methods goes through."""
    if method == "__call__":
        return broadcast_size(*operands)
    sizes = [np.size(x) for x in operands]
    return sizes[0] * sizes[1] if method == "outer" else max(sizes)


def every_operand(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The arguments whose type may change who handles a call."""
    yield from args
    out = kwargs.get("out")
    yield from out if type(out) is tuple else (out,)
    yield kwargs.get("where")


def is_subclass(x: object) -> bool:
    return isinstance(x, np.ndarray) and type(x) is not np.ndarray


def overrides(x: object) -> bool:
    """Whether the type handles ufuncs itself, as those of Dask, xarray and pandas, or refuses them."""
    return getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__) is not np.ndarray.__array_ufunc__


def declared(x: Any) -> tuple[list[Any], int]:
    """What an object that handles ufuncs itself says of the dtypes and the number of its elements, without computing them."""
    if type(x) is int or type(x) is float:
        return [type(x)], 1
    try:
        dtypes: Any = getattr(x, "dtypes", ())  # a data frame's, one for each column
        several = set(dtypes) if hasattr(dtypes, "__iter__") else set()
        kinds = [dtype for dtype in (getattr(x, "dtype", None), *several) if isinstance(dtype, np.dtype)]
        size = getattr(x, "size", 0)
        return kinds, int(size) if isinstance(size, (int, np.integer)) else 0
    except Exception:  # of the object's own code, which NumPy would not have asked
        return [], 0


def asked_dtype(method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> np.dtype[Any] | None:
    """The dtype of the loop that `dtype` or `signature` asks for: None if neither does, object if it takes NumPy to tell."""
    place = _DTYPE_PLACE.get(method, len(args))
    asked = kwargs.get("dtype", args[place] if place < len(args) else None)
    signature = kwargs.get("signature", kwargs.get("sig"))
    if asked is None and signature is not None:
        kinds = {*signature} - {"-", ">", None} if isinstance(signature, (str, tuple)) else ()
        asked = kinds.pop() if len(kinds) == 1 else object
    try:
        return None if asked is None else np.dtype(asked)
    except TypeError:
        return np.dtype(object)
