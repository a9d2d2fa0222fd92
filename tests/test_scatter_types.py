"""What `scatter_div` takes and gives by dtype: the table of conversions, Python's numbers, and cases that other libraries have met."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES, EDGE_VALUES, assert_same_bits, each_dtype, each_float, is_float, is_nan, rounded
from scatter_oracle import SOURCES, WAYS, agree, by, converts, each_way, refuses, sequential

from fastops.scatter import scatter_div

# --- conversion ---------------------------------------------------------------------------------------------------------------------------


INFINITE = 2**1024 - 2**970  # what rounds to no number of double precision


def exactly(x, u, dtype):
    """By rational arithmetic: the divisor rounded to the dtype, and then the quotient."""
    if not is_float(dtype):
        return dtype.type(int(Fraction(int(x)) / int(u)))  # toward zero
    divisor = rounded(fraction(u), dtype)
    if np.isinf(divisor):
        return dtype.type(np.copysign(0.0, float(x) * float(divisor)))
    result = fraction(x) / fraction(divisor)
    return dtype.type(np.inf if result > 0 else -np.inf) if abs(result) >= INFINITE else rounded(result, dtype)


def fraction(x):
    return Fraction(float(x)) if is_float(x.dtype) else Fraction(int(x))


def numbers(dtype):
    """Finite edge values, none of them zero, from the least to the largest."""
    if dtype.kind == "b":
        return np.array([True])
    edges = EDGE_VALUES[str(dtype)]
    edges = edges[~is_nan(edges) & (edges != 0)]
    return edges[np.isfinite(edges)] if is_float(dtype) else edges


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("target", SOURCES.values(), ids=SOURCES)
def test_conversion(target, source):
    u = numbers(source)
    x = np.resize(numbers(target)[::-3], u.shape)
    indices = np.arange(x.size)
    if target.kind == "b":
        refuses(TypeError, "input_x must be .* got bool", x, indices, u)
    elif not converts(source, target):
        refuses(RuntimeError, rf"updates.* {source}.* do not convert to {target}", x, indices, u)
    else:
        with np.errstate(all="ignore"):
            want = np.array([exactly(a, b, target) for a, b in zip(x, u, strict=True)])
        for way in WAYS:
            with by(way) as call, np.errstate(all="ignore"):
                assert_same_bits(call(x.copy(), indices, u), want)
        agree(np.array([8, 6, 7]).astype(target), [2, 0, 2], u[-3:] if u.size > 2 else np.ones(3, source))


@each_float
@each_way
def test_integers_convert_as_numpy_does(dtype, way):
    """To the nearest float; those that are too large to infinity, with NumPy's warning."""
    u = np.resize([2**60 + 1, 65519, 65520, 2049], 20)  # several pieces
    with by(way) as call, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = call(np.ones(20, dtype), np.arange(20), u)
        got = [str(entry.message) for entry in caught]
    with np.errstate(all="ignore"):
        assert_same_bits(x, np.ones(20, dtype) / u.astype(dtype))
    assert got == ["overflow encountered in cast"] * (dtype == np.float16)


WEAK = [3, 3.5, True, [3, 2], [2.0, 3], (True, 2), [[2, 3], [4, 5]], ([2.5, 3.0], [4, 5.0]), [], [[], []]]


@pytest.mark.parametrize("weak", WEAK, ids=repr)
@each_dtype
def test_python_numbers_take_the_dtype_of_input(dtype, weak):
    shape = np.shape(weak)
    x, indices = np.arange(1, 7).astype(dtype), np.zeros(shape, np.int32)
    if not is_float(dtype) and np.asarray(weak).dtype.kind == "f" and np.size(weak):
        refuses(RuntimeError, "Python floats", x, indices, weak)
        return
    want = sequential(x, indices, np.asarray(weak, np.float64).astype(dtype))
    for way in WAYS:
        with by(way) as call:
            assert_same_bits(call(x.copy(), indices, weak), want)


def test_numpy_scalars_are_not_weak():
    x = np.ones(3, np.float32)
    for strong in (np.float64(2), np.array(2.0), [np.float64(2)], [[np.float64(2)]]):
        refuses(RuntimeError, "float64.* do not convert to float32", x, np.zeros(np.shape(strong), int), strong)
    assert scatter_div(x, 1, np.float32(2))[1] == 0.5
    assert scatter_div(x, [1], [np.float16(2)])[1] == 0.25


def test_indices_as_python_integers():
    for indices in ([2, 0], (2, 0), [[2], [0]], 1, np.int64(1), np.int32(1), [np.int32(1)]):
        agree(np.arange(3.0), indices, np.full(np.shape(indices), 4.0))


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


def out_of_range(c):
    indices = np.asarray(c.indices)
    return bool(np.any((indices < 0) | (indices >= len(c.x))))


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']}-{row['name'].replace(' ', '_')[:40]}" for row in ROWS])
def test_case(row):
    c = case(row)
    verdict = next((verdict for verdict, applies, _ in DIFFERENCES if applies(c)), None)
    if isinstance(verdict, type):
        refuses(verdict, r"\S", c.x, c.indices, c.updates)
    else:
        assert verdict or not error(c), "no rule says why it is not raised here"
        want = sequential(c.x, c.indices, c.updates)
        if verdict is None:
            assert_same_bits(want, c.theirs)
        agree(c.x, c.indices, c.updates)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference[2])
def test_every_difference_is_met(difference):
    assert any(difference[1](c) for c in map(case, ROWS))
