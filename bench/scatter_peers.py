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

import numpy as np
import pytest
from conftest import chosen
from remainders import Prepared, goes_well
from scatters import LIMITS, SCATTERS, by_numpy, operands_of
from values import DTYPES, Array, compared

import fastops

SOME = ("float32", "float64", "int32", "int64", "float16", "bfloat16")


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
    *(Case((1_000_000,), 1_000_000, dtype=dtype) for dtype in SOME),
    *(Case((rows,), 1_000_000, "sorted", dtype) for rows in (1_000, 100_000, 8_000_000) for dtype in ("float32", "int64")),
    *(Case((1_000_000,), 1_000_000, rows) for rows in ("one row", "among 100", "among 10000", "among 100000")),
    Case((20_000_000,), 1_000_000),
    Case((100_000, 8), 1_000_000),
    *(Case((10_000, 128), 100_000, dtype=dtype) for dtype in SOME),
    *(Case((10_000, 128), 100_000, rows) for rows in ("one row", "among 10", "among 100", "among 1000")),
    Case((10_000, 128), 100_000, "sorted"),
    Case((500, 8_192), 500),
]
QUICK = [Case((1_000,), 1_000), Case((100, 8), 10_000, "one row"), Case((100, 8), 10_000, "among 10"), Case((100, 8), 10_000)]
TURNS, SECONDS, QUICK_SECONDS = 3, 0.2, 0.01


@lru_cache(maxsize=1)
def operands(case: Case) -> tuple[Array, Array, Array]:
    x, rows, updates = operands_of(DTYPES[case.dtype], case.table, case.updates, case.distinct())
    return x, np.sort(rows) if case.rows == "sorted" else rows, updates


@cache
def has(name: str, dtype: str, count: int) -> bool:
    kind = DTYPES[dtype]
    return goes_well(SCATTERS[name], np.ones((3, 2), kind), np.zeros(2, np.int64), np.ones((2, 2), kind), count)


def wanted(case: Case, members: list[str], count: int) -> Iterator[str]:
    for member in members:
        if member in SCATTERS and has(member, case.dtype, count) and (member != "numpy_rows" or len(case.table) > 1):
            yield member
    if "numpy" in members and case.dtype in ("float32", "float64"):  # NumPy adds others up by other loops than those that read fast
        yield "sum"


@lru_cache(maxsize=1)
def right(case: Case) -> Array:
    x, rows, updates = operands(case)
    return by_numpy(x.copy(), rows, updates)


@lru_cache(maxsize=len(SCATTERS) + len(LIMITS))  # the members of a case take turns
def prepared(case: Case, member: str, count: int) -> tuple[Prepared, dict[str, Any]]:
    """And what is wrong with the result."""
    if member in LIMITS:
        return LIMITS[member](*operands(case), count), {"wrong": 0}
    ready = SCATTERS[member](*operands(case), count)
    return ready, compared("a division of ", operands(case)[:1], ready.result(), right(case))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.getoption
    members, cases = chosen(metafunc.config), QUICK if option("quick") else CASES
    found = [(case, member, turn) for case in cases for turn in range(TURNS) for member in wanted(case, members, option("threads"))]
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
