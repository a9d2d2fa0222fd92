"""`scatter_div` against a plain loop in Python, by the compiled kernel and by NumPy; what it refuses, and what it leaves untouched then."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES, assert_same_bits, each_dtype, each_float, each_integer, is_float, mixed_values, pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from fastops import scatter, scatter_compiled
from fastops.engine import compiler
from fastops.scatter import scatter_div

# --- the oracle and the paths -------------------------------------------------------------------------------------------------------------


def quotient(a, b):
    """Of two scalars of one dtype: exact and toward zero for integers, NumPy's for floats."""
    if is_float(a.dtype):
        return a / b
    exact = abs(int(a)) // abs(int(b)) * (-1 if (a < 0) != (b < 0) else 1)
    return a if exact > np.iinfo(a.dtype).max else a.dtype.type(exact)  # MIN / -1


def sequential(x, indices, updates):
    """What scatter_div makes of x, element by element, in a copy."""
    result, indices, updates = x.astype(x.dtype.newbyteorder("=")), np.asarray(indices), np.asarray(updates)
    with np.errstate(all="ignore"):
        for place in np.ndindex(indices.shape):
            for inner in np.ndindex(x.shape[1:]):
                cell = (int(indices[place]), *inner)
                result[cell] = quotient(result[cell], result.dtype.type(updates[place + inner]))
    return result


PATHS = ("compiled", "plain")


def take(path, patch):
    """Let calls of every size take the path."""
    patch.setattr(scatter, "LARGE", 0 if path == "compiled" else sys.maxsize)
    patch.setattr(scatter, "MANY", sys.maxsize)
    patch.setattr(scatter, "OFTEN", sys.maxsize)
    if path == "plain":
        patch.setattr(scatter_compiled, "kernels", {})


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    take(request.param, monkeypatch)
    return request.param


def values(dtype, shape, seed=0):
    with np.errstate(all="ignore"):  # a NaN that is not quiet is reported when it is looked at
        return mixed_values(dtype, int(np.prod(shape)), seed).reshape(shape)


def divisors(dtype, shape, seed=0):
    u = values(dtype, shape, seed + 100)
    return u if is_float(dtype) else np.where(u == 0, dtype.type(1), u)


def agree(x, indices, updates):
    """Divide, and compare with the loop."""
    want = sequential(x, indices, updates)
    kept = np.array(indices), np.array(updates)
    with np.errstate(all="ignore"):
        assert scatter_div(x, indices, updates) is x
    assert_same_bits(x.astype(want.dtype), want)
    if not (np.may_share_memory(x, indices) or np.may_share_memory(x, updates)):
        assert np.array_equal(indices, kept[0])
        assert_same_bits(np.asarray(updates).astype(want.dtype), kept[1].astype(want.dtype))


# --- values -------------------------------------------------------------------------------------------------------------------------------
@each_dtype
def test_every_pair_of_edge_values(dtype, path):
    x, u = pairs(dtype)
    if not is_float(dtype):
        x, u = x[u != 0], u[u != 0]
    want = sequential(x, np.arange(x.size), u)
    with np.errstate(all="ignore"):
        one_by_one = scatter_div(x.copy(), np.arange(x.size, dtype=np.int32), u)
        row = scatter_div(x.copy()[None], [0], u[None])[0]
        strided = scatter_div(np.repeat(x, 2)[None, ::2], [0], np.repeat(u, 3)[None, ::3])[0]
    for got in (one_by_one, row, strided):
        assert_same_bits(got, want)


SHAPES = {  # of input_x and of indices
    "rank 1": ((7,), (40,)),
    "rank 1, one row": ((1,), (9,)),
    "rank 2": ((6, 37), (25,)),
    "rank 2, one column": ((6, 1), (25,)),
    "rank 2, indices of rank 2": ((5, 9), (3, 4)),
    "rank 3": ((4, 3, 11), (13,)),
    "rank 4, indices of rank 3": ((3, 2, 1, 5), (2, 3, 2)),
    "rank 9": ((2, 1, 2, 1, 1, 2, 1, 1, 3), (4,)),
    "0-d indices": ((5, 6), ()),
    "0-d indices, rank 1": ((5,), ()),
    "no indices": ((5, 6), (0,)),
    "no indices of rank 3": ((5, 6), (2, 0, 3)),
    "no columns": ((5, 0), (4,)),
    "no rows, no indices": ((0, 3), (0,)),
}


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@each_dtype
def test_shapes(dtype, shape, index_dtype, path):
    shape, index_shape = shape
    indices = np.random.default_rng(0).integers(0, max(shape[0], 1), index_shape).astype(index_dtype)
    agree(values(dtype, shape), indices, divisors(dtype, index_shape + shape[1:]))


