"""Which way calls take: the loop at once, the real ufunc without Python, or Python. (What they give: test_mod_calls, and here at once.)"""

import contextlib
import ctypes
import gc
import pickle
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from conftest import (
    BFLOAT16,
    DTYPES,
    EDGE_VALUES,
    OPERATIONS,
    assert_same,
    assert_same_bits,
    each_dtype,
    each_operation,
    for_each_operation_and_dtype,
    in_python,
    mixed_values,
    offends,
    outcome,
    small_values,
)

from fastops import dispatch
from fastops.engine import threads


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


@contextlib.contextmanager
def noted(operation):
    """Which of the two targets of the gate are called; none if the loop is."""
    seen = []

    def noting(name, target):
        def run(*args, **kwargs):
            seen.append(name)
            return target(*args, **kwargs)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for field, name in (("plain", "ufunc"), ("other", "Python")):
            patch.setattr(operation._gate, field, noting(name, getattr(operation._gate, field)))
        yield seen


@contextlib.contextmanager
def at_once(operation):
    """Calls that are not the loop's at once fail."""
    with noted(operation) as seen:
        yield
    assert not seen


LIMITS = {}


@pytest.fixture(scope="module", autouse=True)
def limits(compiled):
    """Once it is known what starting threads costs."""
    while not threads.start_is_known():
        threads.learn_start(threads.USUAL)
    for name, (operation, _) in OPERATIONS.items():
        operation._limit()
        LIMITS[name] = operation._gate.served[np.dtype(np.int32).num].large


def limit(f):
    """Elements from which arrays of int32 are no longer for the loop at once."""
    return LIMITS[f.__name__]


def reference(name, dtype):
    """What results are compared with: NumPy's, but for bfloat16, for which that has other loops, those of the real ufunc, by Python."""
    operation, twin = OPERATIONS[name]
    if dtype != BFLOAT16:
        return twin

    def in_python_s_way(*args):
        with in_python():
            return operation(*args)

    return in_python_s_way


def other(x, change):
    """`x` changed so that it is no longer plain."""
    change(x)
    return x


def moved(x, by):
    """Two arrays of six elements whose memory overlaps."""
    return x[:6], x[by : by + 6]


OUT = np.empty(6, np.int32)
SPELT = {"".join(["o", "ut"]): OUT}  # a keyword that is equal, not the same
FIELDS = np.dtype((np.int32, {"low": (np.int16, 0), "high": (np.int16, 2)}))

