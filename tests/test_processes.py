"""What only a process of its own can show: what import loads, and how the native entries of small calls come and go."""

import pytest
from in_processes import LARGE_CALLS, run, unix


# --- import -------------------------------------------------------------------------------------------------------------------------------
def test_import_loads_nothing_heavy():
    loaded = run("import numpy, sys; before = set(sys.modules); import fastops; print(*set(sys.modules) - before)")
    heavy = {"numba", "llvmlite", "onnx", "dask", "ml_dtypes", "pandas", "xarray", "tqdm", "tbb"}
    assert not heavy & {module.partition(".")[0] for module in loaded}
    assert "fastops.ufuncs" in loaded
    assert len(loaded) < 60


def test_small_calls_load_no_numba():
    code = "import sys, numpy as np, fastops; fastops.mod(np.arange(9_999), 7); fastops.fmod(7.5, 2); print('numba' in sys.modules)"
    assert run(code) == ["False"]


def test_import_and_calls_are_clean_with_warnings_as_errors():
    run("import fastops", "-W", "error", "-X", "dev")
    assert run(LARGE_CALLS + "print(right())", "-W", "error") == ["True"]


def test_bfloat16_is_served_when_ml_dtypes_comes_later():
    code = """
import numpy as np, fastops
fastops.mod(np.arange(20_000), 7)
import ml_dtypes
zeros = np.zeros(20_000, ml_dtypes.bfloat16)
print(np.signbit(fastops.mod(zeros, ml_dtypes.bfloat16(-1))).all(), np.signbit(fastops.mod(zeros[:3], ml_dtypes.bfloat16(-1))).all())
"""
    assert run(code) == ["True", "True"]


# --- the native entry of small calls ------------------------------------------------------------------------------------------------------
GATE = """
import sys, threading
import numpy as np
import fastops
from fastops.engine import headers, vectorcall
x, large = np.arange(5), np.arange(20_000)
def right(f=fastops.mod, twin=np.mod):
    return all(np.array_equal(f(a, 3), twin(a, 3)) for a in (x, large, x[::-1], [7, 8], 9))
"""


def test_threads_that_call_while_the_gate_opens():
    code = """
stop, wrong, calls = threading.Event(), [], [0]
def work():
    out = np.empty_like(x)
    while not stop.is_set():
        calls[0] += 1
        if fastops.mod(x, 3).tolist() != [0, 1, 2, 0, 1] or fastops.mod(x, 3, out=out) is not out:
            wrong.append(1)
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
before = fastops.mod._gate
openers = [threading.Thread(target=fastops.mod, args=(large, 3)) for _ in range(3)]
for thread in openers: thread.start()
for thread in openers: thread.join()
reached = calls[0]
while calls[0] < reached + 1000: pass
stop.set()
for thread in threads: thread.join()
print(before, fastops.mod._gate is not None, len(wrong), right())
"""
    assert run(GATE + code) == ["None", "True", "0", "True"]


@unix
def test_a_forked_child_goes_on():
    code = """
import os
print(right(), fastops.mod._gate is not None)
child = os.fork()
if not child:
    os._exit(0 if right() else 1)
print(os.waitpid(child, 0)[1])
"""
    assert run(GATE + code) == ["True", "True", "0"]


def test_calls_at_the_very_end_of_a_process():
    """By what the interpreter takes apart together with fastops' modules."""
    code = """
class Last:
    def __init__(self, f, x): self.f, self.x = f, x
    def __del__(self): print(self.f(self.x, 4).tolist(), flush=True)
print(right())
vectorcall.last, sys.modules["last"] = Last(fastops.mod, np.array(7)), Last(fastops.mod, np.array(10))
"""
    assert sorted(run(GATE + code)) == ["2", "3", "True"]


WITHOUT = {
    "a layout that is not as documented": (GATE + "headers._heads = lambda: False", "True"),
    "a C-API that is not as documented": (GATE + "headers._lists = lambda functions: False", "True"),
    "another kind of CPython": ("import sys; sys.gettotalrefcount = lambda: 0" + GATE, "False"),
    "a CPython that makes no such type": ("import ctypes; ctypes.pythonapi.PyType_FromSpecWithBases = None" + GATE, "False"),
}


@pytest.mark.parametrize("kind", list(WITHOUT))
def test_without_a_gate_python_serves_every_call(kind):
    prepare, room = WITHOUT[kind]
    code = "\nprint(right(), right(fastops.fmod, np.fmod), right(), fastops.mod._gate, hasattr(fastops.mod, '_room'))"
    assert run(prepare + code) == ["True", "True", "True", "None", room]


def test_a_gate_opens_once_for_each_function():
    code = """
fastops.mod(large, 3)
first = fastops.mod._gate
fastops.mod(large.astype(np.int8), 3)
print(fastops.mod._gate is first, fastops.fmod._gate)
fastops.fmod(large, 3)
print(fastops.fmod._gate is not first, right(fastops.fmod, np.fmod), right())
"""
    assert run(GATE + code) == ["True", "None", "True", "True", "True"]
