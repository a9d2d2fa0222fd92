"""One table: a form in which people use `numpy.remainder` and `numpy.fmod`, and what they do; fastops' functions must do the same.

Each row is run on both: the result with its type, dtype, bits, memory and labels, what is printed, the error, and the warnings with their
lines must be alike. Forms with arrays and numbers alone are in `test_mod_calls.py`; the differences, which README lists, at the end of this
file.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import contextvars
import copy
import functools
import inspect
import io
import itertools
import operator
import pickle
import re
import threading
import traceback
import types
import warnings
import weakref

import astropy.table
import astropy.units as u
import cloudpickle
import dask
import dask.array as da
import numpy as np
import pandas as pd
import pint
import pyarrow as pa
import pytest
import xarray as xr
from conftest import OPERATIONS, each_operation, in_python, small_values, usual_values

N = 6
registry = pint.UnitRegistry()


def ints(seed=0, dtype="i4"):
    return small_values(np.dtype(dtype), N, seed)


def floats(seed=0):
    return usual_values(np.dtype("f8"), N, seed)


# --- what a form does ---------------------------------------------------------------------------------------------------------------------
def described(x):
    """All that can be told of a result, comparable."""
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    if isinstance(x, pd.DataFrame):
        return kind, described(x.columns), [described(x.iloc[:, k]) for k in range(x.shape[1])], x.attrs
    if isinstance(x, pd.Series):
        return kind, x.name, described(x.index), described(x.array), x.attrs
    if isinstance(x, pd.Index):
        return kind, str(x.dtype), x.tolist(), list(x.names)
    if isinstance(x, pd.arrays.NumpyExtensionArray):
        return kind, described(x.to_numpy())
    if isinstance(x, (pd.api.extensions.ExtensionArray, pa.Array)):
        return kind, repr(x)
    if isinstance(x, xr.Dataset):
        return kind, {name: described(variable) for name, variable in x.variables.items()}, x.attrs
    if isinstance(x, xr.DataArray):
        return kind, x.name, described(x.variable), {name: described(coord.variable) for name, coord in x.coords.items()}
    if isinstance(x, xr.Variable):
        return kind, x.dims, described(x.data), x.attrs
    if isinstance(x, da.Array):
        return kind, x.chunks, described(x._meta), described(x.compute(scheduler="sync"))
    if x is np.ma.masked:
        return "masked"
    if isinstance(x, np.ma.MaskedArray):
        return kind, described(x.data), described(x.mask), str(x.fill_value), x.hardmask, x.sharedmask
    if isinstance(x, (np.ndarray, np.generic)):
        plain = np.asarray(x)
        values = repr(plain.tolist()) if plain.dtype.char in "OgV" else plain.tobytes()
        memory = (x.strides, x.flags.writeable, x.flags.aligned) if isinstance(x, np.ndarray) else ()
        return kind, str(x.dtype), x.shape, memory, values, str(getattr(x, "unit", "")), repr(getattr(x, "info", ""))
    if isinstance(x, pint.Quantity):
        return kind, str(x.units), described(x.magnitude)
    if isinstance(x, (list, tuple)):
        return kind, [described(item) for item in x]
    return kind, re.sub("0x[0-9a-f]+", "0x", repr(x))


def outcome(form, f):
    """The result, the error, the warnings with file and line, and what went to the standard streams."""
    result, error, out = None, None, io.StringIO()

    def text(message):  # without addresses; the functions' own repr is another
        return re.sub("0x[0-9a-f]+", "0x", str(message).replace(repr(f.reduce), "reduce").replace(repr(f), f"<ufunc {f.__name__!r}>"))

    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        warnings.simplefilter("always")
        try:
            result = described(form(f))
        except Exception as exception:
            error = type(exception), text(exception)
    return result, error, [(entry.category, text(entry.message), entry.filename, entry.lineno) for entry in caught], out.getvalue()


# --- as a ufunc and as an object of Python ------------------------------------------------------------------------------------------------
UFUNC = {
    **{f"attribute {name}": functools.partial(lambda f, name: getattr(f, name), name=name) for name in (
        "nin", "nout", "nargs", "ntypes", "types", "identity", "signature", "__name__", "nothing", "_nothing",
        "__nothing__", "__array_ufunc__", "__code__", "__self__",
    )},
    "isinstance": lambda f: isinstance(f, np.ufunc),
    "__class__": lambda f: f.__class__,
    "has all attributes": lambda f: [name for name in dir(np.remainder) if not hasattr(f, name)],
    "lists all attributes": lambda f: set(dir(np.remainder)) - set(dir(f)),
    "bool": bool,
    "equal to itself": lambda f: (f == f, f != f, hash(f) == hash(f)),
    "key of a dictionary": lambda f: {f: 1}[f],
    "copy": lambda f: [copy.copy(f) is f, copy.deepcopy({"f": [f]})["f"][0] is f],
    "pickle": lambda f: [pickle.loads(pickle.dumps(f, protocol)) is f for protocol in range(pickle.HIGHEST_PROTOCOL + 1)],
    "pickle in Python": lambda f: [pickle._loads(pickle._dumps(f, protocol)) is f for protocol in range(pickle.HIGHEST_PROTOCOL + 1)],
    "cloudpickle": lambda f: pickle.loads(cloudpickle.dumps(f)) is f,
    "cloudpickle of a closure": lambda f: pickle.loads(cloudpickle.dumps(lambda x: f(x, 3)))(ints()),
    "cloudpickle of a partial": lambda f: pickle.loads(cloudpickle.dumps(functools.partial(f, 7)))(4),
    "pickle of a method": lambda f: pickle.loads(pickle.dumps(f.reduce)) == f.reduce,
    "cloudpickle of a method": lambda f: pickle.loads(cloudpickle.dumps(f.outer))([100, 7], [3]),
    "names of methods": lambda f: [(m.__name__, m.__qualname__) for m in (f.reduce, f.accumulate, f.reduceat, f.outer, f.at)],
    "docstrings of methods": lambda f: [m.__doc__ for m in (f.reduce, f.accumulate, f.reduceat, f.outer, f.at)],
    "signatures of methods": lambda f: [signature(m) for m in (f.reduce, f.accumulate, f.reduceat, f.outer, f.at)],
    "kinds of inspect": lambda f: [ask(f) for ask in (inspect.isfunction, inspect.isbuiltin, inspect.isroutine, inspect.isclass)],
    "callable": lambda f: [callable(f), isinstance(f, collections.abc.Callable), isinstance(f, collections.abc.Hashable)],
    "resolve_dtypes": lambda f: f.resolve_dtypes((np.dtype("i4"), int, None), casting="unsafe"),
    "resolve_dtypes of times": lambda f: f.resolve_dtypes((np.dtype("m8[s]"), np.dtype("m8[ms]"), None)),
    "resolve_dtypes that fails": lambda f: f.resolve_dtypes((np.dtype("c8"), np.dtype("i4"), None)),
    "_resolve_dtypes_and_context": lambda f: f._resolve_dtypes_and_context((np.dtype("i4"), np.dtype("i4"), None))[0],
    "class attribute": lambda f: type("Has", (), {"method": f})().method(7, 3),
    "wraps": lambda f: functools.wraps(f)(lambda *args: f(*args)).__name__,
    "singledispatch": lambda f: of_a_ufunc(f),
    "lru_cache": lambda f: functools.lru_cache(f)(7, 3),
    "functools.reduce": lambda f: functools.reduce(f, [100, 30, 7]),
    "starmap": lambda f: list(itertools.starmap(f, [(7, 3), (8, 3)])),
    "itertools.accumulate": lambda f: list(itertools.accumulate([100, 30, 7], f)),
    "operator.call": lambda f: operator.call(f, 7, 3),
    "methodcaller": lambda f: operator.methodcaller("reduce", [100, 7])(f),
    "frompyfunc": lambda f: np.frompyfunc(f, 2, 1)([7, 8], 3),
    "vectorize with signature": lambda f: np.vectorize(f, signature="(n),()->(n)")(ints().reshape(2, -1), 5),
    "apply_over_axes": lambda f: np.apply_over_axes(f.reduce, np.arange(6, 0, -1).reshape(2, 3), [0]),
    "piecewise": lambda f: np.piecewise(floats(), [floats() > 0], [lambda x: f(x, 2), 0]),
    "fromfunction": lambda f: np.fromfunction(lambda i, j: f(i, j + 1), (3, 3)),
    "ma operation": lambda f: np.ma.core._MaskedBinaryOperation(f)(np.ma.array([7, 8], mask=[0, 1]), 2),
    "outer by keywords": lambda f: f.outer(A=ints(), B=ints()),
    "keyword of any name": lambda f: f(7, 3, **{"oút": 1}),
}  # fmt: skip


def signature(function):
    try:
        return str(inspect.signature(function))
    except ValueError:  # NumPy's methods have one since 2.4
        return None


@functools.singledispatch
def of_a_ufunc(f):
    return "another"


@of_a_ufunc.register(np.ufunc)
def _(f):
    return "a ufunc"


# --- pandas -------------------------------------------------------------------------------------------------------------------------------
def series(dtype="i4", **keywords):
    return pd.Series(ints(dtype=dtype), index=range(5, N + 5), name="s", **keywords)


def divisors(start=5, **keywords):
    return pd.Series(np.abs(ints(1)) + 1, index=range(start, N + start), **keywords)


def frame():
    return pd.DataFrame({"a": ints(), "b": floats(), "c": np.abs(ints(2)) + 1}, index=pd.Index(range(N), name="i"))


def levels():
    return pd.MultiIndex.from_product([["a", "b"], range(N // 2)], names=["p", "q"])


def grouped():
    return frame().assign(g=[0, 1] * (N // 2)).groupby("g")


def nullable(dtype):
    return pd.array([7, None, 9], dtype=dtype)


PANDAS = {
    "Series, same names": lambda f: f(series(), divisors(name="s")),
    "Series, other names": lambda f: f(series(), divisors(name="t")),
    "Series, not aligned": lambda f: f(series(), divisors(7)),
    "Series, another order": lambda f: f(series(), divisors()[::-1]),
    "Series, levels": lambda f: f(pd.Series(ints(), index=levels()), pd.Series(np.abs(ints(1)) + 1, index=levels()[::-1])),
    "Series, repeated labels": lambda f: f(pd.Series(ints(), index=[1] * N), pd.Series(ints(1), index=[1] * N)),
    "Series by list": lambda f: f(series(), [3] * N),
    "list by Series": lambda f: f([7] * N, divisors()),
    "number by Series": lambda f: f(7, divisors()),
    "Series of objects": lambda f: f(pd.Series([7, 8.5, 2**70], dtype=object), 3),
    "Series of strings": lambda f: f(pd.Series(["a", "b"]), 3),
    "Series of dates": lambda f: f(pd.Series(pd.to_datetime(["2020", "2021"])), 3),
    "Series of times": lambda f: f(pd.Series(pd.to_timedelta([7, 9], "s")), pd.Timedelta(4, "s")),
    "Series of times by zero": lambda f: f(pd.Series(pd.to_timedelta([7, 9], "s")), pd.Timedelta(0, "s")),
    "Series of periods": lambda f: f(pd.Series(pd.period_range("2020", periods=2, freq="M")), 3),
    "Series of categories": lambda f: f(pd.Series([7, 8], dtype="category"), 3),
    "sparse Series": lambda f: f(pd.Series(pd.arrays.SparseArray([0, 0, 7, 9])), 4),
    "sparse array": lambda f: f(pd.arrays.SparseArray([0, 0, 7, 9.5]), 4),
    "Series with attrs": lambda f: f(with_attrs(series()), 3),
    "Series with where": lambda f: f(series(), 3, where=np.ones(N, bool)),
    "Series with out": lambda f: f(series(), 3, out=np.zeros(N, "i4")),
    "Series as out": lambda f: f(ints(), 3, out=series()),
    "Series with dtype": lambda f: f(series(), 3, dtype="f8"),
    "Series, reduced": lambda f: f.reduce(divisors()),
    "Series, accumulated": lambda f: f.accumulate(divisors()),
    "Series, outer": lambda f: f.outer(series(), [3, 4]),
    "Series, at": lambda f: f.at(series(), [0], 3),
    "Series, reduceat": lambda f: f.reduceat(divisors(), [0, 2]),
    **{f"{dtype} by number": functools.partial(lambda f, dtype: f(nullable(dtype), 4), dtype=dtype) for dtype in (
        "Int64", "UInt8", "Float64", "Float32", "int64[pyarrow]", "double[pyarrow]",
    )},
    **{f"{dtype} by zero": functools.partial(lambda f, dtype: f(pd.Series(nullable(dtype)), 0), dtype=dtype) for dtype in (
        "Int64", "Float64", "int64[pyarrow]",
    )},
    "boolean by boolean": lambda f: f(pd.array([True, None, False], dtype="boolean"), pd.array([True] * 3, dtype="boolean")),
    "Int64 by Int8": lambda f: f(nullable("Int64"), pd.array([4, 5, None], dtype="Int8")),
    "array by Int64": lambda f: f(np.array([4, 5, 6]), nullable("Int64")),
    "UInt8 by 300": lambda f: f(nullable("UInt8"), 300),
    "string by number": lambda f: f(pd.array(["a", None], dtype="string"), 3),
    "array of PyArrow": lambda f: f(pa.array([7, 8, -9]), 4),
    "array of PyArrow with null": lambda f: f(pa.array([7, None]), 4),
    "NA": lambda f: f(pd.NA, 3),
    "array by NA": lambda f: f(ints(), pd.NA),
    "pipe": lambda f: series().pipe(f, 3),
    "apply": lambda f: series().apply(f, args=(3,)),
    "apply with keyword": lambda f: series().apply(f, args=(3,), where=True),
    "apply whole": lambda f: series().apply(f, args=(3,), by_row=False),
    "agg": lambda f: series().agg(f, 0, 3),
    "agg by reduce": lambda f: divisors().agg(f.reduce),
    "agg by list": lambda f: series().agg([f]),
    "transform": lambda f: series().transform(f, 0, 3),
    "map": lambda f: series().map(functools.partial(f, 7)),
    "combine": lambda f: series().combine(divisors(6), f, fill_value=5),
    "rolling": lambda f: divisors().astype(float).rolling(2).apply(f.reduce, raw=True),
    "group, transform": lambda f: grouped().transform(f, 3),
    "group, transform by lambda": lambda f: grouped().transform(lambda x: f(x, 3)),
    "group, apply": lambda f: grouped()["a"].apply(f, 3),
    "group, agg": lambda f: grouped().agg(f.reduce),
    "DataFrame, apply": lambda f: frame().apply(f, args=(3,)),
    "DataFrame, apply by rows": lambda f: frame().apply(f, axis=1, args=(3,)),
    "DataFrame, apply raw": lambda f: frame().apply(f, raw=True, args=(3,)),
    "DataFrame, agg": lambda f: frame().agg(f, 0, 3),
    "DataFrame, transform": lambda f: frame().transform(f, 0, 3),
    "DataFrame, map": lambda f: frame().map(functools.partial(f, 7)),
    "DataFrame, combine": lambda f: frame().combine(frame() + 1, f),
    "DataFrame, assign": lambda f: frame().assign(d=lambda x: f(x.a, x.c)),
    "DataFrame by DataFrame": lambda f: f(frame(), frame().iloc[1:][["a", "c"]] + 1),
    "DataFrame by Series": lambda f: f(frame(), pd.Series({"a": 3, "b": 2, "z": 5})),
    "DataFrame by row": lambda f: f(frame(), np.array([3, 4, 5])),
    "DataFrame of Int64": lambda f: f(frame().astype("Int64", errors="ignore"), 3),
    "DataFrame with Int8": lambda f: f(frame().assign(z=pd.array([1] * N, dtype="Int8")), 3),
    "DataFrame with strings": lambda f: f(frame().assign(z="a"), 3),
    "DataFrame of times": lambda f: f(pd.DataFrame({"a": ints().astype("m8[s]")}), pd.Timedelta(4, "s")),
    "DataFrame with times": lambda f: f(pd.DataFrame({"a": ints().astype("m8[s]"), "b": ints()}), 3),
    "DataFrame, repeated columns": lambda f: f(pd.DataFrame(ints().reshape(2, -1), columns=list("aab")), 4),
    "DataFrame, reduced by rows": lambda f: f.reduce(frame() + 20, axis=1),
    "Index": lambda f: f(pd.Index(ints(), name="n"), 4),
    "RangeIndex": lambda f: f(pd.RangeIndex(10, name="r"), 4),
    "array by Index": lambda f: f(ints(), pd.Index(np.abs(ints(1)) + 1, name="n")),
    "Index by Series": lambda f: f(pd.Index(ints()), divisors()),
    "DatetimeIndex": lambda f: f(pd.date_range("2020", periods=3), 3),
    "TimedeltaIndex": lambda f: f(pd.timedelta_range("1s", periods=3), pd.Timedelta("2s")),
    "MultiIndex": lambda f: f(levels(), 3),
}  # fmt: skip


def with_attrs(x):
    x.attrs["unit"] = "m"
    return x


# --- xarray and Dask ----------------------------------------------------------------------------------------------------------------------
def labelled(dtype="i4"):
    coords = {"x": [10, 20], "label": ("y", list("abc"))}
    return xr.DataArray(ints(dtype=dtype).reshape(2, -1), dims=("x", "y"), coords=coords, name="a", attrs={"units": "m"})


def chunked(dtype="i4", seed=0):
    return da.from_array(ints(seed, dtype), chunks=2)


LABELLED = {
    "DataArray, other coordinates": lambda f: f(labelled(), labelled().assign_coords(x=[20, 30])),
    "DataArray, transposed": lambda f: f(labelled(), labelled().T + 13),
    "DataArray by array": lambda f: f(labelled(), ints(1).reshape(2, -1)),
    "array by DataArray": lambda f: f(ints(1).reshape(2, -1), labelled()),
    "DataArray by zero": lambda f: f(labelled(), 0),
    "DataArray with dtype": lambda f: f(labelled(), 3, dtype="f8"),
    "DataArray as out": lambda f: f(labelled(), 3, out=labelled()),
    "DataArray, reduced": lambda f: f.reduce(labelled()),
    "DataArray of times": lambda f: f(labelled("m8[s]"), np.timedelta64(4, "s")),
    "DataArray of objects": lambda f: f(labelled(object), 3),
    "DataArray of longdouble": lambda f: f(labelled("g"), 2.5),
    "DataArray of strings": lambda f: f(xr.DataArray(["a"]), 3),
    "DataArray by Series": lambda f: f(xr.DataArray(ints(), dims="x"), divisors()),
    "DataArray in chunks": lambda f: f(labelled().chunk({"y": 2}), 3),
    "keep_attrs": lambda f: keeping_attrs(f),
    "Dataset": lambda f: f(xr.Dataset({"a": labelled(), "b": labelled() * 2.5}, attrs={"t": 1}), 3),
    "Dataset by DataArray": lambda f: f(xr.Dataset({"a": labelled()}), labelled() + 13),
    "Dataset, map": lambda f: xr.Dataset({"a": labelled()}).map(f, args=(3,)),
    "Variable": lambda f: f(xr.Variable("x", ints(), attrs={"u": 1}), 3),
    "IndexVariable": lambda f: f(labelled().x.variable, 3),
    "DataArray, pipe": lambda f: labelled().pipe(f, 3),
    "DataArray, reduce": lambda f: (labelled() + 20).reduce(f.reduce, "y"),
    "DataArray, group": lambda f: labelled().groupby("x").map(lambda x: f(x, 3)),
    "apply_ufunc": lambda f: xr.apply_ufunc(f, labelled(), 3, keep_attrs=True),
    "apply_ufunc with dtype": lambda f: xr.apply_ufunc(f, labelled(), 3, kwargs={"dtype": "f8"}),
    "apply_ufunc by elements": lambda f: xr.apply_ufunc(f, labelled(), 3, vectorize=True),
    "apply_ufunc of a method": lambda f: xr.apply_ufunc(f.reduce, labelled() + 20, input_core_dims=[["y"]], kwargs={"axis": -1}),
    "apply_ufunc in parallel": lambda f: xr.apply_ufunc(f, labelled().chunk({"y": 2}), 3, dask="parallelized", output_dtypes=["i4"]),
    "apply_ufunc in parallel, of two": lambda f: xr.apply_ufunc(f, *(labelled().chunk({"y": k}) + 20 for k in (2, 3)), dask="parallelized"),
    "apply_ufunc of a Dataset": lambda f: xr.apply_ufunc(f, xr.Dataset({"a": labelled(), "b": labelled() * 2.5}), 3),
    "apply_ufunc of chunks": lambda f: xr.apply_ufunc(f, labelled().chunk({"y": 2}), 3, dask="allowed"),
    "map_blocks of xarray": lambda f: xr.map_blocks(f, labelled().chunk({"y": 2}), args=[3], template=labelled().chunk({"y": 2})),
    "Dask by Dask": lambda f: f(chunked(), chunked("i4", 1) + 20),
    "Dask by zero": lambda f: f(chunked(), 0),
    "Dask of times": lambda f: f(chunked("m8[s]"), np.timedelta64(4, "s")),
    "Dask of objects": lambda f: f(chunked(object), 3),
    "Dask of complex": lambda f: f(chunked("c8"), 3),
    "Dask with out": lambda f: f(chunked(), 3, out=da.zeros(N, chunks=2, dtype="i4")),
    "Dask with array as out": lambda f: f(chunked(), 3, out=np.zeros(N, "i4")),
    "Dask with where": lambda f: f(chunked(), 3, where=chunked() > 0, out=da.zeros(N, chunks=2, dtype="i4")),
    "Dask with dtype": lambda f: f(chunked(), 3, dtype="f8"),
    "Dask with casting": lambda f: f(chunked(), 3, casting="unsafe"),
    "Dask, reduced": lambda f: f.reduce(chunked()),
    "Dask, outer": lambda f: f.outer(chunked(), chunked("i4", 1) + 20),
    "Dask, shapes that do not fit": lambda f: f(da.ones(3), da.ones(4)),
    "Dask, masked": lambda f: f(da.ma.masked_greater(chunked(), 3), 4),
    "Dask, unknown chunks": lambda f: f(chunked()[chunked() > 0], 4).compute(scheduler="sync"),
    "Dask, threads": lambda f: f(chunked(), 4).compute(scheduler="threads"),
    "Dask, map_blocks": lambda f: da.map_blocks(f, chunked(), 3),
    "Dask, blockwise": lambda f: da.blockwise(f, "i", chunked(), "i", 3, None, dtype="i4"),
    "Dask, gufunc": lambda f: da.apply_gufunc(f, "(),()->()", chunked(), 3, output_dtypes="i4"),
    "Dask's ufunc": lambda f: da.ufunc.ufunc(f)(chunked(), 3),
    "Dask's ufunc, outer": lambda f: da.ufunc.ufunc(f).outer(chunked(), chunked("i4", 1) + 20),
    "Dask's ufunc of an array": lambda f: da.ufunc.ufunc(f)(ints(), 3),
    "Dask, delayed": lambda f: dask.delayed(f)(ints(), 3).compute(scheduler="sync"),
    "Dask, of a delayed object": lambda f: f(dask.delayed(ints)(), 3).compute(scheduler="sync"),
    "Dask, name": lambda f: f(chunked(), 3).name.rpartition("-")[0],
    "Dask, same name": lambda f: f(da.ones(4, name="a"), 3).name == f(da.ones(4, name="a"), 3).name,
    "Dask, token": lambda f: dask.base.tokenize(f) == dask.base.tokenize(f),
}  # fmt: skip


def keeping_attrs(f):
    with xr.set_options(keep_attrs=True):
        return f(labelled(), 3)


# --- masks, units, tensors and other objects ----------------------------------------------------------------------------------------------
def masked(**keywords):
    return np.ma.array(ints(), mask=ints(1) > 0, **keywords)


def kept(call, out):
    """Whether `out` comes back, and what is in it."""
    return call(out) is out, out


class Info(np.ndarray):
    """As in NumPy's guide to subclasses."""

    def __new__(cls, x, info=None):
        self = np.asarray(x).view(cls)
        self.info = info
        return self

    def __array_finalize__(self, parent):
        self.info = getattr(parent, "info", "none")


