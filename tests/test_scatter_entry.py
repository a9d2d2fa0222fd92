"""The native entry of `scatter_div`: which calls go past Python, that they give the same, and what they leave behind; the object itself."""

from __future__ import annotations

import copy
import ctypes
import gc
import inspect
import pickle
import pydoc
import sys
import threading

import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES, assert_same_bits, each_dtype, outcome, usual_values
from scatter_oracle import divisors, functions_run, load_kernels, memory_of, sequential, unaligned, values

import fastops
from fastops import scatter
from fastops.engine import vectorcall
from fastops.scatter import scatter_div


@pytest.fixture(scope="module", autouse=True)
def kernels(compiled):
    load_kernels()


def numbers(*shape, dtype="float32"):
    return np.arange(7, 7 + int(np.prod(shape))).reshape(shape).astype(dtype)


def rows(*indices, kind=np.int64):
    return np.array(indices, kind)


def changed(x, change):
    change(x)
    return x


def limit(dtype):
    """Elements from which calls are no longer small."""
    return scatter_div._gate.served[np.dtype(dtype).num].large


def long(elements, x=None):
    return numbers(9) if x is None else x, np.zeros(elements, np.int64), np.ones(elements, np.float32)


def far(fewer=0):
    """An input_x of rows of one element from which threads may pay, less so many rows."""
    return np.ones(scatter_div._gate.far // 4 - fewer, np.float32)


def neighbours(x):
    """Parts of one array that touch and do not overlap."""
    return x[:4], rows(3, 0), x[4:6]


def interlocked(shape, strides):
    return np.lib.stride_tricks.as_strided(numbers(20), shape, strides)


def in_its_memory(indices):
    x = indices.view(np.dtype(np.int64).newbyteorder())
    return x, indices[:2], np.array([2, 3])


class Unhashable:
    dtype = property(lambda self: [])


class Raising:
    dtype = property(lambda self: 1 / 0)


UNHASHABLE, RAISING = Unhashable(), Raising()
WITH_METADATA = np.dtype("f4", metadata={"unit": "m"})
TWIN = np.dtype("f4").newbyteorder().newbyteorder()
AT_ONCE = {
    "1-D": lambda: (numbers(6), rows(3, 0, 3), numbers(3)),
    "int32 indices": lambda: (numbers(6), rows(3, 0, 3, kind=np.int32), numbers(3)),
    "2-D": lambda: (numbers(6, 5), rows(3, 0, 3), numbers(3, 5)),
    "indices of rank 2": lambda: (numbers(6, 5), rows(*[[3, 0, 3]] * 2), numbers(2, 3, 5)),
    "0-d indices": lambda: (numbers(6, 5), rows(3).reshape(()), numbers(5)),
    "0-d indices, 1-D": lambda: (numbers(6), rows(3).reshape(()), numbers(1).reshape(())),
    "many axes": lambda: (numbers(3, *[1] * 30, 2), np.zeros([1] * 30, int), numbers(*[1] * 60, 2)),
    "one row": lambda: (numbers(1), np.zeros(50, int), np.ones(50, np.float32)),
    "read-only operands": lambda: (numbers(6), *(changed(x, lambda x: x.setflags(write=False)) for x in (rows(3, 0), numbers(2)))),
    "neighbours": lambda: neighbours(numbers(6)),
    "views": lambda: (numbers(9, 5)[2:8], rows(7, 3, 0, 3)[1:], numbers(5, 5)[2:]),
    "an axis of one": lambda: (numbers(6, 6)[:, None][::1], rows(0, 1), numbers(2, 1, 6)),
    "MIN by -1": lambda: (np.full(6, -128, np.int8), rows(0, 1), np.full(2, -1, np.int8)),
    "strided": lambda: (numbers(12)[::2], rows(3, 0), numbers(2)),
    "strided indices": lambda: (numbers(6), rows(3, 0, 2)[::2], numbers(2)),
    "strided updates": lambda: (numbers(6), rows(3, 0), numbers(4)[::2]),
    "unaligned": lambda: (unaligned(numbers(6)), rows(3), numbers(1)),
    "unaligned indices": lambda: (numbers(6), unaligned(rows(3, 0)), numbers(2)),
    "unaligned updates": lambda: (numbers(6), rows(3, 0), unaligned(numbers(2))),
    "backwards": lambda: (numbers(12)[::-2], rows(3, 0, 2)[::-1], numbers(6)[4:1:-1]),
    "columns": lambda: (numbers(6, 8)[:, ::-2], rows(3, 0, 3), numbers(3, 12)[:, ::3]),
    "rows backwards": lambda: (numbers(12, 4)[::-2, 1:3], rows(3, 0, 3), numbers(6, 5)[::-2, :2]),
    "one row of columns": lambda: (numbers(1, 8)[:, ::2], rows(0, 0), numbers(2, 4)),
    "every second index of rank 2": lambda: (numbers(6), np.arange(12).reshape(3, 4)[:, ::2] % 6, numbers(6).reshape(3, 2)),
    "one update of a strided row": lambda: (numbers(6, 4), rows(3), np.asfortranarray(numbers(3, 4))[1:2]),
    "Fortran order": lambda: (np.asfortranarray(numbers(6, 5)), rows(3), numbers(1, 5)),
    "transposed": lambda: (numbers(5, 6).T, rows(3), numbers(1, 5)),
    "interlocked axes": lambda: (interlocked((2, 3), (4, 8)), rows(1), numbers(1, 3)),
    "parts of rows": lambda: (numbers(6, 3, 8)[:, :, 2:5], rows(3), numbers(1, 3, 3)),
    "parts of updates": lambda: (numbers(6, 3, 3), rows(3), numbers(1, 3, 8)[:, :, 2:5]),
    "broadcast indices": lambda: (numbers(6), np.broadcast_to(rows(3), (4,)), numbers(4)),
    "broadcast updates": lambda: (numbers(6, 4), rows(3, 0), np.broadcast_to(numbers(4), (2, 4))),
    "one number for a row": lambda: (numbers(6, 4), rows(3, 0), np.broadcast_to(numbers(2, 1), (2, 4))),
    "many broadcast updates": lambda: (numbers(6), np.zeros(scatter.LARGE, int), np.broadcast_to(np.float32(1), (scatter.LARGE,))),
    "one number for all": lambda: (numbers(6, 4), rows(3, 0), np.broadcast_to(np.float32(2), (2, 4))),
    "one number, 1-D": lambda: (numbers(6), rows(3, 0), np.broadcast_to(np.float32(2), (2,))),
    "one index, all the time": lambda: (numbers(6, 4), np.broadcast_to(rows(3, kind=np.int32), (3, 2)), numbers(3, 2, 4)),
    "Fortran order, rank 3": lambda: (np.asfortranarray(numbers(6, 3, 5)), rows(3, 0), numbers(2, 3, 5)),
    "axes in any order": lambda: (numbers(3, 5, 6, 2).transpose(2, 0, 3, 1)[::-1], rows(3, 0), numbers(2, 5, 2, 3).transpose(0, 3, 2, 1)),
    "parts of rows, backwards": lambda: (numbers(6, 1, 3, 1, 8)[:, :, ::-2, :, 7:0:-3], rows(3, 0, 3), numbers(3, 1, 2, 1, 3)),
    "as many runs as can be": lambda: (numbers(3, 4, 64, 3)[..., :2], rows(1, 2, 1), numbers(3, 4, 64, 2)),
    "zero in no run": lambda: (numbers(6, 3, 8, dtype="int16")[:, :, 2:5], rows(3, 0), np.ones((2, 3, 3), np.int16)),
    "as many updates as can be": lambda: long(limit("f4") - 1, far()),
    "many updates of a near input_x": lambda: long(limit("f4"), far(1)),
    "far, but one row": lambda: long(limit("f4"), np.lib.stride_tricks.as_strided(numbers(9), (1,), (1 << 40,))),
    "other byte order": lambda: (numbers(6, dtype=">f4"), rows(3), numbers(1)),
    "other byte order, one index of rank 2": lambda: (numbers(6, 2, dtype=">f4"), rows([3]), numbers(1, 1, 2)),
    "other byte order, rows named again": lambda: (numbers(6, 2, dtype=">f4"), rows([3, 0], [3, 3]), numbers(2, 2, 2)),
    "other byte order, columns": lambda: (numbers(6, 8, dtype=">f4")[::-1, ::3], rows(3, 0), numbers(2, 3)),
    "other byte order, unaligned": lambda: (unaligned(numbers(6, dtype=">f4")), rows(3, 0), numbers(2)),
    "other byte order, more updates": lambda: (numbers(6, 2, dtype=">f4"), np.arange(70) % 6, np.ones((70, 2), np.float32)),
    "other byte order, parts of rows": lambda: (numbers(6, 3, 8, dtype=">f4")[:, :, 2:5], rows(3, 0, 3), numbers(3, 3, 3)),
    "other byte order, many updates": lambda: (numbers(6, dtype=">f4"), *long(scatter.LARGE - 1)[1:]),
}
CONVERTED = {  # and then at once
    "list of indices": lambda: (numbers(6), [3, 0], numbers(2)),
    "list of updates": lambda: (numbers(6), rows(3, 0), [2, 3]),
    "lists": lambda: (numbers(6), (3, 0), [2.5, 3]),
    "nested lists": lambda: (numbers(6, 2), [[3], [0]], [[[2, 3]], [[True, 5]]]),
    "numbers": lambda: (numbers(6), 3, 2.5),
    "numbers of NumPy": lambda: (numbers(6), np.int64(3), np.float32(2.5)),
    "integers": lambda: (numbers(6, dtype="uint8"), [3, 0], [2, 255]),
    "booleans": lambda: (numbers(6, dtype="int8"), rows(3, 0), np.ones(2, bool)),
    "integers into floats": lambda: (numbers(6, dtype="float16"), rows(3, 0), np.array([2, 65_504])),
    "another dtype": lambda: (numbers(6), rows(3), numbers(1, dtype="float16")),
    "another dtype, broadcast": lambda: (numbers(6, 3), rows(3, 0), np.broadcast_to(np.int8([[2], [3]]), (2, 3))),
    "updates in the other byte order": lambda: (numbers(6), rows(3), numbers(1, dtype=">f4")),
    "transposed indices": lambda: (numbers(6), rows(*[[3, 0, 1]] * 2).T, numbers(3, 2)),
    "indices in the other byte order": lambda: (numbers(6), rows(3, kind=">i8"), numbers(1)),
    "interleaved": lambda: ((x := numbers(12))[::2], rows(1, 0), x[1:4:2]),
    "the last update overlaps": lambda: ((x := numbers(12))[:4], rows(3, 0), x[5:2:-2]),
    "updates of another dtype in the same memory": lambda: ((x := numbers(8))[:6], rows(3), x.view(np.float16)[2:3]),
    "a subclass and lists": lambda: (numbers(6, 1).view(np.matrix), [3], [[2.0]]),
    "subclass": lambda: (numbers(6, 1).view(np.matrix), rows(3), numbers(1, 1)),
    "updates that overlap": lambda: ((x := numbers(6))[:4], rows(3, 0), x[3:5]),
    "the same array twice": lambda: (x := numbers(6), np.arange(6), x),
    "the first column overlaps": lambda: ((x := numbers(20))[6:10], rows(3, 0), x[9:11]),
    "indices that overlap": lambda: (x := np.arange(1, 7), x[:2], np.ones(2, int)),
    "updates of a subclass": lambda: (numbers(6, 1), rows(3), numbers(1, 1).view(np.matrix)),
    "indices of a subclass": lambda: (numbers(6, 1), rows([3]).view(np.matrix), numbers(1, 1, 1)),
    "metadata": lambda: (numbers(6, dtype=WITH_METADATA), rows(3), numbers(1, dtype=WITH_METADATA)),
    "another object for the dtype": lambda: (numbers(6, dtype=TWIN), rows(3), numbers(1, dtype=TWIN)),
    "indices of the other 64 bits": lambda: (numbers(6), rows(3, kind=np.longlong), numbers(1)),
    "other byte order and a list": lambda: (numbers(6, dtype=">f4"), [3], [2.0]),
    "all in the other byte order": lambda: (numbers(6, dtype=">i2"), rows(3, 0, kind=">i4"), numbers(2, dtype=">i2")),
    "other byte order, more updates of another dtype": lambda: (numbers(6, 2, dtype=">f4"), np.arange(70) % 6, np.ones((70, 2), np.int8)),
    "other byte order, a subclass": lambda: (numbers(6, 1, dtype=">f4").view(np.matrix), rows(3), numbers(1, 1)),
    "other byte order, and updates among its elements": lambda: (x := numbers(6, dtype=">f4"), rows(1, 0, 1), x[1:4]),
    "other byte order, and updates in its memory": lambda: (x := numbers(6, dtype=">i4"), rows(1, 0, 1), x.view(np.int8)[3:15:4]),
    "other byte order, and indices in its memory": lambda: in_its_memory(np.array([1, 3, 2, 9])),
}
BY_PYTHON = {
    "more runs": lambda: (numbers(3, 257, 3)[..., :2], rows(1, 2, 1), numbers(3, 257, 2)),
    "rows that interlock, rank 3": lambda: (interlocked((2, 3, 2), (8, 16, 12)), rows(1), numbers(1, 3, 2)),
    "zero in a run": lambda: (numbers(6, 3, 8, dtype="int16")[:, :, 2:5], rows(3, 0), np.arange(-17, 1, dtype=np.int16).reshape(2, 3, 3)),
    "a subclass, and no row 6": lambda: (numbers(6, 1).view(np.matrix), rows(3, 6), numbers(2, 1)),
    "many updates of a subclass": lambda: (numbers(2, 1), np.arange(scatter.LARGE) % 2, numbers(scatter.LARGE, 1).view(np.matrix)),
    "rows that interlock": lambda: (interlocked((3, 2), (4, 8)), rows(1), numbers(1, 2)),
    "updates of other byte order that do not convert": lambda: (numbers(6), rows(3), numbers(1, dtype=">f8")),
    "a number that overflows": lambda: (numbers(6), rows(3), 1e39),
    "an integer that overflows": lambda: (numbers(6, dtype="float16"), rows(3, 0), np.array([2, 65_520])),
    "an integer that does not fit": lambda: (numbers(6, dtype="int8"), [3], [128]),
    "an index beyond 64 bits": lambda: (numbers(6), [2**64], [2]),
    "floats into integers": lambda: (numbers(6, dtype="int8"), [3], [2.0]),
    "a list of rows of unequal length": lambda: (numbers(6, 2), [3, 0], [[1, 2], [3]]),
    "a list with a masked array": lambda: (numbers(6), [3, 0], [np.ma.array(2.0), 3.0]),
    "int16 indices and a list": lambda: (numbers(6), rows(3, kind=np.int16), [2.0]),
    "float indices and another dtype": lambda: (numbers(6), rows(3, kind=float), numbers(1, dtype="float16")),
    "masked indices and a list": lambda: (numbers(6), np.ma.array(rows(3)), [2.0]),
    "a list and masked updates": lambda: (numbers(6), [3], np.ma.array(numbers(1))),
    "a list of booleans for indices": lambda: (numbers(6), [True], [2.0]),
    "zero in a list": lambda: (numbers(6, dtype="int16"), [3, 2], [1, 0]),
    "no row 6, in a list": lambda: (numbers(6), [3, 6], [1, 2]),
    "lists of unequal length": lambda: (numbers(6), [3, 0], [1.0]),
    "many updates of a far input_x": lambda: long(limit("f4"), far()),
    "many updates of a far input_x, backwards": lambda: long(limit("f4"), far()[::-1]),
    "many elements of rows": lambda: (numbers(9, limit("f4")), rows(3), numbers(1, limit("f4"))),
    "list": lambda: ([1.0, 2.0], rows(0), numbers(1)),
    "an object whose dtype cannot be hashed": lambda: (UNHASHABLE, rows(0), numbers(1)),
    "an object whose dtype raises": lambda: (RAISING, rows(0), numbers(1)),
    "windows": lambda: (np.lib.stride_tricks.as_strided(numbers(9), (3, 2), (4, 4)), rows(1), numbers(1, 2)),
    "one element many times": lambda: (np.lib.stride_tricks.as_strided(numbers(9), (3,), (0,)), rows(1), numbers(1)),
    "other byte order, no row 6": lambda: (numbers(6, dtype=">f4"), rows(3, 6), numbers(2)),
    "other byte order, row -1 beside others": lambda: (numbers(600, dtype=">f4"), rows(1, -1), numbers(2)),
    "other byte order, row -1 beside many": lambda: (numbers(600, dtype=">f4"), np.arange(-1, 300), np.ones(301, np.float32)),
    "other byte order, no row 600 beside many": lambda: (numbers(600, dtype=">f4"), np.arange(300, 601), np.ones(301, np.float32)),
    "other byte order, too few updates of many rows": lambda: (numbers(600, 2, dtype=">f4"), rows(3, 0), numbers(1, 2)),
    "other byte order, row -1": lambda: (numbers(6, dtype=">f4"), rows(-1), numbers(1)),
    "other byte order, and no row 6 for more updates": lambda: (numbers(6, dtype=">f4"), np.arange(70) % 7, np.ones(70, np.int8)),
    "other byte order, no rows": lambda: (numbers(0, dtype=">f4"), rows(0), numbers(1)),
    "other byte order, no indices": lambda: (numbers(6, dtype=">f4"), rows(), numbers(0)),
    "other byte order, no columns": lambda: (numbers(6, 0, dtype=">f4"), rows(3), numbers(1, 0)),
    "other byte order, too few updates": lambda: (numbers(6, 2, dtype=">f4"), rows(3, 0), numbers(1, 2)),
    "other byte order, 0-d": lambda: (numbers(1, dtype=">f4").reshape(()), rows(0), numbers(1)),
    "other byte order, 0-d all of them": lambda: (numbers(1, dtype=">f4").reshape(()), 0, 2.0),
    "other byte order, read-only": lambda: (changed(numbers(6, dtype=">f4"), lambda x: x.setflags(write=False)), rows(3), numbers(1)),
    "other byte order, windows": lambda: (np.lib.stride_tricks.as_strided(numbers(9, dtype=">f4"), (3, 2), (4, 4)), [1], [[2, 3]]),
    "other byte order, 1-D windows": lambda: (np.lib.stride_tricks.as_strided(numbers(9, dtype=">f4"), (3,), (2,)), [1, 2], [2, 3]),
    "other byte order, too many updates": lambda: (numbers(6, dtype=">f4"), *long(scatter.LARGE)[1:]),
    "other byte order, zero": lambda: (numbers(6, dtype=">i2"), rows(3, 2), np.array([1, 0], np.int16)),
    "other byte order, masked": lambda: (np.ma.array(numbers(6, dtype=">f4")), rows(3), numbers(1)),
    "other byte order, int16 indices": lambda: (numbers(6, dtype=">f4"), rows(3, kind=np.int16), numbers(1)),
    "other byte order, float indices": lambda: (numbers(6, dtype=">f4"), rows(3, kind=float), numbers(1)),
    "other byte order, a dtype that does not convert": lambda: (numbers(6, dtype=">f4"), rows(3), numbers(1, dtype="float64")),
    "another byte order of what is not served": lambda: (numbers(6, dtype=">c8"), rows(3), numbers(1, dtype="c8")),
    "a dtype that does not convert": lambda: (numbers(6), rows(3), numbers(1, dtype="float64")),
    "a dtype that is not served": lambda: (numbers(6, dtype=bool), rows(3), numbers(1, dtype=bool)),
    "complex": lambda: (numbers(6, dtype="c8"), rows(3), numbers(1, dtype="c8")),
    "objects": lambda: (numbers(6, dtype=object), rows(3), numbers(1, dtype=object)),
    "int16 indices": lambda: (numbers(6), rows(3, kind=np.int16), numbers(1)),
    "uint64 indices": lambda: (numbers(6), rows(3, kind=np.uint64), numbers(1)),
    "read-only": lambda: (changed(numbers(6), lambda x: x.setflags(write=False)), rows(3), numbers(1)),
    "0-d": lambda: (numbers(1).reshape(()), rows(0), numbers(1)),
    "no indices": lambda: (numbers(6), rows(), numbers(0)),
    "no columns": lambda: (numbers(6, 0), rows(3), numbers(1, 0)),
    "a row of no columns that is not there": lambda: (numbers(6, 0), rows(6), numbers(1, 0)),
    "no rows": lambda: (numbers(0), rows(0), numbers(1)),
    "too few updates": lambda: (numbers(6), rows(3, 0), numbers(1)),
    "updates of another rank": lambda: (numbers(6), rows(3, 0), numbers(2, 1)),
    "updates of other rows": lambda: (numbers(6, 2), rows(3, 0), numbers(2, 3)),
    "no row 6": lambda: (numbers(6), rows(3, 6), numbers(2)),
    "row -1": lambda: (numbers(6), rows(3, -1, kind=np.int32), numbers(2)),
    "row 2**32": lambda: (numbers(6), rows(3, 2**32), numbers(2)),
    "zero": lambda: (numbers(6, dtype="int16"), rows(3, 2), np.array([1, 0], np.int16)),
    "masked": lambda: (np.ma.array(numbers(6)), rows(3), numbers(1)),
    "masked indices": lambda: (numbers(6), np.ma.array(rows(3)), numbers(1)),
    "masked updates": lambda: (numbers(6), rows(3), np.ma.array(numbers(1))),
    "None": lambda: (numbers(6), rows(3), None),
}  # fmt: skip


def result(call, args):
    """What a call tells, and the bytes of input_x afterwards."""
    told = outcome(call, *args)
    assert told.result is (args[0] if told.error is None else None)
    return told.warnings, told.error, memory_of(args[0]).tobytes() if isinstance(args[0], np.ndarray) else args[0]


@pytest.mark.parametrize("form", [*AT_ONCE, *CONVERTED, *BY_PYTHON])
def test_which_calls_go_past_python(form):
    make = {**AT_ONCE, **CONVERTED, **BY_PYTHON}[form]
    args = make()
    run = functions_run(lambda: outcome(scatter_div, *args))
    assert ("_scatter_div" in run) == (form in BY_PYTHON)
    assert (run == []) == (form in AT_ONCE)
    assert result(scatter_div, make()) == result(scatter._scatter_div, make())


@each_dtype
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_every_dtype_goes_past_python(dtype, kind):
    for shape, count in (((7,), 40), ((6, 37), 25)):
        indices = np.random.default_rng(0).integers(0, shape[0], count).astype(kind)
        x, u = values(dtype, shape), divisors(dtype, (count, *shape[1:]))
        want = sequential(x, indices, u)
        with np.errstate(all="ignore"):
            seen = functions_run(lambda x=x, indices=indices, u=u: scatter_div(x, indices, u))
        assert set(seen) <= {"_report"}  # of what the kernel tells
        assert_same_bits(x, want)


@pytest.mark.parametrize("code", "bhilqBHILQefd")
def test_every_type_number_goes_past_python(code):
    """Of NumPy's two for one integer, too."""
    x = numbers(6, dtype=code)
    assert functions_run(lambda: scatter_div(x, rows(3), numbers(1, dtype=code))) == []
    assert x[3] == np.dtype(code).type(10 / 7)


def test_flags_are_for_python():
    x = numbers(6)
    with np.errstate(all="ignore"):
        assert functions_run(lambda: scatter_div(x, rows(3), np.zeros(1, np.float32))) == ["_report"]
    assert x[3] == np.inf
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match=r"^divide by zero encountered in scatter_div$"):
        scatter_div(x, rows(2), np.zeros(1, np.float32))
    assert x[2] == np.inf  # written before it is raised


