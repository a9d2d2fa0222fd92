"""Every pair of edge values, on every path, to the bit; and no warning but the right one."""

import warnings

import numpy as np
import pytest
from conftest import (
    BFLOAT16,
    EDGE_VALUES,
    FLOATS,
    OPERATIONS,
    assert_same,
    assert_same_bits,
    each_dtype,
    each_float,
    each_integer,
    each_operation,
    exactly,
    in_parallel,
    is_float,
    is_nan,
    message,
    offends,
    oracle,
    outcome,
    pairs,
    random_bits,
    serially,
    should_warn,
    significand,
    small_values,
    usual_values,
    word,
)

quietly = pytest.mark.usefixtures("_quiet")


@pytest.fixture
def _quiet():
    with np.errstate(all="ignore"):
        yield


# --- all pairs of edge values, path by path -----------------------------------------------------------------------------------------------
@quietly
@each_operation
@each_dtype
def test_one_pair_at_a_time(name, dtype):
    operation = OPERATIONS[name][0]
    x1, x2 = pairs(dtype)
    got = [operation(a, b) for a, b in zip(x1, x2, strict=True)]
    assert {type(x) for x in got} == {dtype.type}
    assert_same_bits(np.array(got), oracle(name, x1, x2), x1, x2)


@quietly
@each_operation
@each_dtype
def test_contiguous(name, dtype):
    x1, x2 = pairs(dtype)
    with serially():
        assert_same(OPERATIONS[name][0](x1, x2), oracle(name, x1, x2), x1, x2)


@quietly
@each_operation
@each_dtype
@pytest.mark.parametrize("chunk", [None, 128], ids=["one chunk", "chunks"])
def test_parallel(name, dtype, chunk):
    x1, x2 = pairs(dtype)
    with in_parallel(chunk):
        assert_same(OPERATIONS[name][0](x1, x2), oracle(name, x1, x2), x1, x2)


@quietly
@each_operation
@each_dtype
def test_strided(name, dtype):
    x1, x2 = pairs(dtype)
    wide = np.empty((x1.size, 3), dtype)
    wide[::-1, 0], wide[:, 2] = x1, x2
    with serially():
        assert_same(OPERATIONS[name][0](wide[::-1, 0], wide[:, 2]), oracle(name, x1, x2), x1, x2)
        out = np.empty((x1.size, 2), dtype)
        OPERATIONS[name][0](x1, x2, out=out[::-1, 1])
        assert_same_bits(out[::-1, 1], oracle(name, x1, x2), x1, x2)


@quietly
@each_operation
@each_dtype
@pytest.mark.parametrize("path", [serially, in_parallel])
def test_by_scalar(name, dtype, path):
    """Each edge value as divisor of all, as a NumPy scalar; and from a column, where NumPy's machine gives the loop a stride of 0."""
    operation, edges = OPERATIONS[name][0], EDGE_VALUES[str(dtype)]
    with path():
        for edge in edges:
            assert_same(operation(edges, edge), oracle(name, edges, edge), edges, edge)
        assert_same(operation(edges[None], edges[:, None]), oracle(name, edges[None], edges[:, None]), edges[None], edges[:, None])


@quietly
@each_operation
@each_dtype
@pytest.mark.parametrize("path", [serially, in_parallel])
def test_scalar_dividend(name, dtype, path):
    operation, edges = OPERATIONS[name][0], EDGE_VALUES[str(dtype)]
    with path():
        for edge in edges:
            assert_same(operation(edge, edges), oracle(name, edge, edges), edge, edges)
        assert_same(operation(edges[:, None], edges[None]), oracle(name, edges[:, None], edges[None]), edges[:, None], edges[None])


@quietly
@each_operation
@each_dtype
@pytest.mark.parametrize("path", [serially, in_parallel])
def test_python_scalars(name, dtype, path):
    """Each edge value that a Python number can say, with NumPy's conversion. (To ml_dtypes before 0.7, a float by bfloat16 is float32:
    not driven.)"""
    operation = OPERATIONS[name][0]
    edges = EDGE_VALUES[str(dtype)]
    with serially() if path is serially else in_parallel(must=dtype != BFLOAT16):
        for edge in edges:
            number = float(edge) if is_float(dtype) else int(edge)
            for args in ((edges, number), (number, edges)):
                assert_same(operation(*args), oracle(name, *args))


