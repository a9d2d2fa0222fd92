"""What the compiler makes of the loops: SIMD instructions as wide as the processor has them."""

import os
import re
import subprocess
import sys

import pytest
from conftest import DTYPES, FLOATS, each_operation

from fastops.engine import compiler

SCRIPT = """
import os, re, sys
import llvmlite.binding as llvm
llvm.set_option("", "-pass-remarks=loop-vectorize")
import ml_dtypes, numpy as np
from fastops import real_ufuncs, scatter_compiled
from fastops.engine import compiler
from fastops.kernels import copying, elementwise
copying._copy = lambda *arguments: None  # its loops are not meant
loop, emitted = elementwise.Elementwise.loop, []
elementwise.Elementwise.loop = lambda *arguments, **others: emitted.append(1) or loop(*arguments, **others)
for dtype in sys.argv[2:]:
    os.write(2, f"compiling {dtype}\\n".encode())
    emitted.clear()
    if sys.argv[1] == "scatter_div":
        scatter_compiled.make_kernel(np.dtype(dtype))
    else:
        assert real_ufuncs.loop(sys.argv[1], np.dtype(dtype))
    os.write(2, f"emitted: {len(emitted)}\\n".encode())
    code = compiler.compiled()[-1].function.inspect_llvm()
    if "memcheck" in code:
        os.write(2, b"tests for overlap\\n")
    if re.search("= fdiv .*half", code):
        os.write(2, b"divides halves\\n")
"""


def widest_lanes(dtype: str) -> int:
    """Bits of the widest lanes that elements by elements, and elements by one divisor, are computed in."""
    features = compiler.features()
    if dtype in ("int8", "uint8"):
        return 16
    if dtype in ("int64", "uint64", "float64"):
        return 64
    single = features["wide"] if dtype == "uint32" else features["fused"] or dtype not in ("bfloat16", "float32")
    return 32 if single else 64


def remarks(name, dtypes, folder):
    """What LLVM has to say of the loops of each dtype."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}  # compiled, not loaded
    done = subprocess.run([sys.executable, "-c", SCRIPT, name, *dtypes], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    _, *parts = re.split(r"^compiling (\w+)$", done.stderr, flags=re.MULTILINE)
    assert parts[::2] == list(dtypes)
    return dict(zip(parts[::2], parts[1::2], strict=True))


KINDS = ("int8", "int32", "int64", "float16", "float32", "float64")  # one for each kind of formula
OTHERS = [dtype for dtype in DTYPES if dtype not in KINDS]


@pytest.mark.parametrize("dtypes", [KINDS, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["kinds", "others"])
@each_operation
def test_the_loops_are_vectorised(name, dtypes, tmp_path):
    """All of them, and two at least in the widest lanes. (With AVX-512, LLVM takes half of its width on some processors.)"""
    register = 256 if "+avx2" in compiler.target()[2] else 128
    texts = remarks(name, dtypes, tmp_path)
    widths = {
        dtype: [int(width) for width in re.findall(r"vectorized loop \(vectorization width: (\d+)", text)] for dtype, text in texts.items()
    }
    emitted = {dtype: int(re.search(r"emitted: (\d+)", text)[1]) + (dtype in FLOATS) for dtype, text in texts.items()}  # 1: their numbers
    scalar = {dtype: (len(widths[dtype]), count) for dtype, count in emitted.items() if len(widths[dtype]) < count}
    assert not scalar, "loops that LLVM vectorised, of those that were emitted"
    tested = [dtype for dtype, text in texts.items() if "tests for overlap" in text]
    assert not tested, "LLVM was not told that elements are independent: calls in place would run scalar"
    narrow = {dtype: found for dtype, found in widths.items() if sorted(found)[-2] < register // widest_lanes(dtype)}
    assert not narrow, f"LLVM's vectorisation widths, for registers of {register} bits"


@pytest.mark.parametrize(
    "dtypes", [["int32"], pytest.param(["int8", "int64", "float16", "float32"], marks=pytest.mark.slow)], ids=", ".join
)
def test_the_loops_of_scatter_div_are_vectorised(dtypes, tmp_path):
    """Those along rows, and over the divisors of integers; of a few dtypes, one for each kind of formula. Halves are divided in single
    precision, for some processors divide four as eight, and the flags tell of the others too."""
    for dtype, text in remarks("scatter_div", dtypes, tmp_path).items():
        emitted = int(re.search(r"emitted: (\d+)", text)[1])
        assert emitted >= 3
        assert text.count("vectorized loop (vectorization width: ") >= emitted + (dtype not in FLOATS), dtype
        assert "tests for overlap" not in text, dtype
        assert "divides halves" not in text
        if dtype == "float16" and compiler.features()["half"]:
            assert text.count("(vectorization width: 8,") >= emitted
