"""The memory of `scatter_div`: no copies of whole operands, and of a file only the pages that are named are written."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
from scatter_oracle import alone, by, by_columns, by_sorting, in_blocks, sequential, unaligned

SIZE = 1 << 20  # updates, or elements of them: operands of 4 to 8 MB
ROOM = 1 << 20  # bytes beside them
PIECE, BLOCK = 1 << 13, 1 << 15
PATHS = {
    "alone": alone(PIECE=PIECE),
    "blocks": in_blocks(2, PIECE=PIECE, BLOCK=BLOCK),
    "sorted": by_sorting(2, PIECE=PIECE, BLOCK=BLOCK),
    "columns": by_columns(2, PIECE=PIECE),
}


def swapped(x):
    return x.astype(x.dtype.newbyteorder())


def table(dtype="f8"):
    return np.ones((SIZE // 64, 64), dtype)


def rows(count=SIZE // 64, limit=SIZE // 64):
    return np.random.default_rng(0).integers(0, limit, count)


PATTERNS = {  # input_x, indices, updates
    "contiguous": lambda: (table(), rows(), table()),
    "1-D": lambda: (np.ones(SIZE), rows(SIZE, SIZE), np.ones(SIZE)),
    "strided input": lambda: (np.ones((SIZE // 64, 128))[:, ::2], rows(), table()),
    "transposed input": lambda: (np.ones((64, SIZE // 64)).T, rows(), table()),
    "input of parts of rows": lambda: (np.ones((SIZE // 64, 8, 16))[:, :, 3:11], rows(), table().reshape(-1, 8, 8)),
    "input in the other byte order": lambda: (table(">f8"), rows(), table()),
    "1-D input in the other byte order": lambda: (np.ones(SIZE, ">f8"), rows(SIZE, SIZE), np.ones(SIZE)),
    "unaligned input": lambda: (unaligned(table()), rows(), table()),
    "strided indices": lambda: (np.ones(99), np.repeat(rows(SIZE, 99), 3)[::3], np.ones(SIZE)),
    "transposed indices": lambda: (np.ones(99), rows(SIZE, 99).reshape(1024, -1).T, np.ones((1024, 1024))),
    "indices in the other byte order": lambda: (np.ones(99), swapped(rows(SIZE, 99)), np.ones(SIZE)),
    "short indices": lambda: (np.ones(99), rows(SIZE, 99).astype(np.int32)[::-1], np.ones(SIZE)),
    "broadcast indices": lambda: (
        np.ones(99),
        np.broadcast_to(rows(1024, 99)[:, None], (1024, SIZE // 1024)),
        np.ones((1024, SIZE // 1024)),
    ),
    "strided updates": lambda: (table(), rows(), np.ones((SIZE // 64, 128))[:, ::2]),
    "transposed updates": lambda: (table(), rows(), np.ones((64, SIZE // 64)).T),
    "updates in the other byte order": lambda: (table(), rows(), table(">f8")),
    "broadcast updates": lambda: (table(), rows(), np.broadcast_to(np.ones(64), (SIZE // 64, 64))),
    "updates of one number a row": lambda: (table(), rows(), np.broadcast_to(np.ones((SIZE // 64, 1)), (SIZE // 64, 64))),
    "one update": lambda: (np.ones(SIZE), rows(SIZE, SIZE), np.broadcast_to(1.0, (SIZE,))),
    "updates that convert": lambda: (table(), rows(), table("f4")),
    "integers that convert": lambda: (table("i8"), rows(), table("i4")),
    "bools": lambda: (table("i8"), rows(), table("?")),
    "columns of one array": lambda: ((both := np.ones((SIZE, 2)))[:, 0], rows(SIZE, SIZE), both[:, 1]),
}


def peak(call, *args, refused=()):
    """Bytes that a call holds, and had not before: the lesser of two calls, for what other threads of the process hold counts, too."""
    peaks = []
    for _ in range(2):
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            with pytest.raises(refused) if refused else nullcontext():
                call(*args)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    return min(peaks)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_operand_is_copied(pattern, path):
    args = PATTERNS[pattern]()
    with by(path) as call:
        assert peak(call, *args) < ROOM


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_what_is_found_wrong_costs_no_copy(path):
    for dtype in ("i8", ">i8"):
        x, u = np.ones(SIZE, dtype), np.ones(SIZE, dtype)
        for wrong in (u, indices := rows(SIZE, SIZE)):
            wrong[-1] -= SIZE if wrong is indices else 1
            with by(path) as call:
                assert peak(call, x, indices, u, refused=ZeroDivisionError if wrong is u else IndexError) < ROOM


# --- files --------------------------------------------------------------------------------------------------------------------------------
LENGTH, TOUCHED = 1 << 24, 50  # elements of a file of 64 MB, and those that are named


def blocks(path):
    """Bytes that a file takes on the disk; 0 where the system does not tell. Without holes in files that is all of it, from the first."""
    return 512 * getattr(os.stat(path), "st_blocks", 0)


@pytest.mark.parametrize("way", ["compiled", "blocks", "pieces", "entry", "plain"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
@pytest.mark.parametrize("row", [(), (256,)], ids=str)
def test_of_a_file_only_what_is_named_is_written(way, dtype, row, tmp_path):
    path = tmp_path / "large"
    mapped = np.memmap(path, dtype, "w+", shape=(LENGTH // int(np.prod(row)), *row))
    indices = np.random.default_rng(1).integers(0, len(mapped), TOUCHED)
    indices[1:3] = indices[0]
    updates = np.random.default_rng(2).uniform(1, 2, (TOUCHED, *row)).astype(np.float32)
    mapped[indices] = 7
    mapped.flush()
    before, named = blocks(path), np.unique(indices)
    places, want = np.searchsorted(named, indices), mapped[named]
    for _ in range(2):  # `peak` calls twice
        want = sequential(want, places, updates)
    with by(way) as call:
        assert peak(call, mapped, indices, updates) < ROOM
    mapped.flush()
    assert blocks(path) - before < 1 << 20
    assert np.array_equal(np.memmap(path, dtype, "r", shape=mapped.shape)[named], want)
