"""What only a process of its own can show: what import loads, caches, missing Numba, forks, threading layers, other processors."""

import os
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

import fastops
from fastops.kernels.primitives import X86

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
each_layer = pytest.mark.parametrize("layer", LAYERS)
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork and no alarm")


def run(code, *flags, timeout=120, path=None, **environment):
    """Standard output of a Python process; it fails where the process does, and shows why. A variable of None is unset."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "OMP_", "PYTHONW"))}
    env |= {"PYTHONPATH": str(path)} if path else {}
    for name, value in environment.items():
        env.pop(name, None)
        if value is not None:
            env[name] = str(value)
    done = subprocess.run([sys.executable, *flags, "-c", code], env=env, capture_output=True, text=True, timeout=timeout)
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
x, y = np.random.default_rng(0).normal(size=(2, 300_000))
i, j = np.random.default_rng(0).integers(1, 2**31, (2, 300_000), np.int32)
want, want_integers = np.fmod(x, y), np.remainder(i, j)
def right():
    return np.array_equal(fastops.fmod(x, y), want) and np.array_equal(fastops.mod(i, j), want_integers)
"""

FORK = """
import signal
def in_child(call):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # a child that hangs ends by -14
        try:
            os._exit(0 if call() else 1)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


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


# --- caches -------------------------------------------------------------------------------------------------------------------------------
REPORT = """
from fastops.engine import compiler
print(right(), len(driven), *(f"{made.name}:{made.from_cache}" for made in compiler.compiled()))
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder of its own, filled by a first process."""
    folder = tmp_path_factory.mktemp("cache")
    first = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=folder)
    assert first[:2] == ["True", "2"]
    assert sorted(first[2:]) == ["drive_in_parallel:False", f"{ENTRY}:False", "fmod_float64:False", "remainder_int32:False"]
    return folder


def test_second_process_compiles_nothing(warm):
    second = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=warm)
    assert second[:2] == ["True", "2"]
    assert sorted(second[2:]) == ["drive_in_parallel:True", f"{ENTRY}:True", "fmod_float64:True", "remainder_int32:True"]


def test_another_processor_compiles_anew(warm):
    """Its code is not the first one's, also from the same folder."""
    other = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=warm, NUMBA_CPU_NAME="generic")
    assert other[0] == "True"
    assert all(entry.endswith("False") for entry in other[2:])


@pytest.mark.parametrize("damage", ["index", "code", "truncated"])
def test_damaged_cache(warm, tmp_path, damage):
    files = [file for file in warm.rglob("*") if file.suffix in (".nbi", ".nbc")]
    assert len(files) >= 6
    for file in files:
        content = file.read_bytes()
        if file.suffix == {"index": ".nbi", "code": ".nbc"}.get(damage):
            content = b"garbage" * 100
        elif damage == "truncated":
            content = content[: len(content) // 2]
        copy = tmp_path / file.relative_to(warm)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    assert run(LARGE_CALLS + "print(right())", "-W", "error", NUMBA_CACHE_DIR=tmp_path) == ["True"]


def test_no_place_for_a_cache(tmp_path):
    """The package in an archive, no home, and a cache folder that cannot be made."""
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in SOURCE.rglob("*.py"):
            packed.write(file, file.relative_to(SOURCE.parent))
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = LARGE_CALLS + "print(right(), len(driven), 'package.zip' in fastops.__file__)"
    environment = {"HOME": blocked / "home", "XDG_CACHE_HOME": blocked / "cache"}
    assert run(code, "-W", "error", path=archive, NUMBA_CACHE_DIR=blocked / "cache", **environment) == ["True", "2", "True"]
    assert run(code, "-W", "error", path=archive, **environment) == ["True", "2", "True"]


def test_two_processes_fill_one_cache_at_once(tmp_path):
    code = LARGE_CALLS + "print(right())"
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        assert [process.communicate(timeout=200)[0].split() for process in both] == [["True"], ["True"]]
    finally:
        for process in both:
            process.kill()
    third = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=tmp_path)
    assert third[0] == "True"
    assert all(entry.endswith("True") for entry in third[2:])


