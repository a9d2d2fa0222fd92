"""`mod`, `remainder` and `fmod` in functions that users compile by Numba: the bits and dtypes of NumPy, and its flags."""

import os
import pickle
import re
import sys
from textwrap import dedent

import ml_dtypes
import numba
import numpy as np
import pytest
from conftest import DTYPES, OPERATIONS, assert_same_bits, each_operation, mixed_values, operands, oracle, pairs, random_bits
from in_processes import SOURCE, run
from llvmlite.binding import llvm_version_info

import fastops
from fastops import njit

LACKING = {"float16", "bfloat16"}  # which Numba lacks on processors
SERVED = {name: dtype for name, dtype in DTYPES.items() if name not in LACKING}
each_served = pytest.mark.parametrize("dtype", list(SERVED.values()), ids=list(SERVED))


@numba.njit
def call(x, y):
    return fastops.mod(x, y), fastops.fmod(x, y)


@numba.njit
def call_into(x, y, out_of_mod, out_of_fmod):
    fastops.mod(x, y, out_of_mod)
    fastops.fmod(x, y, out_of_fmod)


@numba.njit
def call_each(x, y):
    mod, fmod = np.empty_like(x), np.empty_like(x)
    for k in range(x.size):
        mod[k], fmod[k] = fastops.remainder(x[k], y[k]), fastops.fmod(x[k], y[k])
    return mod, fmod


def assert_right(got, x, y):
    """Of the results of both operations."""
    for name, result in zip(OPERATIONS, got, strict=True):
        assert_same_bits(result, oracle(name, x, y), x, y)


# --- values -------------------------------------------------------------------------------------------------------------------------------
@each_served
def test_values(dtype):
    for x, y in (pairs(dtype), (random_bits(dtype, 3_000, 1), random_bits(dtype, 3_000, 2))):
        assert_right(call_each(x, y), x, y)


@pytest.mark.parametrize("dtype", [np.dtype("i4"), np.dtype("u8"), np.dtype("f8")], ids=str)
def test_arrays_and_numbers(dtype):
    x, y = mixed_values(dtype, 3_000), mixed_values(dtype, 3_000, 1)
    assert_right(call(x, y), x, y)
    for number in y[:20]:
        assert_right(call(x, number), x, number)
        assert_right(call(number, x), number, x)
        assert_right(map(dtype.type, call(number, x[0])), number, x[0])


