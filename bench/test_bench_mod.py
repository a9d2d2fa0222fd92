"""The remainders against NumPy's: operation x dtype x pattern x size x values, on one thread and on all, with `out`.

In the table's cells the limit is measured too: what NumPy takes for the quotient alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from conftest import MEMBERS
from remainders import LIMITS
from values import DTYPES, Array

import fastops
from fastops.loops import LARGE

OPERATIONS = {"remainder": (np.remainder, fastops.remainder), "fmod": (np.fmod, fastops.fmod)}
SIZES = {1: (1, 1), 100: (10, 10), 1_000: (20, 50), 10_000: (100, 100), 1_000_000: (1_000, 1_000), 4_000_000: (2_000, 2_000)}
TURNS = {"small": 5, "whole": 2}  # in the table's cells
TABLE_SECONDS, SECONDS = 0.05, 0.01  # of a member in a turn

Draw = Callable[..., Array]


class Pattern(NamedTuple):
    """`make(dividends, divisors, shape)` gives the operands; the two functions draw arrays of a shape."""

    make: Callable[[Draw, Draw, tuple[int, int]], tuple[Array, Array]]
    in_place: bool = False


def flat(shape: tuple[int, int]) -> int:
    return shape[0] * shape[1]


def halves(length: int) -> tuple[int, int]:
    return (10, length // 10) if length % 10 == 0 else (1, length)


def four_axes(x: Draw, y: Draw, shape: tuple[int, int]) -> tuple[Array, Array]:
    (a, b), (c, d) = map(halves, shape)
    return x(a, 1, c, d), y(b, 1, d)


PATTERNS = {
    "arrays": Pattern(lambda x, y, shape: (x(flat(shape)), y(flat(shape)))),
    "by_scalar": Pattern(lambda x, y, shape: (x(flat(shape)), y())),
    "of_scalar": Pattern(lambda x, y, shape: (x(), y(flat(shape)))),
    "by_row": Pattern(lambda x, y, shape: (x(*shape), y(shape[1]))),
    "by_column": Pattern(lambda x, y, shape: (x(*shape), y(shape[0], 1))),
    "outer": Pattern(lambda x, y, shape: (x(shape[0], 1), y(shape[1]))),
    "four_axes": Pattern(four_axes),
    "transposed": Pattern(lambda x, y, shape: (x(*shape).T, y(*shape).T)),
    "mixed_order": Pattern(lambda x, y, shape: (x(*shape), y(*shape[::-1]).T)),
    "reversed": Pattern(lambda x, y, shape: (x(flat(shape))[::-1], y(flat(shape))[::-1])),
    "far_apart": Pattern(lambda x, y, shape: (x(16 * flat(shape))[::16], y(16 * flat(shape))[::16])),
    "strided": Pattern(lambda x, y, shape: (x(2 * flat(shape))[::2], y(2 * flat(shape))[::2])),
    "in_place": Pattern(lambda x, y, shape: (x(flat(shape)), y(flat(shape))), in_place=True),
}


class Case(NamedTuple):
    """A group: its members do the same to the same operands."""

    operation: str
    dtype: str
    pattern: str
    size: int
    values: str

    def is_of_table(self) -> bool:
        return self.size == 1_000_000 and self.pattern in ("arrays", "by_scalar")


# --- operands -----------------------------------------------------------------------------------------------------------------------------
def small(dtype: np.dtype[Any], shape: tuple[int, ...], random: np.random.Generator, divisors: bool) -> Array:
    """Up to about 100, of both signs; divisors from 1 on."""
    if dtype.kind in "iu":
        magnitudes = random.integers(int(divisors), 101, shape)
    else:
        magnitudes = random.uniform(1, 100, shape) if divisors else np.abs(random.normal(0, 100, shape))
    signs = 1 if dtype.kind == "u" else random.choice([-1, 1], shape)
    return np.asarray(magnitudes * signs).astype(dtype)


def whole(dtype: np.dtype[Any], shape: tuple[int, ...], random: np.random.Generator, divisors: bool) -> Array:
    """Integers of the whole range; finite floats of all normal exponents alike, whose quotients are mostly huge or zero."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        result = np.asarray(random.integers(limits.min, limits.max, shape, dtype, endpoint=True))
        return np.where(result == 0, dtype.type(3), result) if divisors else result
    float_limits = ml_dtypes.finfo(dtype)
    exponents = random.uniform(float_limits.minexp, float_limits.maxexp - 0.1, shape)  # 0.1: not rounded to infinity
    return np.asarray(np.exp2(exponents) * random.choice([-1, 1], shape)).astype(dtype)


