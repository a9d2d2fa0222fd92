"""Other processors, an interrupted start, and a NumPy that is not as expected."""

from pathlib import Path
from textwrap import dedent

import llvmlite.binding as llvm
import processors
import pytest
from conftest import DTYPES
from in_processes import LARGE_CALLS, run, unix

from fastops.engine import compiler
from fastops.kernels.flags import X86

pytestmark = pytest.mark.usefixtures("kernels")
# --- processors ---------------------------------------------------------------------------------------------------------------------------
FEW = {  # one for each kind of formula, on the first; `python tests/processors.py` takes them all, on all
    "generic": ("int8", "int64", "float16", "float32"),
    "x86-64-v2": ("int64", "float32"),
    "x86-64-v3": ("int8", "float16"),
}
OTHERS = [("generic", ("float32",)), *(pytest.param(processor, FEW[processor], marks=pytest.mark.slow) for processor in processors.OTHERS)]


@pytest.fixture(scope="module")
def host():
    return processors.on("", *DTYPES)


def of(dtypes, lines):
    """The lines of a report of these dtypes, without the last."""
    return [line for line in lines[:-1] if line == "missing:" or line.split()[1] in dtypes]


def test_each_operation_and_dtype_has_a_digest_of_its_own(host):
    *digests, missing, _ = host
    assert missing == "missing:"
    assert len(digests) == 36
    assert len({line.split()[-1] for line in digests}) == 32  # for both remainders of unsigned integers are the same


@pytest.mark.parametrize(("processor", "dtypes"), OTHERS)
def test_another_processor_gives_the_same_bits(processor, dtypes, host):
    """Whatever it lacks, no function is called that the process has not."""
    *lines, features = processors.on(processor, *dtypes)
    assert lines == of(dtypes, host)
    if X86:
        assert (features == "") == (processor == "generic")


@pytest.mark.parametrize(
    "operations", [("remainder", "fmod"), pytest.param(processors.NAMES, marks=pytest.mark.slow)], ids=["remainders", "all"]
)
def test_conversions_of_64_bits_either_way_give_the_same_bits(operations, tmp_path, host):
    """(Not told from each other by the cache, for one processor has one of them.)"""
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import processors
        from fastops.engine import compiler
        processors.NAMES, had = {operations}, compiler.features
        compiler.features = lambda: {{**had(), "wide": not had()["wide"]}}
        processors.report(["int64", "uint64"])
    """
    lines = run(dedent(code), timeout=400, NUMBA_CACHE_DIR=str(tmp_path))
    expected = " ".join(line for line in of(("int64", "uint64"), host) if line.split()[0] in (*operations, "missing:")).split()
    assert lines[: len(expected)] == expected
    assert ("wide" in lines[len(expected) :]) != ("wide" in host[-1].split())


def test_a_symbol_that_is_missing_is_seen():
    """Where objects are ELF."""
    machine = llvm.Target.from_triple(compiler.target()[0]).create_target_machine()
    declared = "declare void @nowhere() declare double @cos(double) "
    module = llvm.parse_assembly(
        declared + "define double @f(double %x) { call void @nowhere() %y = call double @cos(double %x) ret double %y }"
    )
    code = machine.emit_object(module)
    assert processors.missing_symbols([code, None]) == (["nowhere"] if code.startswith(b"\x7fELF") else [])


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
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a handler that is under way sets the timer again
        fastops.fmod(x, 7)
        print(all(right), "fmod_int32" in {made.name for made in compiler.compiled()})
    """
    assert run(dedent(code), timeout=120)[-2:] == ["True", "True"]


@unix
@pytest.mark.slow  # `test_patching.py` has a quick one, of one loop
def test_fork_while_another_thread_compiles(tmp_path):
    """Numba's locks are then held for ever in the child, which is served by NumPy where nothing is compiled yet."""
    code = """
        import os, signal, threading, time
        import numpy as np
        import fastops

        x = np.arange(1, 200_001)

        sevens = np.full(100, 7, np.int8)
        updates = np.repeat(np.array([7, 1], np.int8), [100, 19_900])

        def divide():
            return fastops.scatter_div(sevens.copy(), x[:20_000] % 100, updates)

        def work():
            divide()
            for name in ("int8", "int16"):
                fastops.mod(x.astype(name), 7)

        thread = threading.Thread(target=work)
        thread.start()
        codes = []
        for _ in range(4):
            time.sleep(0.15)
            child = os.fork()
            if not child:
                signal.alarm(100)
                os._exit(not (np.array_equal(fastops.fmod(x, 7), np.fmod(x, 7)) and (divide() == 1).all()))
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
