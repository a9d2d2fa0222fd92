"""The cases of data/mod.json, to the bit: NumPy's grid of special values, and inputs that other libraries have been reported to get wrong.

The results were derived with exact rationals. Each case runs as it stands and repeated to many elements, as scalars, in several layouts,
and into every kind of output, by each function that it applies to.
"""

import json
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES, assert_same_bits, bits, in_parallel, is_float, message, outcome, should_warn

import fastops

FUNCTIONS = {
    "mod": (fastops.mod, partial(fastops.mod, fmod=0), partial(fastops.remainder, fmod=False)),
    "fmod": (fastops.fmod, partial(fastops.mod, fmod=1), partial(fastops.remainder, fmod=True)),
}
NAMES = {"mod": "remainder", "fmod": "fmod"}  # in NumPy's warnings
MANY = 20_000
FEW = 3_000  # enough where any size is shared by threads


class Case(NamedTuple):
    source: str
    op: str
    a: np.ndarray
    b: np.ndarray
    expected: np.ndarray
    note: str

    def warnings(self, a, b):
        """By the contract. For bfloat16 NumPy gives more: for some NaN dividends, and of overflow in ml_dtypes' float32 quotients."""
        return [(RuntimeWarning, message(NAMES[self.op], a.dtype))] if should_warn(a, b) else []


def _array(numbers, dtype):
    if not is_float(dtype):
        return np.array(numbers, dtype)
    doubles = np.array([float(number) for number in numbers])
    with np.errstate(over="ignore"):
        array = doubles.astype(dtype)
    assert np.array_equal(array.astype(np.float64), doubles, equal_nan=True), f"not all of {dtype}: {numbers}"
    return array


def _case(source, op, dtype, a, b, expected, note):
    """`dtype` is one name, or "dividend,divisor->result"."""
    inputs, _, result = dtype.partition("->")
    first, _, second = inputs.partition(",")
    arrays = (_array(x, DTYPES[name]) for x, name in ((a, first), (b, second or first), (expected, result or first)))
    return Case(source, op, *arrays, note)


ROWS = json.loads((Path(__file__).parent / "data" / "mod.json").read_text(encoding="utf-8"))
CASES = [_case(**row) for row in ROWS]
IDS = [f"{k}-{row['op']}-{row['dtype']}-{row['source'].partition(' ')[0]}" for k, row in enumerate(ROWS)]
each_case = pytest.mark.parametrize("case", CASES, ids=IDS)


# --- layouts and outputs ------------------------------------------------------------------------------------------------------------------
LAYOUTS = {"contiguous": (1, 1), "strided": (2, 3), "reversed": (-1, -1), "divisor reversed": (1, -1), "strided and reversed": (-3, 2)}


def _laid_out(x, step):
    view = np.zeros(x.size * abs(step), x.dtype)[::step]
    view[...] = x
    return view


OUTPUTS = {
    "new": lambda a, b, dtype: None,
    "out": lambda a, b, dtype: np.empty(a.shape, dtype),
    "strided out": lambda a, b, dtype: _laid_out(np.zeros(a.shape, dtype), -2),
    "in place of the dividend": lambda a, b, dtype: a,
    "in place of the divisor": lambda a, b, dtype: b,
}


def _check_everywhere(case, a, b, expected, functions):
    warnings = case.warnings(a, b)
    for layout, steps in LAYOUTS.items():
        for output, make in OUTPUTS.items():
            for function in functions:
                x, y = (_laid_out(operand, step) for operand, step in zip((a, b), steps, strict=True))
                out = make(x, y, expected.dtype)
                if out is not None and out.dtype != expected.dtype:
                    continue  # a narrower operand cannot take the result
                got = outcome(function, x, y, **({} if out is None else {"out": out}))
                what = f"{function}, {layout}, {output}: {case.note}"
                assert got.error is None, what
                assert got.warnings == warnings, what
                assert out is None or got.result is out, what
                assert_same_bits(got.result, expected)


# --- the cases ----------------------------------------------------------------------------------------------------------------------------
def test_the_cases_are_all_there():
    assert len(CASES) == 252
    assert {case.op for case in CASES} == set(FUNCTIONS)
    for op in FUNCTIONS:
        assert {case.a.dtype for case in CASES if case.op == op} == set(DTYPES.values())


def test_noted_warnings_are_those_of_the_contract():
    noted = [case for case in CASES if re.search(r"\| (no warning|warnings: )", case.note) and case.a.dtype != BFLOAT16]
    assert len(noted) == 173
    for case in noted:
        assert case.warnings(case.a, case.b) == [(RuntimeWarning, text) for text in re.findall(r"'([\w ]+ encountered in \w+)'", case.note)]


