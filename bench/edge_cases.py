"""The edge cases that every library is asked for. What is right comes from NumPy, from the loop in order, or from ONNX's text; the tests
check it against exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from values import DTYPES, Array, right_remainder, right_scatter

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
LENGTH = 67  # operands are repeated to so many, so that loops in lanes and their remainders both run

Pairs = Callable[[Any], list[tuple[Any, Any]]]  # of dividends and divisors, from the limits of the dtype
INF, NAN = float("inf"), float("nan")


def limits(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)


PAIRS: dict[str, tuple[tuple[str, ...], Pairs]] = {
    "integers of all signs": (SIGNED, lambda of: [(-7, 3), (7, -3), (-7, -3), (7, 3), (6, -3), (-6, 3), (-4, 10), (0, -5)]),
    "integers by zero": (SIGNED + UNSIGNED, lambda of: [(5, 0), (0, 0), (of.min, 0), (of.max, 0)]),
    "MIN by -1": (SIGNED, lambda of: [(of.min, -1), (of.min + 1, -1), (7, -1)]),
    "MIN and MAX": (SIGNED, lambda of: [(of.min, of.max), (of.max, of.min), (of.min, of.min), (of.min, 3), (of.min, -3), (-1, of.min)]),
    "beyond the signed range": (UNSIGNED, lambda of: [(of.max, 10), (of.max // 2 + 3, 7), (5, of.max), (of.max, of.max - 1), (of.max, 2)]),
    "beyond 2**53": (
        ("int64", "uint64"),
        lambda of: [(2**53 + 1, 2), (2**62 + 1, 3), (of.max, 10**9 + 7), (of.max, 2**53 + 1), (2**53 + 1, 2**53)],
    ),
    "floats of all signs": (FLOATS, lambda of: [(-7, 3), (7, -3), (-7, -3), (7, 3), (5.5, -2.5), (-0.5, 4), (1, 3)]),
    "exact multiples: the sign of zero": (FLOATS, lambda of: [(0.0, 3), (-0.0, 3), (0.0, -3), (-0.0, -3), (6, -3), (-6, 3), (-6, -3)]),
    "floats by zero": (FLOATS, lambda of: [(5, 0.0), (5, -0.0), (0.0, 0.0), (-5, 0.0)]),
    "by infinity": (FLOATS, lambda of: [(5, INF), (-5, INF), (5, -INF), (-5, -INF), (0.0, INF), (-0.0, INF), (0.0, -INF)]),
    "of infinity, and NaN": (FLOATS, lambda of: [(INF, 5), (-INF, 5), (INF, INF), (NAN, 5), (5, NAN), (NAN, 0.0), (INF, NAN)]),
    "subnormals": (FLOATS, lambda of: [(5 * least(of), 3 * least(of)), (-5 * least(of), 3 * least(of)), (1, 3 * least(of))]),
    "a tiny dividend": (FLOATS, lambda of: [(-least(of), 1), (least(of), -1), (-float(of.tiny), 3), (-float(of.eps) / 8, 1)]),
    "a huge quotient": (
        FLOATS,
        lambda of: [(float(of.max), 3), (float(of.max), -7), (-float(of.max), 3 * float(of.tiny)), (float(of.max), 7 * least(of))],
    ),
    "results that are rounded": (FLOATS, lambda of: [(-0.1, 3), (0.1, -3), (-0.001, 100), (100, 0.3), (-100, 0.3), (1, -0.3), (5000, 0.7)]),
}  # fmt: skip


def least(of: Any) -> float:
    return float(of.smallest_subnormal)


class Case(NamedTuple):
    """One call. What is expected is an array, or an exception if it is None."""

    group: str
    operation: str
    dtype: str
    operands: tuple[Array, ...]
    expected: Array | None


def remainders() -> Iterator[Case]:
    for group, (dtypes, pairs) in PAIRS.items():
        for operation in ("remainder", "fmod"):
            for name in dtypes:
                dtype = DTYPES[name]
                given = pairs(limits(dtype))
                x, y = (np.resize(np.array([pair[side] for pair in given], dtype), LENGTH) for side in (0, 1))
                yield Case(group, operation, name, (x, y), right_remainder(operation, x, y))


Division = Callable[[Any], tuple[list[Any], list[int], list[Any]]]  # input_x, indices, updates
NUMBERS, WIDE = ("int32", "int64", "float32", "float64"), ("float16", "float32", "float64", "bfloat16")
DIVISIONS: dict[str, tuple[tuple[str, ...], Division]] = {
    "no repetition": (tuple(DTYPES), lambda of: ([8, 6, 4, 2], [2, 0, 3], [2, 3, 1])),
    "floats: repeated rows, in order": (WIDE, lambda of: ([1, 5, 7], [1] * 24 + [2] * 24, [3, 0.7, 1.1, 0.3, 9, 0.2] * 8)),
    "floats: overflow between two updates": (WIDE, lambda of: ([float(of.max), 1], [0, 0], [0.5, 4])),
    "floats: underflow between two updates": (WIDE, lambda of: ([least(of), 1], [0, 0], [4, 0.125])),
    "floats: a product that overflows": (WIDE, lambda of: ([float(of.max) / 2, 1], [0, 0], [float(of.max) / 2, 4])),
    "integers: repeated rows, in order": (SIGNED + UNSIGNED, lambda of: ([101, 5, 99], [0, 0, 2, 2, 2], [7, 2, 3, 5, 2])),
    "integers: a product that overflows": (SIGNED + UNSIGNED, lambda of: ([of.max, 9], [0, 0], [of.max // 2 + 1, 4])),
    "integers of all signs": (SIGNED, lambda of: ([7, -7, 7, -7], [0, 1, 2, 3], [-2, 2, 2, -2])),
    "MIN by -1": (SIGNED, lambda of: ([of.min, 9], [0], [-1])),
    "floats by zero": (WIDE, lambda of: ([1, -1, 0, 5], [0, 1, 2, 3], [0.0, 0.0, 0.0, -0.0])),
    "subnormals": (WIDE, lambda of: ([6 * least(of), float(of.tiny)], [0, 1], [3, 2])),
    "beyond 2**53": (("int64",), lambda of: ([2**53 + 1, 2**62 + 1], [0, 1], [1, 3])),
}  # fmt: skip
REFUSED: dict[str, tuple[tuple[str, ...], Division]] = {
    "integers by zero": (SIGNED + UNSIGNED, lambda of: ([8, 6], [1, 0], [2, 0])),
    "a negative index": (NUMBERS, lambda of: ([8, 6], [0, -1], [2, 3])),
    "an index out of range": (NUMBERS, lambda of: ([8, 6], [0, 2], [2, 3])),
    "an index of 2**32 + 1": (NUMBERS, lambda of: ([8, 6], [0, 2**32 + 1], [2, 3])),
}


def divisions() -> Iterator[Case]:
    for groups, refused in ((DIVISIONS, False), (REFUSED, True)):
        for group, (dtypes, division) in groups.items():
            for name in dtypes:
                x, rows, updates = division(limits(DTYPES[name]))
                operands = np.array(x, DTYPES[name]), np.array(rows, np.int64), np.array(updates, DTYPES[name])
                yield Case(group, "scatter_div", name, operands, None if refused else right_scatter(*operands))


class Rule(NamedTuple):
    """Of ONNX's Mod: whether a model is allowed."""

    what: str
    opset: int
    fmod: int
    dtypes: tuple[str, str]
    allowed: bool


RULES = [
    Rule("integers, truncated", 10, 1, ("int32", "int32"), True),
    Rule("integers, floored", 13, 0, ("int32", "int32"), True),
    Rule("floats, truncated", 10, 1, ("float32", "float32"), True),
    Rule("floats, floored, before opset 28", 10, 0, ("float32", "float32"), False),
    Rule("floats, floored, before opset 28", 13, 0, ("float32", "float32"), False),
    Rule("floats, floored, from opset 28 on", 28, 0, ("float32", "float32"), True),
    Rule("bfloat16 in opset 10", 10, 1, ("bfloat16", "bfloat16"), False),
    Rule("bfloat16 from opset 13 on", 13, 1, ("bfloat16", "bfloat16"), True),
    Rule("operands of two dtypes", 13, 0, ("int32", "int64"), False),
    Rule("bool", 13, 0, ("bool", "bool"), False),
    Rule("fmod=2", 13, 2, ("int32", "int32"), False),
]
