"""Few updates that `scatter_div` makes plain for its entry: bits, warnings and errors of each way, and that nothing else is written."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from conftest import DTYPES, EDGE_VALUES, assert_same_bits, each_dtype, each_float, random_bits, word
from scatter_oracle import SOURCES, converts, divisors, functions_run, load_kernels, sequential, values

from fastops import scatter_few, scatter_operands
from fastops.engine import errors
from fastops.scatter import scatter_div


@pytest.fixture(scope="module", autouse=True)
def kernels(compiled):
    load_kernels()


WIDE = {name: dtype for name, dtype in DTYPES.items() if dtype.itemsize > 1}
each_wide = pytest.mark.parametrize("dtype", WIDE.values(), ids=WIDE)
INTEGER, FLOAT = DTYPES["int16"].newbyteorder(), DTYPES["float32"].newbyteorder()
COUNTS = (1, 2, 3, 70, 200)
ROWS = {"few rows": 4, "several": 150, "many": 30_000}  # of them some are named again, or none is


def plainly(call):
    """What the call gives, which `_scatter_div` has not seen."""
    with np.errstate(all="ignore"):
        assert "_scatter_div" not in functions_run(call)


# --- input_x in the other byte order ------------------------------------------------------------------------------------------------------
@each_wide
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("row", [(), (3,), (2, 2)], ids=str)
def test_the_other_byte_order(dtype, rows, row):
    """Rows that are not named keep their bits, also those of NaNs that are not quiet."""
    start = np.frombuffer(np.random.default_rng(3).bytes(rows * int(np.prod(row)) * dtype.itemsize), dtype).reshape(rows, *row)
    for count in COUNTS:
        random = np.random.default_rng(count)
        for indices in (random.integers(0, rows, count), random.integers(0, min(rows, 2), count), np.arange(count) % rows):
            start = start.copy()
            start[indices] = values(dtype, (count, *row), seed=count)
            x, u, named = start.astype(dtype.newbyteorder()), divisors(dtype, (count, *row)), np.unique(indices)
            want, before = sequential(start[named], np.searchsorted(named, indices), u), x.view(word(dtype)).copy()
            plainly(lambda x=x, indices=indices, u=u: scatter_div(x, indices, u))
            assert_same_bits(x[named].astype(dtype), want)
            x.view(word(dtype))[named] = before[named]
            assert np.array_equal(x.view(word(dtype)), before)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("layout", ["backwards", "columns", "unaligned"])
def test_layouts_of_the_other_byte_order(count, layout):
    memory = np.zeros(60 * 8 * 4 + 1, np.uint8)
    base = (memory[1:] if layout == "unaligned" else memory[:-1]).view(FLOAT).reshape(60, 8)
    x = {"backwards": base[::-2], "columns": base[:, 1::3], "unaligned": base}[layout]
    base[...] = np.arange(1, 481).reshape(60, 8)
    indices, u = np.arange(count) * 7 % len(x), divisors(DTYPES["float32"], (count, x.shape[1]))
    want, whole = sequential(x, indices, u), base.copy()
    plainly(lambda: scatter_div(x, indices, u))
    assert_same_bits(x.astype(np.float32), want)
    x[...] = want
    now, x[...] = base.copy(), 0
    inside = base == 0
    assert np.array_equal(now[~inside], whole[~inside])


@pytest.mark.parametrize("count", COUNTS)
def test_it_is_written_before_anything_is_reported(count):
    def operands():
        x, u = np.ones(300, FLOAT), np.full(count, 2, np.float32)
        u[-1] = 0
        return x, np.arange(count), u

    def raises(kind, flag):
        raise ZeroDivisionError(kind)  # which is also what is raised for integers, before anything is written

    x, indices, u = operands()
    want = sequential(x, indices, u)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = sys._getframe().f_lineno + 1
        scatter_div(x, indices, u)
    assert [(str(entry.message), entry.filename, entry.lineno) for entry in caught] == [
        ("divide by zero encountered in scatter_div", __file__, line)
    ]
    assert_same_bits(x.astype(np.float32), want)
    for error, state in ((FloatingPointError, {"all": "raise"}), (ZeroDivisionError, {"all": "call", "call": raises})):
        x, indices, u = operands()
        with np.errstate(**state), pytest.raises(error, match=r"^divide by zero"):
            scatter_div(x, indices, u)
        assert_same_bits(x.astype(np.float32), want)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("wrong", ["index", "divisor"])
def test_an_error_comes_before_anything_is_written(count, wrong):
    x, indices, u = np.full(300, 8, INTEGER), np.arange(count), np.full(count, 2, INTEGER.newbyteorder())
    if wrong == "index":
        indices[-1] = len(x)
    else:
        u[-1] = 0
    with pytest.raises((IndexError, ZeroDivisionError), match=rf"\[{count - 1}\] is "):
        scatter_div(x, indices, u)
    assert (x == 8).all()


def test_where_the_entry_divides_the_other_byte_order():
    """Up to 10 000 elements, and by updates of the same dtype."""
    x, u = np.full(100, 9, FLOAT), np.ones(9_999, np.float32)
    u[-1] = 2
    assert not functions_run(lambda: scatter_div(x, np.arange(9_999) % 100, u))
    assert (x[97], x[98]) == (9, 4.5)
    assert "_scatter_div" in functions_run(lambda: scatter_div(x, np.arange(10_000) % 100, np.ones(10_000, np.float32)))
    with pytest.raises(RuntimeError, match="float64"):
        scatter_div(x, [98], np.full(1, 2.0))
    assert x[98] == 4.5


# --- what is no array yet, or of another dtype --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@each_dtype
def test_conversions_that_say_nothing(dtype, source):
    """Every pattern is converted as NumPy does it, and where it has something to say, that is said."""
    reports = scatter_few._reports(source, dtype)
    assert (reports is None) == (not converts(source, dtype))
    if reports is not None:
        edges = EDGE_VALUES[str(source)] if source.kind != "b" else np.array([False, True])
        for u in (edges, random_bits(source, 500) if source.kind != "b" else edges, any_bits(source)):
            _, said = errors.noted(u.astype, (dtype,), {})
            assert reports or not said
            with np.errstate(all="ignore"):
                want, got = u.astype(dtype), scatter_few._plain_updates(u, dtype)
            assert (got is None) == bool(said) or u.dtype == dtype
            if got is not None:
                assert_same_bits(got, want)


def any_bits(dtype):
    """NaNs that are not quiet, too."""
    return np.frombuffer(np.random.default_rng(0).bytes(500 * dtype.itemsize), dtype if dtype.kind != "b" else np.int8).astype(dtype)


def test_that_something_is_said_of_some():
    for source, target in (("int64", "float16"), ("float64", "float32")):
        assert errors.noted(np.array([2**60], source).astype, ("float16",), {})[1] == ["overflow encountered in cast"]
        assert scatter_few._reports(np.dtype(source), np.dtype(target)) in (True, None)


@each_float
@pytest.mark.parametrize("updates", [[1e300, 2.0], [1e-320, 2.0], 1e300, [[1e300]] * 2], ids=str)
def test_python_floats_that_do_not_fit(dtype, updates):
    """As converted by NumPy, with its remarks, underflow too, if it is asked for."""
    want, said = errors.noted(np.asarray(updates, np.float64).astype, (dtype,), {})
    shape = np.shape(updates)
    with np.errstate(under="warn", divide="ignore", over="warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = scatter_div(np.ones(3, dtype), np.arange(want.size).reshape(shape), updates)
    assert [str(entry.message) for entry in caught if "cast" in str(entry.message)] == said
    assert {entry.filename for entry in caught} <= {__file__}
    with np.errstate(all="ignore"):
        assert_same_bits(x[: want.size], (np.ones(shape, dtype) / want).reshape(-1))


LISTS = {
    "int": [3, True],
    "booleans among integers": [True, 2],
    "none": [],
    "no rows": [[], []],
    "unsigned": [2**63, 1],
    "beyond": [2**64, -1],
    "least": [-(2**63)],
    "numbers of NumPy": [np.int32(1), np.int32(2)],
    "mixed": [np.int32(1), 2],
    "nested": [[1, 2], (3, 4)],
    "boolean": True,
}


@pytest.mark.parametrize("indices", LISTS.values(), ids=LISTS)
def test_indices_in_lists(indices):
    """Integers are int64, or objects if they are beyond; others are what NumPy makes of them."""
    try:
        made = scatter_operands.index_array(indices)
    except TypeError:
        assert np.asarray(indices).dtype.kind != "i"
        return
    assert np.array_equal(made, np.asarray(indices, object))
    beyond = any(not -(2**63) <= int(index) < 2**63 for index in np.ravel(np.asarray(indices, object)))
    kinds = {np.dtype(type(index)) for index in np.ravel(np.asarray(indices, object))}
    assert made.dtype == (object if beyond else np.int32 if kinds == {np.dtype(np.int32)} else np.int64)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("last", [2, True, 2.5, np.float64(2.5), np.ma.masked], ids=str)
def test_the_types_in_lists(depth, last):
    """However deep, and if only one is another."""
    leaves = [[1, 2, last], [3, 4, 5]]
    for _ in range(depth - 1):
        leaves = [leaves, tuple(leaves)]
    assert scatter_operands._leaf_types(leaves) == {int, type(last)}
    assert scatter_operands._leaf_types([leaves, 1.5]) == {int, float, type(last)}


def test_an_object_that_warns_when_it_becomes_an_array():
    class Warns:
        def __array__(self, dtype=None, copy=None):
            warnings.warn("converted", stacklevel=2)
            return np.array([2], np.float32)

    x, updates = np.ones((3, 1), np.float32), [Warns()]
    line = sys._getframe().f_lineno + 2
    with pytest.warns(UserWarning, match=r"^converted$") as caught:
        scatter_div(x, [1], updates)
    assert x.tolist() == [[1], [0.5], [1]]
    assert {(entry.filename, entry.lineno) for entry in caught} == {(__file__, line)}


def test_a_list_of_itself():
    endless = [1]
    endless[:] = [endless, endless]
    for operands in (([0], endless), (endless, [1.0])):
        with pytest.raises((RecursionError, ValueError, TypeError)):
            scatter_div(np.ones(3), *operands)