@quietly
@each_operation
@pytest.mark.parametrize("dtype", [np.dtype("i1"), np.dtype("u1")], ids=["int8", "uint8"])
def test_all_pairs_of_bytes(name, dtype):
    everything = np.arange(256, dtype="u1").view(dtype)
    x1, x2 = np.repeat(everything, 256), np.tile(everything, 256)
    want = oracle(name, x1, x2)
    for path in (serially, in_parallel):
        with path():
            assert_same(OPERATIONS[name][0](x1, x2), want)
            assert_same(OPERATIONS[name][0](everything[:, None], everything), want.reshape(256, 256))
            assert_same(OPERATIONS[name][0](everything, everything[:, None]), want.reshape(256, 256).T.copy())


@quietly
@each_operation
@pytest.mark.parametrize("dtype", [np.dtype("f2"), BFLOAT16], ids=["float16", "bfloat16"])
def test_all_halves_by_edge_values(name, dtype):
    everything = np.arange(1 << 16, dtype="u2").view(dtype)
    everything = everything[~is_nan(everything)]
    for edge in EDGE_VALUES[str(dtype)]:
        assert_same(OPERATIONS[name][0](everything, edge), oracle(name, everything, edge))


@quietly
@each_operation
@each_dtype
@pytest.mark.parametrize("values", [random_bits, small_values, usual_values])
def test_random(name, dtype, values):
    x1, x2 = values(dtype, 60_000, seed=5), values(dtype, 60_000, seed=6)
    want = oracle(name, x1, x2)
    for path in (serially, in_parallel):
        with path():
            assert_same(OPERATIONS[name][0](x1, x2), want, x1, x2)


@quietly
@each_operation
@each_integer
def test_wide_dividend_and_narrow_divisor(name, dtype):
    """The quotients that need most bits; and operands that are just above or below a multiple of the divisor."""
    x1 = random_bits(dtype, 40_000, seed=7)
    x2 = random_bits(dtype, 40_000, seed=8) >> np.random.default_rng(9).integers(0, 8 * dtype.itemsize - 1, 40_000).astype(dtype)
    near = oracle(name, x1, x2)
    for dividend in (x1, x1 - near, x1 - near - 1, x1 - near + 1):
        assert_same(OPERATIONS[name][0](dividend, x2), oracle(name, dividend, x2), dividend, x2)
        for divisor in x2[:20]:
            assert_same(OPERATIONS[name][0](dividend, divisor), oracle(name, dividend, divisor), dividend, divisor)


@quietly
@each_operation
@each_float
def test_near_multiples(name, dtype):
    """Dividends that are products of the divisor and an integer, or up to two units beside them; of all sizes of quotients."""
    rng = np.random.default_rng(10)
    size = 40_000
    divisor = rng.uniform(0.5, 1, size).astype(dtype)
    quotient = np.floor(2.0 ** rng.uniform(0, significand(dtype) + 12, size))
    dividend = (divisor.astype("f8") * quotient).astype(dtype)
    dividend = (dividend.view(word(dtype)) + rng.integers(-2, 3, size).astype(word(dtype))).view(dtype)
    for sign_1, sign_2 in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        x1, x2 = dividend * dtype.type(sign_1), divisor * dtype.type(sign_2)
        assert_same(OPERATIONS[name][0](x1, x2), oracle(name, x1, x2), x1, x2)


# --- by exact arithmetic ------------------------------------------------------------------------------------------------------------------
@quietly
@each_operation
@each_float
def test_exact_by_rational_arithmetic(name, dtype):
    x1, x2 = pairs(dtype)
    finite = np.isfinite(x1) & np.isfinite(x2) & (x2 != 0)
    more = random_bits(dtype, 3_000, seed=11), random_bits(dtype, 3_000, seed=12)
    finite_more = np.isfinite(more[0]) & np.isfinite(more[1]) & (more[1] != 0)
    x1, x2 = np.concatenate([x1[finite], more[0][finite_more]]), np.concatenate([x2[finite], more[1][finite_more]])
    want = np.array([exactly(name, a, b, dtype) for a, b in zip(x1, x2, strict=True)], dtype)
    assert_same_bits(OPERATIONS[name][0](x1, x2), want, x1, x2)


@quietly
@each_operation
@each_float
def test_short_formats_are_float32_rounded_once(name, dtype):
    if dtype.itemsize == 2:
        x1, x2 = random_bits(dtype, 100_000, seed=13), random_bits(dtype, 100_000, seed=14)
        assert_same_bits(OPERATIONS[name][0](x1, x2), OPERATIONS[name][1](x1.astype("f4"), x2.astype("f4")).astype(dtype), x1, x2)


@quietly
@each_operation
def test_bfloat16_as_ml_dtypes(name):
    """Where ml_dtypes keeps the contract: remainder's zeros come without the divisor's sign."""
    for x1, x2 in (pairs(BFLOAT16), (random_bits(BFLOAT16, 60_000, seed=15), random_bits(BFLOAT16, 60_000, seed=16))):
        got, theirs = OPERATIONS[name][0](x1, x2), OPERATIONS[name][1](x1, x2)
        agreed = (got != 0) | (theirs != 0) if name == "remainder" else np.ones(got.shape, bool)
        assert_same_bits(got[agreed], theirs[agreed])
        assert agreed.sum() > 0.7 * got.size