def unaligned(x):
    memory = np.empty(x.nbytes + 1, np.uint8)
    result = memory[1:].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


LAYOUTS = {
    "contiguous": lambda x: x,
    "Fortran order": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "middle axis first": lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2),
    "every second row": lambda x: np.repeat(x, 2, 0)[::2],
    "every third column": lambda x: np.repeat(x, 3, 2)[:, :, ::3],
    "rows backwards": lambda x: x[::-1].copy()[::-1],
    "columns backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "all backwards": lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "part of each row": lambda x: np.concatenate((x, x), 2)[:, :, : x.shape[2]],
    "unaligned": unaligned,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "other byte order, unaligned": lambda x: unaligned(x.astype(x.dtype.newbyteorder())),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@each_dtype
def test_layouts_of_input_and_updates(dtype, layout, path):
    indices = np.array([3, 0, 3, 2, 3])
    x, u = values(dtype, (4, 3, 10)), divisors(dtype, (5, 3, 10))
    agree(layout(x.copy()), indices, u)
    agree(x.copy(), indices, layout(u))
    agree(layout(x.copy()), indices, layout(u))
    flat = layout(x.copy())[:, 0, 0]
    agree(flat, indices, layout(u)[:, 0, 0])


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_layouts_of_indices(layout, index_dtype, path):
    indices = np.random.default_rng(1).integers(0, 4, (2, 3, 4)).astype(index_dtype)
    agree(values(DTYPES["float32"], (4, 5)), layout(indices), divisors(DTYPES["float32"], (2, 3, 4, 5)))
    agree(values(DTYPES["int16"], (4,)), layout(indices), divisors(DTYPES["int16"], (2, 3, 4)))


@each_dtype
def test_a_view_is_updated_where_it_lies(dtype, path):
    base = values(dtype, (9, 12))
    kept = base.copy()
    view = base[7:1:-2, 10:2:-3]
    want = sequential(view, [0, 2, 0], divisors(dtype, (3, 3)))
    with np.errstate(all="ignore"):
        scatter_div(view, [0, 2, 0], divisors(dtype, (3, 3)))
    kept[7:1:-2, 10:2:-3] = want
    assert_same_bits(base, kept)


def test_rounds_after_every_step(path):
    for dtype, want in (("float16", 1.5854835510253906e-05), ("bfloat16", None), ("int32", 0)):
        x = np.ones(1, DTYPES[dtype])
        agree(x, [0] * 6, np.array([3, 7, 11, 13, 3, 7], DTYPES[dtype]))
        assert want is None or x[0] == want
    assert scatter_div(np.array([7, -7, 100]), [0, 1, 2, 2, 2], [-2, 2, 3, 3, 3]).tolist() == [-3, -3, 3]
    assert scatter_div(np.ones(1), np.zeros(8195, np.int64), np.r_[2.0, 4.0, np.ones(8190), 8.0, 8.0, 8.0])[0] == 2.0**-12


def layout_of(draw, shape):
    """The shape of a larger array, and a view of that shape in it, with its axes in any order and any steps."""
    order = draw(st.permutations(range(len(shape))))
    steps = draw(st.lists(st.sampled_from((1, 1, 2, -1, -3)), min_size=len(shape), max_size=len(shape)))

    def view(base):
        stepped = base.transpose(np.argsort(order))[..., *(slice(None, None, step) for step in steps)]
        return stepped[..., *(slice(length) for length in shape)]

    return tuple(max(shape[axis], 1) * abs(steps[axis]) for axis in order), view


def laid_out(draw, array):
    base_shape, view = layout_of(draw, array.shape)
    base = np.zeros(base_shape, array.dtype)
    view(base)[...] = array
    return view(base)