# --- no Numba -----------------------------------------------------------------------------------------------------------------------------
NO_NUMBA = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    results = [right(), right(), np.array_equal(fastops.mod.outer(i[:200], j[:200]), np.remainder.outer(i[:200], j[:200]))]
    results += [fastops.mod(7, 4) == 3, fastops.fmod(-7, 4) == -3]
    out = np.empty_like(x)
    results.append(fastops.fmod(x, y, out=out) is out and np.array_equal(out, want))
    zeros = fastops.mod(i, 0)
kinds = [entry.category.__name__ for entry in caught]
print(all(results), len(driven), *kinds)
print(str(caught[0].message).replace(" ", "_"))
"""


def test_missing_numba_is_one_warning_and_numpys_results():
    words = run("import sys; sys.modules['numba'] = None" + LARGE_CALLS + NO_NUMBA)
    assert words[:4] == ["True", "0", "RuntimeWarning", "RuntimeWarning"]  # the second one for the division by zero
    assert len(words) == 5
    assert "numba" in words[4].lower()
    assert "Error" in words[4]


def test_broken_numba_is_one_warning_and_numpys_results(tmp_path):
    (tmp_path / "numba.py").write_text("raise OSError('libsvml is not there')")
    words = run(LARGE_CALLS + NO_NUMBA, path=f"{tmp_path}{os.pathsep}{SOURCE.parent}")
    assert words[:4] == ["True", "0", "RuntimeWarning", "RuntimeWarning"]
    assert len(words) == 5
    assert "libsvml_is_not_there" in words[4]


def test_disabled_jit_is_one_warning_and_numpys_results():
    words = run(LARGE_CALLS + NO_NUMBA, NUMBA_DISABLE_JIT=1)
    assert words[:4] == ["True", "0", "RuntimeWarning", "RuntimeWarning"]
    assert len(words) == 5
    assert "NUMBA_DISABLE_JIT" in words[4]


def test_the_warning_of_missing_numba_points_at_the_caller():
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fastops.mod(i, j)
print(caught[0].filename)
"""
    assert run("import sys; sys.modules['numba'] = None" + LARGE_CALLS + code) == ["<string>"]


# --- forks and threads --------------------------------------------------------------------------------------------------------------------
def layer_of(layer):
    return {} if layer == "default" else {"NUMBA_THREADING_LAYER": layer}


@each_layer
def test_the_chosen_layer_is_taken(layer):
    words = run(LARGE_CALLS + "print(right(), len(driven)); import numba; print(numba.threading_layer())", **layer_of(layer))
    assert words[:2] == ["True", "2"]
    assert words[2] == layer or (layer == "default" and words[2] in LAYERS)


@unix
@each_layer
def test_fork_after_a_parallel_call(layer):
    code = LARGE_CALLS + FORK + "print(right(), in_child(right), in_child(lambda: in_child(right) == 0), right(), in_child(right))"
    assert run(code, timeout=60, **layer_of(layer)) == ["True", "0", "0", "True", "0"]


@unix
@each_layer
def test_fork_before_any_parallel_call(layer):
    code = LARGE_CALLS + FORK + "fastops.mod(i[:20_000], 7); print(in_child(right), right(), in_child(right))"
    assert run(code, timeout=60, **layer_of(layer)) == ["0", "True", "0"]


@unix
@each_layer
def test_fork_while_another_thread_computes(layer):
    code = (
        LARGE_CALLS
        + FORK
        + """
import threading
stop = threading.Event()
assert right()
def work():
    while not stop.is_set():
        assert right()
thread = threading.Thread(target=work)
thread.start()
codes = [in_child(right) for _ in range(12)]
stop.set()
thread.join()
print(*codes, right())
"""
    )
    assert run(code, timeout=300, **layer_of(layer))[-13:] == ["0"] * 12 + ["True"]  # before it TBB may say that it could not pause


@unix
@each_layer
def test_pool_by_fork(layer):
    code = (
        LARGE_CALLS
        + """
import multiprocessing
print(right())
def part(k):
    return np.array_equal(fastops.fmod(x[k:], y[k:]), want[k:])
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.map(part, range(4)))
"""
    )
    assert run(code, timeout=60, **layer_of(layer)) == ["True"] * 5


