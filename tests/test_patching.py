"""NumPy with fastops' loops: the same outcome in every form of call, nothing left behind, and no harm to threads, forks and exits."""

import ctypes
import os
import threading
from importlib.metadata import version
from itertools import product

import numba
import numpy as np
import pytest
from conftest import (
    BFLOAT16,
    DTYPES,
    OPERATIONS,
    assert_same_bits,
    each_dtype,
    each_operation,
    for_each_operation_and_dtype,
    mixed_values,
    outcome,
)
from in_processes import FORK, each_layer_slowly, run, unix

import fastops
from fastops.engine import capi, iteration, team, threads
from fastops.kernels import driver
from fastops.kernels.primitives import pointer
from fastops.loops import LARGE

UFUNCS = {name: numpys for name, (_, numpys) in OPERATIONS.items()}
OURS = {name: operation for name, (operation, _) in OPERATIONS.items()}


@pytest.fixture(autouse=True)
def _unpatched():
    """Each test begins, and ends, without a patch, and leaves no thread behind that compiles."""
    assert not fastops.is_patched()
    before = pointers()
    yield
    fastops.unpatch_numpy()
    assert pointers() == before
    for thread in threading.enumerate():
        if thread.name.startswith("fastops"):
            thread.join()


def pointers():
    """What NumPy's ufuncs point at, and what is there."""
    seen = []
    for ufunc in UFUNCS.values():
        place, rows, _ = capi.tables(ufunc)
        tables = [(ctypes.c_void_p * rows).from_address(address) for address in (place.function, place.data)]
        seen.append((bytes(place), bytes(capi.user_loop(ufunc, BFLOAT16) or b""), *map(bytes, tables)))
    return seen


# --- the same outcome ---------------------------------------------------------------------------------------------------------------------
def strided(x):
    wide = np.zeros((x.size, 3), x.dtype)
    wide[:, 1] = x
    return wide[:, 1]


def unaligned(x):
    place = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype)
    place[...] = x
    return place


def in_place(f, x, y):
    x %= y
    return x


def overlapping(f, x, y):
    return f(x[:-1], y[1:], x[1:]), x


