"""`scatter_div` against NumPy and against other libraries' operators, for what the README's table of it shows.

    pip install -e '.[bench,scatter-peers]'
    pytest bench/scatter_peers.py --benchmark-json=results/scatter.json                              TensorFlow and MindSpore on one thread
    pytest bench/scatter_peers.py --all-threads --benchmark-json=results/scatter_all_threads.json    on all threads
    python bench/table.py results/scatter.json --write README.md

`pytest bench` leaves it out, for these libraries are large, and need not be installed: what is not, and what a library lacks, is not among
the members. NumPy has two ways: `at` of its ufuncs, and a loop over the rows. `sum` reads the updates once: what memory allows. TensorFlow
runs its deterministic operators.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from conftest import SCATTER_PEERS

import fastops
from fastops.engine import threads

DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in ("float32", "float64", "int32", "int64", "float16", "bfloat16")}
TURNS, SECONDS = 3, 0.2

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """Updates of random rows of `table`; but "one row" names a single one all the time, and "sorted" has them in order."""

    table: tuple[int, ...]
    updates: int
    rows: str = "random"
    dtype: str = "float32"

    def __str__(self) -> str:
        return f"{'x'.join(map(str, (self.updates, *self.table[1:])))} {self.dtype} into {self.table[0]}, {self.rows}"


CASES = [
    Case((1_000,), 1),
    Case((1_000,), 1_000),
    Case((1_000,), 1_000_000),
    *(Case((1_000_000,), 1_000_000, dtype=dtype) for dtype in DTYPES),
    Case((100_000,), 1_000_000, "sorted"),
    Case((1_000_000,), 1_000_000, "one row"),
    Case((20_000_000,), 1_000_000),
    Case((100_000, 8), 1_000_000),
    *(Case((10_000, 128), 100_000, dtype=dtype) for dtype in DTYPES),
    Case((10_000, 128), 100_000, "one row"),
    Case((500, 8_192), 500),
]


@lru_cache(maxsize=1)
def operands(case: Case) -> tuple[Array, Array, Array]:
    """Integers are not negative, so that NumPy's floor is right; floats stay near 1 however often they are divided."""
    random, dtype = np.random.default_rng(7), DTYPES[case.dtype]
    rows = np.zeros(case.updates, np.int64) if case.rows == "one row" else random.integers(0, case.table[0], case.updates)
    shape = case.updates, *case.table[1:]
    if dtype.kind in "iu":
        numbers = random.integers(0, 1 << 20, case.table).astype(dtype), random.integers(1, 3, shape).astype(dtype)
    else:
        numbers = random.uniform(1, 2, case.table).astype(dtype), random.normal(1, 1e-3, shape).astype(dtype)
    return numbers[0], np.sort(rows) if case.rows == "sorted" else rows, numbers[1]


class Prepared(NamedTuple):
    """A call, what makes its operands anew, and what makes a NumPy array of the first of them."""

    call: Callable[..., Any]
    operands: Callable[[], tuple[Any, ...]]
    to_numpy: Callable[[Any], Array] = np.asarray


# --- the members: input_x, rows, updates, how many threads --------------------------------------------------------------------------------
def of_numpy(call: Callable[..., Any]) -> Callable[..., Prepared]:
    return lambda x, rows, updates, count: Prepared(call, lambda: (x.copy(), rows, updates))


def division(x: Array) -> np.ufunc:
    return np.floor_divide if x.dtype.kind in "iu" else np.divide


def by_at(x: Array, rows: Array, updates: Array) -> None:
    division(x).at(x, rows, updates)


def row_by_row(x: Array, rows: Array, updates: Array) -> None:
    divide = division(x)
    for row, update in zip(rows.tolist(), updates, strict=True):
        divide(x[row], update, x[row])


def tensorflow(x: Array, rows: Array, updates: Array, count: int) -> Prepared:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    if count == 1:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.experimental.enable_op_determinism()
    variable, start, indices, divisors = tf.Variable(x), tf.constant(x), tf.constant(rows), tf.constant(updates)

    def again() -> tuple[Any, ...]:
        variable.assign(start)
        return variable, indices, divisors

    def call(variable: Any, indices: Any, divisors: Any) -> None:
        tf.raw_ops.ResourceScatterDiv(resource=variable.handle, indices=indices, updates=divisors)

    return Prepared(call, again, lambda variable: variable.numpy())  # type: ignore[no-any-return]


