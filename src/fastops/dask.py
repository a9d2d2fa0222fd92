"""`scatter_div` of Dask arrays: lazy, chunk by chunk, with the bits of `fastops.scatter_div`. ``pip install 'fastops-numba[dask]'``.

Each block of indices is routed: checked, and sorted by the chunk of `input_x` that it means. Each block of updates is split accordingly,
and the pieces are collected by chunk, from block to block, so that a chunk meets its updates in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isnan, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import scatter
from .engine import errors
from .scatter_operands import check_shapes, divisor_array, index_array, index_error, target, zero_error

try:
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph
except ImportError as error:
    raise ImportError("fastops.dask needs the package dask: pip install 'fastops-numba[dask]'") from error

__all__ = ["scatter_div"]

_Array = np.ndarray[Any, Any]
_Chunks = tuple[tuple[int, ...], ...]
_Piece = tuple[_Array, _Array]  # rows within a chunk, and an update for each


def scatter_div(input_x: da.Array, indices: da.Array | ArrayLike, updates: da.Array | ArrayLike) -> da.Array:
    """A new Dask array: what `fastops.scatter_div` makes of a copy of `input_x`, to the bit, whatever the chunks and the scheduler.

    >>> import dask.array as da
    >>> import numpy as np
    >>> from fastops.dask import scatter_div
    >>> x = da.from_array(np.array([[105.0, 105.0], [315.0, 315.0]], np.float32), chunks=1)
    >>> updates = da.from_array(np.array([[1, 3], [5, 7], [9, 1]], np.float32), chunks=2)
    >>> scatter_div(x, [0, 1, 1], updates).compute()
    array([[105.,  35.],
           [  7.,  45.]], dtype=float32)

    Parameters
    ----------
    input_x : Dask array of rank 1 or more; int8 to int64, uint8 to uint64, float16, bfloat16, float32 or float64
        Of any chunks, along any axis. It stays as it is.
    indices : int32 or int64 Dask or NumPy array of any shape, or Python integers
        Rows of `input_x`, from 0 up to ``len(input_x) - 1``.
    updates : Dask or NumPy array of shape ``indices.shape + input_x.shape[1:]``, or Python numbers
        Divisors. They convert to the dtype of `input_x` as in `fastops.scatter_div`.

    Returns
    -------
    dask.array.Array
        With the shape, the dtype and the chunks of `input_x`.

    Raises
    ------
    TypeError, ValueError, RuntimeError, OverflowError
        At once, as `fastops.scatter_div`, for dtypes, shapes and conversions; a ValueError also where sizes of chunks are unknown.
    IndexError, ZeroDivisionError
        At once for indices, and for integer updates, that are no Dask arrays; otherwise when the result is computed. Index and place are
        those in the whole array; where several blocks are wrong, it may be any of them that is named.

    Notes
    -----
    Floats give infinities, NaN and NumPy's warnings, from the tasks, when they are computed.

    Memory: a task has at most a chunk of `input_x` and a copy of it, as many updates as it has rows, and a block of updates; or a block of
    updates twice. Between tasks, `updates` are held or twice `input_x`, whichever is less: with more updates than rows, all chunks are
    divided by one block after another (and a part of the result costs as much as all of it), otherwise one chunk after another is finished.
    Where neither fits in memory, call this for one part of the updates after another, and store between the calls; or let the workers of
    Dask's distributed scheduler spill to disk. Threads that find nothing else to do make blocks ahead, and Dask sets them no limit; on the
    synchronous scheduler there are none.

    Chunks: the time grows with chunks times blocks, so let a block of updates have as many rows as a chunk of `input_x`, or more, and its
    columns. Others are rechunked lazily: updates to the columns of `input_x`, and, if `indices` are in chunks along other axes than their
    first, to blocks no larger than theirs that follow one another in row-major order; indices as updates. Where indices are no Dask array,
    chunks take no part in blocks that have no updates for them. On one machine, threads are best: processes copy each chunk for each task.

    Source: MindSpore's ``ScatterDiv``, as in `fastops.scatter_div`.
    """
    if not isinstance(input_x, da.Array):
        raise TypeError(f"input_x must be a dask.array.Array, got {type(input_x).__name__}: {input_x!r:.200}")
    if input_x.ndim == 0:
        raise ValueError(f"input_x must have rank 1 or more, got a 0-d array: {input_x!r}")
    for argument, array in (("input_x", input_x), ("indices", indices), ("updates", updates)):
        if isinstance(array, da.Array) and any(map(isnan, array.shape)):
            raise ValueError(f"{argument} has chunks of unknown size, which its method compute_chunk_sizes finds: shape {array.shape}")
    dtype = target(input_x._meta.copy()).dtype.newbyteorder("=")
    known = index_array(_sample(indices))
    divisors, messages = divisor_array(_sample(updates), dtype)
    index = indices if isinstance(indices, da.Array) else known
    by = updates if isinstance(updates, da.Array) else divisors
    check_shapes(input_x.shape, index.shape, by.shape)
    if index is known:
        _check_indices(known, len(input_x))
    if by is divisors:
        _check_divisors(divisors, dtype)
        errors.report(messages)
    if not index.size:
        return input_x.copy()
    leading = _leading_chunks(input_x, index, by)
    by = _chunked(by, leading + input_x.chunks[1:])
    return _graph(input_x, _chunked(index, leading), by, dtype, known if index is known else None)


# --- checks -------------------------------------------------------------------------------------------------------------------------------
def _sample(array: Any) -> Any:
    """An array of the dtype and type of a Dask array's chunks."""
    return array._meta if isinstance(array, da.Array) else array


