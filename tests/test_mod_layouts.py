"""Every layout of the operands, for each operation and dtype: bits, strides of the result, order=, out=, overlap; nothing else touched."""

import numpy as np
import pytest
from conftest import (
    BFLOAT16,
    DTYPES,
    LAYOUTS,
    OPERATIONS,
    assert_same,
    assert_same_bits,
    bits,
    each_dtype,
    each_layout,
    each_operation,
    for_each_operation_and_dtype,
    in_parallel,
    in_tiles,
    mixed_values,
    operands,
    oracle,
    outcome,
    serially,
)

from fastops.engine import iteration

pytestmark = pytest.mark.usefixtures("_quiet")


@pytest.fixture
def _quiet():
    with np.errstate(all="ignore"):
        yield


PATHS = {
    "serial": serially,
    "in tiles": in_tiles,
    "parallel": lambda: in_parallel(must=False),
    "in chunks": lambda: in_parallel(128, must=False),
}
each_path = pytest.mark.parametrize("path", list(PATHS.values()), ids=list(PATHS))


def snapshot(x):
    """What a call must leave alone: value and place."""
    if not isinstance(x, np.ndarray):
        return x
    return x.tobytes(), x.dtype, x.shape, x.strides, x.flags.writeable, x.__array_interface__["data"]


# --- results ------------------------------------------------------------------------------------------------------------------------------
@each_layout
@for_each_operation_and_dtype
def test_result_is_as_numpys(name, dtype, layout):
    """Bits, type, shape and strides, on every path; inputs unmodified."""
    operation = OPERATIONS[name][0]
    x1, x2 = operands(layout, dtype)
    before = snapshot(x1), snapshot(x2)
    want = oracle(name, x1, x2)
    for path in PATHS.values():
        with path():
            assert_same(operation(x1, x2), want)
    assert (snapshot(x1), snapshot(x2)) == before


@each_layout
@for_each_operation_and_dtype
def test_out_is_written_and_returned(name, dtype, layout):
    """Into outputs of C and Fortran order, reversed and strided, and larger than the broadcast."""
    operation = OPERATIONS[name][0]
    x1, x2 = operands(layout, dtype)
    want = np.asarray(oracle(name, x1, x2))
    before = snapshot(x1), snapshot(x2)
    shape = want.shape
    wide = (*shape[:-1], 2 * shape[-1] + 1) if shape else ()
    for path in PATHS.values():
        outputs = (
            np.zeros(shape, want.dtype),
            np.zeros(shape, want.dtype, order="F"),
            np.zeros(shape[::-1], want.dtype).T[(..., *(slice(None, None, -1) for _ in shape))],
            np.zeros(wide, want.dtype)[..., 1::2] if shape else np.zeros((), want.dtype),
            np.zeros((2, *shape), want.dtype),
        )
        with path():
            for out in outputs:
                strides = out.strides
                assert operation(x1, x2, out) is out
                assert out.strides == strides
                assert_same_bits(out, np.broadcast_to(want, out.shape))
    assert (snapshot(x1), snapshot(x2)) == before


@each_layout
@for_each_operation_and_dtype
def test_order(name, dtype, layout):
    x1, x2 = operands(layout, dtype)
    for order in "CFAK":
        want = oracle(name, x1, x2, order=order)
        for path in (serially, in_tiles, lambda: in_parallel(must=False)):
            with path():
                assert_same(OPERATIONS[name][0](x1, x2, order=order), want)


@each_layout
@for_each_operation_and_dtype
def test_in_place(name, dtype, layout):
    """`out` is an input, by itself or by an equal view."""
    operation, drawn = OPERATIONS[name][0], operands(layout, dtype)
    want = np.asarray(oracle(name, *drawn))
    for place, view in ((0, False), (0, True), (1, False), (1, True)):
        out = drawn[place]
        if not isinstance(out, np.ndarray) or out.shape != want.shape or out.dtype != want.dtype:
            continue
        if not out.flags.writeable or 0 in [s for s, n in zip(out.strides, out.shape, strict=True) if n > 1]:
            continue
        if layout == "sliding window" and place == 0:
            continue  # cells of one place in memory: the last write wins, and which is last NumPy does not promise
        for path in PATHS.values():
            args = operands(layout, dtype)
            out = args[place][...] if view else args[place]
            with path():
                assert operation(*args, out=out) is out
            assert_same_bits(out, want)


@each_operation
@each_dtype
def test_in_place_by_operands_of_one_memory(name, dtype):
    """All three the same array; and both operands the same."""
    operation = OPERATIONS[name][0]
    for path in PATHS.values():
        for size in (1, 700, 20_000):
            x = mixed_values(dtype, size)
            want = oracle(name, x.copy(), x.copy())
            with path():
                assert_same(operation(x, x), want)
                assert operation(x, x, out=x) is x
            assert_same_bits(x, want)