def test_other_flags_of_the_thread_are_left_alone():
    with np.errstate(all="raise"):
        for _ in range(3):
            with pytest.raises(FloatingPointError):
                scatter_div(numbers(6), rows(3), np.zeros(1, np.float32))
            scatter_div(numbers(6), rows(3), np.ones(1, np.float32))
            assert np.divide(numbers(6), 2)[0] == 3.5


# --- how it may be called -----------------------------------------------------------------------------------------------------------------
def test_keywords():
    for call in (scatter_div, scatter_div.__call__, lambda *args, **kwargs: type(scatter_div).__call__(scatter_div, *args, **kwargs)):
        for given in range(4):
            args = (numbers(6), rows(3), numbers(1))
            rest = dict(zip(("input_x", "indices", "updates")[given:], args[given:], strict=True))
            assert call(*args[:given], **dict(reversed(rest.items()))) is args[0]
            assert args[0][3] == np.float32(10 / 7)


@pytest.mark.parametrize(
    ("args", "keywords", "message"),
    [
        ((), {}, "missing 3 required positional arguments: 'input_x', 'indices', and 'updates'"),
        ((1, 2), {}, "missing 1 required positional argument: 'updates'"),
        ((1, 2, 3, 4), {}, "takes 4 positional arguments but 5 were given"),
        ((1, 2, 3), {"updates": 4}, "got multiple values for argument 'updates'"),
        ((1, 2, 3), {"out": 4}, "got an unexpected keyword argument 'out'"),
    ],
)
def test_arguments_that_are_wrong(args, keywords, message):
    with pytest.raises(TypeError, match=message):
        scatter_div(*args, **keywords)