# --- rows of the contract -----------------------------------------------------------------------------------------------------------------
@quietly
@each_float
@pytest.mark.parametrize(
    ("a", "b", "mod", "fmod"),
    [
        (0.0, 3.0, 0.0, 0.0), (-0.0, 3.0, 0.0, -0.0), (0.0, -3.0, -0.0, 0.0), (-0.0, -3.0, -0.0, -0.0), (6.0, 3.0, 0.0, 0.0),
        (-6.0, 3.0, 0.0, -0.0), (6.0, -3.0, -0.0, 0.0), (-6.0, -3.0, -0.0, -0.0), (1.0, np.inf, 1.0, 1.0), (-1.0, -np.inf, -1.0, -1.0),
        (-1.0, np.inf, np.inf, -1.0), (1.0, -np.inf, -np.inf, 1.0), (0.0, -np.inf, -0.0, 0.0), (-0.0, np.inf, 0.0, -0.0),
        (5.5, 2.0, 1.5, 1.5), (-5.5, 2.0, 0.5, -1.5), (5.5, -2.0, -0.5, 1.5), (-5.5, -2.0, -1.5, -1.5), (-1e-5, 1.0, None, None),
        (1.0, 0.0, np.nan, np.nan), (0.0, -0.0, np.nan, np.nan), (np.inf, 1.0, np.nan, np.nan), (-np.inf, np.inf, np.nan, np.nan),
        (np.nan, 0.0, np.nan, np.nan), (np.inf, np.nan, np.nan, np.nan), (1.0, np.nan, np.nan, np.nan),
    ],
)  # fmt: skip
def test_table_of_floats(dtype, a, b, mod, fmod):
    import fastops

    a, b = dtype.type(a), dtype.type(b)
    mod = b + a if mod is None else mod
    fmod = a if fmod is None else fmod
    for count in (1, 300):
        x1, x2 = np.full(count, a), np.full(count, b)
        assert_same_bits(fastops.mod(x1, x2), np.full(count, mod, dtype))
        assert_same_bits(fastops.remainder(x1, x2), np.full(count, mod, dtype))
        assert_same_bits(fastops.fmod(x1, x2), np.full(count, fmod, dtype))
        assert_same_bits(fastops.mod(x1, x2, fmod=1), np.full(count, fmod, dtype))


@quietly
def test_table_of_float64_extremes():
    import fastops

    x1, x2 = np.array([-1e-17, -5e-324, 1e308, -1e308]), np.array([1.0, 1.0, 3e-308, 3e-308])
    assert fastops.mod(x1, x2).tolist() == [1.0, 1.0, 5.476144900572913e-309, 2.452385509942709e-308]
    assert fastops.fmod(x1, x2).tolist() == [-1e-17, -5e-324, 5.476144900572913e-309, -5.476144900572913e-309]