@st.composite
def calls(draw):
    dtype = DTYPES[draw(st.sampled_from(list(DTYPES)))]
    rng, seed = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(0, 1000))
    index_shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    shape = (draw(st.integers(1, 5)), *draw(st.lists(st.integers(0, 6), max_size=3)))
    rows = rng.integers(0, draw(st.integers(1, shape[0])), index_shape).astype(draw(st.sampled_from((np.int32, np.int64))))
    base_shape, view = layout_of(draw, shape)
    updates = divisors(dtype, index_shape + shape[1:], seed)
    return values(dtype, base_shape, seed), view, laid_out(draw, rows), laid_out(draw, updates)


@pytest.mark.parametrize("path", PATHS)
@given(call=calls())
@settings(max_examples=200, deadline=None)
def test_any_call(path, call):
    base, view, indices, updates = call
    want = base.copy()
    view(want)[...] = sequential(view(base), indices, updates)
    with pytest.MonkeyPatch.context() as patch:
        take(path, patch)
        with np.errstate(all="ignore"):
            scatter_div(view(base), indices, updates)
    assert_same_bits(base, want)


@each_dtype
def test_large_calls_are_compiled(dtype):
    shape, rng = (50, 8), np.random.default_rng(2)
    agree(values(dtype, shape), rng.integers(0, 50, 2000), divisors(dtype, (2000, 8)))
    agree(values(dtype, (300,)), rng.integers(0, 300, 20_000), divisors(dtype, (20_000,)))
    assert f"scatter_div_{dtype.name}" in {made.name for made in compiler.compiled()}


# --- cases that other libraries have met --------------------------------------------------------------------------------------------------
class Case(NamedTuple):
    """A row of data/scatter_div.json. `theirs` is the result that is right or was observed, or the name of an error."""

    x: Any
    indices: Any
    updates: Any
    theirs: Any
    name: str


def array(numbers, dtype, shape=None):
    if dtype in ("list", "tuple", "python float"):
        return tuple(numbers) if dtype == "tuple" else numbers
    numbers = np.array(numbers["real"] if isinstance(numbers, dict) else numbers, dtype=object)
    flat = [float(number) if type(number) is str else number for number in numbers.ravel()]
    return np.array(flat, dtype=object).astype(SOURCES.get(dtype, dtype)).reshape(numbers.shape if shape is None else shape)


def case(row):
    x = array(row["input"], row["dtype"], row.get("input_shape"))
    indices = array(row["indices"], row["indices_dtype"], row.get("indices_shape"))
    own = isinstance(row["updates"], str)  # "same object as input"
    updates = x if own else array(row["updates"], row["updates_dtype"], row.get("updates_shape"))
    return Case(x, indices, updates, row.get("error") or array(row["expected"], row["dtype"], x.shape), row["name"])


ROWS = json.loads((Path(__file__).parent / "data" / "scatter_div.json").read_text(encoding="utf-8"))
LOOP = "as the loop does"
DIFFERENCES = [  # the first that applies: what holds here, for which cases, and why
    (ValueError, lambda c: c.x.ndim == 0, "a 0-d input_x has no rows; elsewhere it is a row of its own"),
    (TypeError, lambda c: c.x.dtype not in DTYPES.values(), "bool and complex are not of the twelve dtypes"),
    (TypeError, lambda c: not isinstance(c.indices, list) and c.indices.dtype not in (np.int32, np.int64), "indices are int32 or int64"),
    (
        RuntimeError,
        lambda c: isinstance(c.updates, np.ndarray) and c.updates.dtype != c.x.dtype and not converts(c.updates.dtype, c.x.dtype),
        "a conversion that loses is a RuntimeError, in NumPy's words or not",
    ),
    (RuntimeError, lambda c: isinstance(c.updates, float) and c.x.dtype.kind == "i", "a weak float does not become an integer"),
    (ValueError, lambda c: np.shape(c.updates) != np.shape(c.indices) + c.x.shape[1:], "shapes are exact: one index names one row"),
    (IndexError, lambda c: out_of_range(c), "indices are compared in 64 bits, also where there is nothing to divide; none is skipped"),
    (ZeroDivisionError, lambda c: c.x.dtype.kind in "iu" and np.any(np.asarray(c.updates) == 0), "an integer zero has an error of its own"),
    (LOOP, lambda c: c.updates is c.x, "updates in the memory of input_x are copied first"),
    (LOOP, lambda c: error(c) == "SIGFPE", "MIN / -1 is MIN"),
    (LOOP, lambda c: error(c) and np.any(np.asarray(c.updates) == 0), "floats are divided by zero by IEEE 754"),
    (LOOP, lambda c: error(c) and isinstance(c.indices, list), "Python integers are int64 indices"),
    (LOOP, lambda c: error(c) and not isinstance(c.updates, np.ndarray), "Python numbers are weak"),
    (LOOP, lambda c: error(c) and BFLOAT16 in (c.x.dtype, np.asarray(c.updates).dtype), "bfloat16 is one of the twelve"),
    (LOOP, lambda c: error(c) and np.asarray(c.updates).dtype.kind == "u", "unsigned integers convert where they fit"),
]


