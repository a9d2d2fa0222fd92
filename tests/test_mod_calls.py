"""Every way to call: the same result, type, dtype, warnings and errors, in the same words, as from `numpy.remainder` and `numpy.fmod`."""

import array
import contextlib
import contextvars
import copy
import datetime
import decimal
import doctest
import enum
import fractions
import functools
import gc
import inspect
import pickle
import re
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import dask.array
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import (
    BFLOAT16,
    DTYPES,
    OPERATIONS,
    assert_same,
    assert_same_bits,
    each_dtype,
    each_operation,
    in_parallel,
    in_python,
    message,
    mixed_values,
    outcome,
    serially,
    small_values,
    usual_values,
)

import fastops
from fastops import real_ufuncs

SMALL, LARGE = 6, 12_000
each_size = pytest.mark.parametrize("n", ["small", "small, in Python", "large, in Python"], indirect=True)


def way(name):
    """Plain calls go past Python, unless the name says so."""
    return in_python() if name.endswith("in Python") else contextlib.nullcontext()


@pytest.fixture
def n(request):
    with way(request.param):
        yield LARGE if request.param.startswith("large") else SMALL


def ints(n, seed=0, dtype="int32"):
    return small_values(np.dtype(dtype), n, seed)


def floats(n, seed=0):
    return mixed_values(DTYPES["float64"], n, seed)


def square(n, seed=0, dtype="int32"):
    return ints(n, seed, dtype).reshape(2, -1)


# --- comparing ----------------------------------------------------------------------------------------------------------------------------
def assert_alike(got, want):
    assert type(got) is type(want)
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for pair in zip(got, want, strict=True):
            assert_alike(*pair)
    elif isinstance(want, (pd.Series, pd.DataFrame, pd.Index)):
        assert got.equals(want)
        assert_alike(np.asarray(got), np.asarray(want))
    elif isinstance(want, xr.DataArray):
        assert got.identical(want)
    elif isinstance(want, dask.array.Array):
        assert got.chunks == want.chunks
        assert_alike(got.compute(), want.compute())
    elif isinstance(want, np.ma.MaskedArray):
        assert_alike(got.filled(99), want.filled(99))
        assert_alike(np.ma.getmaskarray(got), np.ma.getmaskarray(want))
        assert got.fill_value == want.fill_value
    elif isinstance(want, (np.ndarray, np.generic)):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        assert got.strides == want.strides
        got, want = np.asarray(got), np.asarray(want)
        if want.dtype == object:
            assert [type(x) for x in got.ravel()] == [type(x) for x in want.ravel()]
            assert got.tolist() == want.tolist()
        elif want.dtype == BFLOAT16 or (want.dtype.kind in "iuf" and want.itemsize <= 8):
            assert_same_bits(got, want)
        else:
            assert np.array_equal(got, want, equal_nan=want.dtype.kind in "fcmM")
    else:
        assert got == want or (got != got and want != want)


def assert_alike_outcomes(call, name, *args):
    operation, twin = OPERATIONS[name]
    assert_alike_all(outcome(call, operation, *args), outcome(call, twin, *args))


def assert_alike_all(got, want):
    assert without_addresses(got.error) == without_addresses(want.error)
    if getattr(want.result, "dtype", None) == BFLOAT16:  # ml_dtypes' remainder does not report a zero divisor
        invalid = RuntimeWarning, "invalid value encountered in remainder"
        got, want = (seen._replace(warnings=[entry for entry in seen.warnings if entry != invalid]) for seen in (got, want))
    assert got.warnings == want.warnings
    assert_alike(got.result, want.result)


def without_addresses(error):
    return error and (error[0], re.sub("0x[0-9a-f]+", "0x", error[1]))


def with_out(call):
    """`call(f, out)` and what it left in `out`."""
    return lambda f, n: (call(f, out := np.full(n, 77, np.int32), n) is out, out)


