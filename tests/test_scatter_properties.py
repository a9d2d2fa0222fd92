"""Random dtypes, shapes, strides and bits, by Hypothesis: whatever the operands are, `scatter_div` does what the plain loop does."""

from __future__ import annotations

import numpy as np
from conftest import DTYPES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scatter_oracle import SOURCES, agree, converts, divisors, values


class Source:
    """What a call is drawn from."""

    def __init__(self, draw):
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 2**32)))

    def one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def laid_out(self, array, zero_strides=False):
        """The values in a part of a larger array: axes in any order, any steps, offsets, unaligned, in either byte order. With zero strides
        those along one axis are all the first ones."""
        shape = array.shape
        if zero_strides and array.ndim and array.size and self.draw(st.booleans()):
            array = array.take([0], self.one_of(*range(array.ndim)))
        axes = self.draw(st.permutations(range(array.ndim)))
        steps = [self.one_of(1, 1, 1, 2, -1, -3) for _ in axes]
        spare = [self.one_of(0, 0, 2) for _ in axes]
        lengths = [max(1, length) * abs(step) + more for length, step, more in zip(array.shape, steps, spare, strict=True)]
        dtype = array.dtype.newbyteorder() if self.one_of(False, False, True) else array.dtype
        bytes_of_it, offset = int(np.prod(lengths)) * dtype.itemsize, self.one_of(0, 0, 1)
        memory = self.random.integers(0, 256, bytes_of_it + offset, np.uint8)[offset:]
        base = memory.view(dtype).reshape([lengths[axis] for axis in axes])
        stepped = base.transpose(np.argsort(axes))[..., *(slice(None, None, step) for step in steps)] if axes else base
        view = stepped[..., *(slice(length) for length in array.shape)]
        view[...] = array
        return np.broadcast_to(view, shape) if view.shape != shape else view

    def rows(self, count, shape):
        """From all on one row to all different ones."""
        size = int(np.prod(shape))
        if size <= count and self.draw(st.booleans()):
            return self.random.permutation(count)[:size].reshape(shape)
        indices = self.random.integers(0, self.draw(st.integers(1, count)), shape)
        return np.sort(indices, None).reshape(shape) if self.one_of(False, False, True) else indices


@st.composite
def calls(draw):
    source = Source(draw)
    dtype = DTYPES[source.one_of(*DTYPES)]
    kinds = [kind for kind in SOURCES.values() if converts(kind, dtype)]
    kind = source.one_of(dtype, dtype, *kinds)
    index_shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3))) if source.one_of(True, True, False) else (source.one_of(90, 200),)
    shape = (source.one_of(1, 2, 5, 40), *draw(st.lists(st.integers(0, 6), max_size=3)))
    if len(index_shape) != 1 and source.one_of(True, False, False, False):
        shape = (shape[0], source.one_of(70, 130))
    indices = source.rows(shape[0], index_shape).astype(source.one_of(np.int32, np.int64))
    u = divisors(kind, index_shape + shape[1:], draw(st.integers(0, 1000)))
    x = values(dtype, shape, draw(st.integers(0, 1000)))
    return source.laid_out(x), source.laid_out(indices, zero_strides=True), source.laid_out(u, zero_strides=True)


steady = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@given(call=calls())
@settings(steady, max_examples=200)
def test_any_call(call):
    agree(*call)