def _check_indices(index: _Array, rows: int, start: tuple[int, ...] = ()) -> None:
    if index.size and not (index.min() >= 0 and index.max() < rows):
        raise index_error(index, rows, start)


def _check_divisors(divisors: _Array, dtype: np.dtype[Any], start: tuple[int, ...] = ()) -> None:
    if dtype.kind in "iu" and not divisors.all():
        raise zero_error(divisors, dtype, start)


# --- chunks -------------------------------------------------------------------------------------------------------------------------------
def _leading_chunks(x: da.Array, index: Any, by: Any) -> _Chunks:
    """Chunks along the axes of indices whose order is that of their elements: ones, then one axis in parts, then whole axes."""
    rows = index.ndim
    if isinstance(by, da.Array):
        chunks: _Chunks = by.chunks[:rows]
        room = _largest(by.chunks) // _largest(x.chunks[1:])
    elif isinstance(index, da.Array):
        chunks = index.chunks
        room = _largest(chunks)
    else:
        chunks = tuple((length,) for length in index.shape)
        room = _largest(x.chunks[:1])
    if _largest(chunks) <= room and all(len(sizes) == 1 for sizes in chunks[1:]):
        return chunks
    parts = []
    for length in reversed(index.shape):
        parts.append(min(max(room, 1), length))
        room //= length
    ordered: _Chunks = da.core.normalize_chunks(parts[::-1], index.shape)
    return ordered


def _largest(chunks: _Chunks) -> int:
    """The size of the largest block, or 1."""
    return max(prod(map(max, chunks)), 1)


def _chunked(array: Any, chunks: _Chunks) -> da.Array:
    if not array.size:
        array = np.empty(array.shape, array.dtype)  # Dask does not always rechunk what is empty
    return array.rechunk(chunks) if isinstance(array, da.Array) else da.from_array(array, chunks=chunks)


# --- graph --------------------------------------------------------------------------------------------------------------------------------
class _Block(NamedTuple):
    """A block of indices: its place among the blocks and in the whole, its size, and the chunks of rows that it may concern."""

    place: tuple[int, ...]
    start: tuple[int, ...]
    size: int
    rows: Sequence[int]


def _blocks(chunks: _Chunks, ends: _Array, known: _Array | None) -> Iterator[_Block]:
    """Those that are not empty, in order."""
    for place, part in _parts(chunks):
        size = prod(axis.stop - axis.start for axis in part)
        rows = range(len(ends)) if known is None else np.unique(_chunk_numbers(known[part], ends)).tolist()
        if size:
            yield _Block(place, tuple(axis.start for axis in part), size, rows)


def _parts(chunks: _Chunks) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """The place of each block, and its slices of the whole."""
    return zip(np.ndindex(*map(len, chunks)), da.core.slices_from_chunks(chunks), strict=True)


