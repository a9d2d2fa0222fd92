"""Forks, threads, threading layers, and what a user's own Numba functions and settings have of them."""

import os
from pathlib import Path
from textwrap import dedent

import pytest
from in_processes import ENTRY, EVERY_CALL, FORK, LARGE_CALLS, LAYERS, SCATTER_ENTRY, each_layer, each_layer_slowly, layer_of, run, unix

pytestmark = pytest.mark.usefixtures("kernels")


# --- forks and threads --------------------------------------------------------------------------------------------------------------------
@each_layer
def test_the_chosen_layer_is_taken(layer):
    words = run(LARGE_CALLS + "print(right(), len(driven)); import numba; print(numba.threading_layer())", **layer_of(layer))
    assert words[:2] == ["True", "2"]
    assert words[2] == layer or (layer == "default" and words[2] in LAYERS)


# What is right in a process whose parent has ended: the middle one of three, whose end the pipe tells.
ORPHAN = (
    FORK
    + """
def in_orphan(call):
    alive, life = os.pipe()
    answer, report = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            if os.fork() == 0:
                signal.alarm(60)
                os.close(life)
                os.read(alive, 1)
                os.write(report, b"1" if call() else b"0")
        finally:
            os._exit(0)
    os.close(life)
    os.close(report)
    os.waitpid(middle, 0)
    return os.read(answer, 1).decode()
"""
)


@unix
@each_layer
def test_fork_after_a_parallel_call(layer):
    code = "print(right(), in_child(right), in_child(lambda: in_child(right) == 0), in_orphan(right), right(), in_child(right))"
    assert run(EVERY_CALL + ORPHAN + code, timeout=60, **layer_of(layer)) == ["True", "0", "0", "1", "True", "0"]


@unix
@each_layer
def test_fork_before_any_parallel_call(layer):
    """After import alone, and after a call."""
    code = """
print(in_orphan(right))
fastops.mod(i[:20_000], 7)
print(in_child(right), right(), in_child(right))
"""
    assert run(EVERY_CALL + ORPHAN + code, timeout=60, **layer_of(layer)) == ["1", "0", "True", "0"]


@unix
@each_layer_slowly
def test_fork_while_another_thread_computes(layer):
    code = """
import threading
stop, answers = threading.Event(), [right()]
def work():
    while not stop.is_set():
        answers.append(right())
thread = threading.Thread(target=work)
thread.start()
codes = [in_child(right) for _ in range(12)]
stop.set()
thread.join()
print(*codes, all(answers), right())
"""
    words = run(EVERY_CALL + FORK + code, timeout=300, **layer_of(layer))
    assert words[-14:] == ["0"] * 12 + ["True"] * 2  # before it TBB may say that it could not pause


@unix
@each_layer_slowly
def test_pool_by_fork(layer):
    code = """
import multiprocessing
print(right())
def answer(k):
    return right()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.map(answer, range(4)))
"""
    assert run(EVERY_CALL + code, timeout=60, **layer_of(layer)) == ["True"] * 5


@each_layer_slowly
def test_threads_at_once(layer):
    """The first calls of a process among them."""
    code = """
import threading
from concurrent.futures import ThreadPoolExecutor
for number in (16, 2, 5):
    barrier = threading.Barrier(number)
    def work(k):
        barrier.wait()
        return all(right() for _ in range(60 // number))
    with ThreadPoolExecutor(number) as pool:
        print(all(pool.map(work, range(number))), len(driven) > 0)
"""
    assert run(EVERY_CALL + code, timeout=90, **layer_of(layer)) == ["True"] * 6


def test_warmup_without_the_chosen_layer_makes_the_loops():
    code = """
        import warnings; warnings.simplefilter("ignore")  # that threads cannot be launched
        import numpy as np, fastops
        from fastops.engine import compiler
        fastops.warmup("float64")
        print(*sorted(made.name for made in compiler.compiled()))
    """
    copies = [f"copy_{size}" for size in (1, 2, 4, 8)]
    loops = [f"{operation}_float64" for operation in ("fmod", "remainder", "scatter_div")]
    made = sorted([*copies, "drive_serially", ENTRY, SCATTER_ENTRY, *loops, "scatter_div"])
    assert run(dedent(code), NUMBA_THREADING_LAYER="bogus") == made


def test_threads_with_small_stacks():
    """A tiled call, a parallel one and a small one, with quotients that take many steps, in a thread that has 128 KB."""
    code = (
        LARGE_CALLS
        + """
import threading
huge = np.full((300, 200), 1e300)
def calls():
    for a in (huge.T, np.full(300_000, 1e300), np.full(600, 1e300)):
        b = np.full(a.shape, 1e-300)
        print(np.array_equal(fastops.mod(a, b), np.mod(a, b)), np.array_equal(fastops.mod(a, 1e-300), np.mod(a, 1e-300)))
fastops.warmup("float64")
calls()
threading.stack_size(128 * 1024)
thread = threading.Thread(target=calls)
thread.start()
thread.join()
print(len(driven) >= 4)
"""
    )
    assert run(code) == ["True"] * 13


