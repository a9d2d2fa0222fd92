"""`mod`, `remainder` and `fmod`: thin dispatchers that find the fastest right way for a call.

1. Large plain arrays of one accelerated dtype: the parallel driver.
2. Everything else that the twelve dtypes take part in: the real ufunc, which is NumPy's machine around the same loops.
3. What is not accelerated, and subclasses of ndarray: NumPy's own ufunc.
"""

from __future__ import annotations

import inspect
from functools import partialmethod
from math import prod
from typing import Any

import numpy as np

from . import real_ufuncs
from .engine import compiler, errors, iteration, threads

LARGE = 10_000  # elements from which a loop is worth compiling

# Nanoseconds that an element costs one thread, about: what `threads.team` weighs. Measured by bench/, array by array; 1 for the rest.
COST = {np.dtype(name): cost for name, cost in
        {"int8": 0.25, "uint8": 0.2, "int16": 0.3, "uint16": 0.2, "int32": 0.6, "uint32": 0.4, "uint64": 0.6}.items()}  # fmt: skip

_ndarray = np.ndarray
_NUMBERS = frozenset({0, *real_ufuncs.NUMBERS})  # bool counts: NumPy casts it to int8
_SCALARS = frozenset({bool, int, float, *(kind for kind in np.sctypeDict.values() if np.dtype(kind).num in _NUMBERS)})
_INPUTS = {"__call__": (0, 1), "outer": (0, 1), "at": (0, 2), "reduce": (0,), "accumulate": (0,), "reduceat": (0,)}
_DTYPE_PLACE = {"reduce": 2, "accumulate": 2, "reduceat": 3}