def _many(case, many):
    times = -(-many // case.a.size)
    return np.tile(case.a, times), np.tile(case.b, times), np.tile(case.expected, times)


@each_case
def test_as_given(case):
    _check_everywhere(case, case.a, case.b, case.expected, FUNCTIONS[case.op])


@each_case
def test_many(case):
    """By each function one by one; everywhere by one of them, since what calls for another ends up in the same place."""
    for function in FUNCTIONS[case.op]:
        a, b, expected = _many(case, MANY)
        got = outcome(function, a, b)
        assert got.error is None
        assert got.warnings == case.warnings(a, b)
        assert_same_bits(got.result, expected)
    _check_everywhere(case, a, b, expected, FUNCTIONS[case.op][:1])


@pytest.mark.parametrize("chunk", [None, 128], ids=["large chunks", "small chunks"])
@each_case
def test_in_parallel(case, chunk):
    with in_parallel(chunk, must=case.a.dtype == case.b.dtype):  # operands of two dtypes are the ufunc's to convert
        _check_everywhere(case, *_many(case, FEW), FUNCTIONS[case.op][:1])


@each_case
def test_scalars(case):
    for a, b, expected in zip(case.a, case.b, case.expected, strict=True):
        for function in FUNCTIONS[case.op]:
            got = outcome(function, a, b)
            assert got.error is None
            assert got.warnings == case.warnings(a, b)
            assert type(got.result) is case.expected.dtype.type
            assert_same_bits(got.result, expected)


DIVISORS = {
    "NumPy's scalar": lambda b: b,
    "0-d": lambda b: np.array(b),
    "1 element": lambda b: np.array([b]),
    "Python's number": lambda b: float(b) if is_float(b.dtype) else int(b),
}


@pytest.mark.parametrize("driven", [False, True], ids=["by the ufunc", "in parallel"])
@each_case
def test_many_dividends_by_one_divisor(case, driven):
    with in_parallel(must=False) if driven else np.errstate():
        _check_by_one_divisor(case, FEW if driven else MANY)


def _check_by_one_divisor(case, many):
    dividends = {}
    for k, words in enumerate(bits(case.b)):
        dividends.setdefault(int(words), []).append(k)
    for chosen in dividends.values():
        divisor, times = case.b[chosen[0]], -(-many // len(chosen))
        a, expected = np.tile(case.a[chosen], times), np.tile(case.expected[chosen], times)
        warnings = case.warnings(a, divisor)
        for kind, made in DIVISORS.items():
            if kind == "Python's number" and case.a.dtype != case.b.dtype:
                continue  # it has no dtype, and the result has the dividend's
            for function in FUNCTIONS[case.op]:
                got = outcome(function, a, made(divisor))
                assert got.error is None, kind
                assert got.warnings == warnings, kind
                result = got.result
                if kind == "Python's number" and a.dtype == BFLOAT16:  # ml_dtypes before 0.7 makes it float32: rounding is still to come
                    assert result.dtype == np.remainder(a[:0], 1.0).dtype
                    result = result.astype(BFLOAT16)
                assert_same_bits(result, expected)


# --- what some reports are about, besides the values --------------------------------------------------------------------------------------
@pytest.mark.parametrize("times", [1, MANY // 10], ids=["as given", "many"])
@pytest.mark.parametrize("driven", [False, True], ids=["by the ufunc", "in parallel"])
@pytest.mark.parametrize("op", list(FUNCTIONS))
def test_divisor_inside_of_the_output(op, driven, times):
    """numpy/numpy#8273: the divisor is overwritten on the way, and must not be seen to change."""
    case = next(case for case in CASES if case.source == "numpy/numpy#8273")
    for function in FUNCTIONS[op]:  # all are positive: the two remainders agree
        y = np.tile(case.a, times)
        with in_parallel(must=False) if driven else np.errstate():
            assert function(y, y[3:4], out=y) is y
        assert_same_bits(y, np.tile(case.expected, times))


@pytest.mark.parametrize("size", [1, MANY])
def test_errstate_of_a_float_by_zero(size):
    """numpy/numpy#14900: it is an invalid operation, not a division by zero."""
    x, zero = np.ones(size), np.zeros(size)
    with np.errstate(invalid="ignore", divide="raise"):
        assert np.isnan(fastops.mod(x, zero)).all()
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match=r"^invalid value encountered in remainder$"):
        fastops.mod(x, zero)


@pytest.mark.parametrize("size", [8, MANY])
def test_python_float_is_rounded_first(size):
    """pytorch/pytorch#183083: 3.14 becomes a float16 before it divides (NEP 50)."""
    case = next(case for case in CASES if case.source == "pytorch/pytorch#183083")
    a, expected = np.tile(case.a, size // 8), np.tile(case.expected, size // 8)
    assert float(np.float16(3.14)) == float(case.b[0]) != 3.14
    assert_same_bits(fastops.mod(a, 3.14), expected)
