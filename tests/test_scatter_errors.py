"""What `scatter_div` refuses, in all ways that a call may travel, and that all is as before then; operands that share memory."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DTYPES, each_integer
from scatter_oracle import LAYOUTS, WAYS, agree, by, divisors, each_layout, each_way, refuses, values

from fastops import scatter_operands


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    """What is wrong is looked for in several pieces of few elements."""
    monkeypatch.setattr(scatter_operands, "SOME", 23)


# --- operands that are refused ------------------------------------------------------------------------------------------------------------
ROW = np.array([8.0, 6.0, 7.0], np.float32)
SQUARE = np.arange(1, 7, dtype=np.int16).reshape(3, 2)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


REFUSED = {
    "list": (TypeError, r"input_x must be a numpy.ndarray .*list: \[8.0\]", [8.0], [0], [2.0]),
    "masked array": (TypeError, "MaskedArray", np.ma.array([8.0]), [0], [2.0]),
    "bool": (TypeError, "input_x .*got bool", np.array([True]), [0], [True]),
    "structured": (TypeError, "input_x .*got \\[", np.ones(2, [("a", "f4")]), [0], [1.0]),
    "complex": (TypeError, "input_x .*got complex64", np.ones(2, "c8"), [0], [1j]),
    "object": (TypeError, "input_x .*got object", np.ones(2, object), [0], [1]),
    "timedelta": (TypeError, r"input_x .*got timedelta64\[s\]", np.ones(2, "m8[s]"), [0], [1]),
    "longdouble": (TypeError, "input_x .*got (longdouble|float)", np.ones(2, np.longdouble), [0], [1.0]),
    "rank 0": (ValueError, r"rank 1 or more.*array\(8", np.array(8.0), 0, 2.0),
    "read-only": (ValueError, r"read-only: float32 of shape \(3,\)", read_only(ROW), [0], [2.0]),
    "broadcast": (ValueError, "read-only", np.broadcast_to(ROW, (2, 3)), [0], ROW[None]),
    "int16 indices": (TypeError, "indices .*got ndarray of int16", ROW, np.array([0], "i2"), [2.0]),
    "uint64 indices": (TypeError, "indices .*uint64", ROW, np.array([0], "u8"), [2.0]),
    "bool indices": (TypeError, r"indices .*\[True\] \(bool\)", ROW, [True], [2.0]),
    "float indices": (TypeError, r"indices .*\[0.0\]", ROW, [0.0], [2.0]),
    "empty float indices": (TypeError, "indices .*float64", ROW, np.array([]), []),
    "masked indices": (TypeError, "indices .*MaskedArray", ROW, np.ma.array([0]), [2.0]),
    "masked updates": (TypeError, "updates .*masked_array", ROW, [0], np.ma.array([2.0], dtype="f4")),
    "complex updates": (RuntimeError, "updates.* complex128.* do not convert to float32", ROW, [0], np.array([2j])),
    "wider updates": (RuntimeError, "updates, ndarray of float64, do not convert to float32", ROW, [0], np.array([2.0])),
    "masked in a list": (TypeError, "masked", SQUARE, [0], [np.ma.array([1, 2], dtype="i2")]),
    "text updates": (RuntimeError, r"updates, \['2'\]", ROW, [0], ["2"]),
    "longdouble updates": (RuntimeError, "do not convert to float64", np.ones(1), [0], np.ones(1, np.longdouble)),
    "no row 3": (IndexError, r"indices\[1\] is 3, .*\[0, 3\)", ROW, [0, 3], [2.0, 2.0]),
    "row -1": (IndexError, r"indices\[0, 1\] is -1, .*\[0, 3\)", ROW, [[0, -1]], [[2.0, 2.0]]),
    "row -1, int32": (IndexError, r"indices\[1\] is -1, .*\[0, 3\)", ROW, np.array([0, -1], "i4"), [2.0, 2.0]),
    "0-d index": (IndexError, r"indices is 5, .*\[0, 3\)", ROW, 5, 2.0),
    "2**32 + 1": (IndexError, r"indices\[0\] is 4294967297, ", ROW, [2**32 + 1], [2.0]),
    "-2**63": (IndexError, r"indices\[0\] is -9223372036854775808, ", ROW, [-(2**63)], [2.0]),
    "2**70": (IndexError, rf"indices\[1\] is {2**70}, ", ROW, [0, 2**70], [2.0, 2.0]),
    "no row in no columns": (IndexError, r"indices\[1\] is 5, .*\[0, 3\)", np.ones((3, 0)), [0, 5], np.ones((2, 0))),
    "no rows": (IndexError, r"indices\[0\] is 0, .*\[0, 0\)", np.ones(0), [0], [2.0]),
    "index before zero": (IndexError, r"indices\[1\] is 9", SQUARE, [0, 9], [[0, 1], [1, 1]]),
    "int zero": (ZeroDivisionError, r"updates\[1, 0\] is 0.*int16", SQUARE, [0, 2], [[1, 1], [0, 0]]),
    "int zero, 0-d": (ZeroDivisionError, r"updates is 0.*int64", np.ones(3, "i8"), 0, 0),
    "False": (ZeroDivisionError, r"updates\[0\] is 0", np.ones(3, "u1"), [0], [False]),
    "too few updates": (ValueError, r"\(2, 2\), got .*\(3, 2\), .*\(2,\) .*\(1, 2\)", SQUARE, [0, 1], [[1, 1]]),
    "no broadcasting": (ValueError, r"\(2, 2\), got .*\(3, 2\), .*\(2,\) .*\(\)", SQUARE, [0, 1], 2),
    "one column": (ValueError, r"\(2, 2\), got .*\(2, 1\)", SQUARE, [0, 1], [[1], [1]]),
    "too large": (OverflowError, "40000.*int16", SQUARE, [0], [[1, 40000]]),
    "negative": (OverflowError, "-1.*uint8", np.ones(1, "u1"), [0], [-1]),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refuses(case):
    refuses(*case)


def windows(shape, strides, size=64, dtype=np.int16):
    return np.lib.stride_tricks.as_strided(np.ones(size, dtype), shape, strides)


def test_input_that_overlaps_itself():
    for x in (windows((3, 2), (2, 2)), windows((2, 3), (0, 2)), windows((3,), (1,)), windows((4, 3), (4, 6)), windows((2, 2), (-2, 2), 8)):
        refuses(ValueError, "share memory.*strides", x, np.zeros(0, int), np.ones((0, *x.shape[1:]), np.int16))
    for shape, strides in (((2**40, 2), (0, 2)), ((2**20, 2**20), (2, 2))):  # too large to look at every cell
        x = np.lib.stride_tricks.as_strided(np.ones(2**22, np.int16), shape, strides)
        for way in WAYS:
            with by(way) as call, pytest.raises(ValueError, match=f"share memory.*{shape[0]}"):
                call(x, [0], x[:1])
    for x in (windows((2, 3), (6, 2)), windows((3, 2), (4, 6)), windows((1, 3), (0, 2)), windows((0, 3), (0, 0)), windows((3,), (-2,), 1)):
        for way in WAYS:
            with by(way) as call:
                call(x, np.zeros(0, int), np.ones((0, *x.shape[1:]), np.int16))


# --- indices that are out of range --------------------------------------------------------------------------------------------------------
ROWS, COUNT = 5, 90  # of input_x, and updates: several blocks, lists and pieces
WRONG = {
    np.int32: [-1, ROWS, ROWS + 1, 2**31 - 1, -(2**31)],
    np.int64: [-1, ROWS, 2**31, 2**32, 2**32 + 1, 2**63 - 1, -(2**63), -(2**32) + 1],
}
WRONG_INDICES = [(kind, index) for kind, indices in WRONG.items() for index in indices]
PLACES = [(0, 0, 0), (1, 1, 8), (2, 2, 9)]  # of 3 x 3 x 10
each_row = pytest.mark.parametrize("row", [(), (3,), (40,)], ids=str)
each_kind = pytest.mark.parametrize("dtype", [DTYPES[name] for name in ("int16", "float32", "bfloat16")], ids=str)


def operands(dtype, row, kind=np.int64, seed=0):
    """An input_x that is a view, indices and divisors."""
    base = values(dtype, (2 * ROWS, *(length + 3 for length in row)), seed)
    x = base[1::2, 1:-2] if row else base[1::2]
    indices = np.random.default_rng(seed).integers(0, ROWS, (3, 3, 10)).astype(kind)
    return x, indices, divisors(dtype, indices.shape + row, seed)


@each_kind
@each_row
@pytest.mark.parametrize(("kind", "wrong"), WRONG_INDICES, ids=[f"{kind.__name__} {index}" for kind, index in WRONG_INDICES])
def test_an_index_out_of_range(dtype, row, kind, wrong):
    x, indices, u = operands(dtype, row, kind)
    for place in PLACES:
        bad = indices.copy()
        bad[place] = wrong
        bad[2, 2, 9] = wrong  # the first of them is told
        told = rf"indices\[{', '.join(map(str, place))}\] is {wrong}, .*\[0, {ROWS}\)"
        refuses(IndexError, told, x, bad, u)
        refuses(IndexError, rf"indices\[{np.ravel_multi_index(place, bad.shape)}\] is", x.copy(), bad.ravel(), u.reshape(COUNT, *row))


@each_layout
@each_kind
def test_an_index_out_of_range_in_any_layout(dtype, layout):
    for row in ((), (3,)):
        for kind, wrong in ((np.int32, ROWS), (np.int64, 2**32 + 1)):
            x, indices, u = operands(dtype, row, kind)
            for place in PLACES:
                bad = indices.copy()
                bad[place] = wrong
                refuses(IndexError, rf"indices\[{', '.join(map(str, place))}\] is {wrong}, ", x, layout(bad), layout(u) if not row else u)


@each_kind
def test_an_index_out_of_range_in_broadcast_indices(dtype):
    x, indices, u = operands(dtype, (3,))
    for axis in range(3):
        bad = indices.take([0], axis)
        bad[PLACES[0]] = -1
        refuses(IndexError, r"indices\[0, 0, 0\] is -1, ", x, np.broadcast_to(bad, indices.shape), u)
    refuses(IndexError, r"indices\[0, 0, 0\] is 7, ", x, np.broadcast_to(np.int32(7), indices.shape), u)


@each_kind
def test_an_index_out_of_range_for_any_input(dtype):
    for layout in LAYOUTS.values():
        x, indices, u = layout(values(dtype, (ROWS, 3, 10))), np.arange(20) % ROWS, divisors(dtype, (20, 3, 10))
        indices[19] = ROWS
        refuses(IndexError, r"indices\[19\] is 5, ", x, indices, u)
        refuses(IndexError, r"indices\[19\] is 5, ", x[:, 1, 2], indices, u[:, 1, 2])


@pytest.mark.parametrize("kind", WRONG)
def test_an_index_out_of_range_where_nothing_is_divided(kind):
    for wrong in WRONG[kind]:
        for shape in ((ROWS, 0), (ROWS, 3, 0, 2)):
            refuses(IndexError, rf"indices\[1\] is {wrong}, ", np.ones(shape), np.array([0, wrong], kind), np.ones((2, *shape[1:])))
        refuses(IndexError, rf"indices\[0\] is {wrong}, .*\[0, 0\)", np.ones((0, 2)), np.array([wrong], kind), np.ones((1, 2)))


def test_rows_beyond_32_bits():
    x, u = np.ones((2**33, 0)), np.ones((2, 0))
    for way in WAYS:
        with by(way) as call:
            assert call(x, [2**32 + 1, 2**33 - 1], u) is x
            with pytest.raises(IndexError, match=str(2**33)):
                call(x, [0, 2**33], u)


# --- zeros among integers -----------------------------------------------------------------------------------------------------------------
@each_integer
@each_row
def test_a_zero(dtype, row):
    x, indices, u = operands(dtype, row)
    for place in PLACES:
        last = tuple(length - 1 for length in row)
        bad = u.copy()
        bad[place + last] = 0
        bad[(2, 2, 9, *last)] = 0
        refuses(ZeroDivisionError, rf"updates\[{', '.join(map(str, place + last))}\] is 0, by which {dtype}", x, indices, bad)


@each_layout
@each_integer
def test_a_zero_in_any_layout(dtype, layout):
    indices = np.arange(9) % 3
    for place in ((0, 0, 0), (4, 2, 33), (8, 3, 39)):
        u = divisors(dtype, (9, 4, 40))
        u[place] = 0
        refuses(ZeroDivisionError, rf"updates\[{', '.join(map(str, place))}\] is 0", values(dtype, (3, 4, 40)), indices, layout(u))
        line, k = u.reshape(9, -1)[:, np.ravel_multi_index(place[1:], (4, 40))], place[0]
        refuses(ZeroDivisionError, rf"updates\[{k}\] is 0", layout(values(dtype, (3, 4, 40)))[:, 0, 0], indices, line)


@each_integer
def test_a_zero_in_broadcast_or_converted_updates(dtype):
    x, indices, u = operands(dtype, (8,))
    for axis in range(4):
        bad = u.take([0], axis)
        bad[tuple(length - 1 for length in bad.shape)] = 0
        place = ", ".join(str(0 if k == axis else length - 1) for k, length in enumerate(u.shape))
        refuses(ZeroDivisionError, rf"updates\[{place}\] is 0", x, indices, np.broadcast_to(bad, u.shape))
    refuses(ZeroDivisionError, r"updates\[0, 0, 0, 0\] is 0", x, indices, np.broadcast_to(dtype.type(0), u.shape))
    yes = np.ones(u.shape, bool)
    yes[2, 2, 9, 7] = False
    refuses(ZeroDivisionError, r"updates\[2, 2, 9, 7\] is 0", x, indices, yes)
    if dtype.itemsize > 1:
        short = np.ones(u.shape, dtype.kind + "1")
        short[1, 1, 8, 0] = 0
        refuses(ZeroDivisionError, r"updates\[1, 1, 8, 0\] is 0", x, indices, short)


@each_row
def test_an_index_is_told_before_a_zero(row):
    for first, last in (((0, 0, 0), (2, 2, 9)), ((2, 2, 9), (0, 0, 0))):
        for layout in (lambda y: y, lambda y: y.astype(y.dtype.newbyteorder())):
            x, indices, u = operands(DTYPES["int16"], row)
            indices[first], u[last] = ROWS, 0
            refuses(IndexError, rf"indices\[{', '.join(map(str, first))}\] is 5", x, layout(indices), layout(u))


# --- operands that share memory -----------------------------------------------------------------------------------------------------------
def test_updates_in_the_memory_of_input():
    for dtype in (DTYPES["float64"], DTYPES["int16"], DTYPES["float32"].newbyteorder()):
        line = np.arange(1, 13).astype(dtype)
        for indices, part in (
            ([1, 0, 2, *range(3, 12)], slice(None)),
            (list(range(12)), slice(None, None, -1)),
            ([0, 1, 2], slice(9, None)),
            ([3, 4, 5, 6], slice(1, 5)),
        ):
            x = line.copy()
            agree(x, indices, x[part])
        for shape in ((4, 3), (3, 4), (6, 2)):
            x = line.copy().reshape(shape)
            agree(x, np.arange(len(x)), x)
            agree(x, np.arange(1, len(x)), divided_by(x, x[:-1]))


def divided_by(x, u):
    """(Integers only become smaller: so that none is zero.)"""
    x[...] = np.arange(1, x.size + 1).reshape(x.shape)
    return u


def test_updates_of_another_dtype_in_the_memory_of_input():
    x = np.arange(0x01020304, 0x01020304 + 6, dtype=np.int32)
    agree(x, [0, 3, 1], x.view(np.int8)[4:7])
    agree(x, np.arange(6), x.view(np.int8).reshape(6, 4)[:, 3] | np.int8(1))


def test_indices_in_the_memory_of_input():
    for dtype in (np.int32, np.int64):
        x = np.array([2, 2, 1, 9], dtype)
        agree(x, x[:3], np.array([2, 1, 3], dtype))
        assert x.tolist() == [2, 0, 0, 9]
        x = np.array([[2, 1, 0], [9, 8, 7], [100, 50, 99]], dtype)
        agree(x, x[0], np.array([[2, 3, 4], [5, 6, 7], [8, 9, 2]], dtype))


def test_views_that_interleave():
    base = values(DTYPES["float32"], (30, 8))
    agree(base[:, ::2], np.arange(30)[::-1], base[:, 1::2])
    agree(base[::3], np.arange(10), base[1::3])
    agree(base[:, 0], np.arange(30), base[:, 5])
    records = np.zeros(20, [("x", "f8"), ("row", "i8"), ("by", "f4")])
    records["x"], records["row"], records["by"] = np.arange(20), np.arange(20) // 3, np.arange(2, 22)
    agree(records["x"], records["row"], records["by"])
    agree(records["x"][::2], records["row"][10:], records["by"][5:15])


@each_way
def test_subclasses_and_files(way, tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3, 2))
    mapped[...] = 6
    matrix = np.ones((2, 2)).view(np.matrix)
    with by(way) as call:
        assert call(mapped, [1], [[2, 3]]) is mapped
        assert call(matrix, [1], [[2, 4]]) is matrix
    mapped.flush()
    assert np.fromfile(tmp_path / "x", np.float32).tolist() == [6, 6, 3, 2, 6, 6]
    assert matrix.tolist() == [[1, 1], [0.5, 0.25]]