@each_layer
def test_two_threads_at_once(layer):
    """The first calls of a process among them."""
    code = (
        LARGE_CALLS
        + """
import threading
from concurrent.futures import ThreadPoolExecutor
barrier = threading.Barrier(4)
def work(k):
    barrier.wait()
    return all(right() for _ in range(15))
with ThreadPoolExecutor(4) as pool:
    print(*pool.map(work, range(4)), len(driven) > 0)
"""
    )
    assert run(code, timeout=90, **layer_of(layer)) == ["True"] * 5


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


@pytest.mark.parametrize("bits", CONTROLS.values(), ids=CONTROLS)
def test_the_arithmetic_of_the_thread_does_not_matter(bits):
    """Nor is it changed. (The reference is computed before.)"""
    code = f"""
        import sys
        import numpy as np
        from numba import njit
        sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
        import conftest, fastops
        from fastops.kernels import primitives
        bits = {bits}[not primitives.X86]

        @njit
        def control(bits):
            if primitives.X86:
                state = primitives.save_flags()
                primitives.restore_flags(np.uint32(primitives.DEFAULT | bits))
                return np.int64(state) & 0xFFC0
            before = primitives.default_control()
            primitives.restore_control(bits)
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
                before = control(bits)
                got, got_by_scalar, ufuncs = ours(x, y), ours(x, y[7]), ours(x[::-1], y[::-1])[::-1]
                after = control(0)
                for result, expected in ((got, want), (got_by_scalar, by_scalar), (ufuncs, want)):
                    conftest.assert_same_bits(result, expected)
                right.append(after == before | bits)
        print(all(right), len(right))
    """
    assert run(dedent(code)) == ["True", "24"]


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


def test_spawned_processes():
    code = """
import multiprocessing, functools, numpy as np, fastops
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(*(np.array_equal(r, np.arange(20_000) % 7) for r in pool.starmap(fastops.mod, [(np.arange(20_000), 7)] * 2)))
"""
    assert run(code, timeout=90) == ["True", "True"]


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


# --- processors ---------------------------------------------------------------------------------------------------------------------------
DIGEST = """
import hashlib, sys
import numpy as np
sys.path.insert(0, {tests!r})
import conftest
from fastops.engine import compiler
np.seterr(all="ignore")
for name, (operation, twin) in conftest.OPERATIONS.items():
    for label, dtype in conftest.DTYPES.items():
        digest, loop = hashlib.sha256(), operation.loop(dtype)
        edges = conftest.EDGE_VALUES[label]
        random = [conftest.random_bits(dtype, 50_000, seed) for seed in range(4)]
        for x1, x2 in (conftest.pairs(dtype), random[:2], random[2:]):
            result = operation(x1, x2)
            conftest.assert_same_bits(result, conftest.oracle(name, x1, x2))
            digest.update(result.tobytes())
        for edge in edges:
            digest.update(operation(edges, edge).tobytes() + operation(edge, edges).tobytes())
        print(name, label, digest.hexdigest()[:12])
print(*sorted(compiler.features().items()))
"""