class Prior(np.ndarray):
    __array_priority__ = 100


class OldWrap(np.ndarray):
    def __array_wrap__(self, array, context=None):
        return "wrapped", np.asarray(array), context and context[0].__name__


class Table:
    """Knows NumPy's ufuncs, and declines others."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        known = {np.remainder: "a remainder", np.fmod: "an fmod"}
        return (known[ufunc], method, len(inputs), sorted(keywords)) if ufunc in known else NotImplemented


class Tells(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        attributes = ufunc.__name__, ufunc.nin, ufunc.identity, ufunc.signature, isinstance(ufunc, np.ufunc)
        return attributes, method, [type(x).__name__ for x in inputs], str(sorted(keywords))


class Operators(np.lib.mixins.NDArrayOperatorsMixin):
    def __init__(self, x):
        self.x = np.asarray(x)

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return Operators(getattr(ufunc, method)(*(x.x if isinstance(x, Operators) else x for x in inputs), **keywords))

    def __repr__(self):
        return repr(self.x)


class HasArray:
    """Counts how often it is asked, and how."""

    def __init__(self, x):
        self.x, self.asked = x, []

    def __array__(self, dtype=None, copy=None):
        self.asked.append((dtype, copy))
        return self.x


class HasOldArray(HasArray):
    def __array__(self):
        return self.x


class Tensor(HasArray):
    """As a tensor of PyTorch: dtype and shape of its own kind, and an `__array_wrap__` of the old form."""

    __array_priority__ = 1000

    def __init__(self, x, requires_grad=False):
        super().__init__(np.asarray(x))
        self.dtype, self.shape, self.requires_grad = f"torch.{self.x.dtype}", tuple(self.x.shape), requires_grad

    def __array__(self, dtype=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.x if dtype is None else self.x.astype(dtype)

    def __array_wrap__(self, array):
        return Tensor(array)

    def __repr__(self):
        return f"Tensor({self.x!r}, {self.dtype}, {self.shape})"


class Struct:
    def __init__(self, x):
        self.x, self.__array_struct__ = x, x.__array_struct__


class Sequence(collections.abc.Sequence):
    def __len__(self):
        return 3

    def __getitem__(self, k):
        return range(7, 10)[k]


class Anything:
    """Has any attribute, as Dask's delayed objects have, and no truth."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __mod__(self, other):
        return "mod"

    def fmod(self, other):
        return "fmod"

    def __eq__(self, other):
        return Anything()

    __hash__ = None

    def __bool__(self):
        raise TypeError("no truth")


