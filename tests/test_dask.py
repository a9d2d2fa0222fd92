"""`fastops.dask.scatter_div`: the bits and the errors of the one-machine function for any chunks, on every scheduler, in little memory."""

import doctest
import subprocess
import sys
import tracemalloc
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES, assert_same_bits, each_dtype, outcome
from dask.callbacks import Callback
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st
from scatter_oracle import divisors, values
from test_scatter_div import SHAPES
from test_scatter_warnings import DIVIDE, INVALID

import fastops
import fastops.dask
from fastops import scatter


def chunked(array, size):
    return da.from_array(np.asarray(array), chunks=size)


def agree(x, indices, updates):
    """Compute, and compare with what the one-machine function makes of the same data."""
    whole = [array.compute(scheduler="sync") if isinstance(array, da.Array) else array for array in (x, indices, updates)]
    result = fastops.dask.scatter_div(x, indices, updates)
    assert isinstance(result, da.Array)
    assert (result.chunks, result.dtype) == (x.chunks, x.dtype)
    with np.errstate(all="ignore"):
        assert_same_bits(result.compute(scheduler="sync"), fastops.scatter_div(whole[0].copy(), *whole[1:]))
    assert_same_bits(x.compute(scheduler="sync"), whole[0])


# --- values -------------------------------------------------------------------------------------------------------------------------------
@each_dtype
def test_dtypes(dtype):
    rng, shape = np.random.default_rng(0), (3, 4, 9)
    x, u = values(dtype, (23, 6)), divisors(dtype, (*shape, 6))
    for indices in (rng.integers(0, 23, shape), np.full(shape, 19)):  # many of a row, and all
        agree(chunked(x, (7, 4)), chunked(indices, (2, 3, 5)), chunked(u, (3, 2, 4, 5)))
        agree(chunked(x, (7, 4)), indices.astype(np.int32), u)
    agree(chunked(x, (7, 4)), np.sort(rng.integers(0, 23, 108)).reshape(shape), chunked(u, (3, 2, 4, 5)))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_shapes(shape):
    shape, index_shape = shape
    x, u = values(DTYPES["float32"], shape), divisors(DTYPES["float32"], index_shape + shape[1:])
    indices = np.random.default_rng(0).integers(0, max(shape[0], 1), index_shape)
    for i in (indices, chunked(indices, 3), chunked(indices, 100)):
        for by in (u, chunked(u, 7), chunked(u, 100)):
            agree(chunked(x, 9), i, by)
            agree(chunked(x, (2, *x.shape[1:])), i, by)


def test_chunks_without_columns():
    x = da.from_array(np.ones((3, 0)), chunks=((1, 0, 2), (0, 0)))
    for updates in (np.ones(0), np.ones((2, 0))):
        indices = np.ones(updates.shape[:-1], int)
        agree(x, indices, chunked(updates, 1))
        agree(x, chunked(indices, 1), updates)


@st.composite
def chunkings(draw, shape):
    """Chunks of any sizes, of none too."""
    chunks = []
    for length in shape:
        cuts = sorted(draw(st.lists(st.integers(0, length), max_size=4)))
        chunks.append(tuple(np.diff([0, *cuts, length]).tolist()))
    return tuple(chunks)


@st.composite
def calls(draw):
    dtype, seed = DTYPES[draw(st.sampled_from(list(DTYPES)))], draw(st.integers(0, 1000))
    index_shape = tuple(draw(st.lists(st.integers(0, 7), max_size=3)))
    shape = (draw(st.integers(1, 9)), *draw(st.lists(st.integers(0, 6), max_size=2)))
    indices = np.random.default_rng(seed).integers(0, draw(st.integers(1, shape[0])), index_shape)
    arrays = [values(dtype, shape, seed), indices, divisors(dtype, index_shape + shape[1:], seed)]
    lazy = (True, draw(st.booleans()), draw(st.booleans()))
    return [da.from_array(a, chunks=draw(chunkings(a.shape))) if known else a for a, known in zip(arrays, lazy, strict=True)]


@given(calls())
@settings(max_examples=80, deadline=None)
def test_any_chunks(call):
    agree(*call)


