"""The floating-point warnings of `scatter_div`: NumPy's, once for each kind, at the caller's line, under `numpy.errstate`."""

from __future__ import annotations

import sys
import warnings

import ml_dtypes
import numpy as np
import pytest
from conftest import BFLOAT16, assert_same_bits, each_float
from scatter_oracle import WAYS, by, each_way

KINDS = ("divide by zero", "overflow", "underflow", "invalid value")
DIVIDE, OVERFLOW, UNDERFLOW, INVALID = (f"{kind} encountered in scatter_div" for kind in KINDS)


def limits(dtype):
    """The largest and the smallest number."""
    info = ml_dtypes.finfo(dtype)
    return dtype.type(info.max), dtype.type(info.smallest_subnormal)


def raising(dtype):
    """Dividend, divisor, what is reported under errstate(all="warn")."""
    largest, smallest = limits(dtype)
    return [
        (1, 2, []),
        (1, 0, [DIVIDE]),
        (-1, -0.0, [DIVIDE]),
        (0, 0, [INVALID]),
        (np.inf, np.inf, [INVALID]),
        (np.inf, 0, []),
        (1, np.inf, []),
        (np.nan, 0, []),
        (np.nan, np.inf, []),
        (0, np.nan, []),
        (largest, 1, []),
        (largest, 0.5, [OVERFLOW]),
        (-largest, smallest, [OVERFLOW]),
        (largest, dtype.type(1) - dtype.type(0.01), [OVERFLOW]),
        (smallest, 1, []),
        (smallest, 2, [UNDERFLOW]),
        (smallest, largest, [UNDERFLOW]),
        (smallest * dtype.type(6), 2, []),
        (smallest * dtype.type(3), 2, [UNDERFLOW]),
    ]


def reported(call, *args):
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    assert all(entry.category is RuntimeWarning and entry.filename == __file__ for entry in caught)
    return [str(entry.message) for entry in caught]


@each_float
def test_each_kind_of_warning(dtype):
    for a, b, want in raising(dtype):
        x, u = np.array([a]).astype(dtype), np.array([b]).astype(dtype)
        for way in WAYS:
            with by(way) as call:
                for width, step in ((1, 1), (50, 1), (50, 2), (200, 1)):
                    wide, row = np.repeat(x, width * step)[None, ::step], np.repeat(u, width)[None]
                    assert reported(call, wide, np.array([0]), row) == want, (a, b, width, way)
                assert reported(call, x.copy(), np.array([0]), u) == want, (a, b, way)
                for last in range(9):  # with others, of which none is reported
                    line, others = np.ones(last + 1, dtype), np.ones(last + 1, dtype)
                    line[last], others[last] = x[0], u[0]
                    assert reported(call, line, np.arange(last + 1), others) == want, (a, b, way)
        if dtype != BFLOAT16:  # ml_dtypes rounds without telling
            assert [message.replace("scatter_div", "divide") for message in want] == reported(np.divide, np.array([a], dtype), u)


@each_float
def test_one_warning_of_each_kind(dtype):
    x = np.array([[1, 0, 1, 0], limits(dtype)[:1] * 4], dtype)
    for way in WAYS:
        with by(way) as call:
            got = reported(call, x.copy(), np.array([0, 1]), np.array([[0, 0, 0, 0], [0.5] * 4], dtype))
        assert got == [DIVIDE, OVERFLOW, INVALID]


@each_way
def test_underflow_is_not_reported_unasked(way):
    with by(way) as call:
        assert call(np.array([5e-324]), [0], [2.0])[0] == 0


@each_way
def test_integers_report_nothing(way):
    for name in ("int8", "int16", "int32", "int64"):
        x = np.full(70, np.iinfo(name).min, name)
        with by(way) as call:
            assert reported(call, x[None], np.array([0]), np.full((1, 70), -1, name)) == []
            assert reported(call, x, np.arange(70), np.full(70, -1, name)) == []
        assert np.all(x == np.iinfo(name).min)


@each_way
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_errstate(dtype, way, capfd):
    with by(way) as divide:
        check_errstate(dtype, divide, capfd)


def check_errstate(dtype, divide, capfd):
    def call():
        return divide(np.array([1, 0, 6], dtype), np.arange(3), np.array([0, 0, 2], dtype))

    want = np.array([np.inf, np.nan, 3], dtype)
    with np.errstate(all="ignore"):
        assert_same_bits(call(), want)
    with np.errstate(divide="ignore", invalid="warn"), pytest.warns(RuntimeWarning, match=f"^{INVALID}$"):
        call()
    x = np.array([1, 0, 6], dtype)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=f"^{DIVIDE}$"):
        divide(x, np.arange(3), np.array([0, 0, 2], dtype))
    assert_same_bits(x, want)  # written before it is raised
    calls = []
    with np.errstate(all="call", call=lambda *args: calls.append(args)):
        call()
    assert calls == [("divide by zero", 1), ("invalid value", 8)]
    with np.errstate(all="print"):
        call()
    assert capfd.readouterr().err == f"Warning: {DIVIDE}\nWarning: {INVALID}\n"

    class Log:
        text = ""

        def write(self, text):
            Log.text += text

    with np.errstate(all="log", call=Log()):
        call()
    assert Log.text == f"Warning: {DIVIDE}\nWarning: {INVALID}\n"


@each_way
def test_a_warning_points_at_the_line_of_the_call(way):
    for x, indices, u in ((np.ones(2), [0], [0.0]), (np.ones(2), np.array([0]), np.array([0.0])), (np.ones((2, 9)), [1], np.zeros((1, 9)))):
        with by(way) as call, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line = sys._getframe().f_lineno + 1
            call(x, indices, u)
        assert [(entry.filename, entry.lineno) for entry in caught] == [(__file__, line)]


@each_way
def test_a_warning_that_is_an_error(way):
    """It comes after the divisions, as NumPy's does."""
    x = np.ones(3)
    with by(way) as call, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=f"^{DIVIDE}$"):
            call(x, np.arange(3), np.array([2.0, 0.0, 4.0]))
    assert x.tolist() == [0.5, np.inf, 0.25]
