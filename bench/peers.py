"""The remainders of all libraries side by side, part by part of the comparison. `python bench/compare.py` runs them all; one alone:

    pytest bench/peers.py --part table --threads 1 --benchmark-json=results/peers.json

`pytest bench` leaves this out: the libraries are large, and need not be installed. What a library lacks (an operation for a dtype, with
results of that dtype) is not among the cells. A result that differs from NumPy's in a bit is noted in the JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import available_memory, chosen
from remainders import LIMITS, REMAINDERS, Prepared, goes_well
from report import PATTERNS
from test_bench_mod import OPERATIONS, Case, operands
from values import DTYPES, Array, compared, right_remainder

LARGE = 10_000_000  # elements: from here on each library is called a few times, and nothing is kept for a second turn
SOME = ("int8", "int32", "int64", "float16", "float32", "float64")


class Part(NamedTuple):
    cases: list[Case]
    turns: int
    seconds: float  # of a member in a turn
    limits: bool = False


def cases(operations: tuple[str, ...], dtypes: tuple[str, ...], patterns: tuple[str, ...], sizes: list[int], values: str) -> list[Case]:
    return [Case(*chosen, values) for chosen in product(operations, dtypes, patterns, sizes)]


BOTH, ALL = tuple(OPERATIONS), tuple(DTYPES)
PARTS = {
    "table": Part(
        cases(BOTH, ALL, tuple(PATTERNS), [1_000_000], "small") + cases(BOTH, ALL, ("arrays", "by_scalar"), [1_000_000], "whole"), 3, 0.05
    ),
    "sizes": Part(cases(("remainder",), SOME[1:], ("arrays", "by_scalar"), [10**k for k in range(9)], "small"), 2, 0.05, True),
    "threads": Part(cases(BOTH, SOME, ("arrays",), [4_000_000], "small"), 3, 0.1),
}
QUICK = {
    "table": Part(cases(BOTH, ("int32", "bfloat16", "float64"), ("arrays", "by_row"), [10_000], "small"), 3, 0.01),
    "sizes": Part(cases(("remainder",), ("int32", "float64"), ("arrays",), [1, 1_000, 100_000], "small"), 3, 0.01, True),
    "threads": Part(cases(("fmod",), ("int32", "float64"), ("arrays",), [1_000_000], "small"), 3, 0.01),
}


@cache
def has(name: str, operation: str, dtype: str, count: int) -> bool:
    x, y = (np.array(numbers, DTYPES[dtype]) for numbers in ([5, 5], [3, 2]))
    return goes_well(partial(REMAINDERS[name], operation), x, y, np.empty_like(x), count)


@lru_cache(maxsize=1)
def right(case: Case) -> Array:
    return right_remainder(case.operation, *operands(case)[:2])


@lru_cache(maxsize=len(REMAINDERS) + len(LIMITS))  # the members of a case take turns
def prepared(case: Case, member: str, count: int) -> tuple[Prepared, dict[str, Any]]:
    """And what is wrong with the result."""
    x, y, out = operands(case)
    if member in LIMITS:
        return LIMITS[member](case.operation, x, y, np.zeros_like(out), count), {"wrong": 0}
    ready = REMAINDERS[member](case.operation, x, y, np.zeros_like(out), count)
    return ready, compared(case.operation, (x, y), ready.result(), right(case))


def fits(case: Case) -> bool:
    return 10 * case.size * DTYPES[case.dtype].itemsize < available_memory()


def turns(part: Part, members: list[str], count: int) -> Iterator[Any]:
    for case in filter(fits, part.cases):
        wanted = [member for member in members if member in REMAINDERS and has(member, case.operation, case.dtype, count)]
        if part.limits and "numpy" in members:
            wanted += [name for name in LIMITS if name != "floor_divide" or DTYPES[case.dtype].kind in "iu"]
        for turn in range(part.turns if case.size < LARGE else 1):
            for member in wanted:
                yield pytest.param(case, member, turn, id="-".join(map(str, (*case, member, turn))))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    config = metafunc.config
    name, count = config.getoption("part"), config.getoption("threads")
    parts = QUICK if config.getoption("quick") else PARTS
    if name not in parts:
        raise pytest.UsageError(f"bench/peers.py has the parts {', '.join(parts)}, not {name}")
    metafunc.parametrize(("case", "member", "turn"), list(turns(parts[name], chosen(config), count)))


def test_peers(measure: Callable[..., None], benchmark: Any, request: Any, case: Case, member: str, turn: int) -> None:
    option = request.config.getoption
    part = (QUICK if option("quick") else PARTS)[option("part")]
    if case.size >= LARGE:
        prepared.cache_clear()
    with np.errstate(all="ignore"):  # bfloat16 by NumPy reports overflows that there are none of
        ready, about = prepared(case, member, option("threads"))
        assert member != "fastops" or not about["wrong"], about
        benchmark.extra_info.update(about)
        info = {"run": option("run_name"), "part": option("part"), "threads": option("threads"), **case._asdict()}
        measure({**info, "member": member, "turn": turn}, ready.call, ready.operands, part.seconds)