@each_float
def test_subnormals_are_not_flushed(dtype):
    """All subnormals by the largest and the smallest ones and by one: also in threads, whose processor state is their own."""
    import fastops

    fraction = significand(dtype) - 1
    count = min(1 << fraction, 30_000)
    patterns = np.linspace(1, (1 << fraction) - 1, count).astype("u8").astype(word(dtype))
    small = patterns.view(dtype)
    one = np.ones(count, dtype)
    for path in (serially, in_parallel):
        with path(), np.errstate(all="raise"):
            assert_same_bits(fastops.fmod(small, one), small)
            assert_same_bits(fastops.mod(small, one), small)
            assert_same_bits(fastops.mod(-small, -one), -small)
            for edge in (patterns[-1], patterns[count // 3], word(dtype).type(1)):
                want = (patterns % edge).view(dtype)
                divisor = np.array(edge).view(dtype)[()]
                assert_same_bits(fastops.fmod(small, divisor), want)
                assert_same_bits(fastops.mod(small, divisor), want)
                assert_same_bits(fastops.fmod(-small, divisor), -want)


@each_operation
@pytest.mark.parametrize("dtype", list(map(np.dtype, ("i1", "i2", "i4", "i8"))), ids=str)
def test_smallest_by_minus_one_is_zero_without_a_trap(name, dtype):
    low = np.iinfo(dtype).min
    for path in (serially, in_parallel):
        with path():
            assert not np.any(OPERATIONS[name][0](np.full(1000, low, dtype), dtype.type(-1)))
            assert not np.any(OPERATIONS[name][0](np.full(1000, low, dtype), np.full(1000, -1, dtype)))
    assert OPERATIONS[name][0](dtype.type(low), dtype.type(-1)) == 0


# --- warnings -----------------------------------------------------------------------------------------------------------------------------
PATHS = {"serial": serially, "parallel": in_parallel}
each_path = pytest.mark.parametrize("path", list(PATHS.values()), ids=list(PATHS))


@each_operation
@each_dtype
def test_one_pair_warns_as_numpy(name, dtype):
    """For each pair of edge values alone: a warning where the contract, and NumPy, have one."""
    operation, operands = OPERATIONS[name][0], pairs(dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for a, b, offender in zip(*operands, offends(*operands), strict=True):
            operation(a, b)
            texts = [(entry.category, str(entry.message)) for entry in caught]
            caught.clear()
            assert texts == ([(RuntimeWarning, message(name, dtype))] if offender else []), (a, b)


@each_operation
@each_dtype
@each_path
def test_an_array_warns_once_as_numpy(name, dtype, path):
    """The edge values by each edge value."""
    operation, twin = OPERATIONS[name]
    edges = EDGE_VALUES[str(dtype)]
    with path():
        for edge in edges:
            want = [(RuntimeWarning, message(name, dtype))] if should_warn(edges, edge) else []
            assert outcome(operation, edges, edge).warnings == want
            assert outcome(operation, np.full(edges.size, edge), edges).warnings == (
                [(RuntimeWarning, message(name, dtype))] if should_warn(edge, edges) else []
            )
            if dtype != BFLOAT16:
                assert outcome(twin, edges, edge).warnings == want


@each_operation
@each_dtype
@each_path
@pytest.mark.parametrize("place", [0, 255, 256, 70_000, 99_999])
def test_one_offender_anywhere_warns(name, dtype, path, place):
    operation = OPERATIONS[name][0]
    x1, x2 = usual_values(dtype, 100_000, 1), usual_values(dtype, 100_000, 2)
    with path():
        assert outcome(operation, x1, x2).warnings == []
        x2[place] = 0
        expected = [(RuntimeWarning, message(name, dtype))]
        assert outcome(operation, x1, x2).warnings == expected
        assert outcome(operation, x1[::2], x2[::2]).warnings == (expected if place % 2 == 0 else [])
        if is_float(dtype):
            x2[place], x1[place] = 3, -np.inf
            assert outcome(operation, x1, x2).warnings == expected
            x2[place] = np.nan
            assert outcome(operation, x1, x2).warnings == []


@each_operation
@each_dtype
@each_path
def test_never_overflow_underflow_or_inexact(name, dtype, path):
    """All pairs without a zero divisor or an infinite dividend, huge and tiny quotients among them, raise nothing at all."""
    x1, x2 = pairs(dtype)
    keep = x2 != 0
    if is_float(dtype):
        keep &= ~np.isinf(x1)
    with path(), np.errstate(all="raise"):
        OPERATIONS[name][0](x1[keep], x2[keep])
        for edge in EDGE_VALUES[str(dtype)]:
            if edge != 0:
                OPERATIONS[name][0](x1[keep], edge)


@each_operation
@each_float
@each_path
def test_what_was_raised_before_is_not_reported(name, dtype, path):
    """NumPy looks at the processor's flags after a loop: those of others are none of fastops' business, nor are its own left behind."""
    x1, x2 = usual_values(dtype, 20_000, 1), usual_values(dtype, 20_000, 2)
    with path():
        with np.errstate(all="ignore"):
            OPERATIONS[name][0](x1, np.zeros_like(x2))
            np.divide(x1, np.zeros_like(x2))
        assert outcome(OPERATIONS[name][0], x1, x2).warnings == []
        with np.errstate(all="ignore"):
            OPERATIONS[name][0](x1, np.zeros_like(x2))
        assert outcome(np.add, x1, dtype.type(1)).warnings == []


@each_operation
@pytest.mark.parametrize("dtype", [FLOATS["float16"], FLOATS["float32"], FLOATS["float64"], BFLOAT16], ids=str)
def test_signalling_nan_becomes_quiet_without_a_warning(name, dtype):
    infinity = np.array([np.inf], dtype).view(word(dtype))
    signalling = np.repeat(infinity | word(dtype).type(1), 300).view(dtype)
    with np.errstate(all="raise"):
        for x1, x2 in ((signalling, np.ones(300, dtype)), (np.ones(300, dtype), signalling), (signalling, np.zeros(300, dtype))):
            got = OPERATIONS[name][0](x1, x2)
            assert np.isnan(got).all()
            assert (got.view(word(dtype)) & word(dtype).type(1 << (significand(dtype) - 2))).all()