LAYOUTS = ["reversed", "transposed dividend", "outer", "0-d divisor", "broadcast_to", "empty rows", "3-D broadcast in the middle"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    x, y = operands(layout, np.dtype("i4"))
    assert_right(call(x, y), x, y)


def test_into_arrays():
    """One of another dtype, with steps; and in place."""
    x, y = mixed_values(np.dtype("f8"), 100), mixed_values(np.dtype("f8"), 100, 1)
    mod, fmod, out = oracle("remainder", x, y), oracle("fmod", x, y), np.zeros(200, np.float32)[::2]
    call_into(x, y, out, x)
    with np.errstate(all="ignore"):
        assert_same_bits(out, mod.astype(np.float32))
    assert_same_bits(x, fmod)


# What Numba's own remainders get wrong, or what ends the process: dividend, divisor.
WRONG_IN_NUMBA = {
    "lowest number by -1": (np.int64(-(2**63)), np.int64(-1)),
    "negative dividend": (np.int32(-7), np.int32(3)),
    "negative divisor": (np.int8(7), np.int8(-3)),
    "zero with the sign of its divisor": (6.0, -3.0),
    "zero by a negative divisor": (0.0, -3.0),
}


@pytest.mark.parametrize("case", list(WRONG_IN_NUMBA))
def test_what_numba_gets_wrong(case):
    x, y = (np.full(3, number) for number in WRONG_IN_NUMBA[case])
    assert_right(call_each(x, y), x, y)


# --- dtypes -------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("codes", ["??", "qQ", "if", "Bq"])
def test_mixed_dtypes(codes):
    x, y = (np.abs(mixed_values(np.dtype("i8"), 50, seed)).astype(code) for seed, code in enumerate(codes))
    assert_right(call(x, y), x, y)


@each_operation
def test_promotion_is_numpys(name):
    kinds = [np.dtype("?"), *SERVED.values()]
    for x in kinds:
        for y in kinds:
            want = OPERATIONS[name][1](np.ones(1, x), np.ones(1, y)).dtype
            assert str(njit.common_type(name, numba.from_dtype(x), numba.from_dtype(y))) == want.name


def test_literals_are_int64():
    call = numba.njit(lambda x: fastops.mod(x, 7))
    assert call(np.ones(2, np.int8)).dtype == np.int64
    assert type(call(np.uint64(8))) is float


UNSERVED = {
    "complex": (1j, "complex128"),
    "string": ("7", "unicode_type"),
    "date": (np.datetime64(7, "s"), "datetime64[s]"),
    "time": (np.timedelta64(7, "s"), "timedelta64[s]"),
    "array of complex": (np.ones(2, "c8"), "complex64"),
    "None": (None, "none"),
}


@each_operation
@pytest.mark.parametrize("kind", list(UNSERVED))
def test_unserved_types(name, kind):
    operation, (x, described) = OPERATIONS[name][0], UNSERVED[kind]
    text = f"fastops.{name} takes booleans, integers, float32 and float64 in functions compiled by Numba, not {described} and int64"
    with pytest.raises(numba.TypingError) as caught:
        numba.njit(lambda x, y: operation(x, y))(x, 3)
    assert text in str(caught.value)


def test_half_precision():
    """Numba refuses it before it meets the remainder."""
    with pytest.raises(NotImplementedError, match="float16"):
        call(np.zeros(3, np.float16), 3)
    with pytest.raises(numba.TypingError, match="not float16 and int8"):
        njit.common_type("fmod", numba.types.float16, numba.types.int8)
    with pytest.raises(numba.TypingError, match="Cannot determine Numba type"):
        call(ml_dtypes.bfloat16(3), 3)


@pytest.mark.parametrize("call", [lambda x: fastops.mod(x, 3, fmod=1), lambda x: fastops.mod(x, 3, out=x)], ids=["fmod", "out"])
def test_keywords(call):
    with pytest.raises(numba.TypingError, match=r"takes no keywords .*`out` comes third, fmod=1 is fastops\.fmod"):
        numba.njit(call)(np.ones(3))


@pytest.mark.parametrize("fastmath", [True, {"reassoc"}, {"contract"}], ids=str)
def test_fastmath_is_refused(fastmath):
    """In functions, in ufuncs, and in functions that inherit it from their caller."""
    x, text = np.ones(3), "fastops.remainder is exact, and cannot be compiled with fastmath"
    inner = numba.njit(lambda x: fastops.mod(x, 3))
    for make in (numba.njit(fastmath=fastmath), numba.njit(fastmath=fastmath, parallel=True), numba.vectorize(fastmath=fastmath)):
        with pytest.raises(numba.TypingError, match=text):
            make(lambda x: fastops.mod(x, 3))(x)
    with pytest.raises(numba.TypingError, match=text):
        numba.njit(fastmath=fastmath)(lambda x: inner(x))(x)


def test_fastmath_around_an_exact_function():
    """It is compiled before, without."""
    x, y = mixed_values(np.dtype("f8"), 3_000), mixed_values(np.dtype("f8"), 3_000, 1)
    call(x, y)
    assert_right(numba.njit(fastmath=True)(lambda x, y: call(x, y))(x, y), x, y)


@each_operation
@pytest.mark.parametrize(("codes", "out"), [("dd", "q"), ("qq", "B"), ("dd", "?"), ("Qq", "Q")])
def test_output_that_numpy_would_not_cast_to(name, codes, out):
    operation, twin = OPERATIONS[name]
    operands = [np.ones(3, code) for code in (*codes, out)]
    with pytest.raises(TypeError, match="Cannot cast"):
        twin(*operands)
    with pytest.raises(numba.TypingError, match=f"fastops.{name}: cannot cast the output from .* with casting rule 'same_kind'"):
        numba.njit(lambda x, y, out: operation(x, y, out))(*operands)


# --- what users compile -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "dtype"), [("remainder", np.dtype("f8")), ("fmod", np.dtype("i4"))], ids=str)
def test_parallel(name, dtype):
    """Fused with another operation, and element by element."""
    operation = OPERATIONS[name][0]

    @numba.njit(parallel=True)
    def call(x, y):
        out = np.empty_like(x)
        for k in numba.prange(x.size):
            out[k] = operation(x[k], y[k])
        return out, operation(x, y) + operation(y, x)

    x, y = mixed_values(dtype, 10_000), mixed_values(dtype, 10_000, 1)
    each, fused = call(x, y)
    with np.errstate(all="ignore"):
        assert_same_bits(fused, oracle(name, x, y) + oracle(name, y, x))
    assert_same_bits(each, oracle(name, x, y), x, y)
    diagnostics = call.get_metadata(call.signatures[0])["parfor_diagnostics"]
    assert diagnostics.count_parfors() == 2  # both are shared among threads


@each_operation
@pytest.mark.parametrize(("dtype", "divisor", "found"), [("i1", "7", r"srem <\d+ x i8>"), ("i4", "y", r"fdiv <\d+ x double>")])
def test_loops_are_vectorised(name, dtype, divisor, found):
    """LLVM knows a literal divisor, and makes SIMD lanes of the loop, as narrow as the elements. (Before Numba 0.62 it does not.)"""
    call = eval(f"lambda x, y, out: operation(x, {divisor}, out)", {"operation": OPERATIONS[name][0]})
    kind = numba.from_dtype(np.dtype(dtype))
    user = numba.njit([(kind[::1], kind, kind[::1])])(call)
    assert bool(re.search(found, user.inspect_llvm(user.signatures[0]))) == (llvm_version_info[0] >= 20)


@each_operation
@pytest.mark.parametrize("dtype", [np.dtype(code) for code in ("f4", "f8", "i4", "u4")], ids=str)
def test_flags_in_vectorize(name, dtype):
    """A user's ufunc warns as NumPy does; but not of integers divided by zero, for which there is no flag."""
    operation, twin = OPERATIONS[name]
    kind = dtype.name
    ufunc = numba.vectorize([f"{kind}({kind}, {kind})"])(lambda x, y: operation(x, y))
    for x, y in zip(*pairs(dtype), strict=True) if kind == "float64" else [pairs(dtype)]:
        assert noted(ufunc, x, y) == (noted(twin, x, y) if dtype.kind == "f" else [])


def noted(ufunc, x, y):
    """The kinds of floating-point errors that a call reports."""
    kinds = []
    with np.errstate(all="call", call=lambda kind, flag: kinds.append(kind)):
        ufunc(x, y)
    return sorted(kinds)


def test_patched_numpy():
    with fastops.patched():
        assert numba.njit(lambda x: fastops.mod(x, 3))(-7) == 2


def test_pickled():
    call = numba.njit(lambda x: fastops.fmod(x, 3))
    assert pickle.loads(pickle.dumps(call))(-7) == -1


USER = """
import numba, numpy as np
import fastops

@numba.njit(cache=True)
def call(x, y):
    return fastops.mod(x, y) + fastops.fmod(x[0], y[0])

@numba.njit(cache=True, parallel=True)
def call_in_parallel(x, y):
    return fastops.mod(x, y) + 1

def right():
    x, y = np.random.default_rng(0).normal(size=(2, 1000))
    want = np.mod(x, y)
    return np.array_equal(call(x, y), want + np.fmod(x[0], y[0])) and np.array_equal(call_in_parallel(x, y), want + 1)
"""


def test_cached(tmp_path):
    """A second process loads what the first one compiled."""
    (tmp_path / "user.py").write_text(USER)
    code = """
    import user
    stats = [f.stats for f in (user.call, user.call_in_parallel)] if user.right() else []
    print(*(sum(found.values()) for stat in stats for found in (stat.cache_hits, stat.cache_misses)))
    """
    where = {"path": f"{SOURCE.parent}{os.pathsep}{tmp_path}", "NUMBA_CACHE_DIR": tmp_path / "cache"}
    assert run(dedent(code), **where) == ["0", "1", "0", "1"]
    assert run(dedent(code), **where) == ["1", "0", "1", "0"]


def test_the_attribute_loads_no_numba():
    """Whoever lists the attributes of the functions, or asks for this one."""
    code = """
    import inspect, sys
    import fastops
    inspect.getmembers(fastops.mod)
    print(hasattr(fastops.mod, "_numba_type_"), "numba" in sys.modules)
    """
    assert run(dedent(code), path=SOURCE.parent) == ["False", "False"]


def test_the_attribute_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not hasattr(fastops.mod, "_numba_type_")


def test_on_an_old_processor():
    """Without a fused multiply-add, and without an instruction to round."""
    code = """
    import numba, numpy as np
    import fastops
    from fastops.engine import compiler
    @numba.njit
    def call(x, y):
        mod, fmod = np.empty_like(x), np.empty_like(x)
        for k in range(x.size):
            mod[k], fmod[k] = fastops.mod(x[k], y[k]), fastops.fmod(x[k], y[k])
        return mod, fmod
    for code in "Ifd":
        x, y = np.frombuffer(np.random.default_rng(0).bytes(80_000), code).reshape(2, -1)
        with np.errstate(all="ignore"):
            for got, want in zip(call(x, y), (np.mod(x, y), np.fmod(x, y))):
                print(np.array_equal(np.where(got == got, got, 1).view("u1"), np.where(want == want, want, 1).view("u1")))
    print(compiler.features()["fused"])
    """
    assert run(dedent(code), path=SOURCE.parent, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == ["True"] * 6 + ["False"]