def error(c):
    """Its name if they raise one."""
    return c.theirs if isinstance(c.theirs, str) else None


def converts(source, target):
    return source in SOURCES.values() and common_type(source.name, target.name) == target.name


def out_of_range(c):
    indices = np.asarray(c.indices)
    return bool(np.any((indices < 0) | (indices >= len(c.x))))


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']}-{row['name'].replace(' ', '_')[:40]}" for row in ROWS])
def test_case(row, path):
    c = case(row)
    verdict = next((verdict for verdict, applies, _ in DIFFERENCES if applies(c)), None)
    if isinstance(verdict, type):
        refuses(verdict, r"\S", c.x, c.indices, c.updates)
        return
    if verdict is None:
        assert not error(c), "no rule says why it is not raised here"
        with np.errstate(all="ignore"):
            assert_same_bits(scatter_div(c.x, c.indices, c.updates), c.theirs)
    else:
        want = sequential(c.x, c.indices, c.updates)
        with np.errstate(all="ignore"):
            assert_same_bits(scatter_div(c.x, c.indices, c.updates), want)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference[2])
def test_every_difference_is_met(difference):
    assert any(difference[1](c) for c in map(case, ROWS))


# --- types --------------------------------------------------------------------------------------------------------------------------------
RANKS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]  # the order of the contract
SOURCES = {"bool": np.dtype(bool), **DTYPES}


def common_type(x, u):
    """The name of the common type of two dtypes by name, as the contract words it."""
    if {x, u} == {"uint8", "int8"}:
        return "int16"
    if {x, u} == {"float16", "bfloat16"}:
        return "float32"
    if "bfloat16" in (x, u):  # beside any other it ranks as float16 does
        return "bfloat16" if common_type(x.removeprefix("b"), u.removeprefix("b")) == "float16" else common_type(x.strip("b"), u.strip("b"))
    if {x, u} <= set(RANKS):
        return max(x, u, key=RANKS.index)
    floats = [name for name in (x, u) if "float" in name]
    return floats[0] if floats else np.promote_types(x, u).name  # uint16, uint32 or uint64 with another


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@each_dtype
def test_conversion(dtype, source, path):
    x, u = np.array([8, 6, 7]).astype(dtype), np.array([1, 1, 1] if source.kind == "b" else [2, 3, 2]).astype(source)
    if common_type(dtype.name, source.name) == dtype.name:
        agree(x, [0, 1, 2], u)
        exact = np.array([8, 6, 7]) / u.astype(float)
        assert x.astype(float).tolist() == (exact if is_float(dtype) else np.trunc(exact)).tolist()
    else:
        refuses(RuntimeError, rf"updates.* {source}.* do not convert to {dtype}", x, [0, 1, 2], u)


@each_float
def test_integers_convert_as_numpy_does(dtype):
    """To the nearest float; those that are too large to infinity, with NumPy's warning."""
    u = np.array([2**60 + 1, 65519, 65520, 2049])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = scatter_div(np.ones(4, dtype), [0, 1, 2, 3], u)
        got = [str(entry.message) for entry in caught]
    with np.errstate(all="ignore"):
        assert_same_bits(x, np.ones(4, dtype) / u.astype(dtype))
    assert ("overflow encountered in cast" in got) == (dtype == np.float16)


WEAK = [3, 3.5, True, [3, 2], [2.0, 3], (True, 2), [[2, 3], [4, 5]], ([2.5, 3.0], [4, 5.0]), [], [[], []]]


@pytest.mark.parametrize("weak", WEAK, ids=repr)
@each_dtype
def test_python_numbers_take_the_dtype_of_input(dtype, weak, path):
    shape = np.shape(weak)
    x, indices = np.arange(1, 7).astype(dtype), np.zeros(shape, np.int32)
    if not is_float(dtype) and np.asarray(weak).dtype.kind == "f" and np.size(weak):
        refuses(RuntimeError, "Python floats", x, indices, weak)
        return
    want = sequential(x, indices, np.asarray(weak, np.float64).astype(dtype))
    assert_same_bits(scatter_div(x, indices, weak), want)


