"""Sizes at the edges: 64 dimensions, nothing at all in every place, more than 2**31 rows, and memory that is not to be had.

`python tests/large.py` goes beyond 2**31 elements and updates; it takes ten gigabytes.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from conftest import assert_same_bits, each_operation, outcome
from hostile import ROOM, guarded
from in_processes import EVERY_CALL, FORK, each_layer_slowly, run, unix
from scatter_oracle import by, each_way, sequential

import fastops

pytestmark = pytest.mark.usefixtures("kernels")

DEEP = 64  # dimensions, NumPy's most


# --- dimensions ---------------------------------------------------------------------------------------------------------------------------
def deep(size, *, order="C"):
    """Of 64 dimensions, of which three are no 1."""
    shape = [1] * DEEP
    shape[3], shape[40], shape[63] = 3, size, 5
    return np.arange(1.0, 15.0 * size + 1).reshape(shape, order=order)


@each_operation
@pytest.mark.parametrize("size", [2, 3_000])
def test_64_dimensions(name, size):
    operation, twin = getattr(fastops, name), getattr(np, name)
    a, b = deep(size), deep(size, order="F")[..., ::-1]
    for x1, x2 in (
        (a, b),
        (a, 7.0),
        (b, a[..., :1]),
        (a[3 * (slice(None),)], b[:, :, :, :1]),
        (a[..., 0], b[..., 0]),
    ):
        assert_same_bits(operation(x1, x2), twin(x1, x2))
        out = np.empty_like(x1 + x2)
        assert operation(x1, x2, out=out) is out
        assert_same_bits(out, twin(x1, x2))


@each_operation
def test_at_of_many_dimensions(name):
    """With more than 32 NumPy's `at` ends the process."""
    operation, twin = getattr(fastops, name), getattr(np, name)
    got, want = (np.arange(6.0).reshape(6, *[1] * 31) for _ in range(2))
    operation.at(got, [5, 5, 3], 2.5)
    twin.at(want, [5, 5, 3], 2.5)
    assert_same_bits(got, want)
    for more in (got[None], deep(2)):
        with pytest.raises(ValueError, match=rf"^{name}.at takes arrays of up to 32 dimensions, got one of {more.ndim}$"):
            operation.at(more, [0], 2.5)


@each_way
def test_64_dimensions_of_input_x_and_of_indices(way):
    x, indices = np.moveaxis(deep(4), 63, 0), np.array(3)
    divisors = np.moveaxis(deep(4), 63, 0)[0] + 1
    with by(way) as divide:
        assert_same_bits(divide(x.copy(), indices, divisors), sequential(x, indices, divisors))
    table, rows = np.arange(1.0, 8.0), np.resize(np.arange(7), (2,) * 3 + (1,) * (DEEP - 3))
    divisors = rows % 3 + 1.0
    with by(way) as divide:
        assert_same_bits(divide(table.copy(), rows, divisors), sequential(table, rows, divisors))


# --- nothing ------------------------------------------------------------------------------------------------------------------------------
@each_operation
def test_no_elements_in_any_place(name):
    operation, twin = getattr(fastops, name), getattr(np, name)
    shapes = [(), (0,), (1,), (0, 3), (3, 0), (2, 0, 3), (0, 0), (1, 3), (0, 1)]
    for first, second in product(shapes, repeat=2):
        x1, x2 = np.ones(first), np.full(second, 2.0)
        got, want = outcome(operation, x1, x2), outcome(twin, x1, x2)
        assert (got.error, np.shape(got.result)) == (want.error, np.shape(want.result))
        if want.error is None:
            out = np.empty(np.shape(want.result))
            assert operation(x1, x2, out=out) is out
    for empty in (np.empty(0), np.empty((3, 0)), np.empty((0, 3))):
        for method in ("reduce", "accumulate"):
            got, want = outcome(getattr(operation, method), empty), outcome(getattr(twin, method), empty)
            assert (got.error, np.shape(got.result)) == (want.error, np.shape(want.result))
    operation.at(np.empty(0), np.empty(0, int), np.empty(0))