FORMS = {  # f is numpy.remainder or numpy.fmod; x and y are one-dimensional copies
    "arrays": lambda f, x, y: f(x, y),
    "out": lambda f, x, y: (f(x, y, x), x),
    "other out": lambda f, x, y: f(x, y, out=y),
    "same": lambda f, x, y: f(x, x),
    "operator": lambda f, x, y: x % y,
    "operator in place": in_place,
    "divmod": lambda f, x, y: divmod(x, y)[1],
    "by scalar": lambda f, x, y: f(x, y[-1]),
    "of scalar": lambda f, x, y: f(x[0], y),
    "by a number": lambda f, x, y: f(x, 3),
    "scalars": lambda f, x, y: f(x[0], y[0]),
    "strided": lambda f, x, y: f(strided(x), strided(y)),
    "strided by array": lambda f, x, y: f(strided(x), y),
    "into strided": lambda f, x, y: f(x, y, strided(x)),
    "reversed": lambda f, x, y: f(x[::-1], y),
    "into reversed": lambda f, x, y: f(x, y, x.copy()[::-1]),
    "overlapping": overlapping,
    "unaligned": lambda f, x, y: f(unaligned(x), unaligned(y)),
    "swapped": lambda f, x, y: f(x.astype(x.dtype.newbyteorder()), y),
    "row": lambda f, x, y: f(x[:, None][:9], y[None, :9]),
    "transposed": lambda f, x, y: f(np.stack([x, y]).T, y[:2]),
    "where": lambda f, x, y: f(x, y, out=np.zeros_like(x), where=np.arange(x.size) % 3 > 0),
    "to int64": lambda f, x, y: f(x, y, dtype="i8", casting="unsafe"),
    "to float64": lambda f, x, y: f(x, y, dtype="f8"),
    "two dtypes": lambda f, x, y: f(x, y.astype("f4")),
    "reduce": lambda f, x, y: f.reduce(x),
    "reduce rows": lambda f, x, y: f.reduce(np.stack([x, y])),
    "accumulate": lambda f, x, y: f.accumulate(x),
    "reduceat": lambda f, x, y: f.reduceat(x, [0, x.size // 2]),
    "outer": lambda f, x, y: f.outer(x[:5], y),
    "at": lambda f, x, y: (f.at(x, np.arange(x.size) // 2, y), x),
    "masked": lambda f, x, y: np.ma.masked_equal(x, x[0]) % y,
    "matrix": lambda f, x, y: f(np.asmatrix(x), y),
    "mean of a remainder": lambda f, x, y: np.mod(np.unwrap(x[:50].astype("f8")), 3),
}
SIZES = [1, 7, 300, 10_001]
LONG = {  # what has long inner loops, in which threads may come in
    *("arrays", "out", "same", "operator in place", "by scalar", "of scalar", "strided by array", "into strided", "into reversed"),
    *("overlapping", "to float64", "reduce rows", "accumulate"),
}
WITHOUT_SENSE = {"swapped": {BFLOAT16}, "two dtypes": {BFLOAT16}, "to int64": {BFLOAT16}}  # ml_dtypes has none, or errs in NumPy's place


@pytest.fixture(params=["alone", "shared"])
def path(request, monkeypatch):
    """One thread, or three for whatever is long enough to be shared."""
    fastops.patch_numpy()
    shared = 1 if request.param == "shared" else 1 << 40
    for operation in OURS.values():
        for record in operation._patch.records.values():
            monkeypatch.setattr(record, "shared", shared)
    monkeypatch.setattr(threads.team, "share", 1e-9)
    monkeypatch.setattr(threads.team, "affinity", None)
    monkeypatch.setattr(threads.team, "most", 3)
    fastops.unpatch_numpy()


@pytest.mark.parametrize(
    ("form", "path"), [(form, path) for form in FORMS for path in ("alone", "shared")[: 1 + (form in LONG)]], indirect=["path"]
)
@for_each_operation_and_dtype
def test_outcome_is_as_before(name, dtype, form, path):
    """Results, in all their parts, warnings and errors."""
    if dtype in WITHOUT_SENSE.get(form, ()):
        form = "arrays"
    for size in SIZES:
        if size < 7 and form in ("overlapping", "transposed"):
            continue
        x, y = mixed_values(dtype, size, 1), mixed_values(dtype, size, 2)
        made = []
        for patch in (False, True):
            operands = x.copy(), y.copy()
            if patch:
                fastops.patch_numpy()
            made.append((outcome(FORMS[form], UFUNCS[name], *operands), operands))
        fastops.unpatch_numpy()
        (before, operands_before), (after, operands_after) = made
        assert after.error == before.error
        if dtype != BFLOAT16:  # of which ml_dtypes' own loops do not warn
            assert after.warnings == before.warnings
        for got, want in zip(parts(after.result), parts(before.result), strict=True):
            assert type(got) is type(want)
            if isinstance(want, np.ma.MaskedArray):
                assert np.array_equal(got.mask, want.mask)
            if want is not None:
                assert_same_bits(np.asarray(got), np.asarray(want))
        for got, want in zip(operands_after, operands_before, strict=True):
            assert_same_bits(got, want)


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@each_operation
def test_bfloat16_is_computed_as_by_fastops(name, path):
    x, y = mixed_values(BFLOAT16, 20_001, 1), mixed_values(BFLOAT16, 20_001, 2)
    with np.errstate(all="ignore"), fastops.patched():
        assert_same_bits(UFUNCS[name](x, y), OURS[name](x, y))


@each_operation
@each_dtype
def test_long_calls_are_shared(name, dtype, path, request, monkeypatch):
    """By threads, if they may: then the team has a leader."""
    may = request.node.callspec.params["path"] == "shared" and dtype.num in OURS[name]._patch.records
    monkeypatch.setattr(threads.team, "caller", 0)
    x = np.ones(5_000, dtype)
    with fastops.patched():
        for _ in range(3):
            UFUNCS[name](x, x)
    assert (threads.team.caller == threading.get_ident()) == may


def test_long_calls_are_cut_as_those_of_fastops():
    """The patched loop writes the plan that `iteration` makes of the same call, but for the size of buffers, which it has none of."""

    @numba.njit
    def write(place, team, loop, n, size, a, b, out, step_a, step_b):
        driver.write_line(pointer(place), team, loop, 0, n, size, a, b, out, step_a, step_b)

    for dtype, n, b_is_scalar in product((np.int8, np.float16, np.int32, np.float64), (10_000, 16_384, 131_073, 3_000_001), (0, 1)):
        a, out = np.empty((2, n), dtype)
        b = np.empty((), dtype) if b_is_scalar else np.empty(n, dtype)
        plan = iteration.plan(a, b, out, a.dtype)
        want = iteration.words(plan, 77, 0, 0)
        want[driver.BUFFER // 8] = 0
        words, size, team = np.full(len(want), -1, np.intp), a.itemsize, ctypes.addressof(threads.team)
        write(words.ctypes.data, team, 77, n, size, *(x.ctypes.data for x in (a, b, out)), size, 0 if b_is_scalar else size)
        assert words.tolist() == want


CPU_SETS = [(), (0,), (63, 64), range(130), (8191,), None]  # processors by number; None: the system does not tell


@pytest.mark.parametrize("mask", [None, 1, 2, 500])
@pytest.mark.parametrize("most", [1, 2, 1000])
@pytest.mark.parametrize("cpus", CPU_SETS)
def test_no_more_threads_than_affinity_quota_and_mask_allow(cpus, most, mask, monkeypatch):
    def get_affinity(pid, size, place):
        if cpus is None:
            return -1
        bits = (ctypes.c_ubyte * size).from_address(place)
        bits[:] = [sum(1 << k % 8 for k in cpus if k // 8 == byte) for byte in range(size)]
        return 0

    functions = [ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)(get_affinity)]
    functions.append(ctypes.CFUNCTYPE(ctypes.c_int)(lambda: mask))
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    monkeypatch.setattr(threads.team, "affinity", addresses[0])
    monkeypatch.setattr(threads.team, "mask", addresses[1] if mask else None)
    monkeypatch.setattr(threads.team, "most", most)
    allowed = min(most, mask or most, most if cpus is None else max(len(cpus), 1))
    assert threads_of(ctypes.addressof(threads.team)) == allowed


@numba.njit
def threads_of(address):
    return team.threads_of(address)


def test_scalars_and_other_dtypes_stay_numpys():
    with fastops.patched():
        assert np.mod(7, 3) == np.int64(7) % np.int64(3) == 7 % 3
        assert np.mod(np.longdouble(7.5), 2) == 1.5
        assert np.mod(np.array([7, 8], object), 3).tolist() == [1, 2]
        assert np.mod(np.timedelta64(7, "s"), np.timedelta64(4, "s")) == np.timedelta64(3, "s")


# --- in and out ---------------------------------------------------------------------------------------------------------------------------
def test_patched_again_and_taken_out_once():
    before = pointers()
    fastops.patch_numpy()
    inside = pointers()
    fastops.patch_numpy()
    assert pointers() == inside != before
    fastops.unpatch_numpy()
    assert (pointers(), fastops.is_patched()) == (before, False)
    fastops.unpatch_numpy()
    assert pointers() == before


def test_blocks_nest():
    before = pointers()
    with fastops.patched():
        with fastops.patched():
            assert fastops.is_patched()
        assert fastops.is_patched()
    assert pointers() == before


def test_a_block_leaves_a_patched_numpy_patched():
    fastops.patch_numpy()
    with fastops.patched():
        pass
    assert fastops.is_patched()


def test_unpatch_in_a_block_is_final():
    before = pointers()
    with fastops.patched():
        fastops.unpatch_numpy()
        assert pointers() == before
    assert pointers() == before


def test_a_block_ends_with_an_exception():
    before = pointers()
    with pytest.raises(KeyError), fastops.patched():
        raise KeyError
    assert pointers() == before


def test_patching_often_keeps_nothing():
    """The same records serve again."""
    seen = set()
    for _ in range(3):
        with fastops.patched():
            seen.add(tuple(id(operation._patch) for operation in OURS.values()))
    assert len(seen) == 1


def test_loops_that_somebody_else_put_in_are_not_lost():
    """Theirs has to go first, and then NumPy's own come back."""
    fastops.patch_numpy()
    ours = capi.replace_loop(np.remainder, 5, 12345)
    inside = pointers()
    with pytest.raises(RuntimeError, match=r"numpy\.remainder were changed after fastops changed them: undo that first"):
        fastops.unpatch_numpy()
    assert (pointers(), fastops.is_patched()) == (inside, True)
    assert capi.replace_loop(np.remainder, 5, ours) == 12345


TWO = """
import sys
import numpy as np
import fastops as first
for name in [name for name in sys.modules if name.partition(".")[0] == "fastops"]:
    del sys.modules[name]
import fastops as second
from fastops.engine import capi
def pointers():
    return [bytes(capi.tables(ufunc)[0]) for ufunc in (np.remainder, np.fmod)]
before = pointers()
def refused(call):
    inside = pointers()
    try:
        call()
    except RuntimeError as error:
        return "changed after fastops changed them" in str(error) and pointers() == inside
first.patch_numpy()
second.patch_numpy()
"""


def test_two_copies_of_fastops():
    """The second stands on the first, which must wait: neither loses what it found."""
    code = """
print(first.is_patched(), second.is_patched(), refused(first.patch_numpy), refused(first.unpatch_numpy))
second.unpatch_numpy()
print(first.is_patched(), second.is_patched())
first.unpatch_numpy()
print(first.is_patched(), pointers() == before)
"""
    assert run(TWO + code) == ["False", "True", "True", "True", "True", "False", "False", "True"]


def test_an_exit_with_loops_of_somebody_else_is_quiet():
    code = """
capi.replace_loop(np.remainder, 5, second.mod._patch.records[7].loop)
print(refused(second.unpatch_numpy))
sys.stderr = sys.stdout
"""
    assert run(TWO + code) == ["True"]


def test_another_numpy_is_left_alone(monkeypatch):
    monkeypatch.setattr("fastops.real_ufuncs.problem", "NumPy 9 is another one")
    with pytest.raises(RuntimeError, match="cannot patch NumPy: NumPy 9 is another one"):
        fastops.patch_numpy()
    with pytest.raises(RuntimeError, match="cannot patch NumPy"), fastops.patched():
        pass


def test_without_the_gil_numpy_is_left_alone(monkeypatch):
    monkeypatch.setattr("sys._is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(RuntimeError, match="cannot patch NumPy without the GIL"):
        fastops.patch_numpy()


def test_a_numpy_that_has_its_loops_elsewhere_is_left_alone(monkeypatch):
    for operation in OURS.values():
        monkeypatch.setattr(operation, "_patch", None)
    monkeypatch.setattr(capi.Pair, "replace", lambda *arguments: None)
    with pytest.raises(RuntimeError, match=r"numpy\.remainder of NumPy .* does not run the loops that it points at"):
        fastops.patch_numpy()


def test_without_numba_numpy_is_left_alone():
    code = """
import numpy as np, fastops
for call in (fastops.patch_numpy, fastops.patched().__enter__):
    try:
        call()
    except RuntimeError as error:
        print("NUMBA_DISABLE_JIT" in str(error))
print(fastops.is_patched(), np.arange(20_000).__mod__(7).sum() == sum(k % 7 for k in range(20_000)))
fastops.unpatch_numpy()
"""
    assert run(code, NUMBA_DISABLE_JIT=1) == ["True", "True", "False", "True"]


def test_a_moment_in_which_numba_is_not_ready_is_told():
    code = """
import sys, types
sys.modules["numba"] = types.SimpleNamespace(__spec__=types.SimpleNamespace(_initializing=True))
import fastops
try:
    fastops.patch_numpy()
except RuntimeError as error:
    print("try again" in str(error))
del sys.modules["numba"]
fastops.patch_numpy()
print(fastops.is_patched())
"""
    assert run(code) == ["True", "True"]


# --- when loops are compiled --------------------------------------------------------------------------------------------------------------
COMPILED = """
import sys, time
import numpy as np
import fastops
from fastops.engine import compiler
def made():
    return [c.name for c in compiler.compiled() if c.name.startswith(("remainder", "fmod"))]
fastops.patch_numpy()
"""


def test_small_calls_do_not_wait_for_a_compiler():
    code = COMPILED + "x = np.arange(1, 9_000); x % 7; np.fmod(x, x); print(*made(), '-'); np.arange(10_000) % 7; print(*made())"
    assert run(code) == ["-", "remainder_int64"]


def test_many_small_calls_have_a_loop_compiled_beside_them():
    code = (
        COMPILED
        + """
x = np.arange(1, 1001, dtype=np.float32)
want = x % 7
for _ in range(999):
    x % 7
left = fastops.mod._patch.records[x.dtype.num].left
x[:1] % 7
deadline = time.monotonic() + 60
while not made() and time.monotonic() < deadline:
    time.sleep(0.01)
print(left, *made(), np.array_equal(x % 7, want))
"""
    )
    assert run(code) == ["0", "remainder_float32", "True"]


def test_where_nothing_can_be_compiled_numpys_loops_go_on_and_one_warning_says_why():
    code = (
        COMPILED
        + """
import warnings
compiler.c_function = None
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    sums = {int((np.arange(20_000) % 7).sum()) for _ in range(3)}
print(sums == {sum(k % 7 for k in range(20_000))}, *(str(entry.message).split()[-1] for entry in warned))
print(fastops.mod._patch.records[np.dtype(np.int64).num].compile)
"""
    )
    assert run(code) == ["True", "callable", "None"]


def test_small_calls_ask_again_if_there_was_no_room_to_ask():
    code = (
        COMPILED
        + """
import ctypes
asked = []
no_room = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda *arguments: asked.append(1) or -1)
record, x = fastops.mod._patch.records[np.dtype(np.float32).num], np.ones(10, np.float32)
later, record.left, record.later = record.later, 0, ctypes.cast(no_room, ctypes.c_void_p).value
x % 7, x % 7
record.later = later
x % 7
deadline = time.monotonic() + 60
while not made() and time.monotonic() < deadline:
    time.sleep(0.01)
print(len(asked), *made())
"""
    )
    assert run(code) == ["2", "remainder_float32"]


def test_a_loop_compiled_for_fastops_serves_numpy_too():
    code = (
        COMPILED
        + """
record = fastops.mod._patch.records[np.dtype(np.int16).num]
before = record.loop
fastops.warmup(np.int16)
print(record.loop != before, record.compile, *made())
"""
    )
    assert run(code) == ["True", "None", "remainder_int16", "fmod_int16"]


INTERRUPTED = (
    COMPILED
    + """
import threading
def interrupted(dtype):
    raise kind("!")
fastops.mod._patch._compile = interrupted
fastops.mod._patch._drive = lambda: interrupted(None)
want = [k % 7 for k in range(20_000)]
def calls():
    results.append((np.arange(20_000) % 7).tolist() == want)
    for _ in range(100):
        time.sleep(0.01)
results, met = [], []
"""
)


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "SystemExit", "TimeoutError"])
def test_what_a_signal_handler_raises_while_a_loop_is_compiled_is_not_lost(kind):
    code = f"{INTERRUPTED}kind = {kind}\ntry:\n    calls()\nexcept BaseException as error:\n    print(repr(error))\nprint(len(results))"
    assert run(code) == [f"{kind}('!')", "0"]


@pytest.mark.parametrize("kind", ["RecursionError", "MemoryError"])
def test_a_call_that_only_the_compiler_finds_too_deep_or_too_large(kind):
    assert run(f"{INTERRUPTED}kind = {kind}\ncalls()\nprint(*results)") == ["True"]


def test_an_error_in_another_thread_stays_there():
    """The main one sees nothing of it."""
    code = """
kind = ValueError
worker = threading.Thread(target=calls)
worker.start()
worker.join()
time.sleep(0.1)
print(*results)
"""
    assert run(INTERRUPTED + code) == ["True"]


def test_what_is_raised_while_the_driver_is_made_is_not_lost():
    code = """
kind = TimeoutError
fastops.warmup("int64")
fastops.patch_numpy()
threads.team.drive = None
fastops.mod._patch.records[np.dtype("int64").num].shared = 1
try:
    calls()
except TimeoutError:
    print("late", len(results))
"""
    assert run(INTERRUPTED + "from fastops.engine import threads" + code) == ["late", "0"]


def test_deep_recursion_does_not_turn_the_compiler_off():
    code = """
def deep(depth):
    return deep(depth - 1) if depth else np.arange(20_000) % 7
sys.setrecursionlimit(300)
results = [deep(depth)[-1] == 19_999 % 7 for depth in range(290, 200, -10)]
sys.setrecursionlimit(1000)
np.arange(20_000) % 7
print(all(results), *made())
"""
    assert run(COMPILED + code) == ["True", "remainder_int64"]


# --- threads, forks, exits ----------------------------------------------------------------------------------------------------------------
def test_threads_are_inside_while_the_patch_comes_and_goes():
    x = np.arange(1, 50_001, dtype=np.int32)
    want = x % 77, x[:50] % 77
    wrong, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            if not (np.array_equal(x % 77, want[0]) and np.array_equal(x[:50] % 77, want[1])):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for _ in range(300):
        with fastops.patched():
            pass
    stop.set()
    for worker in workers:
        worker.join()
    assert not wrong


def test_blocks_of_several_threads_end_with_the_last():
    before, entered, leave = pointers(), threading.Event(), threading.Event()

    def other():
        with fastops.patched():
            entered.set()
            leave.wait()

    worker = threading.Thread(target=other)
    with fastops.patched():
        worker.start()
        entered.wait()
    assert fastops.is_patched()
    leave.set()
    worker.join()
    assert pointers() == before


SHARED = """
import os, threading
import numpy as np
import fastops
from fastops.engine import threads
fastops.patch_numpy()
x = np.arange(1, 400_001, dtype=np.int64)
want = np.array([k % 77 for k in range(1, 400_001)])
x % 77
def share():
    threads.team.share, threads.team.affinity, threads.team.most = 1e-9, None, 2
    for record in fastops.mod._patch.records.values():
        record.shared = 1
share()
def right():
    return np.array_equal(x % 77, want)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_one_processor_has_no_driver():
    """And is asked for one once."""
    code = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import numpy as np, fastops
from fastops.engine import threads
fastops.patch_numpy()
x = np.arange(1, 3_000_001, dtype=np.float64)
want = np.fmod(x, 77)
record = fastops.fmod._patch.records[np.dtype(float).num]
before, asked, drive = record.shared, [], fastops.fmod._patch._drive
fastops.fmod._patch._drive = lambda: asked.append(1) or drive()
print(before < x.size, *(np.array_equal(np.fmod(x, 77), want) for _ in range(3)), len(asked), bool(threads.team.drive))
"""
    assert run(code) == ["True", "True", "True", "True", "1", "False"]


def test_threads_that_numba_is_allowed_later_are_used():
    code = """
import numba
import numpy as np, fastops
from fastops.engine import threads
fastops.patch_numpy()
x = np.arange(1, 3_000_001, dtype=np.float64)
want = np.fmod(x, 77)
all_of_them = numba.get_num_threads()
numba.set_num_threads(1)
print(np.array_equal(np.fmod(x, 77), want), threads.team.caller)
numba.set_num_threads(all_of_them)
print(np.array_equal(np.fmod(x, 77), want), (threads.team.caller != 0) == (threads.limit() > 1))
"""
    assert run(code) == ["True", "0", "True", "True"]


@unix
@each_layer_slowly
def test_fork(layer):
    """A child, a grandchild and an orphan compute, patch and unpatch."""
    code = (
        SHARED
        + FORK
        + """
print(right())
def child():
    again = in_child(lambda: right() and fastops.is_patched())
    fastops.unpatch_numpy()
    ok = right() and not fastops.is_patched()
    fastops.patch_numpy()
    return again == 0 and ok and right()
print(in_child(child), in_child(right), right())
"""
    )
    environment = {} if layer == "default" else {"NUMBA_THREADING_LAYER": layer}
    assert run(code, **environment) == ["True", "0", "0", "True"]


@unix
def test_fork_while_other_threads_compute():
    code = (
        SHARED
        + FORK
        + """
stop = threading.Event()
def work():
    while not stop.is_set():
        right()
workers = [threading.Thread(target=work) for _ in range(3)]
for worker in workers:
    worker.start()
print(*(in_child(right) for _ in range(5)))
stop.set()
"""
    )
    assert run(code) == ["0"] * 5


@unix
def test_fork_while_another_thread_patches():
    code = (
        SHARED
        + FORK
        + """
from fastops import patching
taken, leave = threading.Event(), threading.Event()
def hold():
    with patching._lock:
        taken.set()
        leave.wait()
threading.Thread(target=hold).start()
taken.wait()
def child():
    fastops.unpatch_numpy()
    return right() and not fastops.is_patched()
print(in_child(child))
leave.set()
"""
    )
    assert run(code) == ["0"]


@unix
def test_a_fork_waits_for_a_compile():
    """And its child compiles."""
    code = (
        SHARED
        + FORK
        + """
import time
from fastops.engine import compiler
taken = threading.Event()
def hold():
    with compiler.compiling():
        taken.set()
        time.sleep(0.5)
threading.Thread(target=hold).start()
taken.wait()
def child():
    np.arange(20_000, dtype=np.int16) % 7
    return right() and any(made.name == "remainder_int16" for made in compiler.compiled())
print(in_child(child), in_child(child))
"""
    )
    assert run(code) == ["0", "0"]


@unix
@pytest.mark.parametrize("lock", ["compiler.compiling()", "global_compiler_lock"])
def test_fork_while_another_thread_compiles(lock):
    """The child compiles no more, but what was made serves there, and the patch comes and goes. Others compile by Numba too."""
    code = (
        SHARED
        + FORK
        + f"""
from numba.core.compiler_lock import global_compiler_lock
from fastops.engine import compiler
taken, leave = threading.Event(), threading.Event()
def hold():
    with {lock}:
        taken.set()
        leave.wait()
threading.Thread(target=hold).start()
taken.wait()
def child():
    fastops.unpatch_numpy()
    with fastops.patched():
        return right() and fastops.is_patched() and np.array_equal(np.ones(20_000, np.int16) % 7, np.ones(20_000))
import warnings
warnings.simplefilter("ignore")  # Numba cannot be used here
print(in_child(child))
leave.set()
"""
    )
    assert run(code) == ["0"]


def test_a_remainder_in_what_another_thread_compiles_does_not_lock_up():
    """Two threads compile, this one for a remainder, that one something else, and has to wait for a remainder."""
    code = """
import faulthandler, threading, time
import numpy as np
import fastops
from fastops.engine import compiler
from numba.core.compiler_lock import global_compiler_lock
faulthandler.dump_traceback_later(60, exit=True)
fastops.patch_numpy()
taken = threading.Event()
def other():
    with global_compiler_lock:
        taken.set()
        time.sleep(1)
        print((np.arange(20_000, dtype=np.int32) % 7)[-1])
worker = threading.Thread(target=other)
worker.start()
taken.wait()
print((np.arange(20_000, dtype=np.int16) % 7)[-1])
worker.join()
"""
    assert run(code) == ["0", "0"]


@each_layer_slowly
def test_several_threads_share_at_once(layer):
    code = (
        SHARED
        + """
results = []
workers = [threading.Thread(target=lambda: results.extend(right() for _ in range(30))) for _ in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(len(results), all(results))
"""
    )
    environment = {} if layer == "default" else {"NUMBA_THREADING_LAYER": layer}
    assert run(code, **environment) == ["120", "True"]


AT_EXIT = """
import atexit, os, threading, time
import numpy as np
x = np.arange(1, 300_001, dtype=np.int32)
want = int((x % 77).sum())
def say(word, x=x, want=want, write=os.write):
    write(1, word if int((x % 77).sum()) == want else b"wrong ")
atexit.register(say, b"late ")
import fastops
fastops.patch_numpy()
atexit.register(lambda: say(b"early ") if fastops.is_patched() else None)
"""


def test_exit_handlers_and_finalizers_compute():
    """Before and after fastops' own handler, and when modules are torn down."""
    code = (
        AT_EXIT
        + """
class Last:
    def __del__(self, say=say):
        say(b"last")
keep = Last()
"""
    )
    assert run(code) == ["early", "late", "last"]


def test_exit_while_a_thread_computes():
    code = (
        AT_EXIT
        + """
def work():
    while True:
        x % 77
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    )
    assert run(code) == ["early", "late"]


@each_operation
def test_a_warning_points_at_the_callers_line(name, path, recwarn):
    x, zeros = np.arange(5_000), np.zeros(5_000, int)
    with fastops.patched():
        UFUNCS[name](x, zeros)
    assert [(str(entry.message), entry.filename) for entry in recwarn] == [(f"divide by zero encountered in {name}", __file__)]


@pytest.mark.parametrize("mode", ["ignore", "warn", "raise", "call", "print", "log"])
@each_operation
def test_errstate_is_as_before(name, mode, path, capsys):
    heard = []

    class Log:
        write = heard.append

    made = []
    receiver = Log() if mode == "log" else lambda *args: heard.append(args)
    for patch in (False, True):
        if patch:
            fastops.patch_numpy()
        heard.clear()
        with np.errstate(all=mode, call=receiver):
            done = outcome(UFUNCS[name], np.arange(5_000), np.zeros(5_000, int))
        made.append((done.warnings, done.error, list(heard), capsys.readouterr()))
    assert made[0] == made[1]


def test_every_dtype_has_a_record():
    """But bfloat16 only where ml_dtypes registers its loops by NumPy's older rules."""
    fastops.patch_numpy()
    numbers = {dtype.num for dtype in DTYPES.values()} - {BFLOAT16.num}
    for name, operation in OURS.items():
        assert numbers <= operation._patch.records.keys()
        assert (BFLOAT16.num in operation._patch.records) == (capi.user_loop(UFUNCS[name], BFLOAT16) is not None)
    assert (capi.user_loop(np.fmod, BFLOAT16) is None) == (tuple(map(int, version("ml_dtypes").split(".")[:2])) >= (0, 7))
    assert fastops.mod._patch.records[1].long == LARGE