def test_numpy_scalars_are_not_weak():
    x = np.ones(3, np.float32)
    for strong in (np.float64(2), np.array(2.0), [np.float64(2)], [[np.float64(2)]]):
        refuses(RuntimeError, "float64.* do not convert to float32", x, np.zeros(np.shape(strong), int), strong)
    assert scatter_div(x, 1, np.float32(2))[1] == 0.5
    assert scatter_div(x, [1], [np.float16(2)])[1] == 0.25


def test_indices_as_python_integers(path):
    for indices in ([2, 0], (2, 0), [[2], [0]], 1, np.int64(1), np.int32(1), [np.int32(1)]):
        agree(np.arange(3.0), indices, np.full(np.shape(indices), 4.0))


# --- what is refused ----------------------------------------------------------------------------------------------------------------------
def refuses(error, message, x, indices, updates):
    """The error, and input_x as before."""
    kept = x.tobytes() if isinstance(x, np.ndarray) else repr(x)
    with pytest.raises(error, match=message):
        scatter_div(x, indices, updates)
    assert (x.tobytes() if isinstance(x, np.ndarray) else repr(x)) == kept


ROW = np.array([8.0, 6.0, 7.0], np.float32)
SQUARE = np.arange(1, 7, dtype=np.int16).reshape(3, 2)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