@each_way
def test_nothing_to_divide(way):
    with by(way) as divide:
        for shape, count in product([(0,), (3,), (0, 2), (3, 0), (2, 0, 3)], [(0,), (2, 0), (0, 2)]):
            x = np.ones(shape)
            assert divide(x, np.empty(count, int), np.empty(count + shape[1:])) is x
            assert (x == 1).all()
        for shape in ((0,), (0, 2), (0, 0)):
            with pytest.raises(IndexError, match=r"indices\[0\] is 0, outside of the valid range \[0, 0\)"):
                divide(np.ones(shape), [0], np.ones((1, *shape[1:])))


# --- many ---------------------------------------------------------------------------------------------------------------------------------
def test_rows_beyond_32_bits():
    """Of memory that is not touched elsewhere, and so is not there."""
    x, last = np.zeros((1 << 32) + 9, np.int8), (1 << 32) + 8
    x[[last, 1 << 31, 7]] = 100, 90, 80
    for _ in range(2):
        fastops.scatter_div(x, np.array([last, 7, 1 << 31, last]), np.array([3, 2, 5, -1], np.int8))
    assert x[[last, 1 << 31, 7, 8]].tolist() == [11, 3, 20, 0]
    with pytest.raises(IndexError, match=rf"indices\[1\] is {last + 1}, outside"):
        fastops.scatter_div(x, np.array([7, last + 1]), np.array([2, 2], np.int8))
    assert x[7] == 20


# --- memory -------------------------------------------------------------------------------------------------------------------------------
LIMITED = """
import resource
from contextlib import contextmanager
from pathlib import Path
assert right()
x8, wide = np.arange(300_000.0), np.zeros((20_000_000, 64), np.int8)
wide[5] = 100
rows8, updates8 = np.arange(50_000) % 10, np.full((50_000, 64), 2, np.int8)
@contextmanager
def limited(more):
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
def fails(call):
    with limited(20 << 20):
        try:
            call()
        except MemoryError:
            return True
many = np.broadcast_to(7.5, (1_000, 100_000))
calls = [
    lambda: fastops.mod(many, 2.0), lambda: fastops.fmod(many, x8[:100_000]), lambda: fastops.mod(many.T, 2),
    lambda: fastops.mod.outer(x8, x8[:1_000]), lambda: fastops.mod.accumulate(many), lambda: fastops.scatter_div(wide, rows8, updates8),
]
print(*map(fails, calls), wide[5, 0], wide[:20].sum() == 6_400, right())
"""


@each_layer_slowly
def test_no_memory_for_the_result(layer):
    """A MemoryError, nothing is written, and later calls are right. (Linux has such a limit, and tells how much there is already.)"""
    environment = {} if layer == "default" else {"NUMBA_THREADING_LAYER": layer}
    words = run(
        "import sys; linux = sys.platform == 'linux'\n"
        + EVERY_CALL
        + f"exec({LIMITED!r}) if linux else print('True ' * 6, 100, True, True)",
        **environment,
    )
    assert words == ["True"] * 6 + ["100", "True", "True"]


# --- the fuzzer's pages -------------------------------------------------------------------------------------------------------------------
@unix
@pytest.mark.parametrize("place", [-1, ROOM])
def test_the_pages_around_the_fuzzers_memory_cannot_be_touched(place):
    code = (
        FORK
        + f"""
import ctypes, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import hostile
room = hostile.guarded()
room[:] = 1
print(in_child(lambda: ctypes.memset(room.ctypes.data + {place}, 0, 1)), in_child(lambda: ctypes.memset(room.ctypes.data, 0, hostile.ROOM)))
"""
    )
    killed, fine = run(code)
    assert int(killed) < 0
    assert fine == "0"
    assert guarded().size == ROOM
