"""What type checkers must infer of fastops' functions: checked by mypy in `test_typing.py`, never run."""

from typing import Any, Literal, assert_type

import numpy as np
from numpy.typing import ArrayLike, NDArray

import fastops


def takes_ufunc(ufunc: np.ufunc) -> None: ...


def check(
    i1: NDArray[np.int8],
    i8: NDArray[np.int64],
    f4: NDArray[np.float32],
    f8: NDArray[np.float64],
    flags: NDArray[np.bool],
    unknown: NDArray[Any],
    anything: ArrayLike,
    int8: np.int8,
    int64: np.int64,
    float32: np.float32,
    float64: np.float64,
) -> None:
    # arrays
    assert_type(fastops.mod(i8, i8), NDArray[np.int64])
    assert_type(fastops.remainder(f4, f4), NDArray[np.float32])
    assert_type(fastops.fmod(f8, f8), NDArray[np.float64])
    assert_type(fastops.mod(i1, 7), NDArray[np.int8])
    assert_type(fastops.mod(7, i1), NDArray[np.int8])
    assert_type(fastops.mod(f4, 7), NDArray[np.float32])
    assert_type(fastops.mod(f4, 2.5), NDArray[np.float32])
    assert_type(fastops.fmod(2.5, f4), NDArray[np.float32])
    assert_type(fastops.mod(i1, int8), NDArray[np.int8])
    assert_type(fastops.mod(float32, f4), NDArray[np.float32])
    assert_type(fastops.mod(f4, float64), NDArray[np.float64])
    assert_type(fastops.fmod(float64, f4), NDArray[np.float64])
    assert_type(fastops.mod(i1, float64), NDArray[np.float64])
    assert_type(fastops.mod(f8, f8, where=flags), NDArray[np.float64])
    assert_type(fastops.mod(i8, 3, None, order="C", casting="safe", subok=False), NDArray[np.int64])

    # where the operands do not tell
    assert_type(fastops.mod(i1, i8), NDArray[Any])
    assert_type(fastops.mod(i1, 2.5), NDArray[Any])
    assert_type(fastops.fmod(i8, f4), NDArray[Any])
    assert_type(fastops.mod(flags, flags), NDArray[Any])
    assert_type(fastops.mod(f8, [1.0, 2.0]), NDArray[Any])
    assert_type(fastops.mod(i8, 3, dtype=np.float32), NDArray[Any])
    assert_type(fastops.fmod(i8, 3, signature="dd->d"), NDArray[Any])
    assert_type(fastops.mod(i8, 3, out=...), NDArray[Any])
    assert_type(fastops.mod(unknown, unknown), NDArray[Any])
    assert_type(fastops.mod(np.array([1, 2]), 3), NDArray[Any])
    assert_type(fastops.fmod(2.5, unknown), NDArray[Any])

    # out
    assert_type(fastops.mod(i8, i8, out=f8), NDArray[np.float64])
    assert_type(fastops.mod(i8, i8, f8), NDArray[np.float64])
    assert_type(fastops.fmod([1, 2], 3, out=(i8,)), NDArray[np.int64])

    # scalars
    assert_type(fastops.mod(int64, int64), np.int64)
    assert_type(fastops.fmod(float32, float32), np.float32)
    assert_type(fastops.mod(7, 3), Any)
    assert_type(fastops.mod(float32, 7.5), Any)
    assert_type(fastops.mod([1, 2], [3, 4]), NDArray[Any])
    assert_type(fastops.mod(anything, anything), NDArray[Any])

    # the attribute of ONNX's Mod, and what is wrong
    assert_type(fastops.mod(i8, i8, fmod=1), NDArray[np.int64])
    assert_type(fastops.remainder(i8, 3, fmod=True, dtype="f4"), NDArray[Any])
    fastops.mod(i8, i8, fmod="1")  # type: ignore[call-overload]
    fastops.fmod(i8, i8, fmod=1)  # type: ignore[call-overload]
    fastops.mod(i8)  # type: ignore[call-overload]
    fastops.mod(i8, i8, wrong=1)  # type: ignore[call-overload]

    # a ufunc
    takes_ufunc(fastops.mod)
    assert_type(fastops.mod.nin, Literal[2])
    assert_type(fastops.fmod.nout, Literal[1])
    assert_type(fastops.fmod.nargs, Literal[3])
    assert_type(fastops.mod.__name__, Literal["remainder"])
    assert_type(fastops.fmod.__name__, Literal["fmod"])
    fastops.mod.reduce(i8, axis=0, initial=100)
    fastops.mod.accumulate(i8, dtype="f4")
    fastops.mod.reduceat(i8, [0, 1])
    fastops.mod.outer(i8, i8)
    fastops.fmod.at(i8, np.array([0]), 3)