REFUSED = {
    "list": (TypeError, r"input_x must be a numpy.ndarray .*list: \[8.0\]", [8.0], [0], [2.0]),
    "masked array": (TypeError, "MaskedArray", np.ma.array([8.0]), [0], [2.0]),
    "bool": (TypeError, "input_x .*got bool", np.array([True]), [0], [True]),
    "complex": (TypeError, "input_x .*got complex64", np.ones(2, "c8"), [0], [1j]),
    "object": (TypeError, "input_x .*got object", np.ones(2, object), [0], [1]),
    "timedelta": (TypeError, r"input_x .*got timedelta64\[s\]", np.ones(2, "m8[s]"), [0], [1]),
    "longdouble": (TypeError, "input_x .*got (longdouble|float)", np.ones(2, np.longdouble), [0], [1.0]),
    "rank 0": (ValueError, r"rank 1 or more.*array\(8", np.array(8.0), 0, 2.0),
    "read-only": (ValueError, r"read-only: float32 of shape \(3,\)", read_only(ROW), [0], [2.0]),
    "broadcast": (ValueError, "read-only", np.broadcast_to(ROW, (2, 3)), [0], ROW[None]),
    "int16 indices": (TypeError, "indices .*got ndarray of int16", ROW, np.array([0], "i2"), [2.0]),
    "uint64 indices": (TypeError, "indices .*uint64", ROW, np.array([0], "u8"), [2.0]),
    "bool indices": (TypeError, r"indices .*\[True\] \(bool\)", ROW, [True], [2.0]),
    "float indices": (TypeError, r"indices .*\[0.0\]", ROW, [0.0], [2.0]),
    "empty float indices": (TypeError, "indices .*float64", ROW, np.array([]), []),
    "masked indices": (TypeError, "indices .*MaskedArray", ROW, np.ma.array([0]), [2.0]),
    "masked updates": (TypeError, "updates .*masked_array", ROW, [0], np.ma.array([2.0], dtype="f4")),
    "complex updates": (RuntimeError, "updates.* complex128.* do not convert to float32", ROW, [0], np.array([2j])),
    "text updates": (RuntimeError, r"updates, \['2'\]", ROW, [0], ["2"]),
    "longdouble updates": (RuntimeError, "do not convert to float64", np.ones(1), [0], np.ones(1, np.longdouble)),
    "no row 3": (IndexError, r"indices\[1\] is 3, .*\[0, 3\)", ROW, [0, 3], [2.0, 2.0]),
    "row -1": (IndexError, r"indices\[0, 1\] is -1, .*\[0, 3\)", ROW, [[0, -1]], [[2.0, 2.0]]),
    "row -1, int32": (IndexError, r"indices\[1\] is -1, .*\[0, 3\)", ROW, np.array([0, -1], "i4"), [2.0, 2.0]),
    "0-d index": (IndexError, r"indices is 5, .*\[0, 3\)", ROW, 5, 2.0),
    "2**32 + 1": (IndexError, r"indices\[0\] is 4294967297, ", ROW, [2**32 + 1], [2.0]),
    "-2**63": (IndexError, r"indices\[0\] is -9223372036854775808, ", ROW, [-(2**63)], [2.0]),
    "2**70": (IndexError, rf"indices\[1\] is {2**70}, ", ROW, [0, 2**70], [2.0, 2.0]),
    "no row in no columns": (IndexError, r"indices\[1\] is 5, .*\[0, 3\)", np.ones((3, 0)), [0, 5], np.ones((2, 0))),
    "no rows": (IndexError, r"indices\[0\] is 0, .*\[0, 0\)", np.ones(0), [0], [2.0]),
    "index before zero": (IndexError, r"indices\[1\] is 9", SQUARE, [0, 9], [[0, 1], [1, 1]]),
    "int zero": (ZeroDivisionError, r"updates\[1, 0\] is 0.*int16", SQUARE, [0, 2], [[1, 1], [0, 0]]),
    "int zero, 0-d": (ZeroDivisionError, r"updates is 0.*int64", np.ones(3, "i8"), 0, 0),
    "False": (ZeroDivisionError, r"updates\[0\] is 0", np.ones(3, "u1"), [0], [False]),
    "too few updates": (ValueError, r"\(2, 2\), got .*\(3, 2\), .*\(2,\) .*\(1, 2\)", SQUARE, [0, 1], [[1, 1]]),
    "no broadcasting": (ValueError, r"\(2, 2\), got .*\(3, 2\), .*\(2,\) .*\(\)", SQUARE, [0, 1], 2),
    "one column": (ValueError, r"\(2, 2\), got .*\(2, 1\)", SQUARE, [0, 1], [[1], [1]]),
    "too large": (OverflowError, "40000.*int16", SQUARE, [0], [[1, 40000]]),
    "negative": (OverflowError, "-1.*uint8", np.ones(1, "u1"), [0], [-1]),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refuses(case, path):
    refuses(*case)


@each_integer
def test_zero_among_many(dtype, path):
    for layout in LAYOUTS.values():
        u = divisors(dtype, (9, 4, 50))
        u[7, 2, 33] = 0
        refuses(ZeroDivisionError, r"updates\[7, 2, 33\] is 0", values(dtype, (3, 4, 50)), np.zeros(9, int), layout(u))
    u = divisors(dtype, (301,))
    u[[200, 300]] = 0
    refuses(ZeroDivisionError, r"updates\[200\] is 0", values(dtype, (3,)), np.zeros(301, int), u)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("wrong", [-1, 3, -(2**31), 2**31 - 1])
def test_one_bad_index_among_many(index_dtype, wrong, path):
    indices = np.zeros((7, 43), index_dtype)
    indices[5, 11] = indices[6, 0] = wrong
    refuses(IndexError, rf"indices\[5, 11\] is {wrong}, ", np.ones(3), indices, np.ones((7, 43)))


def test_rows_beyond_32_bits(path):
    x, u = np.ones((2**33, 0)), np.ones((2, 0))
    assert scatter_div(x, [2**32 + 1, 2**33 - 1], u) is x
    with pytest.raises(IndexError, match=str(2**33)):
        scatter_div(x, [0, 2**33], u)


def windows(shape, strides, size=64, dtype=np.int16):
    return np.lib.stride_tricks.as_strided(np.ones(size, dtype), shape, strides)


def test_input_that_overlaps_itself():
    for x in (windows((3, 2), (2, 2)), windows((2, 3), (0, 2)), windows((3,), (1,)), windows((4, 3), (4, 6)), windows((2, 2), (-2, 2), 8)):
        refuses(ValueError, "share memory.*strides", x, np.zeros(0, int), np.ones((0, *x.shape[1:]), np.int16))
    for shape, strides in (((2**40, 2), (0, 2)), ((2**20, 2**20), (2, 2))):  # too large to look at every cell
        x = np.lib.stride_tricks.as_strided(np.ones(2**22, np.int16), shape, strides)
        with pytest.raises(ValueError, match=f"share memory.*{shape[0]}"):
            scatter_div(x, [0], x[:1])
    for x in (windows((2, 3), (6, 2)), windows((3, 2), (4, 6)), windows((1, 3), (0, 2)), windows((0, 3), (0, 0)), windows((3,), (-2,), 1)):
        scatter_div(x, np.zeros(0, int), np.ones((0, *x.shape[1:]), np.int16))


# --- memory -------------------------------------------------------------------------------------------------------------------------------
def test_updates_in_the_memory_of_input(path):
    x = np.array([8.0, 4.0, 2.0])
    assert scatter_div(x, [1, 0, 2], x).tolist() == [2.0, 0.5, 1.0]
    x = np.array([8.0, 4.0, 2.0])
    assert scatter_div(x, [0, 1, 2], x[::-1]).tolist() == [4.0, 1.0, 0.25]
    x = np.arange(1.0, 13.0).reshape(4, 3)
    want = sequential(x, [0, 1, 2], x[1:])
    assert_same_bits(scatter_div(x, [0, 1, 2], x[1:]), want)


def test_indices_in_the_memory_of_input(path):
    x = np.array([2, 2, 1, 9])
    assert scatter_div(x, x[:3], [2, 1, 3]).tolist() == [2, 0, 0, 9]


def test_subclasses_and_files(path, tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3, 2))
    mapped[...] = 6
    assert scatter_div(mapped, [1], [[2, 3]]) is mapped
    mapped.flush()
    assert np.fromfile(tmp_path / "x", np.float32).tolist() == [6, 6, 3, 2, 6, 6]
    matrix = np.ones((2, 2)).view(np.matrix)
    assert scatter_div(matrix, [1], [[2, 4]]) is matrix
    assert matrix.tolist() == [[1, 1], [0.5, 0.25]]