def test_the_object():
    assert fastops.scatter_div is scatter_div
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(scatter_div, protocol)) is scatter_div
    assert copy.copy(scatter_div) is copy.deepcopy(scatter_div) is scatter_div
    assert list(inspect.signature(scatter_div).parameters) == ["input_x", "indices", "updates"]
    assert repr(scatter_div) == "<fastops function 'scatter_div'>"
    assert (scatter_div.__name__, scatter_div.__qualname__, scatter_div.__module__) == ("scatter_div", "scatter_div", "fastops")
    assert callable(scatter_div)
    text = pydoc.plain(pydoc.render_doc(scatter_div))
    for line in filter(None, map(str.strip, scatter_div.__doc__.splitlines())):
        assert line in text
    assert "ZeroDivisionError" in text


@pytest.mark.parametrize(
    "make", [lambda: scatter.ScatterDiv(scatter._scatter_div), lambda: scatter.ScatterDiv.__base__(scatter._scatter_div)]
)
def test_without_an_entry_python_serves_every_call(make, monkeypatch):
    monkeypatch.setattr(vectorcall.headers, "functions", lambda: None)
    divide = make()
    divide.admit()
    assert divide._gate is None
    x = numbers(6)
    assert "__call__" in functions_run(lambda: divide(x, rows(3), numbers(1)))
    assert x[3] == np.float32(10 / 7)