class Misleading:
    shape, dtype, size, ndim = "abc", "i4", None, 7

    def __mod__(self, other):
        return "mod"

    def fmod(self, other):
        return "fmod"


class Failing(HasArray):
    """Its attributes fail, which NumPy does not ask for."""

    shape = dtype = size = dtypes = property(lambda self: 1 / 0)


class FailingHandler(Failing):
    def __array_ufunc__(self, *args, **keywords):
        return "handled"


def asked(call):
    """The result, and how the object was asked for its array."""
    return lambda f: (call(f, x := HasArray(np.abs(ints()) + 1)), str(x.asked))


def broadcast_out(f, n):
    """Into an array of which NumPy warns when it is written to."""
    out = np.broadcast_arrays(np.zeros((1, n), "i4"), np.zeros((2, 1)))[0]
    return kept(lambda out: f(np.arange(n, dtype="i4"), 3, out=out), out)


OBJECTS = {
    "broadcast out": lambda f: broadcast_out(f, N),
    "broadcast out, large": lambda f: broadcast_out(f, 20_000),
    "masked, hard": lambda f: f(masked(hard_mask=True), 3),
    "masked, fill value": lambda f: f(masked(fill_value=-5), np.ma.array(ints(2), fill_value=3)),
    "masked by zero": lambda f: f(masked(), 0),
    "masked without mask": lambda f: f(np.ma.array(ints()), 3),
    "masked as out": lambda f: kept(lambda out: f(masked(), 3, out=out), np.ma.zeros(N, "i4")),
    "masked as out, hard": lambda f: kept(lambda out: f(ints(), 3, out=out), masked(hard_mask=True)),
    "masked in place": lambda f: kept(lambda out: f(out, 3, out), masked()),
    "masked shares": lambda f: np.shares_memory(f(x := masked(), 3).mask, x.mask),
    "masked where": lambda f: f(ints(), 3, where=np.ma.array(ints() > 0, mask=ints() > 1), out=np.zeros(N, "i4")),
    "masked scalar": lambda f: f(np.ma.array(7, mask=True), 3),
    "masked, at": lambda f: (x := masked(), f.at(x, [0, 1], 3)),
    "masked, accumulated": lambda f: f.accumulate(masked()),
    "masked in a list": lambda f: f([np.ma.masked, 1, 2], 3),
    "matrix, reduced": lambda f: f.reduce(np.matrix([[7, 8], [9, 4]]), axis=1),
    "record field in place": lambda f: (x := np.full(3, 7, [("b", "u1"), ("a", "i4")]), f(x["a"], 4, out=x["a"]))[0],
    "Info": lambda f: f(Info(ints(), "x"), 3),
    "Info by Info": lambda f: f(Info(ints(), "x"), Info(ints(1), "y")),
    "Info as out": lambda f: kept(lambda out: f(ints(), 3, out=out), Info(np.zeros(N, "i4"), "o")),
    "Info of no dimension": lambda f: f(Info(np.array(7), "x"), 3),
    "Info, reduced": lambda f: f.reduce(Info(np.abs(ints()) + 1, "x")),
    "priority": lambda f: (f(ints().view(Prior), Info(ints(1))), f(Info(ints()), ints(1).view(Prior))),
    "wrap of the old form": lambda f: f(ints().view(OldWrap), 3),
    "wrap of the old form, reduced": lambda f: f.reduce(np.arange(3, 0, -1).view(OldWrap)),
    "table of ufuncs": lambda f: f(Table(), 3),
    "table of ufuncs, out": lambda f: f(ints(), 3, out=Table()),
    "table of ufuncs, at": lambda f: f.at(Table(), 0, 3),
    "tells": lambda f: f(ints().view(Tells), 3, where=True, casting="unsafe", dtype="f8", order="C"),
    "tells, out": lambda f: f(ints(), 3, out=ints().view(Tells)),
    "tells, where": lambda f: f(ints(), 3, where=(ints() > 0).view(Tells)),
    "tells, reduced": lambda f: f.reduce(ints().view(Tells), axis=0),
    "operators": lambda f: f(Operators(ints()), 3),
    "operators of times": lambda f: f(Operators(ints().astype("m8[s]")), Operators(np.array([3000, 4000], "m8[ms]")[:, None])),
    "operators of objects": lambda f: f(Operators([7, None]), 3),
    "operators, outer": lambda f: f.outer(Operators(ints()), [3, 4]),
    "asked": asked(lambda f, x: f(x, 3)),
    "asked, divisor": asked(lambda f, x: f(ints(), x)),
    "asked with dtype": asked(lambda f, x: f(x, 3, dtype="f4")),
    "asked, reduced": asked(lambda f, x: f.reduce(x)),
    "asked, outer": asked(lambda f, x: f.outer(x, x)),
    "asked, at": asked(lambda f, x: f.at(ints(), range(N), x)),
    "asked, out": asked(lambda f, x: f(ints(), 3, out=x)),
    "asked in a list": asked(lambda f, x: f([x, x], 3)),
    "old __array__": lambda f: f(HasOldArray(ints()), 3),
    "tensor": lambda f: f(Tensor([7, 8, -9]), 3),
    "tensor by array": lambda f: f(Tensor([7.5, 8, -9]), np.array([2.0, 3, 4])),
    "array by tensor": lambda f: f(np.array([7, 8, 9]), Tensor([3, 4, 5])),
    "tensor of no dimension": lambda f: f(Tensor(7), 3),
    "tensor by zero": lambda f: f(Tensor([7]), 0),
    "tensor with gradient": lambda f: f(Tensor([7.0], requires_grad=True), 3),
    "tensor with out": lambda f: f(Tensor([7]), 3, out=np.zeros(1, int)),
    "tensor as out": lambda f: f(np.array([7]), 3, out=Tensor([0])),
    "tensor, reduced": lambda f: f.reduce(Tensor([100, 7])),
    "tensor, outer": lambda f: f.outer(Tensor([7, 8]), [3, 4]),
    "tensor, at": lambda f: f.at(Tensor([7, 8]), [0], 3),
    "struct": lambda f: f(Struct(ints()), 3),
    "sequence": lambda f: f(Sequence(), 3),
    "anything": lambda f: f(Anything(), 3),
    "array by anything": lambda f: f(ints(), Anything()),
    "anything, reduced": lambda f: f.reduce(Anything()),
    "anything, at": lambda f: f.at(ints(), [0], Anything()),
    "anything as out": lambda f: f(ints(), 3, out=Anything()),
    "misleading": lambda f: f(Misleading(), 3),
    "array by misleading": lambda f: f(ints(), Misleading()),
    "failing": lambda f: f(Failing(ints()), 3),
    "failing, reduced": lambda f: f.reduce(Failing(np.abs(ints()) + 1)),
    "failing, at": lambda f: f.at(ints(), [0], Failing(np.array([3]))),
    "failing handler": lambda f: f(FailingHandler(ints()), 3),
    "failing handler by a float": lambda f: f(FailingHandler(ints()), 2.5),
    "Quantity": lambda f: f(ints() * u.m, 30 * u.cm),
    "Quantity by zero": lambda f: f(ints() * u.m, 0 * u.m),
    "Quantity of another kind": lambda f: f(ints() * u.m, 3 * u.s),
    "Quantity without unit": lambda f: f(ints(), 3 * u.one),
    "Quantity, out": lambda f: kept(lambda out: f(floats() * u.m, 3 * u.m, out=out), np.zeros(N) * u.km),
    "Quantity, out of an array": lambda f: f(floats() * u.m, 3 * u.m, out=np.zeros(N)),
    "Quantity, where": lambda f: f(floats() * u.m, 3 * u.m, where=ints() > 0, out=np.zeros(N) * u.m),
    "Quantity, outer": lambda f: f.outer(ints() * u.m, [3, 4] * u.cm),
    "Quantity, at": lambda f: (x := floats() * u.m, f.at(x, [0], 3 * u.m)),
    "Quantity, reduced": lambda f: f.reduce(floats() * u.m),
    "Column": lambda f: f(astropy.table.Column(ints(), unit="m", name="c"), 3),
    "MaskedColumn": lambda f: f(astropy.table.MaskedColumn(ints(), mask=ints() > 0, name="c"), 3),
    "pint": lambda f: f(registry.Quantity(ints() * 1.0, "m"), registry.Quantity(30.0, "cm")),
    "pint, number": lambda f: f(registry.Quantity(ints(), ""), 3),
    "pint of another kind": lambda f: f(registry.Quantity(ints(), "m"), registry.Quantity(3, "s")),
    "pint by zero": lambda f: f(registry.Quantity(ints(), "m"), registry.Quantity(0, "m")),
}  # fmt: skip


