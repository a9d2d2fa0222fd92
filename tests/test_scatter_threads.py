"""`scatter_div` by several threads: the same bits at any number of them, all warnings, no trace of an error, on every threading layer."""

from __future__ import annotations

import itertools
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from conftest import DTYPES, assert_same_bits
from in_processes import FORK, LAYERS, each_layer_slowly, layer_of, run, unix
from scatter_oracle import WAYS, by, by_columns, by_ranges, by_sorting, divisors, in_blocks, refuses, sequential, shared, values

from fastops import scatter, scatter_compiled, scatter_sharing
from fastops.engine import threads
from fastops.kernels.scatter_plan import AT_ONCE
from fastops.scatter import scatter_div

COUNT, BLOCK = 4_000, 1_500  # updates: one block, or several
WORKERS = (1, 2, 3, 7)


def hot(rows, rng):
    """Two rows take nine of ten updates."""
    indices = rng.integers(0, rows, COUNT)
    few = rng.random(COUNT) < 0.9
    indices[few] = rng.choice([0, rows - 1], few.sum())
    return indices


def crowded_later(rows, rng):
    """One row takes all updates but those of the first block."""
    indices = rng.integers(0, rows, COUNT)
    indices[BLOCK:] = 3
    return indices


def in_parts(indices, rng):
    """Of ten parts, each in any order."""
    return indices[np.argsort(indices * 10 // (indices.max() + 1) + rng.random(COUNT))]


INDICES = {
    "random": lambda rows, rng: rng.integers(0, rows, COUNT),
    "all one row": lambda rows, rng: np.full(COUNT, rows // 2),
    "crowded later": crowded_later,
    "ascending": lambda rows, rng: np.sort(rng.integers(0, rows, COUNT)),
    "descending": lambda rows, rng: np.sort(rng.integers(0, rows, COUNT, np.int32))[::-1],
    "ascending by parts": lambda rows, rng: in_parts(np.sort(rng.integers(0, rows, COUNT)), rng),
    "ascending, but one": lambda rows, rng: np.r_[np.sort(rng.integers(0, rows, COUNT - 1)), rows // 2],
    "two hot rows": hot,
    "all different": lambda rows, rng: rng.permutation(COUNT) % rows,
    "strided": lambda rows, rng: rng.integers(0, rows, 2 * COUNT, np.int32)[::-2],
}
INPUTS = {  # input_x of so many rows, as a view of other memory
    "1-D": lambda dtype: values(dtype, (COUNT,)),
    "few rows": lambda dtype: values(dtype, (9,)),
    "strided, 1-D": lambda dtype: values(dtype, (3 * 700,))[::-3],
    "narrow": lambda dtype: values(dtype, (300, 4)),
    "wide": lambda dtype: values(dtype, (40, 300)),
    "strided": lambda dtype: values(dtype, (40, 600))[:, ::-2],
    "transposed": lambda dtype: values(dtype, (70, 40)).T,
    "runs": lambda dtype: values(dtype, (40, 6, 40))[:, :, 3:28],
    "runs, transposed": lambda dtype: values(dtype, (30, 50, 4)).transpose(1, 2, 0)[:, ::-1],
    "other byte order": lambda dtype: values(dtype, (50, 3)).astype(dtype.newbyteorder()),
}


def of_threads(*numbers, blocks):
    """All that so many threads may do, with blocks of so many updates."""
    return [
        *(in_blocks(n, BLOCK=block) for n in numbers for block in blocks),
        *(by_sorting(n, SORTED=-(-block // n)) for n in numbers for block in blocks),
        *(by_columns(n) for n in numbers),
        *(by_ranges(n) for n in numbers),
    ]


THREADED = [shared(1), *of_threads(*WORKERS[1:], blocks=(BLOCK, COUNT))]
each_dtype = pytest.mark.parametrize("dtype", [DTYPES[name] for name in ("float32", "int64", "bfloat16", "int8")], ids=str)


@pytest.mark.parametrize("kind", INPUTS)
@each_dtype
def test_same_bits_at_any_number(dtype, kind):
    x = INPUTS[kind](dtype)
    for make in INDICES.values():
        indices = make(len(x), np.random.default_rng(5))
        u = divisors(dtype, (COUNT, *x.shape[1:]))
        if x[0].size > 50:  # enough of them
            indices, u = indices[::20], u[::20]
        want = sequential(x, indices, u)
        for way in THREADED:
            copy = np.empty_like(x)
            copy[...] = x
            with by(way) as call, np.errstate(all="ignore"):
                call(copy, indices, u)
            assert_same_bits(copy.astype(want.dtype), want)


@pytest.mark.parametrize("way", [in_blocks(2), by_sorting(2)], ids=["blocks", "sorted"])
def test_one_thread_does_what_is_crowded(way, monkeypatch):
    """So that the case above is what it says: one part has more updates than a list has room for, and no list is used."""
    left, alone = [], scatter_compiled._Work._alone
    monkeypatch.setattr(scatter_compiled._Work, "_alone", lambda work, phase: left.append(work._plan.first) or alone(work, phase))
    later = np.r_[np.arange(BLOCK), np.full(COUNT - BLOCK, 3)]
    with by({**way, (scatter_sharing, "BLOCK"): BLOCK}) as call:
        for indices, want in ((np.arange(COUNT), []), (np.full(COUNT, 3), [0]), (later, [BLOCK])):
            left.clear()
            call(np.ones((COUNT, 3)), indices, np.ones((COUNT, 3)))
            assert left == want


@pytest.mark.parametrize("count", [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE, 4 * AT_ONCE + 3])
def test_lists_of_any_length(count):
    """Up to, and beyond, what is noted between two looks at how full they are."""
    for rows in (1, 2, 300):
        indices = np.arange(count) * 7 % rows
        for dtype in (DTYPES["float32"], DTYPES["int16"]):
            x, u = values(dtype, (rows,)), divisors(dtype, (count,))
            want = sequential(x, indices, u)
            for way in of_threads(*WORKERS[1:], blocks=(1, AT_ONCE, count)):
                with by(way) as call, np.errstate(all="ignore"):
                    assert_same_bits(call(x.copy(), indices, u), want)


# --- warnings and errors ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(COUNT,), (50, 4), (50, 300)], ids=["1-D", "narrow", "wide"])
@pytest.mark.parametrize("dtype", [DTYPES[name] for name in ("float16", "bfloat16", "float32", "float64")], ids=str)
def test_warnings_come_from_all_threads(dtype, shape):
    """Each kind from another row and column, of which other threads are the owners."""
    x = np.ones(shape, dtype)
    indices = np.arange(COUNT) % len(x) if len(shape) == 1 else np.arange(150) % len(x)
    u = np.ones((indices.size, *shape[1:]), dtype)
    limits = ml_dtypes.finfo(dtype)
    kinds = {"divide by zero": (1, 0), "overflow": (limits.max, 0.5), "underflow": (limits.smallest_subnormal, 3), "invalid value": (0, 0)}
    for k, (dividend, divisor) in enumerate(kinds.values()):
        cell = tuple(length * k // 4 for length in shape)
        x[cell], u[cell] = dividend, divisor
    for way in THREADED:
        with by(way) as call, np.errstate(all="warn"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(x.copy(), indices, u)
        assert [str(entry.message) for entry in caught] == [f"{kind} encountered in scatter_div" for kind in kinds]


@pytest.mark.parametrize("shape", [(60,), (50, 4), (40, 300)], ids=["1-D", "narrow", "wide"])
def test_what_any_thread_finds_is_found_before_the_first_write(shape):
    ways = of_threads(2, 7, blocks=(150, 400))
    for dtype in (DTYPES["int32"], DTYPES["float32"]):
        x = np.full((2 * shape[0], *shape[1:]), 100, dtype)[::2]
        indices, u = np.arange(400) * 3 % len(x), np.full((400, *shape[1:]), 3, dtype)
        for k in (0, 1, 57, 199, 200, 398, 399):
            wrong, zero = indices.copy(), u.copy()
            wrong[k], zero.reshape(400, -1)[k, -1] = len(x), 0
            refuses(IndexError, rf"indices\[{k}\] is {len(x)}, ", x, wrong, u, ways)
            refuses(IndexError, rf"indices\[{k}\] is {len(x)}, ", x, wrong, np.roll(zero, k, 0), ways)
            if dtype.kind == "i":
                refuses(ZeroDivisionError, rf"updates\[{k}", x, indices, zero, ways)


@pytest.mark.parametrize("crowded", [True, False])
def test_a_wrong_index_beside_a_crowded_list(crowded):
    """A list that is full must not hide it."""
    x = np.ones(50)
    for k in (0, COUNT // 2, COUNT - 1):
        indices = np.full(COUNT, 3) if crowded else np.arange(COUNT) % 50
        indices[k] = -1
        refuses(IndexError, rf"indices\[{k}\] is -1", x, indices, np.full(COUNT, 2.0), of_threads(2, 7, blocks=(COUNT,)))


# --- several threads of Python ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", WAYS)
def test_from_several_threads(way):
    jobs = [(values(dtype, (30, 8)), np.random.default_rng(4).integers(0, 30, 60), divisors(dtype, (60, 8))) for dtype in DTYPES.values()]
    want = [sequential(*job) for job in jobs]
    line = threading.Barrier(4)

    def work(_):
        line.wait()
        with np.errstate(all="ignore"):
            return [call(x.copy(), indices, updates) for x, indices, updates in jobs * 3]

    with by(way) as call, ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    for got in results:
        for result, expected in zip(got, want * 3, strict=True):
            assert_same_bits(result, expected)


# --- threading layers and forks -----------------------------------------------------------------------------------------------------------
CALLS = """
import os, sys
import numpy as np
import fastops
from fastops import scatter, scatter_compiled, scatter_sharing
from fastops.engine import driving, threads
rng = np.random.default_rng(0)
jobs = []
shapes = ("f4", (50_000,), 200_000), ("i4", (5_000, 4), 60_000), ("f8", (200, 500), 1_000), ("f4", (4, 9_000), 90), ("f4", (300,), 100_000)
for dtype, shape, count in shapes:
    x = rng.integers(1, 100, shape).astype(dtype)
    indices = rng.integers(0, shape[0], count) if shape != (300,) else np.full(count, 7)
    jobs.append((x, indices, rng.integers(1, 3, (count, *shape[1:])).astype(dtype)))
jobs.append((jobs[0][0], np.sort(jobs[0][1]), jobs[0][2]))
shared, share = [], driving.share
driving.share = lambda *args: shared.append(1) or share(*args)
limit, threads.WORTHWHILE = threads.limit, 1e-9  # whatever the layer costs here
scatter_sharing.FAR = scatter_sharing.FAR_ALONE = scatter_sharing.FAR_FOR_MANY = 0
scatter_sharing.LEAST_UPDATES = 1
def results(workers):
    threads.limit = lambda: workers
    return [fastops.scatter_div(x.copy(), indices, u).tobytes() for x, indices, u in jobs]
def refused():
    x, indices, u = jobs[0]
    copy, wrong = x.copy(), indices.copy()
    wrong[150_000] = -1
    try:
        fastops.scatter_div(copy, wrong, u)
    except IndexError:
        return np.array_equal(copy, x)
want = results(1)
alone = len(shared)
def right():
    return results(2) == want and results(5) == want and refused()
"""


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer != "default"])
def test_layers(layer):
    code = CALLS + "import numba; print(alone, right(), len(shared) > 0, numba.threading_layer())"
    assert run(code, "-W", "error", **layer_of(layer)) == ["0", "True", "True", layer]


@unix
@each_layer_slowly
def test_forks(layer):
    code = CALLS + FORK + "print(in_child(right), right(), in_child(right), in_child(lambda: in_child(right) == 0), right())"
    assert run(code, **layer_of(layer)) == ["0", "True", "0", "0", "True"]


@unix
def test_fork_while_another_thread_divides():
    code = (
        CALLS
        + FORK
        + """
import threading
stop, wrong = threading.Event(), []
assert right()
def work():
    while not stop.is_set():
        if results(2) != want:
            wrong.append(1)
thread = threading.Thread(target=work)
thread.start()
codes = [in_child(lambda: results(2) == want) for _ in range(6)]
stop.set()
thread.join()
print(*codes, len(wrong), right())
"""
    )
    assert run(code)[-8:] == ["0"] * 7 + ["True"]  # before it TBB may say that it could not pause


# --- which way --------------------------------------------------------------------------------------------------------------------------
SHARES = {  # of input_x and updates, by two threads and by eight: how they share the work, in no order of the indices
    (10_000, 128): (2_000, "blocks", "blocks"),
    (10, 20_000): (50, "columns", "columns"),
    (4, 1_000_000): (1, "columns", "columns"),
    (400_000, 3): (5_000, "sorted", "sorted"),
    (5_000_000,): (5_000, "sorted", "sorted"),
    (500_000,): (5_000, "alone", "sorted"),
    (1_000,): (5_000, "alone", "alone"),
    (50, 128): (500, "alone", "alone"),
}
ORDERS = {  # of 20 000 updates: how two threads share them if input_x is near, and if it is far
    "random": (lambda indices, rng: rng.permutation(indices), "alone", "sorted"),
    "ascending": (lambda indices, rng: indices, "ranges", "ranges"),
    "descending": (lambda indices, rng: indices[::-1], "ranges", "ranges"),
    "each row three times": (lambda indices, rng: np.repeat(indices, 3)[: len(indices)], "ranges", "ranges"),
    "ascending by parts": (lambda indices, rng: rng.permuted(indices.reshape(8, -1), axis=1).reshape(-1), "ranges", "ranges"),
    "ascending, but for one": (lambda indices, rng: np.r_[indices[1:], indices[0]], "alone", "alone"),
    "up and down": (lambda indices, rng: np.r_[indices[::2], indices[1::2][::-1]], "alone", "alone"),
    "a row that half of them name": (lambda indices, rng: np.sort(np.where(rng.random(20_000) < 0.5, indices, 9_000)), "ranges", "ranges"),
    "few rows": (lambda indices, rng: np.sort(rng.integers(0, 5, 20_000)), "ranges", "ranges"),
    "all one row": (lambda indices, rng: np.full(20_000, 7), "alone", "alone"),
}


@pytest.fixture
def taken(monkeypatch):
    """The ways that calls take, one after another."""
    work, ways = scatter_compiled._Work, []
    blocks, columns, alone, ranges = work._by_blocks, work._by_columns, work._alone, work._by_ranges
    monkeypatch.setattr(work, "_by_blocks", lambda *a, sort: ways.append("sorted" if sort else "blocks") or blocks(*a, sort=sort))
    monkeypatch.setattr(work, "_by_columns", lambda *a: ways.append("columns") or columns(*a))
    monkeypatch.setattr(work, "_alone", lambda *a: ways.append("alone") or alone(*a))
    monkeypatch.setattr(work, "_by_ranges", lambda *a: ranges(*a) and (ways.append("ranges") or True))
    return ways


@pytest.mark.parametrize("shape", SHARES, ids=str)
def test_who_shares_what(shape, taken):
    count, *wanted = SHARES[shape]
    x, indices = np.ones(shape, np.float32), np.random.default_rng(8).integers(0, shape[0], count)
    for workers, want in zip((2, 8), wanted, strict=True):
        taken.clear()
        with by(shared(workers, LEAST_UPDATES=16)) as call:
            call(x, indices, np.full((count, *shape[1:]), 2, np.float32))
        assert taken == [want]
    assert np.array_equal(x.reshape(shape[0], -1)[:, -1], 0.25 ** np.bincount(indices, minlength=shape[0]).astype(np.float32))


@pytest.mark.parametrize("order", ORDERS)
def test_order_decides(order, taken):
    arrange, *wanted = ORDERS[order]
    for rows, want in zip((30_000, 5_000_000), wanted, strict=True):
        rng = np.random.default_rng(9)
        indices = arrange(np.sort(rng.choice(rows, 20_000, replace=False)), rng)
        x, u = np.ones(rows, np.float32), np.arange(1, 20_001, dtype=np.float32)
        taken.clear()
        with by(shared(2)) as call, np.errstate(all="ignore"):
            assert_same_bits(call(x.copy(), indices, u), sequential(x, indices, u))
        assert taken == [want]


NONE = (sys.maxsize, -sys.maxsize)  # what the kernel notes of a task without updates
EXTENTS = {
    ((0, 3), (4, 4), (6, 9)): True,
    ((6, 9), (4, 4), (0, 3)): True,
    ((0, 3), NONE, (4, 9)): True,
    ((0, 3), (4, 9), NONE, NONE): True,
    ((4, 9), NONE, (0, 3)): True,
    ((0, 4), (4, 9)): False,
    ((4, 9), (0, 4)): False,
    ((0, 5), NONE, (3, 9)): False,
    ((0, 3), (6, 9), (4, 5)): False,
}


def test_extents_of_tasks():
    for extents, want in EXTENTS.items():
        assert scatter_sharing.are_apart(np.array(extents)) is want


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_tasks_begin_with_another_row(dtype):
    """Whatever runs of one row the updates have, and wherever tasks begin among them: these name rows of their own, if they ascend."""
    for count in range(2, 12):
        for ends in itertools.product((0, 1), repeat=count - 1):
            indices = np.cumsum([0, *ends], dtype=dtype)
            if count > 7 and 2 < indices[-1] < count - 3:
                continue  # most of them
            for order in (indices, indices[::-1]):
                x, u = np.full(count, 360.0), np.arange(1.0, count + 1) / 7
                with by(by_ranges(2)) as call:
                    assert_same_bits(call(x.copy(), order, u), sequential(x, order, u))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_entry_leaves_to_threads_what_ascends(dtype, monkeypatch):
    """And divides at once, however much there is, where one thread is as fast, or there is only one."""
    seen, n = [], 20_000
    with by("entry") as call:
        monkeypatch.setattr(scatter_div._gate, "other", lambda *args: seen.append(args) or scatter._scatter_div(*args))
        monkeypatch.setattr(scatter_div._gate.served[np.dtype(np.float32).num], "large", n // 2)
        rising = np.arange(n, dtype=dtype) // 2
        few = rising[: n - 1]
        cases = [
            (rising, 2, True),
            (rising[::-1], 2, True),
            (np.repeat(rising, 2)[::2], 2, True),
            (rising, 1, False),
            (few, 2, False),
            (np.random.default_rng(3).permutation(rising), 2, False),
            (np.r_[rising[0], rising[:0:-1]], 2, False),
            (np.r_[rising[n // 8 :], rising[: n // 8]], 2, False),
            (np.zeros(n, dtype), 2, False),
            (rising // n, 2, False),
            (rising // (n // 8), 2, True),
        ]
        for indices, most, want in cases:
            monkeypatch.setattr(threads.team, "most", most)
            seen.clear()
            x, u = np.ones(n, np.float32), np.random.default_rng(4).uniform(0.5, 2, indices.size).astype(np.float32)
            expected = x.copy()
            np.divide.at(expected, indices, u)
            assert_same_bits(call(x, indices, u), expected)
            assert bool(seen) == want
