"""`scatter_div` and other libraries' operators side by side. `python bench/compare.py` runs this too; alone:

    pytest bench/scatter_peers.py --threads 1 --benchmark-json=results/scatter.json

`pytest bench` leaves it out, for the libraries are large, and need not be installed: what is not, and what a library lacks, is not among
the members. A result that differs in a bit from that of the loop in order is noted in the JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from conftest import chosen
from scatters import LIMITS, SCATTERS, Prepared, by_at, row_by_row
from values import Array, compared

import fastops

DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in ("float32", "float64", "int32", "int64", "float16", "bfloat16")}


class Case(NamedTuple):
    """Updates of random rows of `table`: of all, of a single one, of so many as "among 100" says; "sorted" has them in order."""

    table: tuple[int, ...]
    updates: int
    rows: str = "random"
    dtype: str = "float32"

    def __str__(self) -> str:
        return f"{'x'.join(map(str, (self.updates, *self.table[1:])))} {self.dtype} into {self.table[0]}, {self.rows}"

    def distinct(self) -> int:
        """The rows that updates are drawn from."""
        if self.rows == "one row":
            return 1
        return int(self.rows.split()[1]) if self.rows.startswith("among") else self.table[0]


CASES = [
    Case((1_000,), 1),
    Case((1_000,), 1_000),
    Case((1_000,), 1_000_000),
    *(Case((1_000_000,), 1_000_000, dtype=dtype) for dtype in DTYPES),
    Case((100_000,), 1_000_000, "sorted"),
    *(Case((1_000_000,), 1_000_000, rows) for rows in ("one row", "among 100", "among 10000", "among 100000")),
    Case((20_000_000,), 1_000_000),
    Case((100_000, 8), 1_000_000),
    *(Case((10_000, 128), 100_000, dtype=dtype) for dtype in DTYPES),
    *(Case((10_000, 128), 100_000, rows) for rows in ("one row", "among 10", "among 100", "among 1000")),
    Case((500, 8_192), 500),
]
QUICK = [Case((1_000,), 1_000), Case((100, 8), 10_000, "one row"), Case((100, 8), 10_000, "among 10"), Case((100, 8), 10_000)]
TURNS, SECONDS, QUICK_SECONDS = 3, 0.2, 0.002


@lru_cache(maxsize=1)
def operands(case: Case) -> tuple[Array, Array, Array]:
    """Integers are not negative, so that NumPy's floor is right; floats stay near 1 however often they are divided."""
    random, dtype = np.random.default_rng(7), DTYPES[case.dtype]
    rows = random.integers(0, case.distinct(), case.updates)
    shape = case.updates, *case.table[1:]
    if dtype.kind in "iu":
        numbers = random.integers(0, 1 << 20, case.table).astype(dtype), random.integers(1, 3, shape).astype(dtype)
    else:
        numbers = random.uniform(1, 2, case.table).astype(dtype), random.normal(1, 1e-3, shape).astype(dtype)
    return numbers[0], np.sort(rows) if case.rows == "sorted" else rows, numbers[1]


@cache
def has(name: str, dtype: str, count: int) -> bool:
    kind = DTYPES[dtype]
    try:
        ready = SCATTERS[name](np.ones((3, 2), kind), np.zeros(2, np.int64), np.ones((2, 2), kind), count)
        return ready.to_numpy(ready.call(*ready.operands())).dtype == kind
    except Exception:  # each library says in its own way that it has no such thing
        return False


def wanted(case: Case, members: list[str], count: int) -> Iterator[str]:
    for member in members:
        if member in SCATTERS and has(member, case.dtype, count) and (member != "numpy_rows" or len(case.table) > 1):
            yield member
    if "numpy" in members and case.dtype in ("float32", "float64"):  # NumPy adds others up by other loops than those that read fast
        yield "sum"


@lru_cache(maxsize=1)
def right(case: Case) -> Array:
    x, rows, updates = operands(case)
    return (row_by_row if len(case.table) > 1 else by_at)(x.copy(), rows, updates)


@lru_cache(maxsize=len(SCATTERS) + len(LIMITS))  # the members of a case take turns
def prepared(case: Case, member: str, count: int) -> tuple[Prepared, dict[str, Any]]:
    """And what is wrong with the result."""
    if member in LIMITS:
        return LIMITS[member](*operands(case), count), {"wrong": 0}
    ready = SCATTERS[member](*operands(case), count)
    result = ready.to_numpy(ready.call(*ready.operands()))
    return ready, compared("a division of ", operands(case)[:1], result, right(case))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.getoption
    members, cases = chosen(metafunc.config), QUICK if option("quick") else CASES
    turns = 1 if option("quick") else TURNS
    found = [(case, member, turn) for case in cases for turn in range(turns) for member in wanted(case, members, option("threads"))]
    metafunc.parametrize(("case", "member", "turn"), found, ids=[f"{case}-{member}-{turn}" for case, member, turn in found])


def test_scatter_peers(measure: Callable[..., None], benchmark: Any, request: Any, case: Case, member: str, turn: int) -> None:
    option = request.config.getoption
    fastops.warmup(DTYPES[case.dtype])
    ready, about = prepared(case, member, option("threads"))
    assert member != "fastops" or not about["wrong"], about
    benchmark.extra_info.update(about)
    size = case.updates * prod(case.table[1:])
    info = {"run": option("run_name"), "part": "scatter", "threads": option("threads"), "operation": "scatter_div", "dtype": case.dtype,
            "pattern": str(case), "size": size, "values": "", "updates": case.updates, "rows": case.distinct()}  # fmt: skip
    seconds = QUICK_SECONDS if option("quick") else SECONDS
    measure({**info, "member": member, "turn": turn}, ready.call, ready.operands, seconds, fresh=case.updates > 1_000)
