"""`scatter_div` against a plain loop in Python, in all ways that a call may travel; and which way it takes."""

from __future__ import annotations

import doctest
import subprocess
import sys

import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES, EDGE_VALUES, assert_same_bits, each_dtype, is_float, pairs
from scatter_oracle import agree, by, divisors, each_layout, functions_run, quotient, sequential, values

from fastops import scatter, scatter_compiled
from fastops.engine import compiler, driving
from fastops.kernels.scatter_plan import CHECK, DIVIDE, OWN
from fastops.scatter import scatter_div


# --- values -------------------------------------------------------------------------------------------------------------------------------
def every_pair(dtype):
    """Dividends, divisors and quotients."""
    x, u = pairs(dtype)
    if is_float(dtype):
        with np.errstate(all="ignore"):
            return x, u, x / u
    x, u = x[u != 0], u[u != 0]
    return x, u, quotient(dtype)(x.astype(object), u.astype(object)).astype(dtype)


SHORT = 30  # elements of a row for which a kernel has a loop of its own


@each_dtype
@pytest.mark.parametrize("way", ["entry", "compiled", "plain"])
def test_every_pair_of_edge_values(dtype, way):
    x, u, want = every_pair(dtype)
    n = x.size // SHORT * SHORT
    forms = {
        "a row": (x[None], [0], u[None]),
        "short rows": (x[:n].reshape(-1, SHORT), np.arange(n // SHORT), u[:n].reshape(-1, SHORT)),
        "strided": (np.repeat(x, 2)[None, ::2], [0], np.repeat(u, 3)[None, ::3]),
    }
    if way != "plain" or dtype.kind == "f":  # elsewhere NumPy has no loop over rows
        forms |= {f"numbers by {kind}": (x, np.arange(x.size, dtype=kind), u) for kind in ("int32", "int64")}
    with by(way) as call, np.errstate(all="ignore"):
        for form, (cells, rows, by_what) in forms.items():
            cells = cells.copy() if form != "strided" else cells
            pieces = range(0, len(rows), 8192)  # of which each may go past Python
            for k in pieces:
                call(cells, rows[k : k + 8192], by_what[k : k + 8192])
            assert_same_bits(cells.ravel(), want[: cells.size])


@each_dtype
def test_every_edge_value_by_one_divisor_a_row(dtype):
    edges = EDGE_VALUES[str(dtype)]
    u = edges if is_float(dtype) else edges[edges != 0]
    x = np.broadcast_to(edges, (u.size, edges.size))
    with np.errstate(all="ignore"):
        want = x / u[:, None] if is_float(dtype) else quotient(dtype)(x.astype(object), u.astype(object)[:, None]).astype(dtype)
    for way in ("compiled", "columns", "plain"):
        with by(way) as call, np.errstate(all="ignore"):
            assert_same_bits(call(x.copy(), np.arange(u.size), np.broadcast_to(u[:, None], x.shape)), want)


SHAPES = {  # of input_x and of indices
    "rank 1": ((7,), (40,)),
    "rank 1, one row": ((1,), (9,)),
    "rank 1, indices of rank 3": ((7,), (3, 2, 5)),
    "rank 2": ((6, 37), (25,)),
    "rank 2, one column": ((6, 1), (25,)),
    "rank 2, long rows": ((3, 301), (4,)),
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


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@each_dtype
def test_shapes(dtype, shape):
    shape, index_shape = shape
    for index_dtype in (np.int32, np.int64):
        indices = np.random.default_rng(0).integers(0, max(shape[0], 1), index_shape).astype(index_dtype)
        agree(values(dtype, shape), indices, divisors(dtype, index_shape + shape[1:]))


@each_layout
@each_dtype
def test_layouts_of_input_and_updates(dtype, layout):
    indices = np.array([3, 0, 3, 2, 3])
    x, u = values(dtype, (4, 3, 10)), divisors(dtype, (5, 3, 10))
    agree(layout(x.copy()), indices, u)
    agree(x.copy(), indices, layout(u))
    agree(layout(x.copy()), indices, layout(u))
    agree(layout(x.copy())[:, 0, 0], indices, layout(u)[:, 0, 0])
    agree(layout(x.copy())[:, 1], indices.reshape(5, 1), layout(u)[:, None, 1])


@each_layout
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_layouts_of_indices(layout, index_dtype):
    indices = np.random.default_rng(1).integers(0, 4, (2, 3, 4)).astype(index_dtype)
    for dtype, row in ((DTYPES["float32"], (5,)), (DTYPES["int16"], ()), (DTYPES["float64"].newbyteorder(), (2, 3))):
        x, u = values(dtype.newbyteorder("="), (4, *row)).astype(dtype), divisors(dtype.newbyteorder("="), (2, 3, 4, *row))
        agree(x, layout(indices), u)


@each_dtype
def test_a_view_is_updated_where_it_lies(dtype):
    base = values(dtype, (9, 12))
    agree(base[7:1:-2, 10:2:-3], np.array([0, 2, 0]), divisors(dtype, (3, 3)))


def test_rounds_after_every_step():
    for dtype, want in (("float16", 1.5854835510253906e-05), ("bfloat16", None), ("int32", 0)):
        x = np.ones(1, DTYPES[dtype])
        agree(x, [0] * 6, np.array([3, 7, 11, 13, 3, 7], DTYPES[dtype]))
        assert want is None or x[0] == want
    x = np.array([7, -7, 100])
    agree(x, [0, 1, 2, 2, 2], np.array([-2, 2, 3, 3, 3]))
    assert x.tolist() == [-3, -3, 3]
    with by("compiled") as call:
        assert call(np.ones(1), np.zeros(8195, np.int64), np.r_[2.0, 4.0, np.ones(8190), 8.0, 8.0, 8.0])[0] == 2.0**-12


@each_dtype
def test_numbers_that_are_named_again(dtype):
    """At every distance in what is divided at a time, and after it."""
    ones = divisors(dtype, (40,))
    for distance in range(1, 6):
        for first in range(9):
            indices = np.arange(40)
            indices[first + distance] = first
            agree(values(dtype, (40,)), indices, ones, ["entry", "compiled", "sorted"])
    agree(values(dtype, (40,)), np.repeat(np.arange(8), 5), ones)
    agree(values(dtype, (40,)), np.zeros(40, np.int32), ones)


@each_dtype
def test_an_input_that_is_far(dtype):
    """Beyond the cache, so that rows are fetched before they are divided, up to the last."""
    rng = np.random.default_rng(6)
    for row, count, times in (((), 150, 1), ((), 600, 3), ((9,), 30, 1), ((300,), 9, 1)):
        length = (1 << 22) // dtype.itemsize // int(np.prod(row)) + 1
        x = np.zeros((length, *row), dtype)
        indices = np.r_[length - 1, np.repeat(rng.integers(0, length, count // times), times)[: count - 2], length - 1]
        x[indices] = values(dtype, (count, *row))
        want, u = x.copy(), divisors(dtype, (count, *row))
        rows, places = np.unique(indices, return_inverse=True)
        want[rows] = sequential(x[rows], places, u)
        for way in ("entry", "compiled", "blocks", "sorted, one block", "columns"):
            with by(way) as call, np.errstate(all="ignore"):
                assert_same_bits(call(x.copy(), indices, u), want)


# --- which way ----------------------------------------------------------------------------------------------------------------------------
WAYS_OF_WORK = {  # the phases of which tasks were shared out, for int16 and for float32
    "compiled": ([], []),
    "pieces": ([], []),
    "blocks": ([CHECK, OWN], [CHECK, OWN]),
    "sorted": ([CHECK, OWN], [CHECK, OWN]),
    "columns": ([CHECK, DIVIDE], [CHECK, DIVIDE]),
    "ranges": ([CHECK], [CHECK]),  # where they are none
    "plain": ([], []),
}


@pytest.mark.parametrize("way", WAYS_OF_WORK)
def test_each_way_is_taken(way, monkeypatch):
    phases, share = [], driving.share

    def noted(function, plan, tasks, workers):
        phases.append(scatter_compiled.scatter_plan.Plan.from_address(plan).phase)
        assert tasks > 1
        share(function, plan, tasks, workers)

    monkeypatch.setattr(driving, "share", noted)
    with by(way) as call:
        for dtype, want in zip(("int16", "float32"), WAYS_OF_WORK[way], strict=True):
            phases.clear()
            seen = functions_run(lambda dtype=dtype: call(np.ones((4, 40), dtype), np.arange(9) % 4, np.ones((9, 40), dtype)))
            assert phases == want
            assert ("divide" in seen) == (way != "plain")


def test_pieces_are_as_large_as_may_be(monkeypatch):
    made, work = [], scatter_compiled._Work
    monkeypatch.setattr(scatter_compiled, "_Work", lambda x, index, by: made.append(index.size) or work(x, index, by))
    for way, want in (("compiled", [10]), ("pieces", [3, 3, 3, 1])):
        made.clear()
        with by(way) as call:
            call(np.ones((4, 2)), np.arange(20)[::2] % 4, np.ones((10, 2), np.float32))
        assert made == want * 2  # they are looked at, and then divided


def test_numpy_is_given_indices_of_its_own(monkeypatch):
    """Another thread may change the caller's after they were checked, for which NumPy's loops are not made."""
    given, plainly, again = [], scatter.divide_plainly, scatter_compiled.divide
    monkeypatch.setattr(scatter, "divide_plainly", lambda x, index, by: given.append(index) or plainly(x, index, by))
    monkeypatch.setattr(scatter_compiled, "divide", lambda x, index, by: given.append(index) or again(x, index, by))
    indices = np.array([2, 0, 2])
    for way, dtype in (("plain", "<f4"), ("plain", ">f4"), ("compiled", ">f4")):
        given.clear()
        with by(way) as call:
            call(
                np.ones((3, 4_000) if way == "compiled" else 3, dtype), indices, np.ones((3, 4_000) if way == "compiled" else 3, np.float32)
            )
        assert not np.shares_memory(given[-1], indices)


# --- with and without Numba ---------------------------------------------------------------------------------------------------------------
def test_small_calls_load_no_numba():
    calls = "; ".join(f"scatter_div(np.ones((9, 9), {name!r}), [1, 2], np.ones((2, 9), {name!r}))" for name in DTYPES if name != "bfloat16")
    code = f"import sys, numpy as np; from fastops.scatter import scatter_div; {calls}; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@each_dtype
def test_large_calls_are_compiled(dtype, monkeypatch):
    monkeypatch.setattr(scatter_compiled, "kernels", {})
    shape, rng = (50, 8), np.random.default_rng(2)
    x, indices, u = values(dtype, shape), rng.integers(0, 50, 2000), divisors(dtype, (2000, 8))
    want = sequential(x, indices, u)
    with np.errstate(all="ignore"):
        assert_same_bits(scatter_div.__call__(x, indices, u), want)
    assert dtype in scatter_compiled.kernels
    assert f"scatter_div_{dtype.name}" in {made.name for made in compiler.compiled()}


def test_compiles_where_numpy_would_take_long(monkeypatch):
    monkeypatch.setattr(scatter_compiled, "kernels", {})
    monkeypatch.setattr(scatter, "_calls", {})
    for dtype, rows, size in (("f4", 9_999, 9_999), ("i4", 400, 9_999), (BFLOAT16, 400, 9_999)):
        assert not scatter._has_kernel(np.dtype(dtype), rows, size)
    for dtype, rows, size in (("f4", 10_000, 10_000), ("f8", 1, 10_000), ("i4", 600, 600), (BFLOAT16, 600, 600)):
        assert scatter._has_kernel(np.dtype(dtype), rows, size)
    assert sum(not scatter._has_kernel(np.dtype("i8"), 1, 1) for _ in range(scatter.OFTEN + 2)) == scatter.OFTEN


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
        scatter_div.__call__(x, indices, u)
    assert_same_bits(x, want)
    with np.errstate(all="ignore"):  # and no second warning
        scatter_div.__call__(x, indices, u)


def test_examples():
    example = doctest.DocTestFinder().find(scatter_div, "scatter_div", globs=vars(scatter))[0]
    outcome = doctest.DocTestRunner().run(example)
    assert outcome.attempted > 0
    assert outcome.failed == 0
