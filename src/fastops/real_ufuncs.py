"""The real ufuncs under `fastops.remainder` and `fastops.fmod`: NumPy's machine around fastops' loops.

They start with NumPy's own loops, which are replaced dtype by dtype when `loop` is first asked for one. Other libraries are handed these
ufuncs, and pickle finds them here by name, as it finds NumPy's.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .engine import capi, compiler, costs

try:
    remainder, fmod = capi.clone(np.remainder), capi.clone(np.fmod)
    problem = ""
except capi.UnexpectedNumpy as error:  # NumPy's own serve what the parallel driver does not
    remainder, fmod = np.remainder, np.fmod
    problem = str(error)

_loops: dict[tuple[str, np.dtype[Any]], int] = {}
_costs: dict[tuple[str, np.dtype[Any]], costs.Cost] = {}


def bfloat16() -> np.dtype[Any] | None:
    """ml_dtypes' bfloat16, if ml_dtypes is loaded."""
    kind = getattr(sys.modules.get("ml_dtypes"), "bfloat16", None)
    return np.dtype(kind) if kind else None


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether it is ml_dtypes' bfloat16, told without importing ml_dtypes."""
    return dtype.num >= 256 and dtype.name == "bfloat16" and dtype.itemsize == 2


def is_served(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of the twelve dtypes, in any byte order."""
    return dtype.num in capi.NUMBERS or is_bfloat16(dtype)


def twins(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    """The dtype itself, under each of NumPy's type numbers: long and long long are both int64 on Linux, int and long both int32 on
    Windows."""
    return [twin for code in "bhilqBHILQefd" if (twin := np.dtype(code)) == dtype] or [np.dtype(dtype.type)]


def loop(name: str, dtype: np.dtype[Any]) -> int:
    """The address of the compiled inner loop of "remainder" or "fmod"; from now on the ufunc of that name runs it too.

    Raises `compiler.Unavailable` where nothing can be compiled.
    """
    address = _loops.get((name, dtype))
    return address if address is not None else _compile(name, dtype)


def is_made(name: str, dtype: np.dtype[Any]) -> bool:
    """Whether the ufunc of that name runs a compiled loop for the dtype."""
    return (name, dtype) in _loops and not problem


def cost(name: str, dtype: np.dtype[Any]) -> costs.Cost:
    """What an element takes in a loop that was made."""
    return _costs[name, dtype]


def _compile(name: str, dtype: np.dtype[Any]) -> int:
    compiler.numba()
    with compiler.compiling():
        from .kernels import bindings, lanes, loops

        names = bindings.names(name, dtype.name, lanes.Processor(**compiler.features()))
        address = compiler.inner_loop(loops.inner_loop, names, f"{name}_{dtype.name}").address
        _costs[name, dtype] = costs.of_loop(address, dtype)
        if not problem:
            ufunc = {"remainder": remainder, "fmod": fmod}[name]
            if dtype.num < 256:
                for twin in twins(dtype):
                    capi.replace_loop(ufunc, twin.num, address)
            elif (name, dtype) not in _loops:
                capi.register_loop(ufunc, dtype, address)
        _loops[name, dtype] = address
        return address