# --- floating-point warnings --------------------------------------------------------------------------------------------------------------
KINDS = ("divide by zero", "overflow", "underflow", "invalid value")
DIVIDE, OVERFLOW, UNDERFLOW, INVALID = (f"{kind} encountered in scatter_div" for kind in KINDS)


def limits(dtype):
    """The largest and the smallest number."""
    info = ml_dtypes.finfo(dtype)
    return dtype.type(info.max), dtype.type(info.smallest_subnormal)


def raising(dtype):
    """Dividend, divisor, what is reported under errstate(all="warn")."""
    largest, smallest = limits(dtype)
    return [
        (1, 2, []),
        (1, 0, [DIVIDE]),
        (-1, -0.0, [DIVIDE]),
        (0, 0, [INVALID]),
        (np.inf, np.inf, [INVALID]),
        (np.inf, 0, []),
        (1, np.inf, []),
        (np.nan, 0, []),
        (np.nan, np.inf, []),
        (0, np.nan, []),
        (largest, 1, []),
        (largest, 0.5, [OVERFLOW]),
        (-largest, smallest, [OVERFLOW]),
        (largest, dtype.type(1) - dtype.type(0.01), [OVERFLOW]),
        (smallest, 1, []),
        (smallest, 2, [UNDERFLOW]),
        (smallest, largest, [UNDERFLOW]),
        (smallest * dtype.type(6), 2, []),
        (smallest * dtype.type(3), 2, [UNDERFLOW]),
    ]


def reported(call, *args):
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    assert all(entry.category is RuntimeWarning and entry.filename == __file__ for entry in caught)
    return [str(entry.message) for entry in caught]


@each_float
def test_each_kind_of_warning(dtype, path):
    for a, b, want in raising(dtype):
        x, u = np.array([a]).astype(dtype), np.array([b]).astype(dtype)
        for width, step in ((1, 1), (50, 1), (50, 2)):
            wide, row = np.repeat(x, width * step)[None, ::step], np.repeat(u, width)[None]
            assert reported(scatter_div, wide, [0], row) == want, (a, b, width)
        assert reported(scatter_div, x, [0], u) == want, (a, b)
        if dtype != BFLOAT16:  # ml_dtypes rounds without telling
            assert [message.replace("scatter_div", "divide") for message in want] == reported(np.divide, np.array([a], dtype), u)


@each_float
def test_one_warning_of_each_kind(dtype, path):
    x = np.array([[1, 0, 1, 0], limits(dtype)[:1] * 4], dtype)
    assert reported(scatter_div, x, [0, 1], np.array([[0, 0, 0, 0], [0.5] * 4], dtype)) == [DIVIDE, OVERFLOW, INVALID]


def test_underflow_is_not_reported_unasked(path):
    assert scatter_div(np.array([5e-324]), [0], [2.0])[0] == 0


