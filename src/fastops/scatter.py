"""`scatter_div`: every check, then compiled code, or NumPy where compiling does not pay or cannot be done."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import scatter_compiled, scatter_few, scatter_sharing
from .engine import compiler, errors, threads, vectorcall
from .real_ufuncs import twins
from .scatter_compiled import OUTSIDE, ZERO
from .scatter_few import LARGE as LARGE
from .scatter_operands import check_shapes, divisor_array, index_array, index_error, share_memory, target, zero_error
from .scatter_plainly import FLAGS, divide_plainly

# A kernel is worth loading from LARGE elements on, or from so many rows on where NumPy has no loop over them: below, NumPy needs a few
# milliseconds at most. And after so many calls of a dtype in any case.
MANY, OFTEN = 500, 1_000

_Array = np.ndarray[Any, Any]
_calls: dict[np.dtype[Any], int] = {}  # without a kernel


def _scatter_div(input_x: _Array, indices: ArrayLike, updates: ArrayLike) -> _Array:
    """Divide rows of an array by updates, in place and in order: ``input_x[indices[i, ..., j], :] /= updates[i, ..., j, :]``.

    A row that is named more than once is divided more than once, in the row-major order of `indices`, and rounded to the dtype each time.

    >>> import numpy as np
    >>> x = np.array([[105.0, 105.0], [315.0, 315.0]], np.float32)
    >>> scatter_div(x, [0, 1, 1], np.array([[1, 3], [5, 7], [9, 1]], np.float32))
    array([[105.,  35.],
           [  7.,  45.]], dtype=float32)
    >>> scatter_div(np.array([7, -7, 7]), [0, 1, 2], [-2, 2, 2])  # integers: toward zero
    array([-3, -3,  3])

    Parameters
    ----------
    input_x : ndarray of rank 1 or more, any strides; int8 to int64, uint8 to uint64, float16, bfloat16, float32 or float64
        Updated where it lies, also if it is a view.
    indices : int32 or int64 array of any shape, or Python integers
        Rows of `input_x`, from 0 up to ``len(input_x) - 1``.
    updates : array of shape ``indices.shape + input_x.shape[1:]``
        Divisors, of the dtype of `input_x` or of one that converts to it: bool, integers of a range within that of `input_x`, and for
        floats all integers and all shorter floats. Python numbers take the dtype of `input_x`, but floats do not become integers.

    Returns
    -------
    ndarray
        `input_x` itself.

    Raises
    ------
    TypeError
        `input_x` is no ndarray, or has another dtype; `indices` are no int32 or int64; one of the arguments is a masked array.
    ValueError
        The shapes do not fit; `input_x` has rank 0, is read-only, or has elements that share memory.
    RuntimeError
        `updates` do not convert to the dtype of `input_x`.
    OverflowError
        A Python integer among `updates` does not fit the dtype of `input_x`.
    IndexError
        An index is negative or too large.
    ZeroDivisionError
        An integer is to be divided by zero. Floats give infinities and NaN, and NumPy's warnings under `numpy.errstate`.

    Notes
    -----
    Whatever is raised, `input_x` is as before; but a warning or a FloatingPointError of floats comes after the divisions, and a
    KeyboardInterrupt, or a MemoryError where operands have to be copied piece by piece, may come between them.

    Source: MindSpore's ``ScatterDiv``, which this follows where it is defined.
    """
    x = target(input_x)
    index = index_array(indices)
    divisors, messages = divisor_array(updates, x.dtype.newbyteorder("="))
    check_shapes(x.shape, index.shape, divisors.shape)
    if share_memory(x, index):
        index = index.copy()
    if share_memory(x, divisors):
        divisors = divisors.copy()
    if index.dtype != object and x.size and divisors.size and _has_kernel(x.dtype, index.size, divisors.size):
        found, said = scatter_compiled.divide(x, index, divisors)
    else:
        found, said = _divide_plainly(x, index, divisors)
    if found & OUTSIDE:
        raise index_error(index, len(x))
    if found & ZERO:
        raise zero_error(divisors, x.dtype)
    _report(input_x, found, [*messages, *said])
    return input_x


def _report(input_x: _Array, raised: int, messages: Sequence[str] = ()) -> _Array:
    """Warn of floating-point flags as NumPy does."""
    messages = [*messages, *(f"{kind} encountered in scatter_div" for kind, number in FLAGS if raised & number)]
    if messages:
        errors.report(messages)
    return input_x


# --- division -----------------------------------------------------------------------------------------------------------------------------
def _has_kernel(dtype: np.dtype[Any], rows: int, size: int) -> bool:
    """Whether there is a kernel for the dtype, or one is worth loading, and can be had."""
    dtype = dtype.newbyteorder("=")
    if dtype in scatter_compiled.kernels:
        return True
    calls = _calls[dtype] = _calls.get(dtype, 0) + 1
    return (size >= LARGE or calls > OFTEN or (rows >= MANY and dtype.kind != "f")) and make_kernel(dtype)


def make_kernel(dtype: np.dtype[Any]) -> bool:
    """Compile the kernel or load it from the cache, if that can be; from now on plain small calls of the dtype run it at once."""
    try:
        scatter_compiled.make_kernel(dtype)
        scatter_div.admit()
    except compiler.Unavailable as reason:
        compiler.warn_unavailable(str(reason))
    return dtype in scatter_compiled.kernels


def _divide_plainly(x: _Array, index: _Array, divisors: _Array) -> tuple[int, Sequence[str]]:
    """By NumPy: what was found, as compiled code tells it, and what is to be said of the conversion."""
    flat, native = (
        index.flatten(),
        x.dtype.newbyteorder("="),
    )  # a copy: NumPy may fault where another thread changes indices after its check
    if flat.size and not (flat.min() >= 0 and flat.max() < len(x)):
        return OUTSIDE, ()
    if native.kind in "iu" and not divisors.all():
        return ZERO, ()
    by, said = (divisors, ()) if divisors.dtype == native else errors.noted(divisors.astype, (native,), {})
    if not by.size:
        return 0, said
    by = by.reshape(index.size, *x.shape[1:])
    if x.dtype == native:
        return divide_plainly(x, flat, by), said
    rows, numbers = np.unique(flat, return_inverse=True)  # in a copy
    copy = x[rows].astype(native)
    raised = divide_plainly(copy, numbers, by)
    x[rows] = copy
    return raised, said


# --- the public function ------------------------------------------------------------------------------------------------------------------
@vectorcall.with_room
class ScatterDiv:
    """What `fastops.scatter_div` is: the function above, and an entry for plain small calls that goes past Python."""

    def __init__(self, function: Callable[..., _Array]):
        self.__name__ = self.__qualname__ = "scatter_div"
        self.__module__ = "fastops"  # where pickle finds it
        self.__doc__ = inspect.cleandoc(function.__doc__ or "")
        self.__signature__ = inspect.signature(function)
        self._function = function
        self._gate: vectorcall.ScatterGate | None = None

    def __call__(self, input_x: _Array, indices: ArrayLike, updates: ArrayLike) -> _Array:
        if self._gate is not None and scatter_few.divide(self, input_x, indices, updates):
            return input_x
        known = threads.start_is_known()
        try:
            return self._function(input_x, indices, updates)
        finally:
            if not known and threads.start_is_known():
                self._limit()

    __call__.__qualname__ = "scatter_div"  # as Python's errors about missing arguments name it

    def __repr__(self) -> str:
        return "<fastops function 'scatter_div'>"

    def __reduce__(self) -> str:
        return self.__name__

    def admit(self) -> None:
        """From now on plain small calls of the dtypes that have a kernel run it at once."""
        if self._gate is None:
            self._gate = vectorcall.open_scatter_gate(self, _report, LARGE)
        if self._gate is not None:
            for known, (work, divide) in list(scatter_compiled.kernels.items()):  # all: another thread may have opened a gate before
                self._gate.work = work
                for twin in twins(known):
                    vectorcall.serve(self._gate, twin, divide, ())
            self._limit()

    def _limit(self) -> None:
        """Calls are small while threads do not pay."""
        if self._gate is not None:
            self._gate.far = scatter_sharing.far(threads.processors(), alone=True)
            large = int(min(threads.least() / scatter_compiled.UPDATE, sys.maxsize))
            for twin in (twin for dtype in list(scatter_compiled.kernels) for twin in twins(dtype)):
                vectorcall.limit(self._gate, twin, large)


scatter_div = ScatterDiv(_scatter_div)