def test_updates_convert_and_python_numbers_are_weak():
    x = chunked(np.arange(1, 7, dtype=np.float32), 4)
    for updates in (np.array([2, 3], np.int16), np.array([True, True]), np.array([2, 3], BFLOAT16), np.array([2, 3], ">f4"), [2.0, 3]):
        agree(x, [1, 5], updates)
        agree(x, [1, 5], updates if isinstance(updates, list) else chunked(updates, 1))
    agree(chunked(np.arange(6, dtype=">i4"), 4), np.array([1, 5], ">i8"), [2, 3])
    agree(chunked(np.arange(6, dtype=">i4"), 4), chunked(np.array([1, 5], ">i8"), 1), chunked(np.array([2, 3], "i2"), 1))


# --- schedulers ---------------------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def cluster():
    workers = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with workers, Client(workers, set_as_default=False) as client:
        yield client


@pytest.mark.parametrize("scheduler", ["threads", "processes", "distributed"])
def test_schedulers(scheduler, request):
    rng = np.random.default_rng(1)
    x, indices, u = rng.normal(size=(50, 6)), rng.integers(0, 50, (30, 20)), rng.uniform(0.5, 2, (30, 20, 6))
    result = fastops.dask.scatter_div(chunked(x, (9, 4)), chunked(indices, (7, 11)), chunked(u, (8, 20, 3)))
    where = request.getfixturevalue("cluster") if scheduler == "distributed" else scheduler
    assert_same_bits(result.compute(scheduler=where), fastops.scatter_div(x.copy(), indices, u))


def test_a_cluster_names_the_place_in_the_whole(cluster):
    x, indices = np.ones((50, 6)), np.zeros((30, 20), int)
    indices[17, 19] = 50
    lazy = fastops.dask.scatter_div(chunked(x, (9, 4)), chunked(indices, (7, 11)), np.ones((30, 20, 6)))
    with pytest.raises(IndexError, match=r"^indices\[17, 19\] is 50, outside of the valid range \[0, 50\) of rows of input_x$"):
        lazy.compute(scheduler=cluster)


# --- errors -------------------------------------------------------------------------------------------------------------------------------
ROW, SQUARE = np.array([8.0, 6.0, 7.0], np.float32), np.arange(1, 7, dtype=np.int16).reshape(3, 2)


def with_one(value, shape, place, dtype=np.int64):
    array = np.ones(shape, dtype)
    array[place] = value
    return array


AT_ONCE = {  # input_x, indices, updates
    "bool": (np.array([True]), np.array([0]), np.array([True])),
    "object": (np.ones(2, object), np.array([0]), np.array([1])),
    "int16 indices": (ROW, np.array([0], "i2"), ROW[:1]),
    "uint64 indices": (ROW, np.array([0], "u8"), ROW[:1]),
    "float indices": (ROW, np.array([0.0]), ROW[:1]),
    "float64 updates": (ROW, np.array([0]), np.array([2.0])),
    "complex updates": (ROW, np.array([0]), np.array([2j])),
    "too few updates": (SQUARE, np.array([0, 1]), SQUARE[:1]),
    "no broadcasting": (SQUARE, np.array([0, 1]), np.array(2, "i2")),
    "one column": (SQUARE, np.array([0, 1]), SQUARE[:2, :1]),
    "dtype before shape": (SQUARE, np.array([0, 1]), np.ones(3)),
}
WHEN_KNOWN = {
    "row 3": (ROW, np.array([0, 3]), ROW[:2]),
    "row -1": (ROW, np.array([[0, 1], [2, -1]], "i4"), np.ones((2, 2), "f4")),
    "2**32 + 1": (ROW, np.array([0, 2**32 + 1]), ROW[:2]),
    "-2**63": (ROW, np.array([-(2**63)]), ROW[:1]),
    "0-d": (ROW, np.array(5), np.float32(2)),
    "no rows": (ROW[:0], np.array([0]), ROW[:1]),
    "no columns": (np.ones((3, 0)), np.array([1, 5]), np.ones((2, 0))),
    "row 9 in three axes": (ROW, with_one(9, (4, 5, 6), (2, 3, 4)), np.ones((4, 5, 6), "f4")),
    "index before zero": (SQUARE, np.array([0, 9]), np.array([[1, 1], [0, 1]], "i2")),
    "zero": (SQUARE, np.array([0, 2]), np.array([[1, 1], [1, 0]], "i2")),
    "zero, 0-d": (np.ones(3, "i8"), np.array(0), np.array(0)),
    "False": (np.ones(3, "u1"), np.array([0]), np.array([False])),
    "zero in four axes": (np.ones((3, 7), "i8"), np.ones((4, 5, 6), int), with_one(0, (4, 5, 6, 7), (3, 4, 0, 5))),
}