VALUES = {"small": small, "whole": whole}
SCALARS = {"small": (100, 7), "whole": (127, 97)}  # a dividend and a divisor that every dtype holds


@lru_cache(maxsize=1)  # the members of a case, which follow each other, share them
def operands(case: Case) -> tuple[Array, Array, Array]:
    """Dividends, divisors, and an output in the memory order that NumPy would give it. Very long ones repeat themselves."""
    dtype, random = DTYPES[case.dtype], np.random.default_rng(7)

    def draw(divisors: bool) -> Draw:
        def array(*shape: int) -> Array:
            if not shape:
                return dtype.type(SCALARS[case.values][divisors])
            if prod(shape) < 10_000_000:
                return VALUES[case.values](dtype, shape, random, divisors)
            return np.resize(VALUES[case.values](dtype, (1_000_003,), random, divisors), shape)

        return array

    x, y = PATTERNS[case.pattern].make(draw(False), draw(True), SIZES.get(case.size, (1, case.size)))
    return x, y, np.empty_like(np.equal(x, y), dtype)


def limit(case: Case) -> tuple[Any, tuple[Array, ...]]:
    """What a loop can come near: NumPy's floored quotient by the same scalar, or one division an element, as the formulas need it."""
    x, y, out = operands(case)
    name = "floor_divide" if x.dtype.kind in "iu" and case.pattern == "by_scalar" else "divide"
    return LIMITS[name](case.operation, x, y, out, 1).call, ()


# --- the suite ----------------------------------------------------------------------------------------------------------------------------
def cases() -> Iterator[Case]:
    """All patterns with small values; the table's two with values of the whole range, for which NumPy's floats take long."""
    for operation in OPERATIONS:
        for dtype in DTYPES:
            for pattern in PATTERNS:
                for size in SIZES:
                    yield Case(operation, dtype, pattern, size, "small")
                    if pattern in ("arrays", "by_scalar") and size <= 1_000_000:
                        yield Case(operation, dtype, pattern, size, "whole")


def members(case: Case) -> Iterator[str]:
    for member in MEMBERS:
        if member != "fastops_all_threads" or case.size >= LARGE:  # no threads are used below
            yield member
    if case.is_of_table() and case.values == "small":
        yield "limit"


def turns() -> Iterator[Any]:
    for case in cases():
        for turn in range(TURNS[case.values] if case.is_of_table() else 1):
            for member in members(case):
                marks = [pytest.mark.table] if case.is_of_table() else []
                yield pytest.param(case, member, turn, id="-".join(map(str, (*case, member, turn))), marks=marks)


@pytest.mark.parametrize(("case", "member", "turn"), list(turns()))
def test_mod(measure: Callable[..., None], case: Case, member: str, turn: int) -> None:
    call, args = limit(case) if member == "limit" else (OPERATIONS[case.operation][member != "numpy"], operands(case))
    if call is OPERATIONS[case.operation][1]:
        assert call.loop(DTYPES[case.dtype]), "nothing can be compiled"
    info = {**case._asdict(), "member": member, "turn": turn}
    seconds = TABLE_SECONDS if case.is_of_table() else SECONDS

    def copied() -> tuple[Array, ...]:
        dividends = args[0].copy()
        return dividends, args[1], dividends

    with np.errstate(all="ignore"):  # bfloat16 by NumPy reports overflows that there are none of
        if PATTERNS[case.pattern].in_place:
            measure(info, call, copied, seconds, fresh=True)
        else:
            measure(info, call, lambda: args, seconds)
