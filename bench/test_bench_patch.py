"""`%` of two arrays, as NumPy has it and with NumPy patched: dtype x size, the result allocated by NumPy, on one thread and on all."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
from conftest import MEMBERS
from test_bench_mod import LARGE, SECONDS, small
from values import DTYPES

import fastops

SIZES = (1, 100, 10_000, 400_000, 4_000_000)

CASES = [(dtype, size, member) for dtype in DTYPES for size in SIZES for member in MEMBERS[: 2 + (size >= LARGE)]]  # no threads below


@pytest.mark.parametrize(("dtype", "size", "member"), CASES)
def test_patched(measure: Callable[..., None], dtype: str, size: int, member: str) -> None:
    random = np.random.default_rng(7)
    x, y = small(DTYPES[dtype], (size,), random, False), small(DTYPES[dtype], (size,), random, True)
    info = {"operation": "%", "dtype": dtype, "size": size, "member": member}
    fastops.warmup(DTYPES[dtype])
    with nullcontext() if member == "numpy" else fastops.patched(), np.errstate(all="ignore"):
        measure(info, operator.mod, lambda: (x, y), SECONDS)