def error_of(x, indices, updates):
    _, _, error = outcome(fastops.scatter_div, x.copy(), indices, updates)
    assert error is not None
    return error


@pytest.mark.parametrize("case", [*AT_ONCE.values(), *WHEN_KNOWN.values()], ids=[*AT_ONCE, *WHEN_KNOWN])
def test_errors_of_what_is_known_are_raised_at_once(case):
    x, indices, updates = case
    assert outcome(fastops.dask.scatter_div, chunked(x, 2), indices, updates).error == error_of(*case)


@pytest.mark.parametrize("case", AT_ONCE.values(), ids=AT_ONCE)
def test_errors_of_types_and_shapes_are_raised_at_once(case):
    x, indices, updates = case
    assert outcome(fastops.dask.scatter_div, chunked(x, 2), chunked(indices, 1), chunked(updates, 1)).error == error_of(*case)


@pytest.mark.parametrize("case", WHEN_KNOWN.values(), ids=WHEN_KNOWN)
def test_errors_of_values_are_raised_by_compute(case):
    x, indices, updates = case
    for size in (1, 2, 3, 10):
        lazy = fastops.dask.scatter_div(chunked(x, 2), chunked(indices, size), chunked(updates, size + 1))
        assert outcome(lazy.compute, scheduler="sync").error == error_of(*case)


def test_what_python_lists_hold_is_known():
    for indices, updates in (([0, 2**70], [2, 2]), ([0, -1], [2, 2]), ([0, 1], [2, 0]), ([0, 1], [2.5, 1]), ([True], [1]), ([0], [40_000])):
        x = SQUARE[:, 0].copy()
        assert outcome(fastops.dask.scatter_div, chunked(x, 2), indices, updates).error == error_of(x, indices, updates)


def test_an_index_outside_of_all_chunks_is_seen_from_each():
    lazy = fastops.dask.scatter_div(chunked(ROW, 1), chunked([0, 1, 3], 1), chunked(ROW, 1))
    for chunk in range(3):
        with pytest.raises(IndexError, match=r"^indices\[2\] is 3, .*\[0, 3\)"):
            lazy.blocks[chunk].compute(scheduler="sync")


def unknown(array):
    return array[array != 0]


UNFIT = {
    "no Dask array": (TypeError, r"^input_x must be a dask.array.Array, got ndarray: array\(\[8", ROW, [0], ROW[:1]),
    "0-d": (ValueError, r"rank 1 or more, got a 0-d array: dask.array<", da.ones(()), 0, 1.0),
    "masked": (TypeError, "input_x .*MaskedArray", da.ma.masked_equal(chunked(ROW, 1), 8), [0], ROW[:1]),
    "masked indices": (TypeError, "indices .*int64", chunked(ROW, 1), da.ma.masked_equal(chunked([0], 1), 1), ROW[:1]),
    "masked updates": (TypeError, "updates .*masked", chunked(ROW, 1), [0], da.ma.masked_equal(chunked(ROW[:1], 1), 1)),
    "unknown rows": (ValueError, r"^input_x has chunks of unknown size.*compute_chunk_sizes.*\(nan,\)", unknown(chunked(ROW, 1)), [0], [1]),
    "unknown indices": (ValueError, "^indices has chunks of unknown size", chunked(ROW, 1), unknown(chunked([1, 2, 1], 1)), ROW),
    "unknown updates": (ValueError, "^updates has chunks of unknown size", chunked(ROW, 1), [0, 1, 2], unknown(chunked(ROW, 1))),
}


@pytest.mark.parametrize("case", UNFIT.values(), ids=UNFIT)
def test_refuses(case):
    error, message, *arguments = case
    with pytest.raises(error, match=message):
        fastops.dask.scatter_div(*arguments)


