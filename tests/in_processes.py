"""Tests in processes of their own: how to run one, on every threading layer, and code for it that calls and tells whether all is right."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fastops

SOURCE = Path(fastops.__file__).resolve().parent
ENTRY, SCATTER_ENTRY = f"entry_{fastops.mod._room}", f"scatter_entry_{fastops.scatter_div._room}"  # the native entries of small calls


def available(layer):
    if layer == "tbb":  # by the package, whose library is off the loader's path
        from fastops.engine import threads

        threads._load_tbb()
    try:
        import_module(f"numba.np.ufunc.{layer}pool")
    except ImportError:
        return False
    return True


LAYERS = ["default", "workqueue", *(layer for layer in ("omp", "tbb") if available(layer))]
_BY_DEFAULT = next(layer for layer in ("tbb", "omp", "workqueue") if layer in LAYERS)  # in Numba's order


def _layers(*slow):
    return pytest.mark.parametrize("layer", [pytest.param(layer, marks=pytest.mark.slow) if layer in slow else layer for layer in LAYERS])


each_layer = _layers(_BY_DEFAULT)
default_and_workqueue = _layers("omp", "tbb")
each_layer_slowly = _layers("workqueue", "omp", "tbb")  # the others than the default are slow
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork and no alarm")


def run(code, *flags, timeout=120, path=None, python=sys.executable, **environment):
    """Standard output of a Python process; it fails where the process does, and shows why. A variable of None is unset."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "OMP_", "PYTHONW"))}
    env |= {"PYTHONPATH": str(path)} if path else {}
    for name, value in environment.items():
        env.pop(name, None)
        if value is not None:
            env[name] = str(value)
    done = subprocess.run([python, *flags, "-c", code], env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout.split()


LARGE_CALLS = """
import os, sys, warnings
import numpy as np
import fastops
from fastops.engine import driving, threads
threads.limit = lambda: 2
threads.WORTHWHILE = 1e-9  # whatever the loops and the layer cost here
driven, drive = [], driving.drive
driving.drive = lambda *args: driven.append(1) or drive(*args)
x, y = np.random.default_rng(0).normal(size=(2, 100_000))
i, j = np.random.default_rng(0).integers(1, 2**31, (2, 100_000), np.int32)
want, want_integers = np.fmod(x, y), np.remainder(i, j)
def right():
    return np.array_equal(fastops.fmod(x, y), want) and np.array_equal(fastops.mod(i, j), want_integers)
"""

# The same of all operations: `right()` calls them on shared operands, large and small, with a second thread where one is to be had.
EVERY_CALL = (
    LARGE_CALLS
    + """
from fastops import scatter_sharing
scatter_sharing.LEAST_UPDATES = 1
table, rows = np.arange(1.0, 64_001.0).reshape(500, 128), np.random.default_rng(1).integers(0, 500, 2_000)
by = np.random.default_rng(2).integers(1, 4, (2_000, 128)).astype(float)
divided, few, small = table.copy(), np.arange(1, 60), np.arange(-30, 29)
for row, divisor in zip(rows, by):
    divided[row] /= divisor
def right_rows():
    few_rows = fastops.scatter_div(table[:3].copy(), [2, 0], by[:2])
    return np.array_equal(fastops.scatter_div(table.copy(), rows, by), divided) and few_rows[2, 5] == table[2, 5] / by[0, 5]
def right_remainders(right=right):
    return right() and np.array_equal(fastops.mod(small, few), np.mod(small, few)) and fastops.fmod(-7.5, 2) == -1.5
def right():
    return right_remainders() and right_rows()
"""
)

FORK = """
import signal
def in_child(call):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # a child that hangs ends by -14
        try:
            os._exit(0 if call() else 1)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def layer_of(layer):
    return {} if layer == "default" else {"NUMBA_THREADING_LAYER": layer}
