"""Which calls go past Python, by the native entry, and which must not. (What they give: test_mod_calls.)"""

import gc
import sys

import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES, OPERATIONS, assert_same, each_operation, in_python, outcome, small_values

from fastops import dispatch


def numbers(*shape, dtype="int32", seed=0):
    return np.abs(small_values(np.dtype(dtype), int(np.prod(shape)), seed)).reshape(shape) + np.dtype(dtype).type(1)


def functions_run(call):
    """How many functions of the dispatcher's Python the call runs."""
    seen = []

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename == dispatch.__file__:
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(seen)


OUT = np.empty(6, np.int32)
SPELT = {"".join(["o", "ut"]): OUT}  # a keyword that is equal, not the same

NATIVE = {
    "arrays": lambda f: f(numbers(6), numbers(6)),
    "by a Python integer": lambda f: f(numbers(6), 3),
    "by a Python float": lambda f: f(numbers(6), 2.5),
    "by a bool": lambda f: f(numbers(6), True),
    "by a scalar of NumPy": lambda f: f(numbers(6), np.int16(3)),
    "scalars": lambda f: f(7, np.float32(3)),
    "bools": lambda f: f(numbers(6) > 0, numbers(6) > 0),
    "mixed dtypes": lambda f: f(numbers(6), numbers(6, dtype="float16")),
    "longlong": lambda f: f(numbers(6, dtype="q"), np.longlong(3)),
    "the other byte order": lambda f: f(numbers(6).astype(">i4"), 3),
    "strided": lambda f: f(numbers(12)[::-2], numbers(6)),
    "positional out": lambda f: f(numbers(6), 3, OUT),
    "positional None": lambda f: f(numbers(6), 3, None),
    "out": lambda f: f(numbers(6), numbers(6), out=OUT),
    "out of None": lambda f: f(numbers(6), 3, out=None),
    "out of another dtype": lambda f: f(numbers(6), 3, out=np.empty(6)),
    "large out": lambda f: f(numbers(1), 3, out=np.empty(20_000)),
    "0-d": lambda f: f(numbers(), numbers()),
    "empty": lambda f: f(numbers(0, 7), numbers(7)),
    "64 dimensions": lambda f: f(numbers(*[1] * 63, 5), numbers(*[1] * 64)),
    "9 999": lambda f: f(numbers(9_999), numbers(9_999)),
    "9 999 by a scalar": lambda f: f(numbers(9_999), 7),
    "two dimensions": lambda f: f(numbers(99, 100), numbers(99, 100)),
    "row": lambda f: f(numbers(9, 100), numbers(9)[:, None]),
    "arguments unpacked": lambda f: f(*[numbers(6), 3], **{"out": OUT}),
    "shapes that do not fit": lambda f: f(numbers(6), numbers(5)),
    "out that is too small": lambda f: f(numbers(7), 3, OUT),
    "integer beyond the dtype": lambda f: f(numbers(6, dtype="int8"), 300),
}
OTHERS = {
    "10 000": lambda f: f(numbers(10_000), numbers(10_000)),
    "10 000 by a scalar": lambda f: f(numbers(10_000), 7),
    "scalar by 10 000": lambda f: f(7, numbers(100, 100)),
    "10 000 by broadcasting": lambda f: f(numbers(100, 1), numbers(1, 100)),
    "40 000 by broadcasting two of one size": lambda f: f(numbers(200), numbers(200, 1)),
    "same size, other shape": lambda f: f(numbers(101, 100), numbers(100)),
    "dividend broadcast": lambda f: f(np.broadcast_to(np.int8(7), (2**10, 2**10)), 3),
    "out in a tuple": lambda f: f(numbers(6), 3, out=(OUT,)),
    "another keyword": lambda f: f(numbers(6), 3, where=True),
    "two keywords": lambda f: f(numbers(6), 3, out=OUT, where=True),
    "out twice": lambda f: f(numbers(6), 3, OUT, out=OUT),
    "keyword that is equal": lambda f: f(numbers(6), 3, **SPELT),
    "one operand and out": lambda f: f(numbers(6), out=OUT),
    "no arguments": lambda f: f(),
    "one argument": lambda f: f(numbers(6)),
    "four arguments": lambda f: f(numbers(6), 3, OUT, OUT),
    "list": lambda f: f([7, 8], 3),
    "list as divisor": lambda f: f(numbers(2), [3, 4]),
    "list as out": lambda f: f(numbers(6), 3, [0]),
    "subclass": lambda f: f(np.ma.array(numbers(6)), 3),
    "subclass as divisor": lambda f: f(numbers(6), np.ma.array(numbers(6))),
    "subclass as out": lambda f: f(numbers(6), 3, out=np.asmatrix(np.empty((1, 6)))),
    "objects": lambda f: f(np.array([7, 8], object), 3),
    "longdouble": lambda f: f(numbers(6).astype("g"), 3),
    "divisor of longdouble": lambda f: f(numbers(6), np.longdouble(3)),
    "complex": lambda f: f(numbers(6), 3j),
    "strings": lambda f: f(np.array(["%d"]), 3),
    "timedelta": lambda f: f(numbers(6).astype("m8[s]"), np.timedelta64(3, "s")),
    "string of variable width": lambda f: f(np.array(["a"], np.dtypes.StringDType()), 3),
    "type": lambda f: f(int, 3),
    "None": lambda f: f(numbers(6), None),
}  # fmt: skip


