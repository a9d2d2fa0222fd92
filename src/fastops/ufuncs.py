"""`mod`, `remainder` and `fmod`, and `warmup`: what they are, for those who use them. How a call travels: dispatch.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike

from . import real_ufuncs, scatter, scatter_compiled
from .dispatch import Remainder
from .engine import compiler, driving

if TYPE_CHECKING:
    from . import signatures


def _remainder(
    x1: Any, x2: Any, /, out: Any = None, *, fmod: int = 0, where: Any = True, casting: str = "same_kind", order: str = "K",
    dtype: Any = None, subok: bool = True, signature: Any = None,
) -> None:  # fmt: skip
    """The remainder of floored division, element by element: it has the sign of the divisor. `fastops.mod` is the same function.

    >>> import numpy as np, fastops
    >>> fastops.mod(np.array([-7, 7, -7, 7]), np.array([3, 3, -3, -3]))
    array([ 2,  1, -1, -2])
    >>> fastops.mod(np.array([-7.5, 7.5]), 2)
    array([0.5, 1.5])
    >>> fastops.mod(-7, 3, fmod=1)
    np.int64(-1)

    Results, dtypes, broadcasting, memory order, warnings and errors are those of `numpy.remainder`, bit for bit.

    Parameters
    ----------
    x1, x2 : array_like
        Dividend and divisor, of shapes that broadcast. int8 to int64, uint8 to uint64, float16, bfloat16 (of ml_dtypes), float32 and
        float64 run fastops' loops, all else NumPy's.
    out, where, casting, order, dtype, subok, signature
        As in every ufunc of NumPy.
    fmod : {0, 1}
        1 gives the remainder of truncated division, as `fastops.fmod`: ONNX's attribute.

    Returns
    -------
    ndarray or scalar
        Of the broadcast shape and of the common dtype; a scalar if both operands are.

    Raises
    ------
    ValueError
        Shapes that do not broadcast, a read-only `out`, or an `fmod` other than 0 and 1.
    TypeError
        Dtypes without a loop or without a safe cast.
    OverflowError
        A Python integer that does not fit the dtype of the other operand.

    Warns
    -----
    RuntimeWarning
        "divide by zero encountered in remainder" for an integer zero divisor (the result is 0), "invalid value encountered in remainder"
        for a zero divisor or an infinite dividend among floats (it is NaN), both under `numpy.errstate`.

    Notes
    -----
    In functions that Numba compiles, such as by `numba.njit`, it takes booleans, integers, float32 and float64, numbers and arrays; `out`
    as a third operand, and no keywords. Dtypes are NumPy's for numbers of a dtype: a literal 7 is an int64 there. It gives no warnings.

    Source: `numpy.remainder`; ONNX operator Mod, versions 10, 13 and 28.
    """


def _fmod(
    x1: Any, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = "same_kind", order: str = "K",
    dtype: Any = None, subok: bool = True, signature: Any = None,
) -> None:  # fmt: skip
    """The remainder of truncated division, element by element: it has the sign of the dividend, as C's fmod.

    >>> import numpy as np, fastops
    >>> fastops.fmod(np.array([-7, 7, -7, 7]), np.array([3, 3, -3, -3]))
    array([-1,  1, -1,  1])
    >>> fastops.fmod(np.array([-7.5, 7.5], np.float32), 2)
    array([-1.5,  1.5], dtype=float32)

    Parameters, dtypes, results, errors and warnings are as in `fastops.remainder`, with "in fmod" for "in remainder"; there is no attribute
    `fmod`. In functions that Numba compiles, too.

    Source: `numpy.fmod`; ONNX operator Mod with fmod=1, versions 10, 13 and 28.
    """


truncated = Remainder("fmod", _fmod)
floored = Remainder("remainder", _remainder, truncated=truncated)
fmod = cast("signatures.Fmod", truncated)
remainder = mod = cast("signatures.Remainder", floored)


def warmup(*dtypes: DTypeLike) -> None:
    """Compile all that the functions run for some dtypes, or load it from the cache, so that no later call waits for it.

    Otherwise a loop is made when an operation first meets 10 000 elements of its dtype; until then smaller arrays run NumPy's. On the
    command line, `python -m fastops warmup` does the same.

    >>> import numpy as np, fastops
    >>> fastops.warmup(np.float32, "int64")

    Parameters
    ----------
    dtypes
        Of the twelve; without any, all of them (bfloat16 if ml_dtypes is loaded).

    Raises
    ------
    TypeError
        A dtype that has no loop.
    """
    for _, make in parts(*dtypes):
        make()


def parts(*dtypes: DTypeLike) -> list[tuple[str, Callable[[], object]]]:
    """What `warmup` makes: for each function that is compiled its operation and dtype, and the call that makes it."""
    wanted = [np.dtype(dtype) for dtype in dtypes]
    if not dtypes:
        bfloat16 = real_ufuncs.bfloat16()
        wanted = (
            [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
            + [np.dtype(f"f{size}") for size in (2, 4, 8)]
            + ([bfloat16] if bfloat16 else [])
        )
    made: list[tuple[str, Callable[[], object]]] = [("driver", _make_driver)]
    for dtype in dict.fromkeys(dtype.newbyteorder("=") for dtype in wanted):
        if not real_ufuncs.is_served(dtype):
            raise TypeError(f"there is no loop for {dtype}; there are for the integers, float16, bfloat16, float32 and float64")
        for name, make in (("remainder", floored.loop), ("fmod", truncated.loop), ("scatter_div", scatter.make_kernel)):
            made.append((f"{name} {dtype.name}", partial(make, dtype)))
    return made


def _make_driver() -> None:
    try:
        if driving.warm_up():
            scatter_compiled.work_together()
    except compiler.Unavailable as reason:
        compiler.warn_unavailable(str(reason))
