"""Whoever hosts the calls: pools, executors, event loops, handlers, finalizers, users' own parallel functions, those who set limits."""

import os
from textwrap import dedent

import pytest
from in_processes import EVERY_CALL, LARGE_CALLS, default_and_workqueue, each_layer_slowly, layer_of, run, unix

pytestmark = pytest.mark.usefixtures("kernels")
IS_INSIDE = """
def is_inside(frame):
    while frame and not frame.f_globals.get("__name__", "").startswith("fastops"):
        frame = frame.f_back
    return frame is not None
"""


# --- pools and executors ------------------------------------------------------------------------------------------------------------------
def test_processes_that_start_afresh(tmp_path):
    """Those of a fork server are forked from a process that has imported fastops."""
    (tmp_path / "calls.py").write_text(EVERY_CALL + "def answer(k):\n    return right()")
    code = """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        from joblib import Parallel, delayed
        from calls import answer

        print("here", answer(0))
        for method in {"spawn", "forkserver"} & set(multiprocessing.get_all_start_methods()):
            context = multiprocessing.get_context(method)
            context.set_forkserver_preload(["calls"])
            with context.Pool(2) as pool:
                print(method, *pool.map(answer, range(3)))
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
            print("executor", *executor.map(answer, range(3)))
        print("loky", *Parallel(2, backend="loky")(delayed(answer)(k) for k in range(3)))
    """
    search = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    words = run(dedent(code), timeout=240, PYTHONPATH=search)
    assert {"here", "spawn", "executor", "loky"} <= {*words}
    assert {*words} <= {"here", "spawn", "executor", "loky", "forkserver", "True"}
    assert words.count("True") == 1 + 3 * (len({*words}) - 2)


@unix
@each_layer_slowly
def test_executor_by_fork(layer):
    code = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
def answer(k):
    return right()
print(right())
with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as executor:
    print(*executor.map(answer, range(4)))
print(right())
"""
    assert run(EVERY_CALL + code, timeout=60, **layer_of(layer)) == ["True"] * 6


@each_layer_slowly
def test_threads_of_an_event_loop_and_of_joblib(layer):
    code = """
import asyncio
from joblib import Parallel, delayed
async def gather():
    return await asyncio.gather(*(asyncio.to_thread(right) for _ in range(8)))
print(*asyncio.run(gather()), *Parallel(4, backend="threading")(delayed(right)() for _ in range(8)))
"""
    assert run(EVERY_CALL + code, timeout=60, **layer_of(layer)) == ["True"] * 16


# --- handlers and finalizers --------------------------------------------------------------------------------------------------------------
@unix
@each_layer_slowly
def test_signal_handlers_and_finalizers_in_the_middle_of_a_call(layer):
    """From the first call of the process on; and at its end."""
    code = """
import atexit, gc, signal
answers, rng = [], np.random.default_rng(3)
atexit.register(lambda: print(right(), flush=True))
def come_again():
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 5e-3))
def handle(number, frame):
    answer = right()
    answers.extend([answer] * is_inside(frame))
    come_again()
signal.signal(signal.SIGALRM, handle)
come_again()
calls = []
while len(answers) < 10:
    calls.append(right())
signal.signal(signal.SIGALRM, signal.SIG_IGN)  # the last one may be under way, and sets the timer again
print(all(answers), all(calls))

finalized = []
class Cycle:
    def __init__(self):
        self.own = self
    def __del__(self):
        frame = sys._getframe().f_back
        if is_inside(frame) and len(finalized) < 5:
            gc.disable()  # not one in another for ever
            finalized.append(right())
            gc.enable()
gc.set_threshold(20)
while len(finalized) < 5:
    Cycle()
    calls.append(right())
print(all(finalized), all(calls))
"""
    assert run(EVERY_CALL + IS_INSIDE + code, timeout=60, **layer_of(layer)) == ["True"] * 5


def test_the_first_call_is_at_the_end_of_the_process():
    assert run(EVERY_CALL + "import atexit; atexit.register(lambda: print(right()))") == ["True"]


@each_layer_slowly
def test_interrupts(layer):
    """Ctrl-C at any moment of a call: KeyboardInterrupt, and all is well."""
    code = """