def test_an_array_that_numpy_warns_of():
    def operands():
        return np.broadcast_arrays(numbers(6), np.ones((1, 6)))[0], rows(0, 0), numbers(2, 6)

    for call in (scatter_div, scatter_div.__call__):
        args = operands()
        assert functions_run(lambda call=call, args=args: outcome(call, *args)) != []
        assert_same_bits(args[0], sequential(*operands()))


def test_an_array_that_is_written_back():
    whole = np.array([8, 6, 7])
    with np.nditer(whole, [], [["readwrite", "updateifcopy"]], ["f4"], casting="unsafe") as iterator:
        x = iterator.operands[0]
        assert x.flags.writebackifcopy
        assert functions_run(lambda: scatter_div(x, rows(0, 2), np.array([2, 7], np.float32))) != []
    assert whole.tolist() == [4, 6, 1]


# --- what is left behind ------------------------------------------------------------------------------------------------------------------
def test_no_reference_is_lost_or_kept():
    x, whole, out = numbers(6), numbers(6, dtype="int32"), numbers(6)[::2]
    indices, wrong, ones, u, zeros = rows(3, 0), rows(3, 9), np.ones(2, np.float32), np.ones(2, np.int32), np.zeros(2, np.float32)
    calls = [
        lambda: scatter_div(x, indices, ones),
        lambda: scatter_div(whole, indices, u),
        lambda: scatter_div(x, indices, updates=ones),
        lambda: scatter_div(out, rows(1), ones[:1]),
        lambda: scatter_div(x, wrong, ones),
        lambda: scatter_div(whole, indices, u - u),
        lambda: scatter_div(x, indices, zeros),  # a warning
        lambda: scatter_div(x, indices, ones[:1]),
        lambda: scatter_div(x, indices, x[:2]),
        lambda: scatter_div(x, indices),
        lambda: scatter_div(x, [0, 1], [2.0, 3.0]),
        lambda: scatter_div(None, None, None),
    ]

    def counts():
        gc.collect()
        kept = (
            x,
            whole,
            out,
            indices,
            wrong,
            ones,
            u,
            zeros,
            x.dtype,
            whole.dtype,
            indices.dtype,
            scatter_div,
            scatter_div._gate,
            np.ndarray,
        )
        return [sys.getrefcount(thing) for thing in kept]

    gc.collect()
    gc.freeze()  # what there is by now need not be looked at each time
    for call in calls:
        for state in ("warn", "raise", "ignore"):
            with np.errstate(all=state):
                outcome(call)
                x[:] = 7  # so that each call meets the same
                before = counts()
                for _ in range(50):
                    outcome(call)
                    x[:] = 7
                assert counts() == before
    gc.unfreeze()


