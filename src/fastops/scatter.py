"""`scatter_div`: every check, then the compiled kernel, or NumPy where compiling does not pay or cannot be done."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import ArrayLike

from .engine import compiler, errors
from .engine.iteration import cells_apart
from .real_ufuncs import is_served
from .scatter_plainly import FLAGS, divide_plainly

# Elements, or rows where NumPy has no loop over them, from which a kernel is worth loading: below, NumPy needs a few milliseconds at most.
LARGE, MANY = 10_000, 500

_Array = np.ndarray[Any, Any]
_kernels: dict[np.dtype[Any], Any] = {}


def scatter_div(input_x: _Array, indices: ArrayLike, updates: ArrayLike) -> _Array:
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

    Whatever is raised, `input_x` is as before; but a warning or a FloatingPointError of floats comes after the divisions.

    Source: MindSpore's ``ScatterDiv``, which this follows where it is defined.
    """
    x = _target(input_x)
    index = _indices(indices)
    divisors, messages = _divisors(updates, x.dtype.newbyteorder("="))
    _check_shapes(x.shape, index.shape, divisors.shape)
    # Other bytes than the machine's are divided in a copy.
    native = x if x.dtype.isnative and x.flags.aligned else x.astype(x.dtype.newbyteorder("="))
    if np.may_share_memory(native, index):
        index = index.copy()
    if np.may_share_memory(native, divisors):
        divisors = divisors.copy()
    raised = _divide(native, index, divisors)
    if native is not x:
        x[...] = native
    if raised:
        messages = [*messages, *(f"{kind} encountered in scatter_div" for kind, number in FLAGS if raised & number)]
    if messages:
        errors.report(messages)
    return input_x


# --- checks and conversion ----------------------------------------------------------------------------------------------------------------
def _target(input_x: _Array) -> _Array:
    if not isinstance(input_x, np.ndarray) or isinstance(input_x, np.ma.MaskedArray):
        raise TypeError(f"input_x must be a numpy.ndarray (and not masked), got {type(input_x).__name__}: {input_x!r:.200}")
    x = input_x.view(np.ndarray)
    if not is_served(x.dtype):
        raise TypeError(f"input_x must be of an integer dtype, float16, bfloat16, float32 or float64, got {x.dtype}")
    if x.ndim == 0:
        raise ValueError(f"input_x must have rank 1 or more, got a 0-d array: {input_x!r}")
    if not x.flags.writeable:
        raise ValueError(f"input_x is read-only: {x.dtype} of shape {x.shape}")
    if _overlaps_itself(x):
        raise ValueError(f"input_x has elements that share memory: shape {x.shape}, strides {x.strides}, {x.dtype}")
    return x


def _overlaps_itself(x: _Array) -> bool:
    if x.flags.forc or x.size < 2:
        return False
    if cells_apart(x):
        return False
    low, high = byte_bounds(x)
    if x.nbytes > high - low:
        return True
    return bool((np.diff(np.sort(_offsets(x.shape, x.strides))) < x.itemsize).any())  # axes that interlock: rare


def _offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> _Array:
    """Offsets in bytes of all elements, in row-major order."""
    total = np.zeros(1, np.intp)
    for length, stride in zip(shape, strides, strict=True):
        total = np.add.outer(total, np.arange(length) * stride).ravel()
    return total


def _leaf_types(values: Any) -> set[type]:
    """The types of the elements of nested lists and tuples, or of a single value."""
    if not isinstance(values, (list, tuple)):
        return {type(values)}
    kinds = set(map(type, values))
    if any(issubclass(kind, (list, tuple)) for kind in kinds):
        kinds = set().union(*map(_leaf_types, values))
    return kinds


def _indices(indices: Any) -> _Array:
    """An int32 or int64 array; Python integers beyond that remain objects, out of any range."""
    if _leaf_types(indices) <= {int}:
        try:
            return np.asarray(indices, np.int64)
        except OverflowError:
            return np.asarray(indices, object)
    index = np.asarray(indices)
    if isinstance(indices, np.ma.MaskedArray) or index.dtype.kind != "i" or index.dtype.itemsize not in (4, 8):
        raise TypeError(f"indices must be an int32 or int64 array or Python integers, got {_described(indices, index.dtype)}")
    return index


def _divisors(updates: Any, dtype: np.dtype[Any]) -> tuple[_Array, Sequence[str]]:
    """`updates` in the dtype of input_x, and what NumPy has to say of the conversion."""
    kinds = _leaf_types(updates)
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        raise TypeError(f"updates must not be a masked array, nor have one in it, got {updates!r:.200}")
    if kinds <= {bool, int, float}:  # weak, as in NEP 50
        if dtype.kind not in "iu":
            return _cast(np.asarray(updates, np.float64), dtype)
        if float not in kinds:
            return np.asarray(updates, dtype), ()
        raise RuntimeError(f"updates are Python floats, which do not convert to {dtype}, the dtype of input_x: {updates!r:.200}")
    array: _Array = errors.as_caller(np.asarray, (updates,), {})
    if not _converts(array.dtype, dtype):
        raise RuntimeError(
            f"updates, {_described(updates, array.dtype)}, do not convert to {dtype}, the dtype of input_x (updates.astype does)"
        )
    return _cast(array, dtype)


