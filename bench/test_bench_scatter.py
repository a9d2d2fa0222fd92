"""scatter_div against NumPy: `at` of its ufuncs in one dimension, and otherwise a loop over the rows, which is faster there; and
one update, in many forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import MEMBERS
from scatters import by_numpy, operands_of
from values import DTYPES, Array

import fastops
from fastops.scatter import scatter_div

SOME = ("int8", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")
TABLES = {"vector": (100_000,), "far": (8_000_000,), "narrow": (50_000, 8), "embedding": (20_000, 128), "wide": (500, 8_192)}
SIZES = (1_000, 100_000, 4_000_000)  # elements of the updates, about
REPEATS = {"seldom": None, "often": 10, "ascending": None}  # rows among which the updates choose; and in which order
SECONDS = 0.03


class Case(NamedTuple):
    """A group: its members do the same to the same operands."""

    operation: str
    dtype: str
    table: str
    size: int
    repeats: str


@lru_cache(maxsize=1)
def operands(case: Case) -> tuple[Array, Array, Array]:
    table = TABLES[case.table]
    x, rows, divisors = operands_of(DTYPES[case.dtype], table, max(1, case.size // prod(table[1:])), REPEATS[case.repeats] or table[0])
    return x, np.sort(rows) if case.repeats == "ascending" else rows, divisors


def members() -> Iterator[Any]:
    for case in (Case("scatter_div", *choice) for choice in product(SOME, TABLES, SIZES, REPEATS)):
        for member in MEMBERS:
            yield pytest.param(case, member, id="-".join(map(str, (*case, member))))


@pytest.mark.parametrize(("case", "member"), list(members()))
def test_scatter_div(measure: Callable[..., None], case: Case, member: str) -> None:
    table, rows, divisors = operands(case)
    call = by_numpy if member == "numpy" else scatter_div
    measure({**case._asdict(), "member": member}, call, lambda: (table.copy(), rows, divisors), SECONDS, fresh=True)


def swapped(x: Array) -> Array:
    return x.astype(x.dtype.newbyteorder())


FORMS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {  # of one update, or of so many
    "plain": lambda: (np.ones((6, 8), "f4"), np.array([3]), np.ones((1, 8), "f4")),
    "strided": lambda: (np.ones((6, 16), "f4")[::-1, ::2], np.array([3]), np.ones((1, 8), "f4")),
    "parts of rows": lambda: (np.ones((6, 4, 8), "f4")[:, :, 2:4], np.array([3]), np.ones((1, 4, 2), "f4")),
    "broadcast updates": lambda: (np.ones((6, 8), "f4"), np.array([3]), np.broadcast_to(np.float32(1), (1, 8))),
    "lists": lambda: (np.ones(6, "f4"), [3], [1.0]),
    "a list of indices": lambda: (np.ones(6, "f4"), [3], np.ones(1, "f4")),
    "a list of updates": lambda: (np.ones(6, "f4"), np.array([3]), [1.0]),
    "lists of rows": lambda: (np.ones((6, 8), "f4"), [3], [[1.0] * 8]),
    "numbers": lambda: (np.ones(6, "f4"), 3, 1.0),
    "numbers of NumPy": lambda: (np.ones(6, "f4"), np.int64(3), np.float32(1)),
    "another dtype": lambda: (np.ones(6, "f4"), np.array([3]), np.ones(1, "f2")),
    "integers": lambda: (np.ones(6, "f4"), np.array([3]), np.ones(1, "i8")),
    "a subclass": lambda: (np.ones((6, 8), "f4").view(np.matrix), np.array([3]), np.ones((1, 8), "f4")),
    "a subclass and lists": lambda: (np.ones((6, 1), "f4").view(np.matrix), [3], [[1.0]]),
    "updates of a subclass": lambda: (np.ones((6, 8), "f4"), np.array([3]), np.ones((1, 8), "f4").view(np.matrix)),
    "interleaved": lambda: ((x := np.ones(12, "f4"))[::2], np.array([3]), x[1:2]),
    "updates among the elements": lambda: (x := np.ones(12, "f4"), np.array([3]), x[2:3]),
    "indices in the other byte order": lambda: (np.ones(6, "f4"), swapped(np.array([3])), np.ones(1, "f4")),
    "updates in the other byte order": lambda: (np.ones(6, "f4"), np.array([3]), swapped(np.ones(1, "f4"))),
    "other byte order": lambda: (swapped(np.ones(6, "f4")), np.array([3]), np.ones(1, "f4")),
    "other byte order, all of them": lambda: (swapped(np.ones(6, "f4")), swapped(np.array([3])), swapped(np.ones(1, "f4"))),
    "other byte order, strided": lambda: (swapped(np.ones((6, 16), "f4"))[::-1, ::2], np.array([3]), np.ones((1, 8), "f4")),
    **{
        f"other byte order, {count} of {rows}": lambda count=count, rows=rows: (
            swapped(np.ones(rows, "f4")),
            np.arange(count) * 7 % rows,
            np.ones(count, "f4"),
        )
        for count, rows in ((1, 1_000_000), (10, 1_000), (100, 1_000), (1_000, 1_000), (1_000, 1_000_000))
    },
}


@pytest.mark.parametrize(("form", "member"), list(product(FORMS, ("numpy", "fastops_one_thread"))))
def test_one_update(measure: Callable[..., None], form: str, member: str) -> None:
    fastops.warmup("float32")
    info = {"operation": "scatter_div", "dtype": "float32", "form": form, "member": member}
    measure(info, np.divide.at if member == "numpy" else scatter_div, FORMS[form], SECONDS)