def _graph(x: da.Array, index: da.Array, by: da.Array, dtype: np.dtype[Any], known: _Array | None) -> da.Array:
    token = tokenize(x, index, by, known is None)
    ends = np.cumsum(x.chunks[0])
    blocks = list(_blocks(index.chunks, ends, known))
    # With more updates than rows, it is x that is to be held. So blocks take turns: before chunks meet one, all chunks must have met those
    # up to the last but one. Dask by itself would rather finish a chunk, and hold all updates for the others meanwhile: which is right with
    # fewer updates, or where most blocks concern few chunks.
    turns = index.size > len(x) and 2 * sum(len(block.rows) for block in blocks) > len(blocks) * len(ends) > len(blocks)

    def key(word: str, *place: int) -> tuple[Any, ...]:
        return (f"scatter-{word}-{token}", *place)

    layer: dict[Any, Any] = {}
    for block in blocks:
        layer[key("route", *block.place)] = (_route, (index.name, *block.place), block.start, ends)
    for column, part in _parts(x.chunks[1:]):
        corner = tuple(axis.start for axis in part)
        states = {row: (x.name, row, *column) for row in range(len(ends))}
        turn, latest, size = None, None, 0
        recent: set[int] = set()
        for block in blocks:
            place = (*block.place, *column)
            layer[key("split", *place)] = (_split, (by.name, *place), key("route", *block.place), dtype, block.start, corner)
            for row in block.rows:
                layer[key("pick", row, *place)] = (_pick, key("split", *place), row)
                layer[key("collect", row, *place)] = (_collect, states[row], key("pick", row, *place), turn)
                states[row] = key("collect", row, *place)
            recent.update(block.rows)
            size += block.size
            if turns and size >= max(x.chunks[0]):
                turn, latest = latest, key("turn", *place)  # one behind: so threads that wait find more to do than to make blocks ahead
                layer.update({key("done", row, *place): (_nothing, states[row]) for row in recent})
                layer[latest] = (_nothing, *(key("done", row, *place) for row in recent))
                recent, size = set(), 0
        layer.update({key("div", row, *column): (_finish, state) for row, state in states.items()})
    name, *_ = key("div")
    return da.Array(HighLevelGraph.from_collections(name, layer, [x, index, by]), name, x.chunks, meta=x._meta)


# --- tasks --------------------------------------------------------------------------------------------------------------------------------
def _chunk_numbers(index: _Array, ends: _Array) -> _Array:
    """In which chunk of rows each index is, given where they end."""
    return np.searchsorted(ends, index, side="right")


def _route(index: Any, start: tuple[int, ...], ends: _Array) -> dict[int, tuple[_Array, _Array]]:
    """By chunk: which of these indices are in it, in their order, and the rows of the chunk that they mean."""
    index = index_array(index)
    _check_indices(index, int(ends[-1]), start)
    flat = index.reshape(-1).astype(np.int64)
    chunk = _chunk_numbers(flat, ends).astype(np.min_scalar_type(len(ends)))  # of short integers, which NumPy sorts sooner
    order = np.argsort(chunk, kind="stable")
    cuts = np.searchsorted(chunk[order], np.arange(len(ends) + 1)).tolist()
    firsts = [0, *ends.tolist()]
    picked = {row: order[low:high] for row, (low, high) in enumerate(pairwise(cuts)) if low < high}
    return {row: (places, flat[places] - firsts[row]) for row, places in picked.items()}


def _split(by: Any, routes: Any, dtype: np.dtype[Any], start: tuple[int, ...], corner: tuple[int, ...]) -> dict[int, _Piece]:
    """By chunk: the rows, and their updates."""
    divisors, messages = divisor_array(by, dtype)
    _check_divisors(divisors, dtype, start + corner)
    errors.report(messages)
    flat = divisors.reshape(prod(divisors.shape[: len(start)]), *divisors.shape[len(start) :])
    return {row: (rows, flat[places]) for row, (places, rows) in routes.items()}


def _pick(pieces: dict[int, _Piece], row: int) -> _Piece | None:
    return pieces.get(row)


# On its way through the blocks a chunk is the first of a tuple, and pieces follow that wait for it until they have as many rows: so the
# copies of chunks cost no more than the updates. It must be copied, as a task must not write into what it is given: Dask may share it with
# other tasks, keep it, or run the task again after a worker was lost. A task makes one copy at most; what is not divided is passed on.
def _collect(state: Any, piece: _Piece | None, turn: None) -> tuple[Any, ...]:
    chunk, *waiting = state if isinstance(state, tuple) else (state,)
    if piece is not None:
        waiting.append(piece)
    if sum(len(rows) for rows, _ in waiting) < len(chunk):
        return (chunk, *waiting)
    return (_finish((chunk, *waiting)),)


def _finish(state: Any) -> Any:
    chunk, *waiting = state if isinstance(state, tuple) else (state,)
    if waiting:
        chunk = chunk.copy("K")
    for rows, by in waiting:
        scatter.scatter_div(chunk, rows, by)
    return chunk


def _nothing(*done: Any) -> None:
    """For tasks that wait for these, and need none of what they gave."""
