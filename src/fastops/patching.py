"""NumPy itself with fastops' loops: `patch_numpy`, `unpatch_numpy`, `patched`, `is_patched`."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from . import real_ufuncs
from .engine import compiler
from .engine.capi import UnexpectedNumpy
from .engine.patch import Patch
from .ufuncs import floored, truncated

_lock = threading.RLock()
_blocks = 0  # `with patched()` that are under way
_wanted = False  # by `patch_numpy`


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def patch_numpy() -> None:
    """Let `numpy.remainder` (which is `numpy.mod`, and `%` and `%=` of arrays) and `numpy.fmod` run fastops' loops, in all of the process.

    >>> import numpy as np, fastops
    >>> fastops.patch_numpy()
    >>> np.arange(-3, 4) % 3
    array([0, 1, 2, 0, 1, 2, 0])
    >>> fastops.unpatch_numpy()

    Whoever calls these ufuncs gets the same results, warnings and errors as before, only sooner: pandas, xarray, SciPy … int8 to int64,
    uint8 to uint64, float16, float32 and float64 have fastops' loops, and so has bfloat16 if ml_dtypes is loaded by now and older than 0.7
    (its own `remainder` differs in the signs of NaN, and in warnings; from 0.7 on its loops stand where no others can take their
    place). All other dtypes stay NumPy's, and so does `%` of two scalars, which does not use the ufuncs. Long contiguous calls run on
    several threads where that pays.

    A loop is compiled (or loaded, if it is in the cache) when the first array of 10 000 elements comes along, which waits for it. Smaller
    ones never wait: NumPy's own loop serves them until then, or until they have had a million elements and a loop was compiled beside them.
    `warmup` compiles at once. Patched again, NumPy stays patched.

    Raises
    ------
    RuntimeError
        NumPy or Numba are not what they should be: the text says how. NumPy then is as before.
    """
    global _wanted
    with _lock:
        _apply()
        _wanted = True


def unpatch_numpy() -> None:
    """Give NumPy its own loops back, however often it was patched, also inside of `patched` blocks. Without a patch nothing happens.

    Raises
    ------
    RuntimeError
        Somebody else has changed the same loops after `patch_numpy`, and must undo that first.
    """
    global _wanted
    with _lock:
        _remove()
        _wanted = False


@contextmanager
def patched() -> Iterator[None]:
    """A block with NumPy patched, as by `patch_numpy`. At the end of the last of such blocks, of whatever threads, NumPy is as before.

    >>> import numpy as np, fastops
    >>> with fastops.patched():
    ...     np.arange(-3, 4) % 3
    array([0, 1, 2, 0, 1, 2, 0])

    Raises
    ------
    RuntimeError
        As `patch_numpy` and `unpatch_numpy`.
    """
    global _blocks
    with _lock:
        _apply()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks and not _wanted:
                _remove()


def is_patched() -> bool:
    """Whether NumPy runs fastops' loops.

    >>> import fastops
    >>> fastops.is_patched()
    False
    """
    patches = _patches()
    return bool(patches) and all(patch.applied for patch in patches)


def _patches() -> list[Patch]:
    """Those that were made by now."""
    return [operation._patch for operation in (floored, truncated) if operation._patch]


def _apply() -> None:
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise RuntimeError("fastops cannot patch NumPy without the GIL")
    if real_ufuncs.problem:
        raise RuntimeError(f"fastops cannot patch NumPy: {real_ufuncs.problem}")
    try:
        patches = [operation.patch() for operation in (floored, truncated)]
    except (compiler.Unavailable, UnexpectedNumpy) as reason:
        text = str(reason) or "Numba is being imported, or compiles for this thread; try again"
        raise RuntimeError(f"fastops cannot patch NumPy: {text}") from reason
    for patch in patches:
        patch.apply()


def _remove() -> None:
    patches = [patch for patch in _patches() if patch.put_in]
    try:
        for patch in patches:
            patch.check()
    except UnexpectedNumpy as reason:
        raise RuntimeError(f"fastops cannot undo its patch: {reason}") from reason
    for patch in patches:
        patch.remove()


@atexit.register
def _at_exit() -> None:
    """What runs later must not come to compiled code."""
    for patch in _patches():
        if patch.put_in:
            with suppress(UnexpectedNumpy):  # somebody else's loops are there now
                patch.check()
                patch.remove()