# --- forms of a call ----------------------------------------------------------------------------------------------------------------------
FORMS = {
    "two arrays": lambda f, n: f(ints(n), ints(n, 1)),
    "floats": lambda f, n: f(floats(n), floats(n, 1)),
    "positional out": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out)),
    "positional out of None": lambda f, n: f(ints(n), ints(n, 1), None),
    "out": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out=out)),
    "out in a tuple": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out=(out,))),
    "out of None": lambda f, n: f(ints(n), ints(n, 1), out=None),
    "out of None in a tuple": lambda f, n: f(ints(n), ints(n, 1), out=(None,)),
    "out in a list": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out=[out])),
    "two outs": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out=(out, out))),
    "empty tuple of outs": lambda f, n: f(ints(n), ints(n, 1), out=()),
    "out twice": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out, out=out)),
    "out of dots": lambda f, n: f(ints(n), ints(n, 1), out=...),
    "out of dots by scalars": lambda f, n: f(7, 3, out=...),
    "out of dots by scalars of NumPy": lambda f, n: f(np.int16(7), np.int16(-3), out=...),
    "positional out of dots": lambda f, n: f(ints(n), 3, ...),
    "read-only out": lambda f, n: f(ints(n), 3, out=np.broadcast_to(np.int32(1), n)),
    "out too small": lambda f, n: f(ints(n), 3, out=np.zeros(n - 1, np.int32)),
    "out of fewer dimensions": lambda f, n: f(square(n), 3, out=np.zeros(n // 2, np.int32)),
    "0-d out": lambda f, n: f(ints(n), 3, out=np.zeros((), np.int32)),
    "0-d out of scalars": lambda f, n: f(7, 3, out=np.zeros((), np.int32)),
    "larger out": lambda f, n: f(ints(n), 3, out=np.zeros((3, n), np.int32)),
    "out of one by n": lambda f, n: f(ints(1), 3, out=np.zeros(n, np.int32)),
    "wider out": lambda f, n: f(ints(n), 3, out=np.zeros(n, np.int64)),
    "narrower out": lambda f, n: f(ints(n), 3, out=np.zeros(n, np.int8)),
    "unsigned out": lambda f, n: f(ints(n), 3, out=np.zeros(n, np.uint32)),
    "float out": lambda f, n: f(ints(n), 3, out=np.zeros(n)),
    "integer out of floats": lambda f, n: f(floats(n), 3.0, out=np.zeros(n, np.int32)),
    "bool out": lambda f, n: f(ints(n), 3, out=np.zeros(n, bool)),
    "object out": lambda f, n: f(ints(n), 3, out=np.zeros(n, object)),
    "out of the other byte order": lambda f, n: f(ints(n), 3, out=np.zeros(n, np.dtype("i4").newbyteorder())),
    "list as out": lambda f, n: f(ints(n), 3, out=[0] * n),
    "scalar as out": lambda f, n: f(ints(n), 3, out=3),
    "masked out": lambda f, n: f(ints(n), 3, out=np.ma.array(np.zeros(n, np.int32))),
    "subclass as out": lambda f, n: f(ints(n), 3, out=np.zeros(n, np.int32).view(Tagged)),
    "where and out": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out=out, where=ints(n, 2) > 0)),
    "where": lambda f, n: f(ints(n), ints(n, 1), where=np.ones(n, bool)),
    "where broadcast": lambda f, n: f(square(n), ints(n // 2, 1), out=np.full((2, n // 2), 77, np.int32), where=[[True], [False]]),
    "where that widens": lambda f, n: f(ints(n), 3, where=np.ones((2, n), bool)),
    "where false": with_out(lambda f, out, n: f(ints(n), 0, out=out, where=False)),
    "where not zero": with_out(lambda f, out, n: f(ints(n), ints(n, 1), out=out, where=ints(n, 1) != 0)),
    "where of integers": with_out(lambda f, out, n: f(ints(n), 3, out=out, where=np.ones(n, int))),
    "where of a list": with_out(lambda f, out, n: f(ints(n), 3, out=out, where=[True] * n)),
    "where of a wrong shape": with_out(lambda f, out, n: f(ints(n), 3, out=out, where=np.ones(n + 1, bool))),
    "where of floats": lambda f, n: f(floats(n), floats(n, 1), out=np.ones(n), where=floats(n, 1) != 0),
    "where in place": lambda f, n: f(x := ints(n), 3, out=x, where=ints(n, 2) > 0),
    "casting unsafe": lambda f, n: f(ints(n), 3, out=np.zeros(n, np.int8), casting="unsafe"),
    "casting safe": lambda f, n: f(ints(n), 3, casting="safe"),
    "casting no": lambda f, n: f(ints(n), ints(n, 1, "int16"), casting="no"),
    "casting unknown": lambda f, n: f(ints(n), 3, casting="perhaps"),
    "casting unsafe of floats": lambda f, n: f(usual_values(DTYPES["float64"], n), 3, dtype="i4", casting="unsafe"),
    "dtype wider": lambda f, n: f(ints(n), 3, dtype=np.int64),
    "dtype of floats": lambda f, n: f(ints(n), ints(n, 1), dtype="f4"),
    "dtype narrower": lambda f, n: f(ints(n), 3, dtype=np.int16),
    "dtype unsigned": lambda f, n: f(ints(n), 3, dtype=np.uint32),
    "dtype object": lambda f, n: f(ints(n), 3, dtype=object),
    "dtype unknown": lambda f, n: f(ints(n), 3, dtype="nothing"),
    "dtype of the other byte order": lambda f, n: f(ints(n), 3, dtype=np.dtype("i4").newbyteorder()),
    "dtype None": lambda f, n: f(ints(n), 3, dtype=None),
    "dtype bool": lambda f, n: f(ints(n), 3, dtype=bool),
    "dtype complex": lambda f, n: f(ints(n), 3, dtype=complex),
    "dtype longdouble": lambda f, n: f(ints(n), 3, dtype=np.longdouble),
    "dtype longlong": lambda f, n: f(ints(n), 3, dtype="q"),
    "signature": lambda f, n: f(ints(n), 3, signature="dd->d"),
    "sig": lambda f, n: f(ints(n), 3, sig="ll->l"),
    "signature of types": lambda f, n: f(ints(n), 3, signature=(np.int64, np.int64, np.int64)),
    "signature with gaps": lambda f, n: f(ints(n), 3, signature=(None, None, np.float32)),
    "signature unknown": lambda f, n: f(ints(n), 3, signature="ld->f"),
    "signature of wrong length": lambda f, n: f(ints(n), 3, signature="dd"),
    "signature and dtype": lambda f, n: f(ints(n), 3, signature="dd->d", dtype="f8"),
    "sig and signature": lambda f, n: f(ints(n), 3, signature="dd->d", sig="dd->d"),
    "order C": lambda f, n: f(square(n).T, 3, order="C"),
    "order F": lambda f, n: f(square(n), 3, order="F"),
    "order K": lambda f, n: f(square(n).T, 3, order="K"),
    "order unknown": lambda f, n: f(square(n), 3, order="Q"),
    "subok": lambda f, n: f(ints(n).view(Tagged), 3, subok=False),
    "subok true": lambda f, n: f(ints(n).view(Tagged), 3, subok=True),
    "all keywords": with_out(
        lambda f, out, n: f(ints(n), 3, out=out, where=True, casting="same_kind", order="K", dtype=np.int32, subok=True)
    ),
    "no arguments": lambda f, n: f(),
    "one argument": lambda f, n: f(ints(n)),
    "four arguments": lambda f, n: f(ints(n), 3, None, None),
    "five arguments": lambda f, n: f(ints(n), 3, None, None, None),
    "only out": lambda f, n: f(out=np.zeros(n)),
    "operands by keyword": lambda f, n: f(x1=ints(n), x2=3),
    "one operand by keyword": lambda f, n: f(ints(n), x2=3),
    "unknown keyword": lambda f, n: f(ints(n), 3, wrong=1),
    "axis": lambda f, n: f(ints(n), 3, axis=0),
    "extobj": lambda f, n: f(ints(n), 3, extobj=[1]),
    "shapes that do not fit": lambda f, n: f(ints(n), ints(n - 1)),
    "shapes of two dimensions that do not fit": lambda f, n: f(square(n), square(n).T),
    "by zero": lambda f, n: f(ints(n), 0),
    "floats by zero": lambda f, n: f(floats(n), 0.0),
    "infinity": lambda f, n: f(np.inf, usual_values(DTYPES["float64"], n)),
    "no array": lambda f, n: f(None, None),
    "array by None": lambda f, n: f(ints(n), None),
    "array by type": lambda f, n: f(ints(n), int),
    "array by generator": lambda f, n: f(ints(n), (k for k in range(3))),
    "array by set": lambda f, n: f(ints(n), {1, 2}),
    "lists": lambda f, n: f([7, -7, 8] * n, [3, 3, -3] * n),
    "nested lists": lambda f, n: f([[7.5, -7.5]] * n, [[2], [3]] * (n // 2)),
    "ragged lists": lambda f, n: f([[1, 2], [3]], 2),
    "list and array": lambda f, n: f(list(range(n)), ints(n)),
    "list by small integers": lambda f, n: f(ints(n, 0, "int8"), [3] * n),
    "list of large integers": lambda f, n: f([2**63 + 5] * n, 7),
    "list of larger integers": lambda f, n: f([2**70] * n, 7),
    "empty list": lambda f, n: f([], []),
    "tuple": lambda f, n: f(tuple(range(n)), 3),
    "range": lambda f, n: f(range(n), 3),
    "array.array": lambda f, n: f(array.array("h", list(range(n))), 3),
    "memoryview": lambda f, n: f(memoryview(ints(n)), 3),
    "bytes": lambda f, n: f(b"123", 3),
    "bytearray": lambda f, n: f(bytearray(b"123"), 3),
    "has __array__": lambda f, n: f(HasArray(ints(n)), 3),
    "divisor has __array__": lambda f, n: f(ints(n), HasArray(ints(n, 1))),
    "has __array_interface__": lambda f, n: f(HasInterface(ints(n)), 3),
    "has __array_wrap__": lambda f, n: f(HasWrap(ints(n)), 3).wrapped,
    "__array__ that fails": lambda f, n: f(Failing(), 3),
    "list of arrays": lambda f, n: f([ints(n), ints(n, 1)], 3),
    "list of scalars of NumPy": lambda f, n: f([np.int8(7)] * n, np.int8(3)),
    "objects": lambda f, n: f(np.array([7, 2**70, 7.5, True] * n, object), 3),
    "objects that fail": lambda f, n: f(np.array([7, "a"] * n, object), 3),
    "integers by objects": lambda f, n: f(ints(n), np.array([3] * n, object)),
    "objects by zero": lambda f, n: f(np.array([7] * n, object), 0),
    "Decimal": lambda f, n: f(np.array([decimal.Decimal(7)] * n), decimal.Decimal("2.5")),
    "list of Decimal": lambda f, n: f([decimal.Decimal(7), decimal.Decimal("7.25")], 2),
    "Decimal by Decimal": lambda f, n: f(decimal.Decimal(7), decimal.Decimal(3)),
    "Fraction": lambda f, n: f(np.array([fractions.Fraction(22, 7)] * n), 2),
    "Fraction by array": lambda f, n: f(fractions.Fraction(22, 7), ints(n)),
    "timedelta": lambda f, n: f(ints(n).astype("m8[s]"), np.timedelta64(3, "s")),
    "timedelta by zero": lambda f, n: f(ints(n).astype("m8[s]"), np.timedelta64(0, "s")),
    "timedelta of units": lambda f, n: f(ints(n).astype("m8[m]"), np.timedelta64(7, "s")),
    "timedelta by integer": lambda f, n: f(ints(n).astype("m8[s]"), 3),
    "timedelta of Python": lambda f, n: f(datetime.timedelta(7), datetime.timedelta(3)),
    "datetime": lambda f, n: f(ints(n).astype("M8[s]"), 3),
    "longdouble": lambda f, n: f(ints(n).astype("g"), np.longdouble("2.1")),
    "longdouble by zero": lambda f, n: f(ints(n).astype("g"), np.longdouble(0)),
    "complex": lambda f, n: f(ints(n).astype(complex), 3),
    "complex scalar": lambda f, n: f(ints(n), 3j),
    "strings": lambda f, n: f(np.array(["%d"] * n), 3),
    "string": lambda f, n: f("%d", 3),
    "strings of variable width": lambda f, n: f(np.array(["a"] * n, np.dtypes.StringDType()), 3),
    "structured": lambda f, n: f(np.zeros(n, "i4,i4"), 3),
    "void": lambda f, n: f(np.zeros(n, "V4"), 3),
    "bools": lambda f, n: f(ints(n) > 0, ints(n, 1) > 0),
    "bool by bool": lambda f, n: f(True, True),
    "bools by integer": lambda f, n: f(ints(n) > 0, 3),
    "longlong": lambda f, n: f(ints(n).astype("q"), ints(n, 1).astype("q")),
    "unsigned longlong": lambda f, n: f(np.abs(ints(n)).astype("Q"), np.uint64(3)),
    "longlong by long": lambda f, n: f(ints(n).astype("q"), ints(n, 1).astype("l")),
    "masked": lambda f, n: f(np.ma.array(ints(n), mask=ints(n, 1) > 0), 3),
    "divisor masked": lambda f, n: f(ints(n), np.ma.array(ints(n, 2), mask=ints(n, 1) > 0)),
    "masked constant": lambda f, n: f(ints(n), np.ma.masked),
    "matrix": lambda f, n: f(np.asmatrix(square(n)), 3),
    "array by matrix": lambda f, n: f(square(n), np.asmatrix(square(n, 1))),
    "record array": lambda f, n: f(np.rec.fromarrays([ints(n), ints(n, 1)], names="a,b").a, 3),
    "character array": lambda f, n: f(np.char.array(["a"] * n), 3),
    "subclass": lambda f, n: (f(Tagged.of(ints(n), "x"), 3), f(Tagged.of(ints(n), "x"), 3).tag),
    "array by subclass": lambda f, n: f(ints(n), Tagged.of(ints(n, 1), "x")),
    "subclass with __array_ufunc__": lambda f, n: f(ints(n).view(Handles), 3),
    "subclass that wraps": lambda f, n: f(ints(n).view(Wraps), 3),
    "handles ufuncs": lambda f, n: f(Duck("a"), 3, where=True),
    "array by one that handles ufuncs": lambda f, n: f(ints(n), Duck("a")),
    "two that handle ufuncs": lambda f, n: f(Duck("a"), Duck("b")),
    "out handles ufuncs": lambda f, n: f(ints(n), 3, out=Duck("a")),
    "handler declines": lambda f, n: f(ints(n), Declines()),
    "refuses ufuncs": lambda f, n: f(ints(n), Refuses()),
    "dividend refuses ufuncs": lambda f, n: f(Refuses(), ints(n)),
    "method of one that handles ufuncs": lambda f, n: f.reduce(Duck("a")),
    "outer of one that handles ufuncs": lambda f, n: f.outer(ints(3), Duck("a")),
    "at of one that handles ufuncs": lambda f, n: f.at(Duck("a"), [0], 3),
    "at of a list that is no array": lambda f, n: f.at([[1], [2, 3]], [0], 3),
    "at of a list, by one that is no array": lambda f, n: f.at([1], [0], [[1], [2, 3]]),
    "enumeration": lambda f, n: f(ints(n, 0, "int8"), Number.SEVEN),
    "subclass of int": lambda f, n: f(ints(n, 0, "int8"), MyInt(5)),
    "subclass of float": lambda f, n: f(ints(n).astype("f4"), MyFloat(2.5)),
    "flag": lambda f, n: f(ints(n, 0, "int8"), True),
    "Series": lambda f, n: f(pd.Series(ints(n), index=range(5, n + 5), name="s"), 3),
    "Series by Series": lambda f, n: f(pd.Series(ints(n)), pd.Series(ints(n, 1), index=range(1, n + 1))),
    "Series by zero": lambda f, n: f(pd.Series(ints(n)), 0),
    "array by Series": lambda f, n: f(ints(n), pd.Series(ints(n, 1))),
    "nullable Series": lambda f, n: f(pd.Series([7, None, 9] * n, dtype="Int32"), 4),
    "DataFrame": lambda f, n: f(pd.DataFrame({"a": ints(n), "b": floats(n)}), 3),
    "DataFrame by Series": lambda f, n: f(pd.DataFrame({"a": ints(n), "b": ints(n)}), pd.Series({"a": 3, "b": 4})),
    "Index": lambda f, n: f(pd.Index(range(n)), 3),
    "categorical": lambda f, n: f(pd.Categorical(["a"] * n), 3),
    "DataArray": lambda f, n: f(xr.DataArray(square(n), dims=("x", "y"), coords={"x": [1, 2]}), 3),
    "DataArrays that broadcast": lambda f, n: f(xr.DataArray(ints(9), dims="x"), xr.DataArray(ints(n, 1), dims="y")),
    "Dask": lambda f, n: f(dask.array.from_array(ints(n), chunks=n // 2), 3),
    "array by Dask": lambda f, n: f(ints(n), dask.array.from_array(np.abs(ints(n)) + 1, chunks=n // 3)),
    "partial": lambda f, n: functools.partial(f, ints(n))(3),
    "map": lambda f, n: tuple(map(f, [7, 8, -9], [3, 3, 4])),
    "vectorize": lambda f, n: np.vectorize(f)([7, 8, -9], 4),
    "apply along axis": lambda f, n: np.apply_along_axis(f, 0, square(n), 3),
}  # fmt: skip


class Tagged(np.ndarray):
    def __array_finalize__(self, parent):
        self.tag = getattr(parent, "tag", "none")

    @classmethod
    def of(cls, x, tag):
        x = x.view(cls)
        x.tag = tag
        return x


class Handles(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        inputs = [np.asarray(x) for x in inputs]
        return ufunc.__name__, method, getattr(ufunc, method)(*inputs, **kwargs)


class Wraps(np.ndarray):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        return "wrapped", context[0].__name__, np.asarray(array), return_scalar


class HasArray:
    def __init__(self, x):
        self.x, self.asked = x, 0

    def __array__(self, dtype=None, copy=None):
        self.asked += 1
        return self.x if dtype is None else self.x.astype(dtype)


class HasInterface:
    def __init__(self, x):
        self.x, self.__array_interface__ = x, x.__array_interface__


class HasWrap(HasArray):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        self.wrapped = context[0].__name__, array, return_scalar
        return self


class Failing:
    def __array__(self, dtype=None, copy=None):
        raise LookupError("no array here")


class Duck:
    def __init__(self, label):
        self.label = label

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        described = [x.label if isinstance(x, Duck) else type(x).__name__ for x in inputs]
        return self.label, isinstance(ufunc, np.ufunc), ufunc.__name__, method, str(described), str(sorted(kwargs))


class Declines:
    def __array_ufunc__(self, *args, **kwargs):
        return NotImplemented


class Refuses:
    __array_ufunc__ = None


class MyInt(int):
    pass


class MyFloat(float):
    pass


class Number(enum.IntEnum):
    SEVEN = 7


@each_operation
@each_size
@pytest.mark.parametrize("form", list(FORMS))
def test_form(name, n, form):
    assert_alike_outcomes(FORMS[form], name, n)


@each_operation
@pytest.mark.parametrize("form", list(FORMS))
def test_form_when_parallel_is_forced(name, form):
    operation, twin = OPERATIONS[name]
    with in_parallel(must=False):
        got = outcome(FORMS[form], operation, 600)
    want = outcome(FORMS[form], twin, 600)
    assert_alike_all(got, want)


# --- methods ------------------------------------------------------------------------------------------------------------------------------
def at(f, x, *args):
    f.at(x, *args)
    return x


METHODS = {
    "reduce": lambda f, n: f.reduce(ints(n)),
    "reduce positive": lambda f, n: f.reduce(np.arange(n, 0, -1)),
    "reduce of random bits": lambda f, n: f.reduce(mixed_values(DTYPES["int64"], n)),
    "reduce of floats": lambda f, n: f.reduce(usual_values(DTYPES["float64"], n)),
    "reduce rows": lambda f, n: f.reduce(mixed_values(DTYPES["int32"], n).reshape(2, -1), axis=1),
    "reduce columns": lambda f, n: f.reduce(mixed_values(DTYPES["int32"], n).reshape(2, -1), axis=0),
    "reduce columns of floats": lambda f, n: f.reduce(floats(n).reshape(2, -1)),
    "reduce transposed": lambda f, n: f.reduce(mixed_values(DTYPES["int32"], n).reshape(2, -1).T, axis=1),
    "reduce reversed": lambda f, n: f.reduce(mixed_values(DTYPES["int32"], n)[::-1]),
    "reduce last axis": lambda f, n: f.reduce(square(n), axis=-1),
    "reduce all axes": lambda f, n: f.reduce(square(n), axis=None),
    "reduce two axes": lambda f, n: f.reduce(square(n), axis=(0, 1)),
    "reduce no axis": lambda f, n: f.reduce(square(n), axis=()),
    "reduce a wrong axis": lambda f, n: f.reduce(square(n), axis=2),
    "reduce keepdims": lambda f, n: f.reduce(square(n), axis=1, keepdims=True),
    "reduce dtype": lambda f, n: f.reduce(ints(n), dtype="f8"),
    "reduce positional": lambda f, n: f.reduce(square(n), 1, "i8", None, True),
    "reduce out": lambda f, n: f.reduce(square(n), axis=1, out=np.zeros(2, np.int32)),
    "reduce out in place": lambda f, n: f.reduce(x := square(n), axis=0, out=x[0]),
    "reduce wrong out": lambda f, n: f.reduce(square(n), axis=1, out=np.zeros(3, np.int32)),
    "reduce initial": lambda f, n: f.reduce(usual_values(DTYPES["int32"], n), initial=10**9),
    "reduce where": lambda f, n: f.reduce(ints(n), where=ints(n, 1) > 0),
    "reduce where and initial": lambda f, n: f.reduce(ints(n), where=ints(n) > 2, initial=1000),
    "reduce empty": lambda f, n: f.reduce(ints(0)),
    "reduce empty with initial": lambda f, n: f.reduce(ints(0), initial=7),
    "reduce list": lambda f, n: f.reduce([100, 30, 7]),
    "reduce scalar": lambda f, n: f.reduce(7),
    "reduce bools": lambda f, n: f.reduce(ints(n) >= -99),
    "reduce objects": lambda f, n: f.reduce(np.array([2**70] + [2**69 + 1] * n, object)),
    "reduce masked": lambda f, n: f.reduce(np.ma.array(np.arange(n, 0, -1), mask=ints(n) > 0)),
    "reduce Series": lambda f, n: f.reduce(pd.Series(np.arange(n, 0, -1))),
    "reduce nothing": lambda f, n: f.reduce(),
    "reduce unknown keyword": lambda f, n: f.reduce(ints(n), wrong=1),
    "accumulate": lambda f, n: f.accumulate(ints(n)),
    "accumulate of random bits": lambda f, n: f.accumulate(mixed_values(DTYPES["int64"], n)),
    "accumulate rows": lambda f, n: f.accumulate(mixed_values(DTYPES["int32"], n).reshape(-1, 2), axis=1),
    "accumulate columns": lambda f, n: f.accumulate(mixed_values(DTYPES["int32"], n).reshape(2, -1), axis=0),
    "accumulate long columns": lambda f, n: f.accumulate(usual_values(DTYPES["float64"], n).reshape(-1, 2), axis=0),
    "accumulate reversed": lambda f, n: f.accumulate(np.arange(n)[::-1]),
    "accumulate in place": lambda f, n: f.accumulate(x := usual_values(DTYPES["int32"], n), out=x),
    "accumulate in place, shifted": lambda f, n: f.accumulate((x := usual_values(DTYPES["int32"], n))[:-1], out=x[1:]),
    "accumulate dtype": lambda f, n: f.accumulate(ints(n), dtype="f4"),
    "accumulate positional": lambda f, n: f.accumulate(square(n), 0, "i8"),
    "accumulate two axes": lambda f, n: f.accumulate(square(n), axis=(0, 1)),
    "accumulate list": lambda f, n: f.accumulate([100, 30, 7]),
    "reduceat": lambda f, n: f.reduceat(usual_values(DTYPES["int32"], n), [0, 3, 1, 5]),
    "reduceat with axis": lambda f, n: f.reduceat(usual_values(DTYPES["int32"], n).reshape(2, -1), [0, 1], axis=1),
    "reduceat out of range": lambda f, n: f.reduceat(ints(n), [0, n]),
    "reduceat positional": lambda f, n: f.reduceat(square(n), [0, 1], 1, "f8"),
    "reduceat out": lambda f, n: f.reduceat(ints(n), [0, 2], out=np.zeros(2, np.int32)),
    "reduceat without indices": lambda f, n: f.reduceat(ints(n)),
    "outer": lambda f, n: f.outer(ints(n), ints(9, 1)),
    "outer of both large": lambda f, n: f.outer(ints(150), ints(150, 1)),
    "outer of two dimensions": lambda f, n: f.outer(square(n), [3, 4]),
    "outer of scalars": lambda f, n: f.outer(7, 3),
    "outer dtype": lambda f, n: f.outer(ints(n), [3, 4], dtype="f8"),
    "outer out": lambda f, n: f.outer(ints(n), [3, 4], out=np.zeros((n, 2), np.int32)),
    "outer where": lambda f, n: f.outer(ints(n), [3, 0], out=np.zeros((n, 2), np.int32), where=[True, False]),
    "outer masked": lambda f, n: f.outer(np.ma.array(ints(n), mask=ints(n) > 0), [3, 4]),
    "outer of one": lambda f, n: f.outer(ints(n)),
    "outer of three": lambda f, n: f.outer(ints(n), 3, 4),
    "at": lambda f, n: at(f, ints(n), np.arange(0, n, 2), 5),
    "at repeated": lambda f, n: at(f, usual_values(DTYPES["int32"], n), [1, 1, 1, 0], [1000, 100, 30, 7]),
    "at repeated often": lambda f, n: at(f, usual_values(DTYPES["int32"], n), np.arange(3 * n) % n, np.arange(3 * n, 0, -1)),
    "at of floats": lambda f, n: at(f, floats(n), np.arange(n) // 2, usual_values(DTYPES["float64"], n)),
    "at by slices": lambda f, n: at(f, square(n), (slice(None), [0, 1]), 5),
    "at by mask": lambda f, n: at(f, ints(n), ints(n) > 0, 5),
    "at by zero": lambda f, n: at(f, ints(n), [0, 1], 0),
    "at out of range": lambda f, n: at(f, ints(n), [n], 5),
    "at read-only": lambda f, n: at(f, np.broadcast_to(np.int32(1), n), [0], 5),
    "at list": lambda f, n: at(f, [1, 2, 3], [0], 5),
    "at of two": lambda f, n: at(f, ints(n), [0]),
    "at wider": lambda f, n: at(f, ints(n), [0], 2.5),
    "at with bools": lambda f, n: at(f, ints(n) > 0, [0], True),
}  # fmt: skip


@each_operation
@each_size
@pytest.mark.parametrize("method", list(METHODS))
def test_method(name, n, method):
    assert_alike_outcomes(METHODS[method], name, n)


@each_operation
@each_dtype
@each_size
def test_methods_of_each_dtype(name, dtype, n):
    """Those that call a loop on overlapping memory: against one plain call per step."""
    operation = OPERATIONS[name][0]
    x = mixed_values(dtype, n)[::-1]
    steps = [x[0]]
    with np.errstate(all="ignore"):
        for value in x[1:]:
            steps.append(operation(steps[-1], value))
        assert_same_bits(operation.accumulate(x), np.array(steps, dtype))
        assert_same_bits(operation.reduce(x), steps[-1])
        assert_same_bits(operation.outer(x[:300], x[-300:]), operation(x[:300, None], x[-300:]))
        once = usual_values(dtype, n, 3)
        repeated = once.copy()
        operation.at(repeated, np.r_[np.arange(n), np.arange(n)], np.r_[x, x[::-1]])
        assert_same_bits(repeated, operation(operation(once, x), x[::-1]))


# --- promotion ----------------------------------------------------------------------------------------------------------------------------
SCALARS = [
    7, -3, 0, 1, 100, 200, 300, -200, 70_000, 2**31, 2**63, 2**64 - 1, 2**64, -(2**63), 10**30, 2.5, -0.0, 1e5, 1e300, 1e-300, float("nan"),
    float("inf"), True, False, np.True_, np.int8(3), np.int16(-300), np.int32(3), np.int64(-3), np.uint8(3), np.uint16(3), np.uint32(3),
    np.uint64(3), np.float16(2.5), np.float32(2.5), np.float64(2.5), np.longdouble(2.5), BFLOAT16.type(2.5), np.array(3, "i1"),
    np.array(3, "u2"), np.array(3), np.array(2.5, "f4"), np.array(2.5), np.array(True), np.array(3, "q"), np.array(3, ">i4"), 1 + 2j,
    np.complex64(1), "3", None, decimal.Decimal(3), fractions.Fraction(5, 2), np.timedelta64(3, "s"), np.str_("3"), MyInt(3), Number.SEVEN,
    MyFloat(2.5), b"3",
]  # fmt: skip


@each_operation
@pytest.mark.parametrize("dtype", [np.dtype(bool), *DTYPES.values(), np.dtype("q"), np.dtype("Q")], ids=str)
@each_size
def test_weak_and_strong_scalars(name, dtype, n):
    x = ints(n) > 0 if dtype.kind == "b" else usual_values(dtype, n)
    for scalar in SCALARS:
        assert_alike_outcomes(lambda f, scalar: f(x, scalar), name, scalar)
        assert_alike_outcomes(lambda f, scalar: f(scalar, x), name, scalar)


@each_operation
@pytest.mark.parametrize("dtype", [np.dtype(bool), *DTYPES.values(), np.dtype("g")], ids=str)
@each_size
def test_mixed_dtypes(name, dtype, n):
    for other in (np.dtype(bool), *DTYPES.values(), np.dtype("g"), np.dtype("q"), np.dtype("m8[s]")):
        x, y = ints(n).astype(dtype), np.abs(ints(n, 1)).astype(other)
        assert_alike_outcomes(lambda f, x, y: f(x, y), name, x, y)
        assert_alike_outcomes(lambda f, x, y: f(x[0], y[0]), name, x, y)
        assert_alike_outcomes(lambda f, x, y: f(x[::-1], y[0]), name, x, y)


@each_operation
def test_scalars_by_scalars(name):
    for left in SCALARS:
        for right in SCALARS:
            assert_alike_outcomes(lambda f, left, right: f(left, right), name, left, right)


@each_operation
@each_size
def test_promotion_of_the_contract(name, n):
    operation = OPERATIONS[name][0]
    x = np.arange(n)
    assert operation(x.astype("i8"), x.astype("u8") + 1).dtype == np.float64
    assert operation(x > 1, x > -1).dtype == np.int8
    assert operation(x, 2.5).dtype == np.float64
    assert operation(x.astype("i1"), 7).dtype == np.int8
    with pytest.raises(OverflowError, match="300"):
        operation(x.astype("i1"), 300)


# --- fmod= --------------------------------------------------------------------------------------------------------------------------------
@each_dtype
@each_size
def test_fmod_attribute(dtype, n):
    x, y = mixed_values(dtype, n, 1), mixed_values(dtype, n, 2)
    with np.errstate(all="ignore"):
        for no, yes in ((0, 1), (False, True), (np.int64(0), np.int8(1)), (np.False_, np.True_)):
            assert_same(fastops.mod(x, y, fmod=no), fastops.remainder(x, y))
            assert_same(fastops.mod(x, y, fmod=yes), fastops.fmod(x, y))
            out = np.empty_like(x)
            assert fastops.mod(x, y, out=out, fmod=yes) is out
            assert_same_bits(out, fastops.fmod(x, y))


@pytest.mark.parametrize("flag", [2, -1, 0.5, None, "1", "", [1], (), 3j, np.array([0, 1]), np.int64(2), 1e9, float("nan"), object()])
def test_any_other_fmod_is_a_value_error(flag):
    for n in (SMALL, LARGE):
        with pytest.raises(ValueError, match="fmod"):
            fastops.mod(ints(n), 3, fmod=flag)


def test_fmod_has_no_attribute_fmod():
    for n in (SMALL, LARGE):
        for flag in (0, 1):
            got, want = outcome(fastops.fmod, ints(n), 3, fmod=flag), outcome(np.fmod, ints(n), 3, fmod=flag)
            assert got.error == want.error
            assert got.error[0] is TypeError


def test_warnings_of_mod_with_fmod_name_fmod():
    for n in (SMALL, LARGE):
        assert outcome(fastops.mod, ints(n), 0, fmod=1).warnings == [(RuntimeWarning, message("fmod", DTYPES["int32"]))]


# --- as a ufunc ---------------------------------------------------------------------------------------------------------------------------
@each_operation
@pytest.mark.parametrize("attribute", ["nin", "nout", "nargs", "ntypes", "types", "identity", "signature", "__name__"])
def test_attribute(name, attribute):
    operation, twin = OPERATIONS[name]
    assert getattr(operation, attribute) == getattr(twin, attribute)


@each_operation
def test_unknown_attribute_is_an_attribute_error(name):
    operation = OPERATIONS[name][0]
    for attribute in ("nothing", "_nothing", "__nothing__", "__array_ufunc__"):
        assert not hasattr(operation, attribute)


@each_operation
def test_resolve_dtypes(name):
    operation, twin = OPERATIONS[name]
    for asked in ((np.dtype("i4"), np.dtype("f4"), None), (int, np.dtype("i1"), None), (np.dtype("u8"), float, None)):
        assert operation.resolve_dtypes(asked) == twin.resolve_dtypes(asked)


def test_mod_is_remainder():
    assert fastops.mod is fastops.remainder


@each_operation
def test_pickle_and_copy_give_the_same_object(name):
    operation = OPERATIONS[name][0]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(operation, protocol)) is operation
        assert pickle.loads(pickle.dumps([operation], protocol))[0] is operation
    assert copy.copy(operation) is operation
    assert copy.deepcopy(operation) is operation
    assert pickle.loads(pickle.dumps(functools.partial(operation, 7)))(4) == 3
    assert hash(operation) == hash(copy.copy(operation))
    real = getattr(real_ufuncs, name)
    assert pickle.loads(pickle.dumps(real)) is real
    assert pickle.loads(pickle.dumps(OPERATIONS[name][1])) is OPERATIONS[name][1]


@each_operation
def test_signature_names_numpys_parameters(name):
    parameters = inspect.signature(OPERATIONS[name][0]).parameters
    wanted = ["x1", "x2", "out", "where", "casting", "order", "dtype", "subok", "signature"]
    assert [p for p in parameters if p != "fmod"] == wanted
    assert ("fmod" in parameters) == (name == "remainder")
    assert parameters["x1"].kind is parameters["x2"].kind is inspect.Parameter.POSITIONAL_ONLY
    assert parameters["out"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters["where"].kind is inspect.Parameter.KEYWORD_ONLY
    assert {p: parameters[p].default for p in wanted[2:]} == {
        "out": None, "where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True, "signature": None,
    }  # fmt: skip


@each_operation
def test_looks_like_a_function(name):
    operation = OPERATIONS[name][0]
    assert callable(operation)
    assert name in repr(operation)
    assert ">>>" in operation.__doc__
    assert operation.__module__.partition(".")[0] == "fastops"


# --- other types get fastops' ufunc -------------------------------------------------------------------------------------------------------
@each_operation
def test_types_that_handle_ufuncs_are_handed_fastops_ufunc(name):
    class Records:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return ufunc

    assert OPERATIONS[name][0](Records(), 3) is getattr(real_ufuncs, name)
    assert OPERATIONS[name][0](np.arange(20_000), Records(), out=np.zeros(20_000)) is getattr(real_ufuncs, name)
    assert OPERATIONS[name][0].reduce(Records()) is getattr(real_ufuncs, name)


def negative_zeros(n):
    """By ml_dtypes' loop the zeros come positive: a sign that fastops' loop has run."""
    return np.zeros(n, BFLOAT16), BFLOAT16.type(-1)


@each_size
def test_dask_chunks_run_on_fastops_loops(n):
    zeros, divisor = negative_zeros(n)
    lazy = fastops.mod(dask.array.from_array(zeros, chunks=n // 3), divisor)
    assert isinstance(lazy, dask.array.Array)
    assert np.signbit(lazy.compute(scheduler="threads")).all()


@each_operation
@pytest.mark.parametrize("wrap", [xr.DataArray, lambda x: dask.array.from_array(x, chunks=2)], ids=["xarray", "dask"])
def test_a_python_float_beside_bfloat16_of_others(name, wrap):
    """It is weak where it is to ml_dtypes."""
    operation, twin = OPERATIONS[name]
    x = np.array([1, 2, 3, -4, 5.5], BFLOAT16)
    operation.loop(BFLOAT16)
    for args in ((wrap(x), 2.3), (2.3, wrap(x))):
        got, want = operation(*args), twin(*args)
        assert got.dtype == want.dtype
        assert_same_bits(np.asarray(got), np.asarray(want))


@each_size
def test_xarray_runs_on_fastops_loops(n):
    zeros, divisor = negative_zeros(n)
    assert np.signbit(fastops.mod(xr.DataArray(zeros, dims="x"), divisor).values).all()


def test_dask_computes_nothing_early():
    def fail(block):
        raise AssertionError("computed")

    lazy = dask.array.ones(10, chunks=5).map_blocks(fail, dtype="f8", meta=np.ones(0))
    assert fastops.mod(lazy, 3).shape == (10,)


@each_operation
@each_size
def test_an_object_is_asked_for_its_array_once(name, n):
    for make in (lambda x: (x, 3), lambda x: (ints(n), x)):
        for call in (lambda f, args: f(*args), lambda f, args: f(*args, out=np.zeros(n, np.int32))):
            asked = []
            for f in OPERATIONS[name]:
                call(f, make(x := HasArray(usual_values(DTYPES["int32"], n))))
                asked.append(x.asked)
            assert asked[0] == asked[1]


def test_decimal_context_is_the_callers():
    operation, twin = OPERATIONS["remainder"]
    x = np.array([decimal.Decimal("1.23456789012345678")] * 3)
    with decimal.localcontext() as context:
        context.prec = 5
        assert operation(x, decimal.Decimal("0.00123")).tolist() == twin(x, decimal.Decimal("0.00123")).tolist()
        context.traps[decimal.InvalidOperation] = False
        assert str(operation(x, decimal.Decimal(0)).tolist()) == str(twin(x, decimal.Decimal(0)).tolist())
        assert context.flags[decimal.InvalidOperation]


@each_operation
def test_python_code_of_others_sees_the_callers_errstate(name):
    class Asks:
        def __mod__(self, other):
            return str(np.geterr())

        def fmod(self, other):
            return str(np.geterr())

    with np.errstate(all="raise", divide="call"):
        want = str(np.geterr())
        seen = OPERATIONS[name][1](np.array([Asks()]), 3)[0]
        assert seen == want
        assert OPERATIONS[name][0](np.array([Asks()]), 3)[0] == want


# --- errstate -----------------------------------------------------------------------------------------------------------------------------
class Log:
    def __init__(self):
        self.lines = []

    def write(self, text):
        self.lines.append(text)


def offenders(dtype, n):
    x, y = usual_values(dtype, n, 1), usual_values(dtype, n, 2)
    y[n // 2] = 0
    return x, y


REPORTING_PATHS = {
    "small": lambda f, dtype: f(*offenders(dtype, SMALL)),
    "small, in Python": lambda f, dtype: f(*offenders(dtype, SMALL)),
    "small, with out": lambda f, dtype: f(*offenders(dtype, SMALL), out=np.empty(SMALL, dtype)),
    "small, with out, in Python": lambda f, dtype: f(*offenders(dtype, SMALL), out=np.empty(SMALL, dtype)),
    "scalars": lambda f, dtype: f(dtype.type(1), dtype.type(0)),
    "scalars, in Python": lambda f, dtype: f(dtype.type(1), dtype.type(0)),
    "large": lambda f, dtype: f(*offenders(dtype, LARGE)),
    "large, in Python": lambda f, dtype: f(*offenders(dtype, LARGE)),
    "larger": lambda f, dtype: f(*offenders(dtype, 300_000)),
    "strided": lambda f, dtype: f(*(x[::-1] for x in offenders(dtype, LARGE))),
    "where": lambda f, dtype: f(*offenders(dtype, LARGE), where=np.ones(LARGE, bool)),
    "dtype": lambda f, dtype: f(*offenders(dtype, LARGE), dtype=dtype),
    "list": lambda f, dtype: f([1, 2], dtype.type(0)),
    "cast": lambda f, dtype: f(offenders(dtype, LARGE)[0].astype(">f8").astype(dtype.newbyteorder()), dtype.type(0)),
    "outer": lambda f, dtype: f.outer(*offenders(dtype, 120)),
    "reduce": lambda f, dtype: f.reduce(offenders(dtype, LARGE)[1]),
    "accumulate": lambda f, dtype: f.accumulate(offenders(dtype, LARGE)[1]),
    "at": lambda f, dtype: f.at(offenders(dtype, LARGE)[0], np.arange(LARGE), offenders(dtype, LARGE)[1]),
}  # fmt: skip
each_reporting_path = pytest.mark.parametrize("path", list(REPORTING_PATHS), indirect=True)


@pytest.fixture
def path(request):
    with way(request.param):
        yield REPORTING_PATHS[request.param]


two_dtypes = pytest.mark.parametrize("dtype", [np.dtype("i4"), np.dtype("f8")], ids=str)


@each_operation
@two_dtypes
@each_reporting_path
@pytest.mark.parametrize("mode", ["ignore", "warn", "raise", "call", "print", "log", "call nobody", "log nobody", "raise in callback"])
def test_errstate_mode(name, dtype, path, mode, capfd):
    def observed(f):
        calls, log = [], Log()

        def receiver(*args):
            calls.append(args)
            if mode == "raise in callback":
                raise KeyError("stop")

        kwargs = {} if mode.endswith("nobody") else {"call": log if mode == "log" else receiver}
        with np.errstate(all="call" if mode == "raise in callback" else mode.partition(" ")[0], **kwargs):
            seen = outcome(path, f, dtype)
        return calls, log.lines, seen.warnings, seen.error, capfd.readouterr()

    operation, twin = OPERATIONS[name]
    got, want = observed(operation), observed(twin)
    assert got == want
    if mode not in ("ignore", "call nobody", "log nobody"):
        assert any((got[0], got[1], got[2], got[3], got[4].err))


@each_operation
@two_dtypes
@each_size
def test_errstate_of_the_other_kind_is_silent(name, dtype, n):
    """Integers report "divide", floats "invalid"; either alone."""
    kind = "divide" if dtype.kind == "i" else "invalid"
    with np.errstate(**({"all": "raise"} | {kind: "ignore"})):
        OPERATIONS[name][0](*offenders(dtype, n))
    with np.errstate(**({"all": "ignore"} | {kind: "raise"})), pytest.raises(FloatingPointError):
        OPERATIONS[name][0](*offenders(dtype, n))


@each_operation
@each_dtype
@pytest.mark.parametrize("n", [SMALL, LARGE, 300_000])
def test_raise_comes_after_out_is_fully_written(name, dtype, n):
    operation = OPERATIONS[name][0]
    x, y = offenders(dtype, n)
    with np.errstate(all="ignore"):
        want = operation(x, y)
    for out in (np.zeros_like(x), np.zeros(2 * n, dtype)[::-2]):
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=message(name, dtype)):
            operation(x, y, out=out)
        assert_same_bits(out, want)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = np.zeros_like(x)
        with pytest.raises(RuntimeWarning, match=message(name, dtype)):
            operation(x, y, out=out)
        assert_same_bits(out, want)


@each_operation
@two_dtypes
@each_reporting_path
def test_a_warning_points_at_the_callers_line(name, dtype, path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path(OPERATIONS[name][0], dtype)
    assert {(entry.filename, entry.lineno) for entry in caught} == {(__file__, path.__code__.co_firstlineno)}


@two_dtypes
@each_size
def test_a_warning_of_mod_with_fmod_points_at_the_callers_line(dtype, n):
    call = lambda: fastops.mod(*offenders(dtype, n), fmod=1)  # noqa: E731
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert [(entry.filename, entry.lineno) for entry in caught] == [(__file__, call.__code__.co_firstlineno)]


@each_operation
@each_size
def test_a_warning_is_shown_once_per_line_by_default(name, n):
    """As NumPy's: the registry of the caller's module is what remembers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(5):
            OPERATIONS[name][0](ints(n), 0)
        OPERATIONS[name][0](ints(n), 0)
    assert len(caught) == 2


@each_operation
@each_size
def test_a_callback_may_call_again(name, n):
    operation = OPERATIONS[name][0]
    seen = []

    def receiver(kind, number):
        with np.errstate(all="ignore"):
            seen.append((kind, number, operation(np.arange(LARGE), 7)[8], operation(8, 0)))

    with np.errstate(all="call", call=receiver):
        operation(ints(n), 0)
    assert seen == [("divide by zero", 1, 1, 0)]


@each_operation
def test_errors_leave_nothing_behind(name):
    """After failed calls of all kinds, errstate and results are as before."""
    operation = OPERATIONS[name][0]
    before = np.geterr()
    for form in FORMS.values():
        outcome(form, operation, SMALL)
    assert np.geterr() == before
    assert operation(7, 4) == 3
    with np.errstate(all="raise"):
        assert operation(np.arange(LARGE), 7)[8] == 1


@each_operation
def test_several_threads_at_once(name):
    """Right results, and each thread's own errstate."""
    operation, twin = OPERATIONS[name]
    start = threading.Barrier(4)

    def work(seed):
        calls = []
        x, y = mixed_values(DTYPES["int32"], 60_000, seed), usual_values(DTYPES["int32"], 60_000, seed)
        start.wait(30)
        for turn in range(20):
            n = [1, 100, 9_999, 60_000][turn % 4]
            with np.errstate(all="call", call=lambda *args: calls.append(args)):
                assert_same(operation(x[:n], y[:n]), twin(x[:n], y[:n]))
                if seed % 2:
                    operation(x[:n], 0)
        return calls

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[("divide by zero", 1)] * 20 * (seed % 2) for seed in range(4)]


@each_operation
@each_size
def test_serial_and_parallel_alike_for_every_form_of_out(name, n):
    x, y = mixed_values(DTYPES["float64"], n, 1), mixed_values(DTYPES["float64"], n, 2)
    results = []
    with np.errstate(all="ignore"):
        for path in (serially, in_parallel):
            with path():
                operation = OPERATIONS[name][0]
                results += [operation(x, y), operation(x, y, np.empty(n)), operation(x, y, out=(np.empty(n),))]
                if np.lib.NumpyVersion(np.__version__) >= "2.3.0":  # before, NumPy had no `out=...`
                    results.append(operation(x, y, out=...))
    for result in results:
        assert_same(result, results[0])


def test_metadata_of_a_dtype_stays_where_it_is():
    """A dtype with metadata equals the one without, and must not be taken for it."""
    marked = np.ones(20_000, np.dtype(np.int32, metadata={"unit": "m"}))
    for x in (marked, np.ones(20_000, np.int32)):
        assert fastops.mod(x, x).dtype.metadata == np.mod(x, x).dtype.metadata


@pytest.mark.parametrize("number", [1e300, 1e-300, -1e39, 70_000.0, 1e-8, 0.0, -0.0, np.inf, np.nan, 2**70, 1e-45])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("state", ["default", "raise"])
def test_a_python_number_beyond_the_dtype(number, dtype, state):
    """Its conversion warns as NumPy's does, once, and at the same line."""
    x = np.linspace(1, 2, 20_000).astype(dtype)
    with np.errstate(all="raise") if state == "raise" else np.errstate(), in_parallel(must=False):
        got, want = outcome(fastops.mod, x, number), outcome(np.mod, x, number)
    assert (type(got.error), got.warnings) == (type(want.error), want.warnings)
    if want.error is None:
        assert_same(got.result, want.result)


def test_more_than_32_dimensions():
    x, y = np.ones((1,) * 40 + (300, 1, 300, 1)), np.arange(1.0, 301.0).reshape((1,) * 2 + (300, 1))
    assert_same(fastops.mod(x, y), np.mod(x, y))
    assert_same(fastops.mod(np.ones((1,) * 40), [1]), np.mod(np.ones((1,) * 40), [1]))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("function", [fastops.mod, fastops.fmod, fastops.warmup], ids=["mod", "fmod", "warmup"])
def test_the_examples_of_the_docstrings(function):
    example = doctest.DocTestParser().get_doctest(function.__doc__, {}, "docstring", None, None)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_a_context_is_not_kept_alive():
    """That of the caller who came first, with all that its variables hold."""
    variable = contextvars.ContextVar("variable")

    class Request:
        pass

    def call():
        request = Request()
        variable.set(request)
        with in_python():
            fastops.mod(np.ones(100), np.ones(100))
        return weakref.ref(request)

    reference = contextvars.copy_context().run(call)
    gc.collect()
    assert reference() is None