LOOP = {
    "arrays": lambda f: f(numbers(6), numbers(6)),
    "an array by itself": lambda f: f(x := numbers(6), x),
    "by a Python integer": lambda f: f(numbers(6), 3),
    "a Python integer by": lambda f: f(100, numbers(6)),
    "by a Python float": lambda f: f(numbers(6, dtype="float64"), 2.5),
    "a Python float by": lambda f: f(2.5, numbers(6, dtype="float32")),
    "floats by a Python integer": lambda f: f(numbers(6, dtype="float16"), 3),
    "by a scalar of NumPy": lambda f: f(numbers(6), np.int32(3)),
    "a scalar of NumPy by": lambda f: f(np.float64(2.5), numbers(6, dtype="float64")),
    "positional out": lambda f: f(numbers(6), 3, OUT),
    "positional None": lambda f: f(numbers(6), 3, None),
    "out": lambda f: f(numbers(6), numbers(6), out=OUT),
    "out of None": lambda f: f(numbers(6), 3, out=None),
    "empty": lambda f: f(numbers(3, 0, 7), numbers(3, 0, 7)),
    "empty by a scalar": lambda f: f(numbers(0), 0),
    "an axis of one": lambda f: f(numbers(1, 6, 1)[::-1], numbers(6, 6)[2:3, :, None]),
    "64 dimensions": lambda f: f(numbers(*[1] * 63, 5), numbers(*[1] * 63, 5)),
    "two dimensions": lambda f: f(numbers(99, 100), numbers(99, 100)),
    "both orders": lambda f: f(numbers(6, 1), numbers(1, 6).T),
    "read-only": lambda f: f(np.frombuffer(b"1234", np.int8), 3),
    "right behind each other": lambda f: f(moved(x := numbers(18), 6)[0], x[6:12], x[12:]),
    "long": lambda f: f(numbers(6, dtype="l"), numbers(6, dtype="l")),
    "long long": lambda f: f(numbers(6, dtype="q"), numbers(6, dtype="q")),
    "long long by a scalar": lambda f: f(numbers(6, dtype="q"), np.longlong(3)),
    "large": lambda f: f(numbers(10_000), numbers(10_000)),
    "as large as can be": lambda f: f(numbers(limit(f) - 1), numbers(limit(f) - 1)),
    "arguments unpacked": lambda f: f(*[numbers(6), 3], **{"out": OUT}),
}
UFUNC = {
    "by a float": lambda f: f(numbers(6), 2.5),
    "by a bool": lambda f: f(numbers(6), True),
    "by a scalar of another dtype": lambda f: f(numbers(6), np.int16(3)),
    "floats by a scalar of another dtype": lambda f: f(numbers(6, dtype="float32"), np.float64(3)),
    "scalars": lambda f: f(7, np.float32(3)),
    "bools": lambda f: f(numbers(6) > 0, numbers(6) > 0),
    "mixed dtypes": lambda f: f(numbers(6), numbers(6, dtype="float16")),
    "the other byte order": lambda f: f(numbers(6).astype(">i4"), 3),
    "unpickled": lambda f: f(pickle.loads(pickle.dumps(numbers(6))), 3),
    "metadata": lambda f: f(numbers(6).astype(np.dtype("i4", metadata={"unit": "m"})), 3),
    "metadata in the divisor": lambda f: f(numbers(6), numbers(6).astype(np.dtype("i4", metadata={"unit": "m"}))),
    "fields": lambda f: f(numbers(6).view(FIELDS), numbers(6).view(FIELDS)),
    "strided": lambda f: f(numbers(12)[::-2], numbers(6)),
    "strided divisor": lambda f: f(numbers(6), numbers(12)[::2]),
    "strided out": lambda f: f(numbers(6), 3, out=np.zeros(12, np.int32)[::2]),
    "Fortran order": lambda f: f(numbers(3, 2).T, numbers(3, 2).T),
    "both orders in two dimensions": lambda f: f(numbers(2, 3), numbers(3, 2).T),
    "unaligned": lambda f: f(np.zeros(25, np.int8)[1:].view(np.int32), 3),
    "unaligned out": lambda f: f(numbers(6), 3, np.zeros(25, np.int8)[1:].view(np.int32)),
    "in place": lambda f: f(x := numbers(6), 3, x),
    "in place of the divisor": lambda f: f(numbers(6), x := numbers(6), out=x),
    "out that overlaps": lambda f: f(moved(x := numbers(18), 5)[0], 3, x[5:11]),
    "out that overlaps the divisor": lambda f: f(numbers(6), moved(x := numbers(18), 5)[1], x[:6]),
    "read-only out": lambda f: f(numbers(6), 3, other(np.empty(6, np.int32), lambda x: x.setflags(write=False))),
    "out of which NumPy warns": lambda f: f(numbers(6), 3, np.broadcast_arrays(np.zeros(6, np.int32), np.zeros((1, 6), np.int32))[0][0]),
    "out of another dtype": lambda f: f(numbers(6), 3, out=np.empty(6)),
    "out of another shape": lambda f: f(numbers(6), 3, out=np.empty((1, 6), np.int32)),
    "large out": lambda f: f(numbers(1), 3, out=np.empty(20_000)),
    "0-d": lambda f: f(np.array(7), np.array(3)),
    "0-d divisor": lambda f: f(numbers(6), np.array(3, np.int32)),
    "0-d out": lambda f: f(7, 3, out=np.empty((), np.int32)),
    "broadcasting to nothing": lambda f: f(numbers(0, 7), numbers(7)),
    "row": lambda f: f(numbers(9, 100), numbers(9)[:, None]),
    "shapes that do not fit": lambda f: f(numbers(6), numbers(5)),
    "out that is too small": lambda f: f(numbers(7), 3, OUT),
    "integer beyond the dtype": lambda f: f(numbers(6, dtype="int8"), 300),
    "negative integer": lambda f: f(numbers(6, dtype="uint8"), -1),
    "by zero": lambda f: f(numbers(6), 0),
    "by a zero": lambda f: f(numbers(6), numbers(6) - numbers(6).max()),
    "infinity": lambda f: f(np.inf, numbers(6, dtype="float64")),
}
PYTHON = {
    "large and strided": lambda f: f(numbers(20_000)[::2], 3),
    "10 000 by broadcasting": lambda f: f(numbers(100, 1), numbers(1, 100)),
    "40 000 by broadcasting two of one size": lambda f: f(numbers(200), numbers(200, 1)),
    "large and by zero": lambda f: f(numbers(10_000), 0),
    "too large": lambda f: f(numbers(limit(f)), numbers(limit(f))),
    "too large, by a scalar": lambda f: f(numbers(limit(f)), 7),
    "scalar by too large": lambda f: f(7, numbers(2, limit(f))),
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
    "records": lambda f: f(np.zeros(6, [("x", np.int32)]), 3),
    "strings": lambda f: f(np.array(["%d"]), 3),
    "timedelta": lambda f: f(numbers(6).astype("m8[s]"), np.timedelta64(3, "s")),
    "string of variable width": lambda f: f(np.array(["a"], np.dtypes.StringDType()), 3),
    "type": lambda f: f(int, 3),
    "None": lambda f: f(numbers(6), None),
}  # fmt: skip
WAYS = {way: [way] * (way != "loop") for way in ("loop", "ufunc", "Python")}
CALLS = [(way, name, call) for way, calls in zip(WAYS, (LOOP, UFUNC, PYTHON), strict=True) for name, call in calls.items()]