def test_integers_report_nothing(path):
    for name in ("int8", "int16", "int32", "int64"):
        x = np.full(70, np.iinfo(name).min, name)
        assert reported(scatter_div, x[None], [0], np.full((1, 70), -1, name)) == []
        assert reported(scatter_div, x, np.arange(70), np.full(70, -1, name)) == []
        assert np.all(x == np.iinfo(name).min)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_errstate(dtype, path, capfd):
    def call():
        return scatter_div(np.array([1, 0, 6], dtype), [0, 1, 2], np.array([0, 0, 2], dtype))

    want = np.array([np.inf, np.nan, 3], dtype)
    with np.errstate(all="ignore"):
        assert_same_bits(call(), want)
    with np.errstate(divide="ignore", invalid="warn"), pytest.warns(RuntimeWarning, match=f"^{INVALID}$"):
        call()
    x = np.array([1, 0, 6], dtype)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=f"^{DIVIDE}$"):
        scatter_div(x, [0, 1, 2], np.array([0, 0, 2], dtype))
    assert_same_bits(x, want)  # written before it is raised
    calls = []
    with np.errstate(all="call", call=lambda *args: calls.append(args)):
        call()
    assert calls == [("divide by zero", 1), ("invalid value", 8)]
    with np.errstate(all="print"):
        call()
    assert capfd.readouterr().err == f"Warning: {DIVIDE}\nWarning: {INVALID}\n"

    class Log:
        text = ""

        def write(self, text):
            Log.text += text

    with np.errstate(all="log", call=Log()):
        call()
    assert Log.text == f"Warning: {DIVIDE}\nWarning: {INVALID}\n"


def test_a_warning_points_at_the_line_of_the_call(path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = sys._getframe().f_lineno + 1
        scatter_div(np.ones(2), [0], [0.0])
    assert [(entry.filename, entry.lineno) for entry in caught] == [(__file__, line)]


# --- with and without Numba ---------------------------------------------------------------------------------------------------------------
def test_small_calls_load_no_numba():
    calls = "; ".join(f"scatter_div(np.ones((9, 9), {name!r}), [1, 2], np.ones((2, 9), {name!r}))" for name in DTYPES if name != "bfloat16")
    code = f"import sys, numpy as np; from fastops.scatter import scatter_div; {calls}; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_compiles_where_numpy_would_take_long(monkeypatch):
    monkeypatch.setattr(scatter_compiled, "kernels", {})
    for dtype, rows, size in (("f4", 9_999, 9_999), ("i4", 400, 9_999), (BFLOAT16, 400, 9_999)):
        assert not scatter._has_kernel(np.dtype(dtype), rows, size)
    for dtype, rows, size in (("f4", 10_000, 10_000), ("f8", 1, 10_000), ("i4", 600, 600), (BFLOAT16, 600, 600)):
        assert scatter._has_kernel(np.dtype(dtype), rows, size)


@each_dtype
def test_without_numba(dtype, monkeypatch):
    def numba():
        raise compiler.Unavailable("it is away")

    monkeypatch.setattr(compiler, "numba", numba)
    monkeypatch.setattr(scatter_compiled, "kernels", {})
    compiler.warn_unavailable.cache_clear()
    x, indices, u = values(dtype, (20, 30)), np.random.default_rng(3).integers(0, 20, 400), divisors(dtype, (400, 30))
    want = sequential(x, indices, u)
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Numba cannot be used here: it is away"):
        scatter_div(x, indices, u)
    assert_same_bits(x, want)
    with np.errstate(all="ignore"):  # and no second warning
        scatter_div(x, indices, u)


@pytest.mark.parametrize("path", PATHS)
def test_from_several_threads(path):
    jobs = [(values(dtype, (30, 8)), np.random.default_rng(4).integers(0, 30, 600), divisors(dtype, (600, 8))) for dtype in DTYPES.values()]
    want = [sequential(*job) for job in jobs]

    def work(_):
        with np.errstate(all="ignore"):
            return [scatter_div(x.copy(), indices, updates) for x, indices, updates in jobs]

    with pytest.MonkeyPatch.context() as patch:
        take(path, patch)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(work, range(8)))
    for got in results:
        for result, expected in zip(got, want, strict=True):
            assert_same_bits(result, expected)


def test_examples():
    result = doctest.testmod(scatter)
    assert result.attempted > 0
    assert result.failed == 0