def _converts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether their common type is the target."""
    if source.num and not is_served(source):
        return False
    if target.kind in "iu":
        return source.kind in "biu" and np.promote_types(source, target) == target
    return source.kind in "biu" or source.newbyteorder("=") == target or source.itemsize < target.itemsize


def _cast(array: _Array, dtype: np.dtype[Any]) -> tuple[_Array, Sequence[str]]:
    if array.dtype == dtype and array.flags.aligned:
        return array, ()
    return errors.noted(array.astype, (dtype,), {})


def _described(values: Any, dtype: np.dtype[Any]) -> str:
    return f"{type(values).__name__} of {dtype}" if isinstance(values, np.ndarray) else f"{values!r:.200} ({dtype})"


def _check_shapes(x: tuple[int, ...], index: tuple[int, ...], divisors: tuple[int, ...]) -> None:
    if divisors != index + x[1:]:
        raise ValueError(
            f"updates must have shape indices.shape + input_x.shape[1:] = {index + x[1:]}, got input_x of shape {x}, "
            f"indices of shape {index} and updates of shape {divisors}"
        )


def _index_error(index: _Array, rows: int, start: tuple[int, ...] = ()) -> IndexError:
    """For indices, or for a block of them that starts there in the whole."""
    place = np.unravel_index(int(np.argmax((index < 0) | (index >= rows))), index.shape)
    return IndexError(f"{_cell('indices', place, start)} is {index[place]}, outside of the valid range [0, {rows}) of rows of input_x")


def _zero_error(divisors: _Array, start: tuple[int, ...] = ()) -> ZeroDivisionError:
    place = np.unravel_index(int(np.argmax(divisors == 0)), divisors.shape)
    return ZeroDivisionError(f"{_cell('updates', place, start)} is 0, by which {divisors.dtype} cannot be divided")


def _cell(name: str, place: tuple[Any, ...], start: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(str(int(k) + first) for k, first in zip_longest(place, start, fillvalue=0))}]" if place else name


# --- division -----------------------------------------------------------------------------------------------------------------------------
def _divide(x: _Array, index: _Array, divisors: _Array) -> int:
    """Check the values, divide; the floating-point flags that this raised, by NumPy's numbers."""
    flat = index.reshape(-1)
    by = divisors.reshape(index.size, *x.shape[1:])  # copied only where the strides of the leading axes do not merge
    kernel = _kernel(x.dtype, flat.size, by.size) if x.size and by.size and index.dtype != object else None
    if kernel is not None:
        flat = np.ascontiguousarray(flat, flat.dtype.newbyteorder("="))
        raised = int(kernel(_words(x, flat if flat.flags.aligned else flat.copy(), by)))
        if raised >= 0:
            return raised
        raise _index_error(index, len(x)) if raised == -1 else _zero_error(divisors)
    if flat.size and not (flat.min() >= 0 and flat.max() < len(x)):
        raise _index_error(index, len(x))
    if x.dtype.kind in "iu" and not by.all():
        raise _zero_error(divisors)
    return divide_plainly(x, flat, by) if by.size else 0


def _kernel(dtype: np.dtype[Any], rows: int, size: int) -> Any:
    """The compiled kernel, if it is there or worth loading."""
    kernel = _kernels.get(dtype)
    if kernel is None and (size >= LARGE or (rows >= MANY and dtype.kind != "f")):
        kernel = make_kernel(dtype)
    return kernel


def make_kernel(dtype: np.dtype[Any]) -> Any:
    """Compile the kernel or load it from the cache; None where that cannot be."""
    try:
        word = compiler.numba().types.intp
        with compiler.compiling():
            from .kernels import scatter

            names = scatter.names(dtype.name, compiler.features()["half"])
            _kernels[dtype] = compiler.function(scatter.divide_rows, names, f"scatter_div_{dtype.name}", word(word[::1])).function
    except compiler.Unavailable as reason:
        compiler.warn_unavailable(str(reason))
    return _kernels.get(dtype)


def _words(x: _Array, index: _Array, by: _Array) -> _Array:
    """What `divide_rows` reads. A row is a stack of runs, as long as `numpy.nditer` makes them, which sorts and merges axes."""
    runs, length, steps, offsets = 1, by.size // index.size, [x.itemsize, x.itemsize], [0, 0]
    starts = [array.__array_interface__["data"][0] for array in (index, x, by)]
    if not (x.ndim == 1 or (x.flags.c_contiguous and by.flags.c_contiguous)):
        views = np.nditer((x[:1], by[:1]), ["external_loop"], [["readwrite"], ["readonly"]], order="K").itviews
        length, steps = views[0].shape[-1], [view.strides[-1] for view in views]
        starts[1:] = [view.__array_interface__["data"][0] for view in views]
        offsets = np.stack([_offsets(view.shape[:-1], view.strides[:-1]) for view in views], axis=1).ravel().tolist()
        runs = len(offsets) // 2
    rows = [starts[1], x.strides[0], steps[0], starts[2], by.strides[0], steps[1]]
    return np.array([starts[0], index.itemsize == 4, index.size, len(x), runs, length, *rows, *offsets], np.intp)
