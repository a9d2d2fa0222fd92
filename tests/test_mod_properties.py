"""Random shapes, strides and bits, by Hypothesis: whatever the operands are, fastops does what NumPy does."""

import numpy as np
import pytest
from conftest import (
    BFLOAT16,
    DTYPES,
    EDGE_VALUES,
    OPERATIONS,
    assert_same,
    assert_same_bits,
    in_parallel,
    is_float,
    message,
    mixed_values,
    oracle,
    outcome,
    quiet,
    serially,
    should_warn,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

slow_is_well = [HealthCheck.too_slow, HealthCheck.data_too_large]
steady = settings(deadline=None, derandomize=True, database=None, max_examples=150, suppress_health_check=slow_is_well)
names, dtypes = st.sampled_from(list(OPERATIONS)), st.sampled_from(list(DTYPES.values()))
paths = st.sampled_from([serially, lambda: in_parallel(must=False), lambda: in_parallel(64, must=False)])


@st.composite
def arrays(draw, shape, dtype):
    """An array of that shape, cut out of a larger one: permuted axes, steps of either sign, offsets, zero strides, either byte order."""
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, -1, 2, -2, 3])) for _ in shape]
    spare = [draw(st.integers(0, 2)) for _ in shape]
    lengths = [max(1, length) * abs(step) + rest for length, step, rest in zip(shape, steps, spare, strict=True)]
    size = int(np.prod(lengths))
    x = mixed_values(dtype, size, draw(st.integers(0, 1000))).reshape([lengths[axis] for axis in axes])
    x = x.transpose(np.argsort(axes)) if shape else x
    x = x[tuple(slice(None, None, step) for step in steps)]
    x = x[tuple(slice(length) for length in shape)]
    change = draw(st.sampled_from(["", "", "", "", "zero strides", "byte order", "unaligned", "scalar"]))
    if change == "zero strides" and x.ndim and x.size:
        axis = draw(st.integers(0, x.ndim - 1))
        x = np.broadcast_to(x.take([0], axis), x.shape)
    elif change == "byte order" and dtype != BFLOAT16:
        x = x.astype(dtype.newbyteorder())
    elif change == "unaligned":
        memory = np.zeros(x.nbytes + 1, "u1")[1:].view(dtype).reshape(x.shape)
        memory[...] = x
        x = memory
    elif change == "scalar" and x.size == 1:
        x = x.reshape(())[()]
    return x


LONG = [((300,), (300,)), ((2, 520), (520,)), ((520, 3), (1, 3)), ((700, 1), (1,)), ((3, 1), (1, 301)), ((257,), ())]


@st.composite
def operand_pairs(draw, dtype):
    shapes = draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=5, min_side=0, max_side=9)).input_shapes
    if draw(st.booleans()):  # long in one axis: more than one block
        shapes = draw(st.sampled_from(LONG))
    return tuple(draw(arrays(shape, dtype)) for shape in shapes)


@steady
@given(st.data(), names, dtypes, paths)
def test_values_strides_and_warnings_are_numpys(data, name, dtype, path):
    x1, x2 = data.draw(operand_pairs(dtype))
    want = oracle(name, x1, x2)
    warned = [(RuntimeWarning, message(name, dtype))] if np.size(want) and should_warn(x1, x2) else []
    with path():
        got = outcome(OPERATIONS[name][0], x1, x2)
    assert got.error is None
    assert got.warnings == warned
    assert_same(got.result, want)
    if dtype != BFLOAT16:
        assert outcome(OPERATIONS[name][1], x1, x2).warnings == warned


@steady
@given(st.data(), names, dtypes, paths, st.sampled_from("CFAK"))
def test_out_order_and_where_are_numpys(data, name, dtype, path, order):
    x1, x2 = data.draw(operand_pairs(dtype))
    with np.errstate(all="ignore"):
        want = np.asarray(oracle(name, x1, x2))
        out = np.array(np.reshape(data.draw(arrays(want.shape, dtype)), want.shape), dtype, order=data.draw(st.sampled_from("CFK")))
        with path():
            assert_same(OPERATIONS[name][0](x1, x2, order=order), oracle(name, x1, x2, order=order))
            before = out.copy()
            mask = np.random.default_rng(want.size).random(want.shape) < 0.5
            assert OPERATIONS[name][0](x1, x2, out=out, where=mask) is out
            assert_same_bits(out, np.where(mask, want, before))
            assert OPERATIONS[name][0](x1, x2, out=out) is out
            assert_same_bits(out, want)