@each_operation
@pytest.mark.parametrize("call", list(NATIVE.values()), ids=list(NATIVE))
def test_plain_small_calls_run_no_python(name, call):
    operation, twin = OPERATIONS[name]
    assert functions_run(lambda: outcome(call, operation)) == 0
    with in_python():
        assert functions_run(lambda: outcome(call, operation)) > 0
    assert_alike(outcome(call, operation), outcome(call, twin))


@each_operation
@pytest.mark.parametrize("call", list(OTHERS.values()), ids=list(OTHERS))
def test_every_other_call_is_python_s(name, call):
    operation, twin = OPERATIONS[name]
    assert functions_run(lambda: outcome(call, operation)) > 0
    assert_alike(outcome(call, operation), outcome(call, twin))


def assert_alike(got, want):
    assert (got.error, got.warnings, type(got.result)) == (want.error, want.warnings, type(want.result))
    if want.error is None and getattr(want.result, "dtype", np.dtype(object)).kind in "iuf" and want.result.dtype.itemsize <= 8:
        assert_same(np.asarray(got.result), np.asarray(want.result))


@each_operation
@pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=list(DTYPES))
def test_small_arrays_of_each_dtype_run_no_python(name, dtype):
    x, y = numbers(6, dtype="int8").astype(dtype), numbers(6, dtype="int8", seed=1).astype(dtype)
    for divisor in (y, 3, y[0]):
        count = functions_run(lambda divisor=divisor: OPERATIONS[name][0](x, divisor, out=x))
        assert (count > 0) == (type(divisor) is BFLOAT16.type)


@each_operation
def test_no_reference_is_lost_or_kept(name):
    operation = OPERATIONS[name][0]
    x, y, out, number = numbers(6), numbers(5), np.empty(6, np.int32), 123_456_789
    calls = [
        lambda: operation(x, x),
        lambda: operation(x, number, out),
        lambda: operation(x, number, out=out),
        lambda: operation(x, y),  # an error from the ufunc
        lambda: operation(x, number, out=(out,)),
        lambda: operation(x, [number]),
        lambda: operation(x, y, where=True),  # an error from Python's way
    ]

    def counts():
        gc.collect()
        return [sys.getrefcount(thing) for thing in (x, y, out, number, operation, operation._gate, np.ndarray, None)][:-1]

    for call in calls:
        outcome(call)
        before = counts()
        for _ in range(100):
            outcome(call)
        assert counts() == before


@each_operation
def test_the_type_s_call_is_the_entry_s(name):
    """Whoever calls by the type, as `__call__` of a subclass would, gets the same."""
    operation = OPERATIONS[name][0]
    x, y = numbers(6), numbers(6, seed=1)
    for call in (operation.__call__, lambda *args: type(operation).__call__(operation, *args), lambda *args: operation(*args)):
        assert_same(call(x, y), OPERATIONS[name][1](x, y))