# --- overlap ------------------------------------------------------------------------------------------------------------------------------
OVERLAPS = {
    "shifted right": lambda m: (m[:-1], m[1:], m[1:]),
    "shifted left": lambda m: (m[1:], m[:-1], m[:-1]),
    "one to the right of both": lambda m: (m[:-1], m[:-1], m[1:]),
    "one to the left of both": lambda m: (m[1:], m[1:], m[:-1]),
    "three to the right": lambda m: (m[:-3], m[3:], m[3:]),
    "by a block": lambda m: (m[:-256], m[256:], m[256:]),
    "by less than a block": lambda m: (m[100:-155], m[255:], m[:-255]),
    "reversed": lambda m: (m[::-1], m, m),
    "reversed divisor": lambda m: (m, m[::-1], m),
    "reversed output": lambda m: (m, m, m[::-1]),
    "halves": lambda m: (m[: m.size // 2], m[m.size - m.size // 2 :], m[m.size // 4 : m.size // 4 + m.size // 2]),
    "every second": lambda m: (m[::2], m[1::2], m[::2]),
    "interleaved": lambda m: (m[::2], m[1::2], m[1::2]),
    "from every second to the first half": lambda m: (m[::2], m[1::2], m[: m.size // 2]),
    "from the first half to every second": lambda m: (m[: m.size // 2], m[: m.size // 2], m[::2]),
    "steps that cross": lambda m: (m[: m.size // 3], m[: m.size // 3], m[: m.size // 3 * 3 : 3][::-1]),
    "scalar divisor in the output": lambda m: (m, m[5], m),
    "0-d divisor in the output": lambda m: (m, m[m.size // 2 : m.size // 2 + 1].reshape(()), m),
    "0-d dividend in the output": lambda m: (m[m.size // 2 : m.size // 2 + 1].reshape(()), m, m),
    "one divisor in the output": lambda m: (m, m[-1:], m),
    "transposed": lambda m: (square(m).T, square(m), square(m)),
    "transposed divisor": lambda m: (square(m), square(m).T, square(m)),
    "transposed output": lambda m: (square(m), square(m), square(m).T),
    "row of the output": lambda m: (square(m), square(m)[3], square(m)),
    "column of the output": lambda m: (square(m), square(m)[:, 3:4], square(m)),
    "row as dividend": lambda m: (square(m)[-1], square(m), square(m)),
    "rows shifted": lambda m: (square(m)[1:], square(m)[:-1], square(m)[:-1]),
    "columns shifted": lambda m: (square(m)[:, :-1], square(m)[:, 1:], square(m)[:, 1:]),
    "rows reversed": lambda m: (square(m)[::-1], square(m), square(m)),
    "both axes reversed": lambda m: (square(m), square(m)[::-1, ::-1], square(m)),
    "half an element": lambda m: (m[1:], m[1:], m.view("u1")[m.itemsize // 2 :][: (m.size - 1) * m.itemsize].view(m.dtype)),
}


def square(m):
    side = int(m.size**0.5)
    return m[: side * side].reshape(side, side)


@pytest.mark.parametrize("overlap", list(OVERLAPS))
@for_each_operation_and_dtype
def test_overlapping_out_behaves_as_if_inputs_were_copied(name, dtype, overlap):
    for size in (16, 530, 40_000):
        if overlap.startswith("by ") and size < 512:
            continue
        memory = mixed_values(dtype, size)
        x1, x2, _ = OVERLAPS[overlap](memory)
        want = oracle(name, np.array(x1), np.array(x2))
        for path in PATHS.values():
            fresh = memory.copy()
            x1, x2, out = OVERLAPS[overlap](fresh)
            with path():
                assert OPERATIONS[name][0](x1, x2, out=out) is out
            assert_same_bits(out, want)


# --- outputs that loops cannot write as they are ------------------------------------------------------------------------------------------
@each_path
@for_each_operation_and_dtype
def test_unusual_outputs(name, dtype, path):
    """Unaligned, of the other byte order, a field of a packed record, of a wider dtype."""
    operation = OPERATIONS[name][0]
    x1, x2 = mixed_values(dtype, 700, 1), mixed_values(dtype, 700, 2)
    want = oracle(name, x1, x2)
    unaligned = np.zeros(x1.nbytes + 1, "u1")[1:].view(dtype)
    record = np.zeros(700, [("before", "u1"), ("x", dtype)])
    outputs = [unaligned, record["x"]]
    if dtype != BFLOAT16:
        outputs.append(np.zeros(700, dtype.newbyteorder()))
    with path():
        for out in outputs:
            assert operation(x1, x2, out=out) is out
            assert_same_bits(out.astype(dtype), want)
        wide = np.zeros(700, {"i": "i8", "u": "u8"}.get(dtype.kind, "f8"))
        assert operation(x1, x2, out=wide) is wide
        assert_same_bits(wide, want.astype(wide.dtype))
    assert not record["before"].any()


@each_path
@pytest.mark.parametrize("size", [1, 255, 256, 257, 1000, 16_385])
@for_each_operation_and_dtype
def test_nothing_is_written_beside_the_output(name, dtype, path, size):
    operation = OPERATIONS[name][0]
    x1, x2 = mixed_values(dtype, size, 1), mixed_values(dtype, size, 2)
    memory = np.frombuffer(b"\xa5" * ((3 * size + 40) * dtype.itemsize), dtype).copy()
    before = memory.copy()
    with path():
        out = memory[20 : 20 + size]
        operation(x1, x2, out=out)
        assert_same_bits(bits(memory[:20]), bits(before[:20]))
        assert_same_bits(bits(memory[20 + size :]), bits(before[20 + size :]))
        memory[:] = before
        spread = memory[20 : 20 + 2 * size : 2]
        operation(x1, x2, out=spread)
        spread[...] = before[0]
        assert_same_bits(bits(memory), bits(before))


@each_path
@for_each_operation_and_dtype
def test_output_that_overlaps_itself_is_as_numpys(name, dtype, path):
    """Broadcast, so read-only: refused. Made writable by as_strided: each cell holds the result of an element that belongs there."""
    operation, twin = OPERATIONS[name]
    x = mixed_values(dtype, 400, 1).reshape(20, 20)
    with path():
        refused = np.broadcast_to(np.zeros(20, dtype), (20, 20))
        assert outcome(operation, x, x, out=refused) == outcome(twin, x, x, out=refused)
        memory = np.zeros(39, dtype)
        out = np.lib.stride_tricks.as_strided(memory, (20, 20), (dtype.itemsize, dtype.itemsize))
        operation(x, x[::-1], out=out)
        want = oracle(name, x, x[::-1])
        for cell in range(39):
            belong = {int(bits(want[i, cell - i])) for i in range(max(0, cell - 19), min(20, cell + 1))}
            assert int(bits(memory[cell])) in belong or np.isnan(memory[cell])


@each_path
@for_each_operation_and_dtype
def test_read_only_inputs(name, dtype, path):
    x1, x2 = mixed_values(dtype, 20_000, 1), mixed_values(dtype, 20_000, 2)
    want = oracle(name, x1, x2)
    x1.flags.writeable = x2.flags.writeable = False
    with path():
        assert_same(OPERATIONS[name][0](x1, x2), want)


@each_operation
@each_path
def test_results_of_two_calls_share_no_memory(name, path):
    x = mixed_values(DTYPES["int32"], 20_000)
    with path():
        first, second = OPERATIONS[name][0](x, 7), OPERATIONS[name][0](x, 7)
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, x)
    assert first.flags.owndata


def test_layouts_reach_the_parallel_driver():
    """Lest the tables test one path three times: all but these go to the driver when it is forced."""
    beginnings = ("unaligned", "other byte", "empty", "one element", "packed")
    by_the_ufunc = {"0-d", "scalars", *(layout for layout in LAYOUTS if layout.startswith(beginnings))}
    for layout in {*LAYOUTS, "one element as divisor"} - by_the_ufunc:
        with in_parallel():
            OPERATIONS["remainder"][0](*operands(layout, DTYPES["int32"]))


def test_layouts_that_are_driven_in_tiles():
    """On one thread: those of short rows and of mixed memory order, and no other."""
    short = ("row", "row of dividends", "column", "column of dividends", "outer", "3-D broadcast in the middle", "4-D", "5-D both ways",
             "short rows by column", "short rows by row", "short rows, both ways", "part of short rows", "rows of medium length",
             "many short rows", "transposed dividend", "Fortran and C order")  # fmt: skip
    long = ("transposed, several tiles", "transposed and reversed, several tiles")
    others = ("contiguous", "transposed", "Fortran order", "step 2", "long rows", "long column", "Python divisor, transposed", "70 000")
    for layout, tiles in [*((layout, True) for layout in short + long), *((layout, False) for layout in others)]:
        with in_tiles() as driven:
            OPERATIONS["remainder"][0](*operands(layout, DTYPES["int32"]))
        assert bool(driven) == tiles, layout
        assert all(plan.tile[0] > 1 and plan.by_row == (layout in long) for plan, *_ in driven)


def test_a_plan_keeps_what_it_points_at_alive():
    """A Python number becomes an array of which only the address goes on to the threads."""
    plan = iteration.plan(np.arange(10_000), 7, None, np.dtype(np.int64))
    assert [x.ctypes.data for x in plan.operands] == list(plan.addresses[:2])
    assert plan.operands[1] == 7


def test_tiles_fit_into_the_buffers():
    for size in (1, 2, 4, 8):
        for rows in (2, 5, 64, 1_000, 10**6):
            for columns in (1, 3, 20, iteration.SHORT - 1, iteration.SHORT, 1_000, 10**6):
                height, width = iteration._tile(rows, columns, size)
                assert 0 < height * width * size <= iteration.BUFFER