def test_other_threads_run_meanwhile_if_it_takes_long(monkeypatch):
    released = []
    release = ctypes.PYFUNCTYPE(ctypes.c_void_p)(lambda: released.append(1))  # gives null: nothing to take back
    monkeypatch.setattr(scatter_div._gate.functions, "PyEval_SaveThread", ctypes.cast(release, ctypes.c_void_p))
    for n, times in ((scatter.LARGE - 1, 0), (scatter.LARGE, 1)):
        args = long(n)
        assert functions_run(lambda args=args: scatter_div(*args)) == []
        assert len(released) == times


@pytest.mark.parametrize("dtype", [DTYPES["int32"], DTYPES["float64"], BFLOAT16], ids=str)
@pytest.mark.parametrize("small", [scatter.LARGE, 1], ids=["held", "released"])
def test_several_threads(dtype, small, monkeypatch):
    """Each sees its own results and warnings, whether the kernel runs with the GIL held or without."""
    monkeypatch.setattr(scatter_div._gate, "large", small)
    wrong, line = [], threading.Barrier(4)

    def work(seed):
        u = np.where(np.arange(300) == 7 * seed, dtype.type(0), dtype.type(3))
        x, indices = usual_values(dtype, 50, seed), np.arange(300) % 50
        with np.errstate(all="ignore"):
            want = x if dtype.kind == "i" else sequential(x, indices, u)
        line.wait()
        for k in range(150):
            mine, raised = x.copy(), False
            with np.errstate(all="raise" if k % 3 == 0 else "ignore"):
                try:
                    scatter_div(mine, indices, u)
                except (FloatingPointError, ZeroDivisionError):
                    raised = True
            if raised != (dtype.kind == "i" or k % 3 == 0) or mine.tobytes() != want.tobytes():
                wrong.append((seed, k))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    sys.setswitchinterval(interval)
    assert not wrong