@each_operation
@pytest.mark.parametrize(("way", "call"), [(way, call) for way, _, call in CALLS], ids=[f"{way}, {name}" for way, name, _ in CALLS])
def test_which_way_a_call_takes(name, way, call):
    operation, twin = OPERATIONS[name]
    with noted(operation) as seen:
        outcome(call, operation)
    assert seen == WAYS[way]
    assert (functions_run(lambda: outcome(call, operation)) > 0) == (way == "Python")
    assert_alike(outcome(call, operation), outcome(call, twin))
    with in_python():
        assert functions_run(lambda: outcome(call, operation)) > 0


def assert_alike(got, want):
    assert (got.error, got.warnings, type(got.result)) == (want.error, want.warnings, type(want.result))
    if want.error is None and getattr(want.result, "dtype", np.dtype(object)).kind in "iuf" and want.result.dtype.itemsize <= 8:
        assert got.result.dtype.metadata == want.result.dtype.metadata
        assert_same_bits(np.array(got.result).view(want.result.dtype.str), np.array(want.result).view(want.result.dtype.str))
        assert np.shares_memory(got.result, OUT) == np.shares_memory(want.result, OUT)


# --- the loop at once ---------------------------------------------------------------------------------------------------------------------
@each_operation
@each_dtype
def test_small_arrays_of_each_dtype(name, dtype):
    x, y = numbers(6, dtype="int8").astype(dtype), numbers(6, dtype="int8", seed=1).astype(dtype)
    operation, twin = OPERATIONS[name][0], reference(name, dtype)
    for operands in ((x, y), (x, 3), (3, x), (x, y[0]), (x[0], y)):
        for out in ((), (np.empty_like(x),)):
            want = twin(*operands)
            with (at_once if want.dtype == dtype else noted)(operation):  # NumPy 2.0 promotes bfloat16 with an integer of Python
                got = operation(*operands, *out[: want.dtype == dtype])
            assert_same(got, want, *operands)
    with in_python():
        assert_same(operation(x, y[0]), twin(x, y[0]))


@each_operation
@each_dtype
def test_edge_values(name, dtype):
    """Each one by all others and all others by it, as far as nothing is reported."""
    operation, twin = OPERATIONS[name][0], reference(name, dtype)
    edges = EDGE_VALUES[str(dtype)]
    for value in edges:
        for numbers_of in (lambda x, y: (x, y), lambda x, y: (y, x)):
            plain = edges[~offends(*numbers_of(edges, value))]
            for x in (value, np.full(plain.shape, value)):
                operands = numbers_of(plain, x)
                with at_once(operation):
                    got = operation(*operands)
                assert_same(got, twin(*operands), *operands)