# What -ffast-math leaves a thread with, and two other directions of rounding: control bits of the processor.
CONTROLS = {"flush to zero": (0x8040, 1 << 24), "downwards": (0x2000, 2 << 22), "upwards": (0x4000, 1 << 22)}


def test_the_arithmetic_of_the_thread_does_not_matter():
    """Nor is it changed. (The reference is computed before.)"""
    code = f"""
        import sys
        import numpy as np
        from numba import njit
        sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
        import conftest, fastops
        from fastops.kernels import flags
        controls = [bits[not flags.X86] for bits in {list(CONTROLS.values())}]

        @njit
        def control(bits):
            if flags.X86:
                state = flags.save_flags()
                flags.restore_flags(np.uint32(flags.DEFAULT | bits))
                return np.int64(state) & 0xFFC0
            before = flags.default_control()
            flags.restore_control(bits)
            return before

        np.seterr(all="ignore")
        fastops.warmup()
        right = []
        for dtype in conftest.DTYPES.values():
            x, y = conftest.random_bits(dtype, 600, 1), conftest.random_bits(dtype, 600, 2)
            if dtype not in conftest.INTEGERS.values():
                x[:200] = np.arange(200, dtype=conftest.word(dtype)).view(dtype)  # subnormal numbers
                y[:200] = x[3]
            for name, (ours, _) in conftest.OPERATIONS.items():
                want, by_scalar = conftest.oracle(name, x, y), conftest.oracle(name, x, y[7:8])
                for bits in controls:
                    before = control(bits)
                    got, got_by_scalar, ufuncs = ours(x, y), ours(x, y[7]), ours(x[::-1], y[::-1])[::-1]
                    after = control(0)
                    for result, expected in ((got, want), (got_by_scalar, by_scalar), (ufuncs, want)):
                        conftest.assert_same_bits(result, expected)
                    right.append(after == before | bits)
        print(all(right), len(right))
    """
    assert run(dedent(code)) == ["True", "72"]


def test_a_layer_that_is_not_there_gives_right_results():
    for layer in ("tbb", "nonsense"):
        code = (
            "import sys; sys.modules['numba.np.ufunc.tbbpool'] = None"
            + LARGE_CALLS
            + """
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(right())
"""
        )
        assert run(code, NUMBA_THREADING_LAYER=layer) == ["True"]


def test_one_processor_and_one_thread_run_serially():
    code = LARGE_CALLS.replace("threads.limit = lambda: 2", "") + "print(right(), len(driven), threads.limit())"
    assert run(code, NUMBA_NUM_THREADS=1) == ["True", "0", "1"]
    if hasattr(os, "sched_setaffinity"):
        pinned = "import os; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])" + code
        assert run(pinned) == ["True", "0", "1"]


def test_environment_and_numbas_settings_are_left_alone():
    code = (
        """
import os, numba
before = dict(os.environ), {k: v for k, v in vars(numba.config).items() if k.isupper()}, numba.get_num_threads()
"""
        + LARGE_CALLS
        + """
assert right() and driven
print(before == (dict(os.environ), {k: v for k, v in vars(numba.config).items() if k.isupper()}, numba.get_num_threads()))
"""
    )
    assert run(code) == ["True"]


TOTAL = """
import numba, numpy as np
@numba.njit(parallel=True)
def total(x):
    s = 0.0
    for k in numba.prange(x.size):
        s += x[k]
    return s
before = total(np.ones(1000))
"""


def test_a_users_own_numba_threads_go_on():
    code = TOTAL + LARGE_CALLS + "print(before, right(), total(np.ones(1000)), right())"
    assert run(code) == ["1000.0", "True", "1000.0", "True"]


@unix
@each_layer
def test_fork_after_a_users_own_parallel_function(layer):
    """GNU OpenMP was started by others: it ends a child that uses it, all the same."""
    code = """
        import os, signal
        import fastops

        x = np.arange(1_000_000)
        child = os.fork()
        if not child:
            signal.alarm(60)
            os._exit(not np.array_equal(fastops.mod(x, 7), np.mod(x, 7)))
        print(os.waitpid(child, 0)[1], np.array_equal(fastops.mod(x, 7), np.mod(x, 7)))
    """
    assert run(TOTAL + dedent(code), timeout=180, **({} if layer == "tbb" else layer_of(layer)))[-2:] == ["0", "True"]