def test_generic_processor_gives_the_same_bits():
    code = DIGEST.format(tests=str(Path(__file__).resolve().parent))
    host, generic = run(code, timeout=300), run(code, timeout=300, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert host[:72] == generic[:72]
    assert len({*host[2:72:3]}) == 20  # 24, but both remainders of unsigned integers are the same
    if X86:
        assert "True" not in "".join(generic[72:])


def test_another_processor_has_numpys_loops():
    """Also one that only the process has: a 32-bit one, or an emulated one."""
    code = """
import warnings
import llvmlite.binding as llvm
import numba, numpy as np
llvm.get_process_triple = lambda: "i686-unknown-linux-gnu"
import fastops
x = np.arange(20_000)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(np.array_equal(fastops.mod(x, 7), x % 7), len(caught), "64-bit Arm, not of i686" in str(caught[0].message))
"""
    assert run(code) == ["True", "1", "True"]


def test_conversions_of_64_bits_either_way_give_the_same_bits(tmp_path):
    """(Not told from each other by the cache, for one processor has one of them.)"""
    code = DIGEST.format(tests=str(Path(__file__).resolve().parent))
    other = "from fastops.engine import compiler\nhad = compiler.features()\ncompiler.features = lambda: {**had, 'wide': not had['wide']}\n"
    host, flipped = run(code, timeout=300), run(other + code, timeout=300, NUMBA_CACHE_DIR=str(tmp_path))
    assert host[:72] == flipped[:72]
    assert host[72:] != flipped[72:]


@unix
@pytest.mark.parametrize("delay", [0.05, 0.15])
def test_an_interrupt_while_numba_is_imported(delay):
    """Numba may be left half imported: then NumPy serves, with one warning."""
    code = f"""
        import signal, warnings
        import numpy as np
        import fastops

        def interrupt(*_):
            raise KeyboardInterrupt

        x = np.arange(200_000, dtype=np.int32)
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, {delay})
        try:
            fastops.mod(x, 7)
        except KeyboardInterrupt:
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            right = all(np.array_equal(fastops.mod(x, x + 1), np.mod(x, x + 1)) for _ in range(3))
        print(right, len(caught) <= 1)
    """
    assert run(dedent(code), timeout=120)[-2:] == ["True", "True"]


@unix
def test_a_signal_handler_calls_while_numba_is_imported():
    """It gets NumPy's results at that moment, and fastops' loops afterwards."""
    code = """
        import signal
        import numpy as np
        import fastops
        from fastops.engine import compiler

        x = np.arange(200_000, dtype=np.int32)
        right = []

        def call_and_come_again(*_):
            right.append(np.array_equal(fastops.fmod(x, 7), np.fmod(x, 7)))
            signal.setitimer(signal.ITIMER_REAL, 0.02)

        signal.signal(signal.SIGALRM, call_and_come_again)
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        right.append(np.array_equal(fastops.mod(x, 7), np.mod(x, 7)))
        signal.setitimer(signal.ITIMER_REAL, 0)
        fastops.fmod(x, 7)
        print(all(right), "fmod_int32" in {made.name for made in compiler.compiled()})
    """
    assert run(dedent(code), timeout=120)[-2:] == ["True", "True"]


@unix
def test_fork_while_another_thread_compiles(tmp_path):
    """Numba's locks are then held for ever in the child, which is served by NumPy where nothing is compiled yet."""
    code = """
        import os, signal, threading, time
        import numpy as np
        import fastops

        x = np.arange(1, 200_001)
        names = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
        thread = threading.Thread(target=lambda: [fastops.mod(x.astype(name), 7) for name in names])
        thread.start()
        codes = []
        for _ in range(4):
            time.sleep(0.15)
            child = os.fork()
            if not child:
                signal.alarm(20)
                os._exit(not np.array_equal(fastops.fmod(x, 7), np.fmod(x, 7)))
            codes.append(os.waitpid(child, 0)[1])
        thread.join()
        print(codes)
    """
    assert " ".join(run(dedent(code), timeout=300, NUMBA_CACHE_DIR=tmp_path)) == "[0, 0, 0, 0]"


def test_a_numpy_whose_c_api_is_not_as_expected():
    """fastops then has no ufunc of its own: NumPy's serves what the parallel driver does not."""
    code = """
        import numpy as np
        module = np._core._multiarray_umath
        capsule = module._UFUNC_API
        del module._UFUNC_API
        import fastops
        module._UFUNC_API = capsule  # Numba needs it
    """
    check = """
from fastops import real_ufuncs
assert "_UFUNC_API" in real_ufuncs.problem and real_ufuncs.remainder is np.remainder
small = fastops.mod([5, -5], 3).tolist(), fastops.fmod.reduce([7, 4, 2]), fastops.mod(np.float32(5), 3)
print(right(), len(driven), *small[0], *small[1:])
"""
    assert run(dedent(code) + LARGE_CALLS + check, timeout=120) == ["True", "2", "2", "1", "1", "2.0"]


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