PYTHON_NUMBERS = [
    *(0, 1, -1, 3, 127, 128, -128, -129, 255, 256, 257, 2047, 2048, 2049, 32_768, 65_504, 65_519, 65_520, 65_535, -(2**31), 2**31, 2**32),
    *(2**24, 2**24 + 1, -(2**24), 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 2**70, 10**400, True),
    *(0.1, -0.1, 1 / 3, 2.5, 0.0, -0.0, 1.0 + 2.0**-11, 1.0 + 2.0**-24, 1.0 + 2.0**-24 + 2.0**-53, 65_504.0, 65_519.99, 65_520.0, 1e39),
    *(2.0**-14, 2.0**-14 - 2.0**-60, 2.0**-24, 2.0**-126, 1.1e-38, 1e-45, 5e-324, 3.4028235677973366e38, 1.7e308, np.inf, -np.inf, np.nan),
]  # fmt: skip


@pytest.mark.parametrize("number", PYTHON_NUMBERS)
@for_each_operation_and_dtype
def test_python_numbers(name, dtype, number):
    """They are converted as NumPy does, with the same errors and warnings, which come once."""
    x = numbers(6, dtype="int8").astype(dtype)
    for operands in ((x, number), (number, x)):
        for state in ("warn", "raise"):
            with np.errstate(all=state):
                got, want = (outcome(f, *operands) for f in (OPERATIONS[name][0], reference(name, dtype)))
            assert (got.error, got.warnings) == (want.error, want.warnings)
            if want.error is None:
                assert_same(got.result, want.result)


class Notes(list):
    def write(self, text):
        self.append(text)

    def __call__(self, *args):
        self.append(args)


@each_operation
@each_dtype
@pytest.mark.parametrize("state", ["warn", "raise", "call", "log", "print", "ignore"])
@pytest.mark.parametrize("given", [False, True], ids=["", "out"])
def test_what_is_reported(name, dtype, state, given, capfd):
    """An element that NumPy reports: in the same words, once, and with the same result."""
    x, y = numbers(50, dtype="int8").astype(dtype), numbers(50, dtype="int8", seed=1).astype(dtype)
    y[30] = 0
    for operands in ((x, y), (x, y[30]), (x[0], y), (x, 0), (3, y)):
        told = []
        for f in (OPERATIONS[name][0], reference(name, dtype)):
            notes, out = Notes(), np.zeros_like(x) if given else None
            with np.errstate(all=state, call=notes):
                told.append((outcome(f, *operands, out), notes, capfd.readouterr(), out))
        (got, *rest, out), (want, *wanted, wanted_out) = told
        assert (got.error, got.warnings, rest) == (want.error, want.warnings, wanted)
        assert bool(got.error or got.warnings or rest[0] or any(rest[1])) == (state != "ignore")
        if want.error is None:
            assert_same(got.result, want.result)
        if given:
            assert got.result is (None if want.error else out)
            assert_same(out, wanted_out)


# --- what is left behind ------------------------------------------------------------------------------------------------------------------
@each_operation
def test_no_reference_is_lost_or_kept(name):
    operation = OPERATIONS[name][0]
    x, y, out, number, real, dtype = numbers(6), numbers(5), np.empty(6, np.int32), 123_456_789, 2.5, np.dtype(np.int32)
    floats, scalar = numbers(6, dtype="float32"), np.int32(3)
    calls = [
        lambda: operation(x, x),
        lambda: operation(x, number),
        lambda: operation(number, x),
        lambda: operation(x, scalar),
        lambda: operation(floats, real),
        lambda: operation(x, number, out),
        lambda: operation(x, number, out=out),
        lambda: operation(x, number, None),
        lambda: operation(x, 0),  # by the loop, and then by the ufunc
        lambda: operation(x, 0, out),
        lambda: operation(floats, 1e300),
        lambda: operation(x, 2**70),  # an error
        lambda: operation(x, number, x),
        lambda: operation(x, y),  # an error from the ufunc
        lambda: operation(x, number, out=(out,)),
        lambda: operation(x, [number]),
        lambda: operation(x, y, where=True),  # an error from Python's way
    ]

    def counts():
        gc.collect()
        kept = (x, y, out, number, real, floats, scalar, dtype, floats.dtype, operation, operation._gate, np.ndarray, np.int32, None)
        return [sys.getrefcount(thing) for thing in kept][:-1]

    gc.collect()
    gc.freeze()  # what there is by now need not be looked at each time
    for call in calls:
        outcome(call)
        before = counts()
        for _ in range(100):
            outcome(call)
        assert counts() == before
    gc.unfreeze()