@steady
@given(st.data(), names, dtypes, paths)
def test_views_of_one_memory(data, name, dtype, path):
    """Any three views of one length on the same memory: as if the inputs had been copied first."""
    memory = mixed_values(dtype, 1200, data.draw(st.integers(0, 99)))
    length = data.draw(st.integers(1, 390))
    views = []
    for _ in range(3):
        step = data.draw(st.sampled_from([1, 1, -1, 2, -2, 3]))
        start = data.draw(st.integers(0, 1200 - length * abs(step)))
        views.append(slice(start, start + length * abs(step), abs(step)) if step > 0 else (start, length, step))

    def cut(x, view):
        if isinstance(view, slice):
            return x[view]
        start, length, step = view
        return x[start : start + length * -step : -step][::-1]

    with np.errstate(all="ignore"):
        want = oracle(name, cut(memory, views[0]).copy(), cut(memory, views[1]).copy())
        x1, x2, out = (cut(memory, view) for view in views)
        with path():
            assert OPERATIONS[name][0](x1, x2, out=out) is out
        assert_same_bits(out, want)


@steady
@given(st.data(), names, dtypes)
def test_bits_of_any_two_numbers(data, name, dtype):
    """Hypothesis' own idea of bad values, alone and in a block."""
    edges = st.sampled_from(EDGE_VALUES[str(dtype)].tolist()).map(lambda x: np.array(x, dtype))
    patterns = st.integers(0, 2 ** (8 * dtype.itemsize) - 1).map(lambda x: np.array(x, f"u{dtype.itemsize}").view(dtype))
    numbers = patterns | edges
    x1, x2 = (np.array(data.draw(st.lists(numbers, min_size=3, max_size=3)), dtype) for _ in range(2))
    if is_float(dtype):
        x1, x2 = quiet(x1), quiet(x2)
    with np.errstate(all="ignore"):
        want = oracle(name, x1, x2)
        assert_same_bits(OPERATIONS[name][0](x1, x2), want, x1, x2)
        assert_same_bits(OPERATIONS[name][0](np.tile(x1, 100), np.tile(x2, 100)), np.tile(want, 100))
        assert_same_bits(OPERATIONS[name][0](np.tile(x1, 100), x2[0]), np.tile(oracle(name, x1, x2[0]), 100))


@steady
@given(st.data(), names, dtypes, paths)
def test_methods_step_by_step(data, name, dtype, path):
    """reduce, accumulate and reduceat of any axis and strides, by plain calls on slices."""
    shape = tuple(data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)))
    x = data.draw(arrays(shape, dtype))
    if not isinstance(x, np.ndarray):
        return
    axis = data.draw(st.integers(0, x.ndim - 1))
    operation = OPERATIONS[name][0]
    with np.errstate(all="ignore"), path():
        rows = np.moveaxis(x.astype(dtype), axis, 0)
        steps = [rows[0]]
        for row in rows[1:]:
            steps.append(oracle(name, steps[-1], row))
        assert_same_bits(operation.accumulate(x, axis=axis), np.moveaxis(np.array(steps, dtype), 0, axis))
        assert_same_bits(operation.reduce(x, axis=axis), steps[-1])
        assert_same_bits(operation.reduceat(x, [0], axis=axis), np.expand_dims(steps[-1], axis))


@pytest.mark.parametrize("name", list(OPERATIONS))
@steady
@given(st.data(), dtypes)
def test_laws(name, data, dtype):
    """Whatever the oracle: the remainder is smaller than the divisor, has the promised sign, and differs from x1 by a multiple of x2."""
    x1, x2 = (mixed_values(dtype, 50, data.draw(st.integers(0, 10_000))) for _ in range(2))
    keep = x2 != 0
    if is_float(dtype):
        keep &= np.isfinite(x1) & np.isfinite(x2)
    x1, x2 = x1[keep], x2[keep]
    rest = OPERATIONS[name][0](x1, x2)
    wide = object if not is_float(dtype) else np.float64
    a, b, r = x1.astype(wide), x2.astype(wide), rest.astype(wide)
    assert np.all(abs(r) <= abs(b))
    assert np.all((r == 0) | ((r < 0) == ((b if name == "remainder" else a) < 0)))
    if not is_float(dtype):
        assert np.all(abs(r) < abs(b))
        assert np.all((a - r) % b == 0)