import signal, threading
rng, came, answers = np.random.default_rng(4), [], [right()]
while sum(came) < 15:
    helper = threading.Timer(rng.uniform(0, 0.02), signal.raise_signal, [signal.SIGINT])
    try:
        helper.start()
        while True:
            answers.append(right())
    except KeyboardInterrupt as interrupt:
        place = interrupt.__traceback__
        while place.tb_next:
            place = place.tb_next
        came.append(is_inside(place.tb_frame))
    helper.join()
    answers.append(right())
print(all(answers))
"""
    assert run(EVERY_CALL + IS_INSIDE + code, timeout=60, **layer_of(layer)) == ["True"]


# --- users' own parallel functions --------------------------------------------------------------------------------------------------------
NESTED = """
import numba
if numba.config.THREADING_LAYER == "tbb":
    threads._load_tbb()  # which who asks for it has seen to
@numba.njit(parallel=True)
def host(n):
    answers = np.zeros(n, np.int64)
    for k in numba.prange(n):
        with numba.objmode(answer="int64"):
            answer = int(right())
        answers[k] = answer
    return answers
"""


@default_and_workqueue
def test_calls_by_numbas_own_threads(layer):
    """The first ones of the process, and later ones. On the workqueue layer they are serial, or Numba would end the process."""
    code = "print(*host(4), len(driven) > 0, right(), *host(4), right())"
    first = "False" if layer == "workqueue" else "True"
    assert run(EVERY_CALL + NESTED + code, timeout=60, **layer_of(layer)) == [*"1111", first, "True", *"1111", "True"]


def test_calls_of_patched_ufuncs_by_threads_of_the_workqueue():
    code = """
fastops.patch_numpy()
def share():
    threads.team.share, threads.team.affinity, threads.team.most, threads.team.several = 1e-9, None, 2, 0
    for record in fastops.fmod._patch.records.values():
        record.shared = 1
def right():
    return np.array_equal(np.fmod(x, y), want)
share()
print(*host(4), threads.team.caller)  # 0: no thread has led the others
share()
print(right(), threads.team.caller != 0, *host(4))
"""
    words = run(LARGE_CALLS + NESTED + code, timeout=60, NUMBA_THREADING_LAYER="workqueue")
    assert words == [*"1111", "0", "True", "True", *"1111"]


# --- those who set limits -----------------------------------------------------------------------------------------------------------------
UNLIMITED = (
    EVERY_CALL.replace("threads.limit = lambda: 2", "")
    + """
share = driving.share
driving.share = lambda *args: driven.append(1) or share(*args)
"""
)


@each_layer_slowly
def test_the_threads_that_numba_is_allowed(layer):
    """Each Python thread has its own number. It is not exceeded, and stays."""
    code = """
import ctypes, threading
from math import inf
import numba
threads.processors, threads.cpu_quota = lambda: 8, lambda: None
ran = set()
@ctypes.CFUNCTYPE(None, *[ctypes.c_ssize_t] * 4)
def note(*_):
    ran.add(threading.get_ident())
def is_respected(number):
    numba.set_num_threads(number)
    workers = threads.workers(inf)
    ran.clear()
    driven.clear()
    good = right() and bool(driven) == (number > 1)
    if number > 1:
        driving.share(ctypes.cast(note, ctypes.c_void_p).value, 0, 400, workers)
    return good and workers == number and len(ran) <= number and numba.get_num_threads() == number
print(right(), *(is_respected(number) for number in (2, 5, 1)))
other = threading.Thread(target=lambda: print(numba.get_num_threads(), right(), numba.get_num_threads(), is_respected(3)))
other.start()
other.join()
print(numba.get_num_threads(), is_respected(8))
"""
    words = run(UNLIMITED + code, timeout=60, NUMBA_NUM_THREADS=8, **layer_of(layer))
    assert words == ["True", "True", "True", "True", "8", "True", "8", "True", "1", "True"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_affinity_that_changes_and_a_quota():
    code = """
processors = os.sched_getaffinity(0)
def is_parallel():
    driven.clear()
    return right() and len(driven) > 0
several = is_parallel()
os.sched_setaffinity(0, [min(processors)])
print(is_parallel(), threads.limit())
os.sched_setaffinity(0, processors)
print(is_parallel() == several == (threads.limit() > 1))
threads.cpu_quota = lambda: 1
print(is_parallel(), threads.limit())
"""
    assert run(UNLIMITED + code) == ["False", "1", "True", "False", "1"]