@each_operation
def test_no_memory_is_kept(name):
    operation = OPERATIONS[name][0]
    x = numbers(2000)
    with np.errstate(all="ignore"):
        tracemalloc.start()
        for divisor in (3, 0, x):
            operation(x, divisor)
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(100):
                operation(x, divisor)
            assert tracemalloc.get_traced_memory()[0] < before + x.nbytes
        tracemalloc.stop()


@each_operation
def test_the_result_is_an_array_like_any_other(name):
    result, like = OPERATIONS[name][0](numbers(3, 4), 3), np.zeros(1)
    assert result.base is None
    assert result.flags.owndata
    assert sys.getrefcount(result) == sys.getrefcount(like)
    result.resize((6, 2))
    assert result.shape == (6, 2)


@each_operation
def test_other_threads_run_meanwhile_if_it_takes_long(name, monkeypatch):
    operation, released = OPERATIONS[name][0], []
    release = ctypes.PYFUNCTYPE(ctypes.c_void_p)(lambda: released.append(1))  # gives null: nothing to take back
    monkeypatch.setattr(operation._gate.functions, "PyEval_SaveThread", ctypes.cast(release, ctypes.c_void_p))
    for n, times in ((9_999, 0), (10_000, 1)):
        with at_once(operation):
            operation(numbers(n), 3)
        assert len(released) == times


@each_operation
@pytest.mark.parametrize("dtype", [DTYPES["int32"], DTYPES["float64"], BFLOAT16], ids=str)
@pytest.mark.parametrize("small", [10_000, 1], ids=["held", "released"])
def test_several_threads(name, dtype, small, monkeypatch):
    """Each sees its own results and warnings, whether the loop runs with the GIL held or without."""
    monkeypatch.setattr(OPERATIONS[name][0]._gate, "large", small)
    operation, twin = OPERATIONS[name][0], reference(name, dtype)
    wrong, line, ready = [], threading.Barrier(4), threading.Lock()

    def work(seed):
        x, y = mixed_values(dtype, 300, seed), np.where(np.arange(300) == 7 * seed, dtype.type(0), dtype.type(3))
        with np.errstate(all="ignore"), ready:
            want = twin(x, y)
        line.wait()
        for k in range(300):
            state = "raise" if k % 3 == 0 else "ignore"
            with np.errstate(all=state):
                try:
                    raised, got = False, operation(x, y, np.empty_like(x) if k % 2 else None)
                except FloatingPointError:
                    raised, got = True, want
            if raised != (state == "raise") or got.tobytes() != want.tobytes():
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


@each_operation
def test_the_type_s_call_is_the_entry_s(name):
    """Whoever calls by the type, as `__call__` of a subclass would, gets the same."""
    operation = OPERATIONS[name][0]
    x, y = numbers(6), numbers(6, seed=1)
    for call in (operation.__call__, lambda *args: type(operation).__call__(operation, *args), lambda *args: operation(*args)):
        assert_same(call(x, y), OPERATIONS[name][1](x, y))


LINES = {  # calls of 20 000 elements, and whether they go past Python: of one dimension and one dtype
    "strided": (lambda x: (x[::2], x[1::2]), True),
    "reversed": (lambda x: (x[::-1], x), True),
    "in place": (lambda x: (x, x, x), True),
    "two dimensions": (lambda x: (x.reshape(200, -1)[:, ::2], x.reshape(200, -1)[:, 1::2]), False),
    "two dtypes": (lambda x: (x[::2], x[1::2].astype("float64")), False),
}


@pytest.mark.parametrize("form", LINES)
@each_operation
def test_lines_go_past_python(name, form, monkeypatch):
    monkeypatch.setattr(threads, "WORTHWHILE", float("inf"))  # whatever the loops cost here
    make, past = LINES[form]
    operation, numpys = OPERATIONS[name]
    operation._limit()
    want = numpys(*make(numbers(40_000)))
    args = make(numbers(40_000))
    assert (functions_run(lambda: operation(*args)) == 0) == past
    assert_same_bits(operation(*make(numbers(40_000))), want)
    monkeypatch.undo()
    operation._limit()