# --- where a warning points, and to whom floating-point errors go -------------------------------------------------------------------------
elsewhere = types.ModuleType("elsewhere")
exec(compile("def call(f, *args):\n\n    return f(*args)\n", "elsewhere.py", "exec"), elsewhere.__dict__)

OFFENDERS = {
    "small": lambda: (ints(), 0),
    "large": lambda: (np.arange(20_000), 0),
    "float": lambda: (1.0, 0.0),
    "lists": lambda: ([1, 2], [0, 0]),
    "masked": lambda: (np.ma.array([7.0, 8.0]), np.array([1e-320, 0])),
    "objects that fail": lambda: (np.array([1.5], object), np.array([0.0])),
}  # fmt: skip

REPORTS = {
    "lambda": lambda f, xs: f(*xs),
    "comprehension": lambda f, xs: [f(*xs) for _ in range(2)],
    "generator": lambda f, xs: list(f(*xs) for _ in range(2)),  # noqa: C400
    "map": lambda f, xs: list(map(f, *([x] for x in xs))),
    "sort": lambda f, xs: sorted([xs], key=lambda pair: np.ma.sum(f(*pair))),
    "another module": lambda f, xs: elsewhere.call(f, *xs),
    "exec": lambda f, xs: exec(compile("\n\nf(*xs)", "run.py", "exec"), {"f": f, "xs": xs}),
    "exec of no module": lambda f, xs: exec("\nf(*xs)", {"f": f, "xs": xs, "__name__": None}),
    "eval": lambda f, xs: eval("f(*xs)", {"f": f, "xs": xs}),
    "several lines": lambda f, xs: f(
        *xs,
    ),
    "partial": lambda f, xs: functools.partial(f, *xs)(),
    "keyword": lambda f, xs: f(*xs, where=True),
    "outer": lambda f, xs: f.outer(*xs),
    "apply along axis": lambda f, xs: np.apply_along_axis(lambda x: f(x, xs[1]), 0, np.ravel(xs[0])[:3]).shape,
    "thread": lambda f, xs: in_thread(lambda: f(*xs)),
    "pool": lambda f, xs: concurrent.futures.ThreadPoolExecutor(1).submit(f, *xs).result(),
    "asyncio": lambda f, xs: asyncio.run(asyncio.to_thread(f, *xs)),
    "context": lambda f, xs: contextvars.copy_context().run(f, *xs),
    "filter error": lambda f, xs: filtered(f, xs, "error"),
    "filter by module": lambda f, xs: filtered(f, xs, "ignore", module="elsewhere"),
    "filter by the package": lambda f, xs: filtered(f, xs, "ignore", module="fastops"),
    "filter by NumPy": lambda f, xs: filtered(f, xs, "ignore", module="numpy"),
    "filter by message": lambda f, xs: filtered(f, xs, "ignore", message="divide by zero"),
    "filter by line": lambda f, xs: filtered(f, xs, "error", module="elsewhere", lineno=3),
    "filter by another line": lambda f, xs: filtered(f, xs, "error", module="elsewhere", lineno=4),
    "filter default": lambda f, xs: filtered(f, xs, "default"),
    "filter once": lambda f, xs: filtered(f, xs, "once"),
    "filter module": lambda f, xs: filtered(f, xs, "module"),
    "seterr": lambda f, xs: under(lambda: f(*xs), all="raise"),
    "divide only": lambda f, xs: under(lambda: f(*xs), divide="raise", invalid="ignore"),
    "invalid only": lambda f, xs: under(lambda: f(*xs), divide="ignore", invalid="raise"),
    "errstate of an asyncio thread": lambda f, xs: under(lambda: asyncio.run(asyncio.to_thread(f, *xs)), all="raise"),
    "errstate of another thread": lambda f, xs: under(lambda: in_thread(lambda: f(*xs)), all="raise"),
    "errstate of a context": lambda f, xs: in_context(f, xs),
    "errstate as decorator": lambda f, xs: np.errstate(all="raise")(f)(*xs),
    "last line of a traceback": lambda f, xs: last_line(f, xs),
}  # fmt: skip


