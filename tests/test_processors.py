"""Other processors, an interrupted start, and a NumPy that is not as expected."""

from pathlib import Path
from textwrap import dedent

import pytest
from in_processes import LARGE_CALLS, run, unix

from fastops.kernels.primitives import X86

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
