"""scatter_div against NumPy: `at` of its ufuncs in one dimension, and otherwise a loop over the rows, which is faster there; and
one update, in many forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from conftest import MEMBERS

import fastops
from fastops.scatter import scatter_div

DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in
          ("int8", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")}  # fmt: skip
TABLES = {"vector": (100_000,), "narrow": (50_000, 8), "embedding": (20_000, 128), "wide": (500, 8_192)}
SIZES = (1_000, 100_000, 4_000_000)  # elements of the updates, about
REPEATS = {"seldom": None, "often": 10}  # rows among which the updates choose
SECONDS = 0.03

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A group: its members do the same to the same operands."""

    operation: str
    dtype: str
    table: str
    size: int
    repeats: str


@lru_cache(maxsize=1)
def operands(case: Case) -> tuple[Array, Array, Array]:
    """Integers are not negative, so that NumPy's floor is right; floats stay near 1 however often they are divided."""
    random, dtype, shape = np.random.default_rng(7), DTYPES[case.dtype], TABLES[case.table]
    count = max(1, case.size // int(np.prod(shape[1:])))
    rows = random.integers(0, REPEATS[case.repeats] or shape[0], count)
    if dtype.kind in "iu":
        return random.integers(0, 128, shape).astype(dtype), rows, random.integers(1, 4, (count, *shape[1:])).astype(dtype)
    return (random.uniform(1, 2, shape).astype(dtype), rows, random.normal(1, 1e-3, (count, *shape[1:])).astype(dtype))


def by_numpy(table: Array, rows: Array, divisors: Array) -> None:
    divide = np.floor_divide if table.dtype.kind in "iu" else np.divide
    if table.ndim == 1:
        divide.at(table, rows, divisors)
    else:
        for row, divisor in zip(rows, divisors, strict=True):
            divide(table[row], divisor, table[row])


def members() -> Iterator[Any]:
    for case in (Case("scatter_div", *choice) for choice in product(DTYPES, TABLES, SIZES, REPEATS)):
        for member in MEMBERS:
            yield pytest.param(case, member, id="-".join(map(str, (*case, member))))


@pytest.mark.parametrize(("case", "member"), list(members()))
def test_scatter_div(measure: Callable[..., None], case: Case, member: str) -> None:
    table, rows, divisors = operands(case)
    call = by_numpy if member == "numpy" else scatter_div
    measure({**case._asdict(), "member": member}, call, lambda: (table.copy(), rows, divisors), SECONDS, fresh=True)


FORMS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {  # of one update
    "plain": lambda: (np.ones((6, 8), "f4"), np.array([3]), np.ones((1, 8), "f4")),
    "strided": lambda: (np.ones((6, 16), "f4")[::-1, ::2], np.array([3]), np.ones((1, 8), "f4")),
    "parts of rows": lambda: (np.ones((6, 4, 8), "f4")[:, :, 2:4], np.array([3]), np.ones((1, 4, 2), "f4")),
    "broadcast updates": lambda: (np.ones((6, 8), "f4"), np.array([3]), np.broadcast_to(np.float32(1), (1, 8))),
    "lists": lambda: (np.ones(6, "f4"), [3], [1.0]),
    "another dtype": lambda: (np.ones(6, "f4"), np.array([3]), np.ones(1, "f2")),
    "a subclass": lambda: (np.ones((6, 8), "f4").view(np.matrix), np.array([3]), np.ones((1, 8), "f4")),
    "interleaved": lambda: ((x := np.ones(12, "f4"))[::2], np.array([3]), x[1:2]),
    "other byte order": lambda: (np.ones(6, "f4").byteswap().view(np.dtype("f4").newbyteorder()), np.array([3]), np.ones(1, "f4")),
}


@pytest.mark.parametrize(("form", "member"), list(product(FORMS, ("numpy", "fastops_one_thread"))))
def test_one_update(measure: Callable[..., None], form: str, member: str) -> None:
    fastops.warmup("float32")
    info = {"operation": "scatter_div", "dtype": "float32", "form": form, "member": member}
    measure(info, np.divide.at if member == "numpy" else scatter_div, FORMS[form], SECONDS)