def mindspore(x: Array, rows: Array, updates: Array, count: int) -> Prepared:
    os.environ.setdefault("GLOG_v", "3")
    import mindspore

    mindspore.set_device("CPU")
    mindspore.set_context(runtime_num_threads=count)
    operator, indices, divisors = mindspore.ops.ScatterDiv(), mindspore.Tensor(rows.astype(np.int32)), mindspore.Tensor(updates)

    def again() -> tuple[Any, ...]:
        return mindspore.Parameter(mindspore.Tensor(x.copy())), indices, divisors

    def call(parameter: Any, indices: Any, divisors: Any) -> None:
        operator(parameter, indices, divisors)
        mindspore.runtime.synchronize()

    return Prepared(call, again, lambda parameter: parameter.asnumpy())  # type: ignore[no-any-return]


PEERS = dict(zip(SCATTER_PEERS, (tensorflow, mindspore), strict=True))
OURS = "fastops_one_thread", "fastops_all_threads"
PREPARE: dict[str, Callable[..., Prepared]] = {
    "sum": of_numpy(lambda x, rows, updates: updates.sum()),
    "numpy_at": of_numpy(by_at),
    "numpy_rows": of_numpy(row_by_row),
    **dict.fromkeys(OURS, of_numpy(lambda x, rows, updates: fastops.scatter_div(x, rows, updates))),
    **PEERS,
}


# --- the suite ----------------------------------------------------------------------------------------------------------------------------
@cache
def has(peer: str, dtype: str, count: int) -> bool:
    try:
        importlib.import_module(peer)
        prepared = PREPARE[peer](np.ones((3, 2), DTYPES[dtype]), np.zeros(2, np.int64), np.ones((2, 2), DTYPES[dtype]), count)
        prepared.call(*prepared.operands())
    except Exception:  # each library says in its own way that it has no such thing
        return False
    return True


def members(case: Case, count: int) -> Iterator[str]:
    for member in PREPARE:
        if member in PEERS:
            wanted = has(member, case.dtype, count)
        elif member == "sum":
            wanted = case.dtype in ("float32", "float64")  # NumPy adds others up by other loops than those that read fast
        else:
            wanted = member != "numpy_rows" or (len(case.table) > 1)
        if wanted:
            yield member


@lru_cache(maxsize=1)
def right(case: Case) -> Array:
    x, rows, updates = operands(case)
    result = x.copy()
    (row_by_row if len(case.table) > 1 else by_at)(result, rows, updates)
    return result


@lru_cache(maxsize=len(PREPARE))  # the members of a case take turns
def prepared(case: Case, member: str, count: int) -> tuple[Prepared, bool]:
    """And whether the values are those of NumPy's loop."""
    ready = PREPARE[member](*operands(case), count)
    given = ready.operands()
    ready.call(*given)
    return ready, member == "sum" or ready.to_numpy(given[0]).tobytes() == right(case).tobytes()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    threads.launch()  # before Numba launches them itself, which would not find the tbb package
    count = threads.limit() if metafunc.config.getoption("all_threads") else 1
    metafunc.parametrize("count", [count], ids=["one_thread" if count == 1 else "all_threads"])
    turns = [(case, member, turn) for case in CASES for turn in range(TURNS) for member in members(case, count)]
    metafunc.parametrize(("case", "member", "turn"), turns, ids=[f"{case}-{member}-{turn}" for case, member, turn in turns])


def test_scatter_peers(measure: Callable[..., None], benchmark: Any, case: Case, member: str, turn: int, count: int) -> None:
    fastops.warmup(DTYPES[case.dtype])
    ready, equal = prepared(case, member, count)
    assert equal or member not in OURS
    benchmark.extra_info["equal"] = equal
    size = case.updates * prod(case.table[1:])
    info = {"operation": "scatter_div", "case": str(case), "updates": case.updates, "size": size, "member": member, "turn": turn}
    measure(info, ready.call, ready.operands, SECONDS, fresh=case.updates > 1_000)