def test_chunks_of_another_dtype_than_said():
    floats = chunked([0, 1], 1).map_blocks(np.float64, dtype=np.int64, meta=np.empty(0, np.int64))
    lazy = fastops.dask.scatter_div(chunked(ROW, 1), floats, ROW[:2])
    with pytest.raises(TypeError, match="indices must be an int32 or int64 array"):
        lazy.compute(scheduler="sync")


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_warnings(scheduler):
    x, ones = chunked(np.array([1, 0, 6], np.float16), 2), np.ones(1, np.float16)
    lazy = fastops.dask.scatter_div(x, [0, 1, 2], chunked(np.array([0, 0, 2], np.float16), 1))
    with pytest.warns(RuntimeWarning) as caught:
        assert_same_bits(lazy.compute(scheduler=scheduler), np.array([np.inf, np.nan, 3], np.float16))
    assert {str(entry.message) for entry in caught} == {DIVIDE, INVALID}
    for updates in (np.array([2**60]), chunked(np.array([2**60]), 1)):
        lazy = fastops.dask.scatter_div(chunked(ones, 1), [0], updates)
        with pytest.warns(RuntimeWarning, match="^overflow encountered in cast$"):
            assert lazy.compute(scheduler=scheduler)[0] == 0


# --- laziness and memory ------------------------------------------------------------------------------------------------------------------
def blocks(shape, size, make, dtype, seen=None):
    """A Dask array of `shape`, in blocks of `size` along the first axis that are made when they are asked for."""

    def block(place):
        if seen is not None:
            seen.append(place)
        return make(place, (min(size, shape[0] - place * size), *shape[1:])).astype(dtype, copy=False)

    made = [dask.delayed(block, pure=False)(place) for place in range(-(-shape[0] // size))]
    sizes = [min(size, shape[0] - place * size) for place in range(len(made))]
    return da.concatenate([da.from_delayed(part, (rows, *shape[1:]), dtype) for part, rows in zip(made, sizes, strict=True)])


def ones(place, shape):
    return np.ones(shape, np.float32)


def random_rows(rows):
    return lambda place, shape: np.random.default_rng(place).integers(0, rows, shape)


def test_computes_nothing_early():
    def fail(place, shape):
        raise AssertionError("computed")

    x, indices, updates = blocks((9, 2), 3, fail, "f4"), blocks((8,), 2, fail, "i8"), blocks((8, 2), 4, fail, "f4")
    lazy = fastops.dask.scatter_div(x, indices, updates)
    with pytest.raises(AssertionError, match="computed"):
        lazy.compute(scheduler="sync")


def test_chunks_meet_only_blocks_that_have_updates_for_them():
    x_seen, seen = [], []
    x, updates = blocks((60, 2), 10, ones, "f4", x_seen), blocks((120, 2), 20, ones, "f4", seen)
    lazy = fastops.dask.scatter_div(x, np.repeat(np.arange(60), 2), updates)
    lazy.blocks[3].compute(scheduler="sync")
    assert (x_seen, seen) == ([3], [3])


def arrays_in(result):
    """What a task gave."""
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, (tuple, list, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            yield from arrays_in(part)


def watched(lazy, watch):
    """Compute, task by task, and show the name and the arrays of each."""
    with Callback(posttask=lambda key, result, *_: watch(key[0], list(arrays_in(result)))):
        return lazy.compute(scheduler="sync", optimize_graph=False)


@pytest.mark.parametrize("rows", [400, 40])
def test_no_task_writes_into_what_another_made(rows):
    def freeze(_, arrays):
        for array in arrays:
            array.flags.writeable = False

    x, updates = blocks((rows, 4), 10, ones, "f4"), blocks((200, 4), 7, lambda *block: 3 * ones(*block), "f4")
    got = watched(fastops.dask.scatter_div(x, blocks((200,), 7, random_rows(rows), "i8"), updates), freeze)
    indices = np.concatenate([random_rows(rows)(place, min(7, 200 - place * 7)) for place in range(29)])
    assert_same_bits(got, fastops.scatter_div(np.ones((rows, 4), "f4"), indices, np.full((200, 4), 3, "f4")))


def test_a_chunk_is_copied_once_for_as_many_updates_as_it_has_rows():
    states = []
    lazy = fastops.dask.scatter_div(blocks((100, 4), 100, ones, "f4"), np.arange(1000) % 100, blocks((1000, 4), 10, ones, "f4"))
    watched(lazy, lambda name, arrays: states.extend(arrays[:1] if name.startswith("scatter-collect") else ()))
    assert len(states) == 100
    assert len({state.ctypes.data for state in states}) == 1000 // 100 + 1


@pytest.mark.parametrize("chunks", [(10, 6, 4), (20, 30, 1), (1, 30, 8)], ids=str)
def test_rechunked_blocks_are_no_larger(chunks):
    largest = []
    x, updates = chunked(np.ones((50, 16)), (5, 16)), da.ones((20, 30, 16), chunks=chunks)
    with dask.config.set({"array.chunk-size": 1}):  # up to which Dask's own rechunking makes larger ones between
        lazy = fastops.dask.scatter_div(x, da.zeros((20, 30), chunks=(20, 1), dtype=int), updates)
    watched(lazy, lambda _, arrays: largest.extend(array.nbytes for array in arrays if array.shape != x.shape))
    assert max(largest) <= np.prod(chunks) * 8


def test_the_source_is_not_changed_nor_followed():
    x, indices, updates = np.full(4, 6.0), np.array([1, 3]), np.array([2.0, 3.0])
    lazy = fastops.dask.scatter_div(da.from_array(x, chunks=2), indices, updates)
    indices[:], updates[:] = 99, 0
    kept = da.from_array(x, chunks=2).persist(scheduler="sync")
    assert fastops.dask.scatter_div(kept, [1, 3], [2.0, 3.0]).compute(scheduler="sync").tolist() == [6, 3, 6, 2]
    assert lazy.compute(scheduler="sync").tolist() == [6, 3, 6, 2]
    assert kept.compute(scheduler="sync").tolist() == x.tolist() == [6, 6, 6, 6]


class Nowhere:
    """Where results are stored block by block."""

    def __setitem__(self, place, block):
        pass


BLOCK = 2**12  # rows of 128 float32: 2 MiB
MANY = 96 * BLOCK
MEMORY = {  # rows, chunks, and indices
    "many updates": (BLOCK, BLOCK // 4, MANY, random_rows(BLOCK)),
    "many updates of one row": (BLOCK, BLOCK // 4, MANY, lambda place, shape: np.full(shape, BLOCK // 2)),
    "many rows": (MANY, BLOCK // 2, BLOCK, random_rows(MANY)),
}


@pytest.mark.parametrize("case", MEMORY.values(), ids=MEMORY)
def test_memory_is_that_of_a_few_chunks(case):
    rows, chunk, size, indices = case
    x, updates = blocks((rows, 128), chunk, ones, "f4"), blocks((size, 128), BLOCK, lambda *block: 2 * ones(*block), "f4")
    lazy = fastops.dask.scatter_div(x, blocks((size,), BLOCK, indices, "i8"), updates)
    scatter.make_kernel(np.dtype("f4"))  # so that this is not measured
    tracemalloc.start()
    try:
        da.store(lazy, Nowhere(), lock=False, scheduler="sync")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= max(x.nbytes, updates.nbytes) / 10


# --- names, import, examples --------------------------------------------------------------------------------------------------------------
def test_the_same_call_has_the_same_name():
    def named(rows=ROW, indices=(0, 1), updates=ROW[1:], lazy=chunked):
        return fastops.dask.scatter_div(chunked(rows, 1), lazy(indices, 1), lazy(updates, 1)).name

    assert named() == named()
    others = {named(2 * ROW), named(indices=(1, 0)), named(updates=ROW[:2]), named(lazy=lambda array, _: np.asarray(array))}
    assert len(others - {named()}) == 4


def test_without_dask():
    code = """
import sys
sys.modules["dask"] = None
import fastops
try:
    import fastops.dask
except ImportError as error:
    assert str(error) == "fastops.dask needs the package dask: pip install 'fastops-numba[dask]'", error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_larger_than_memory():
    """The example, in small. It ends with "OK" if all that it compares is right, and on Linux it has no memory for its data."""
    script = Path(__file__).parents[1] / "examples" / "dask_larger_than_memory.py"
    command = [sys.executable, "-W", "error", str(script), "--megabytes", "120"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("OK\n"), done.stdout + done.stderr
    assert ("of twice the limit: MemoryError" in done.stdout) == (sys.platform == "linux")


def test_examples():
    result = doctest.testmod(fastops.dask)
    assert result.attempted > 0
    assert result.failed == 0