def in_thread(call):
    done = []
    thread = threading.Thread(target=lambda: done.append(attempt(call)))
    thread.start()
    thread.join()
    return done


def attempt(call):
    try:
        return call()
    except (ArithmeticError, AttributeError, RuntimeWarning) as error:
        return repr(error)


def under(call, **modes):
    with np.errstate(**modes):
        return attempt(call)


def in_context(f, xs):
    context = contextvars.copy_context()
    context.run(np.seterr, all="raise")
    return attempt(lambda: context.run(f, *xs)), attempt(lambda: f(*xs))


def filtered(f, xs, action, **keywords):
    """How often it warns, called thrice."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings(action, **keywords)
        elsewhere.__warningregistry__ = {}
        getattr(warnings, "onceregistry", {}).clear()
        results = [attempt(lambda: elsewhere.call(f, *xs)) for _ in range(3)]
    return results, len(caught)


def last_line(f, xs):
    with np.errstate(all="raise"):
        try:
            elsewhere.call(f, *xs)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            return next((frame.filename, frame.lineno) for frame in frames if frame.filename == "elsewhere.py")


# --- the tests ----------------------------------------------------------------------------------------------------------------------------
FORMS = {**UFUNC, **PANDAS, **LABELLED, **OBJECTS}


each_way = pytest.mark.parametrize("way", [contextlib.nullcontext, in_python], ids=["native", "in Python"])


@each_operation
@each_way
@pytest.mark.parametrize("form", list(FORMS))
def test_form(name, way, form):
    operation, twin = OPERATIONS[name]
    with way():
        got = outcome(FORMS[form], operation)
    assert got == outcome(FORMS[form], twin)


@each_operation
@each_way
@pytest.mark.parametrize("offender", list(OFFENDERS))
@pytest.mark.parametrize("report", list(REPORTS))
def test_report(name, way, report, offender):
    operation, twin = OPERATIONS[name]
    form = lambda f: REPORTS[report](f, OFFENDERS[offender]())  # noqa: E731
    with way():
        got = outcome(form, operation)
    assert got == outcome(form, twin)


DIFFERENCES = {
    "type": type,
    "repr": repr,
    "module": lambda f: f.__module__,
    "docstring": lambda f: f.__doc__,
    "identity": lambda f: f in (np.remainder, np.fmod),
    "NumPy's unbound methods": lambda f: np.ufunc.reduce(f, [100, 7]),
    "weak reference": lambda f: weakref.ref(f)() is f,
    "identity in __array_ufunc__": lambda f: f(AsksIdentity(), 3),
    "frames of a traceback": lambda f: frames(lambda: f([1], [None])),
}  # fmt: skip


class AsksIdentity:
    def __array_ufunc__(self, ufunc, *args, **keywords):
        return ufunc in (np.remainder, np.fmod)


def frames(call):
    try:
        call()
    except Exception as error:
        return len(traceback.extract_tb(error.__traceback__))


@each_operation
@pytest.mark.parametrize("form", list(DIFFERENCES))
def test_differences_that_the_readme_lists(name, form):
    operation, twin = OPERATIONS[name]
    assert outcome(DIFFERENCES[form], operation) != outcome(DIFFERENCES[form], twin)