class Remainder:
    """A callable like the ufunc `numpy.remainder` or `numpy.fmod`, with fastops' loops. A ufunc's methods and attributes are there."""

    def __init__(self, name: str, doc: str):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self.__signature__ = inspect.signature(_call_with_flag if name == "remainder" else _call)
        self._numpys: np.ufunc = getattr(np, name)
        self._real: np.ufunc = getattr(real_ufuncs, name)
        self._served = set(_NUMBERS)  # type numbers for which the real ufunc is right
        self._resolved: dict[tuple[Any, ...], np.dtype[Any] | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = None
        if kwargs:
            if "fmod" in kwargs and self is remainder:
                return (fmod if _is_truncated(kwargs.pop("fmod")) else self)(*args, **kwargs)
            if len(kwargs) > 1 or len(args) != 2 or "out" not in kwargs:
                return self._any("__call__", *args, **kwargs)
            out = kwargs["out"]
            if type(out) is tuple and len(out) == 1:
                out = out[0]
        elif len(args) == 3:
            out = args[2]
        elif len(args) != 2:
            return self._any("__call__", *args)
        x1, x2, served = args[0], args[1], self._served
        size = 1  # of the result, or more
        for x in (x1, x2):
            if type(x) is _ndarray and x.dtype.num in served:
                size *= x.size
            elif type(x) not in _SCALARS:
                return self._any("__call__", *args, **kwargs)
        if not (out is None or type(out) is _ndarray):
            return self._any("__call__", *args, **kwargs)
        if size >= LARGE:
            result = self._large(x1, x2, out)
            if result is not None:
                return result
        return self._by_ufunc(errors.noted, self._real, args, kwargs)

    # --- the three ways -------------------------------------------------------------------------------------------------------------------
    def _large(self, x1: Any, x2: Any, out: Any) -> Any:
        """The result by the parallel driver; None where that does not pay or does not serve. A large call has its loop compiled in any case."""
        size = _broadcast_size(x1, x2)
        dtype = self._resolve(_kind(x1), _kind(x2)) if size >= LARGE else None
        loop = self._loop(dtype)
        if dtype is None or not loop or not threads.worthwhile(work := size * COST.get(dtype, 1.0)):
            return None
        plan = iteration.plan(x1, x2, out, dtype)
        if plan is None:
            return None
        with threads.team(work) as workers:
            if workers < 2:
                return None
            raised = iteration.drive(plan, loop, workers)
        if raised:
            kind = errors.DIVIDE if plan.out.dtype.kind in "iu" else errors.INVALID
            errors.report([f"{kind} encountered in {self.__name__}"])
        return plan.out

    def _by_ufunc(self, noted: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """By the real ufunc (or its method); if that has no loop or finds a fault, by NumPy's own, which has more loops and words the fault."""
        try:
            result, messages = noted(function, args, kwargs)
        except TypeError:
            pass
        else:
            if messages:
                errors.report(messages)
            return result
        return self._by_numpy("__call__" if function is self._real else function.__name__, args, kwargs)

    def _by_numpy(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result, messages = errors.noted_here(getattr(self._numpys, method), args, kwargs)
        if messages:
            errors.report(messages)
        return result

    def _any(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Any arguments, to the ufunc or to one of its methods."""
        inputs = _INPUTS[method]
        out = kwargs.get("out")
        everything = [*args, *(out if type(out) is tuple else (out,)), kwargs.get("where")]
        if len(args) <= inputs[-1] or any(isinstance(x, _ndarray) and type(x) is not _ndarray for x in everything):
            return self._by_numpy(method, args, kwargs)
        if any(_overrides(x) for x in everything):
            return getattr(self._real, method)(*args, **kwargs)
        args = tuple(np.asarray(x) if k in inputs and isinstance(x, (list, tuple)) else x for k, x in enumerate(args))
        operands = [args[k] for k in inputs]
        kinds = [_kind(x) for x in operands]
        if (prod if method == "outer" else _broadcast_size)(*operands) >= LARGE:
            self._loop(_asked_dtype(method, args, kwargs) or self._resolve(*kinds))
        if not all(kind in (int, float) or kind.num in self._served for kind in kinds):
            return self._by_numpy(method, args, kwargs)
        return self._by_ufunc(errors.noted_here, getattr(self._real, method), args, kwargs)

    # --- dtypes and their loops -----------------------------------------------------------------------------------------------------------
    def _resolve(self, *kinds: Any) -> np.dtype[Any] | None:
        """The dtype of NumPy's loop for operands of these kinds."""
        if kinds not in self._resolved:
            try:
                self._resolved[kinds] = self._numpys.resolve_dtypes((kinds[0], kinds[-1], None))[0]
            except TypeError:  # there is none
                self._resolved[kinds] = None
        return self._resolved[kinds]

    def _loop(self, dtype: np.dtype[Any] | None) -> int:
        """The address of the compiled loop, which from now on the real ufunc runs too; 0 if there is none."""
        if dtype is None or not real_ufuncs.is_accelerated(dtype):
            return 0
        try:
            loop = real_ufuncs.loop(self.__name__, dtype)
        except compiler.Unavailable as reason:
            compiler.warn_unavailable(str(reason))
            return 0
        self._served.add(dtype.num)
        return loop

    # --- as a ufunc -----------------------------------------------------------------------------------------------------------------------
    reduce = partialmethod(_any, "reduce")
    accumulate = partialmethod(_any, "accumulate")
    reduceat = partialmethod(_any, "reduceat")
    outer = partialmethod(_any, "outer")
    at = partialmethod(_any, "at")

    def __getattr__(self, name: str) -> Any:  # nin, types, resolve_dtypes …
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._numpys, name)

    def __repr__(self) -> str:
        return f"<fastops ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__name__


def _kind(x: Any) -> Any:
    """What NumPy's promotion sees: `int` or `float` for Python's scalars, which take the other's dtype (NEP 50); otherwise a dtype."""
    if type(x) is int or type(x) is float:
        return type(x)
    dtype = getattr(x, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) else np.asarray(x).dtype


def _broadcast_size(*operands: Any) -> int:
    """Elements of the operands broadcast together; 0 if they do not fit."""
    if len(operands) == 2 and type(operands[0]) is type(operands[1]) is _ndarray and operands[0].shape == operands[1].shape:
        return operands[0].size
    try:
        return np.broadcast(*operands).size
    except ValueError:
        return 0


def _overrides(x: object) -> bool:
    """Whether the type handles ufuncs itself, as those of Dask, xarray and pandas, or refuses them."""
    return getattr(type(x), "__array_ufunc__", _ndarray.__array_ufunc__) is not _ndarray.__array_ufunc__


def _asked_dtype(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> np.dtype[Any] | None:
    """The dtype of the loop that `dtype` or `signature` asks for."""
    asked = kwargs.get("dtype")
    place = _DTYPE_PLACE.get(method)
    if asked is None and place is not None and len(args) > place:
        asked = args[place]
    signature = kwargs.get("signature", kwargs.get("sig"))
    if asked is None and signature is not None:
        asked = signature[-1]
    try:
        return None if asked is None else np.dtype(asked)
    except TypeError:  # NumPy will say so
        return None


def _is_truncated(flag: object) -> bool:
    if not isinstance(flag, (int, np.integer, np.bool_)) or flag not in (0, 1):
        raise ValueError(f"fmod must be 0 or 1, got {flag!r}")
    return bool(flag)


def _call(x1, x2, /, out=None, *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None): ...  # type: ignore[no-untyped-def]  # noqa: E501
def _call_with_flag(x1, x2, /, out=None, *, fmod=0, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None): ...  # type: ignore[no-untyped-def]  # noqa: E501


remainder = Remainder("remainder", """doc""")
fmod = Remainder("fmod", """doc""")
mod = remainder
