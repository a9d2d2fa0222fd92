"""The division of `scatter_div` by compiled code: the kernel of a dtype, pieces that it can walk where they lie, and threads.

Threads own parts of input_x, so that every element sees its updates in their order, and the results are those of one thread. What is one's
depends on the shape:

- Rows of a cache line and more, and many of them: the updates are taken in blocks, and each thread has a part of every block, which lies in
  one piece in memory. A row that two parts name belongs to the first of them, for this block.
- Narrower rows: updates of a block are listed by owners first (rows of one cache line have the same), and then each goes through its lists.
  It pays if rows come from beyond the nearer caches.
- Few wide rows: each thread goes through all updates, for its own columns.
- Otherwise one thread is as fast. It also does what is left from a block on of which a single part would have most.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .engine import compiler, driving, errors, threads
from .kernels import scatter_plan
from .kernels.scatter_plan import AT_ONCE, CHECK, DIVIDE, OUTSIDE, OWN, STATE_SIZE, WHOLE, ZERO
from .scatter_operands import is_line, offsets, pieces, why_copied

UPDATE, ELEMENT = 2.0, 0.5  # nanoseconds that an update, and an element of it, take about on one core
PIECE, FEW = 1 << 18, 1 << 14  # elements of what is copied at a time, and of an input_x that is soon copied as a whole
COLUMNS = 2048  # bytes of a row that are worth a thread of their own
NARROW = 64  # bytes of a row: threads that took turns with narrower ones in a block would each have to read all updates from memory
BLOCK = 1 << scatter_plan.BLOCK_BITS  # updates that threads divide before they wait for each other, at most; and
NAMED = 8  # so few that of as many rows only one is named: then most rows are named once
LEAST_BLOCK, LEAST_UPDATES = 5_000.0, 16  # nanoseconds of work, and updates for each thread, that are worth it
MOST_ROWS = 1 << 28  # that have marks, two bytes each; and many times as many have a number in lists
SORTED = 1 << 15  # updates of a block that a thread sorts
# Bytes of an input_x of narrow rows, and of rows of one element, from which it pays to sort; and of both if many threads do.
FAR, FAR_ALONE, FAR_FOR_MANY, MANY_THREADS = 1 << 20, 1 << 24, 1 << 18, 4
LEAST = 1 << 12  # updates that are worth a task
BY_COLUMNS, BY_BLOCKS, BY_SORTED_BLOCKS, ALONE = "columns", "blocks", "sorted blocks", "alone"  # ways of threads

__all__ = ["OUTSIDE", "ZERO", "divide", "kernels", "make_kernel"]

_Array = np.ndarray[Any, Any]
kernels: dict[np.dtype[Any], tuple[int, int]] = {}  # the addresses of what does the work, and of what it calls to divide


def make_kernel(dtype: np.dtype[Any]) -> None:
    """Compile the kernel of a dtype; otherwise `compiler.Unavailable`."""
    compiler.numba()
    with compiler.compiling():
        from .kernels import lanes, scatter, scatter_bindings, scatter_division

        work = compiler.inner_loop(scatter.work, {}, "scatter_div").address
        names = scatter_bindings.names(dtype.name, lanes.Processor(**compiler.features()))
        kernels[dtype] = work, compiler.inner_loop(scatter_division.divide, names, f"scatter_div_{dtype.name}").address


@cache
def work_together() -> int:
    """The address of what does the work by blocks; otherwise `compiler.Unavailable`."""
    with compiler.compiling():
        from .kernels import scatter

        return compiler.inner_loop(scatter.work_together, {}, "scatter_div_together").address


def divide(x: _Array, index: _Array, by: _Array) -> tuple[int, Sequence[str]]:
    """Divide rows of x if all is right: what was found (floating-point flags, by NumPy's numbers; before any of them OUTSIDE or ZERO) and
    what NumPy has to say of the conversion of `by`. None of the operands is empty, and there is a kernel.

    What the kernel cannot walk where it lies goes through copies, a piece at a time.
    """
    if not why_copied(x, index, by):
        return _Work(x, index, by).run(CHECK, DIVIDE), ()
    native = x.dtype.newbyteorder("=")
    if is_copied_whole(x, by):
        copy = x.astype(native)
        found, said = divide(copy, index, by)
        if not found & (OUTSIDE | ZERO):
            x[index] = copy[index]
        return found, said
    found, messages, integers = 0, dict[str, None](), native.kind in "iu"
    for phase in (CHECK, DIVIDE):
        for cells in pieces(index.shape, updates_of_piece(x)):
            piece, divisors = index[(*cells, ...)], by[(*cells, ...)]
            piece = piece.astype(piece.dtype.newbyteorder("="), "C", copy=False)
            if divisors.dtype != native and (phase == DIVIDE or integers):
                divisors, said = errors.noted(divisors.astype, (native, "C"), {})
                messages.update(dict.fromkeys(said))
            elif not is_line(divisors, piece.ndim):
                divisors = divisors.copy()
            if x.dtype.isnative or phase == CHECK:
                found |= _Work(x, piece, divisors).run(phase)
            else:  # the rows that are named are divided in a copy
                rows, numbers = np.unique(piece.reshape(-1), return_inverse=True)
                copies = x[rows].astype(native)
                found |= _Work(copies, numbers, divisors.reshape(-1, *x.shape[1:])).run(phase)
                x[rows] = copies
        if found:
            break
    return found, list(messages)


def is_copied_whole(x: _Array, by: _Array) -> bool:
    """Whether input_x, where it has another byte order, is soon copied as a whole."""
    return not x.dtype.isnative and max(x.size, by.size) < FEW


def updates_of_piece(x: _Array) -> int:
    """So many go through copies at a time."""
    return max(1, PIECE // int(prod(x.shape[1:])))


def _step(x: _Array, axes: int) -> int:
    """The stride of the axis that those axes are."""
    return next((stride for length, stride in zip(reversed(x.shape[:axes]), reversed(x.strides[:axes]), strict=True) if length != 1), 0)


def _address(x: _Array) -> int:
    return int(x.__array_interface__["data"][0])


def far(workers: int, alone: bool) -> int:
    """Bytes of an input_x of narrow rows, or of rows of one element, from which sorting for so many threads pays."""
    return FAR_FOR_MANY if workers >= MANY_THREADS else FAR_ALONE if alone else FAR


def _workers(work: float) -> int:
    """Threads for so many nanoseconds of work. What they run is made, before anything is written."""
    try:
        workers = threads.workers(work) if threads.worthwhile(work) else 1
        if workers > 1:
            driving.driver(True)
            work_together()
        return workers
    except compiler.Unavailable as reason:
        compiler.warn_unavailable(str(reason))
        return 1


_ONE_RUN = np.zeros(2, np.intp)  # the offsets of a row that is one run
_AT_ITS_BEGINNING = _address(_ONE_RUN)


class Sharing(NamedTuple):
    """How threads divide, and why so."""

    way: str = ALONE
    why: str = ""
    block: int = 0  # updates, if by blocks


_ALONE = Sharing()


def choose(x: _Array, index: _Array, by: _Array, *phases: int) -> tuple[float, int, Sharing]:
    """How operands are divided, or checked alone, that the kernel walks where they lie: nanoseconds that it takes one core, about; how many
    threads; and how they divide."""
    return _Work(x, index, by).choose(*phases)


class _Work:
    """The division by updates that the kernel walks where they lie."""

    def __init__(self, x: _Array, index: _Array, by: _Array):
        native = x.dtype.newbyteorder("=")
        self._work, divide = kernels[native]
        first: tuple[Any, ...] = (*(0,) * index.ndim, ...)
        row, divisors = x[0, ...], by[first]
        runs, length, steps, table, place = 1, row.size, [x.itemsize, by.itemsize], _ONE_RUN, _AT_ITS_BEGINNING
        if row.flags.c_contiguous and divisors.flags.c_contiguous:
            addresses = [_address(x), _address(by)]
        else:
            views = np.nditer((row, divisors), ["external_loop"], [["readwrite"], ["readonly"]], order="K").itviews  # sorted, merged
            addresses, steps, length = [_address(view) for view in views], [view.strides[-1] for view in views], views[0].shape[-1]
            table = np.stack([offsets(view.shape[:-1], view.strides[:-1]) for view in views], axis=1)
            runs, place = len(table), _address(table)
        self._operands = x, index, by, table  # kept alive, for only their addresses go on
        self._plan = scatter_plan.Plan(
            divide=divide, integer=native.kind in "iu", last=index.size,
            indices=_address(index), index_step=_step(index, index.ndim), narrow=index.itemsize == 4,
            x=addresses[0], rows=len(x), x_row=x.strides[0], x_step=steps[0],
            updates=addresses[1], update_row=_step(by, index.ndim), update_step=steps[1], runs=runs, length=length, offsets=place,
        )  # fmt: skip
        self._size, self._row_size = x.itemsize, runs * length * x.itemsize

    def run(self, *phases: int) -> int:
        """Check, divide, or both; what was found."""
        plan = self._plan
        _, workers, sharing = self.choose(*phases)
        if sharing.way == ALONE and (workers == 1 or DIVIDE in phases):
            self._alone(WHOLE if len(phases) == 2 else phases[0])
            return int(plan.found)
        if CHECK in phases:
            plan.share = max(LEAST, -(-plan.last // (4 * workers)))
            self._share(CHECK, -(-plan.last // plan.share), workers)
        if not plan.found and sharing.way == BY_COLUMNS:
            self._by_columns(workers)
        elif not plan.found and sharing.way != ALONE:
            self._by_blocks(sharing.block, workers, sort=sharing.way == BY_SORTED_BLOCKS)
        return int(plan.found)

    def choose(self, *phases: int) -> tuple[float, int, Sharing]:
        """As above."""
        plan = self._plan
        work = plan.last * (UPDATE + plan.runs * plan.length * ELEMENT)
        workers = _workers(work)
        return work, workers, self._sharing(work, workers) if workers > 1 and DIVIDE in phases else _ALONE

    def _sharing(self, work: float, workers: int) -> Sharing:
        """How so many threads divide: alone where they would not be faster than one."""
        plan = self._plan
        if plan.rows > MOST_ROWS:
            return self._sharing_of_columns("more rows than have marks")
        if self._row_size < NARROW or self._row_size == self._size:
            least = far(workers, self._row_size == self._size)
            if plan.rows * abs(plan.x_row) >= least:
                return Sharing(BY_SORTED_BLOCKS, "narrow rows from beyond the nearer caches", min(plan.last, BLOCK, SORTED * workers))
            return Sharing(ALONE, f"narrow rows of less than {least:,} bytes, which one thread divides as fast")
        block = min(plan.last, BLOCK, plan.rows // NAMED)
        if block >= LEAST_UPDATES * workers and block * work / plan.last >= LEAST_BLOCK:
            return Sharing(BY_BLOCKS, "many rows of a cache line and more", block)
        return self._sharing_of_columns("rows or updates too few for blocks")

    def _sharing_of_columns(self, why: str) -> Sharing:
        if self._row_size >= 2 * COLUMNS:
            return Sharing(BY_COLUMNS, f"{why}, but wide rows")
        return Sharing(ALONE, f"{why}, and rows of less than {2 * COLUMNS:,} bytes")

    def _by_columns(self, workers: int) -> None:
        plan, parts = self._plan, min(workers, self._row_size // COLUMNS)
        whole, line = (plan.runs, 1) if plan.runs > 1 else (plan.length, max(1, 64 // abs(plan.x_step)))
        plan.share = -(-whole // parts // line) * line
        self._share(DIVIDE, -(-whole // plan.share), workers)

    def _by_blocks(self, block: int, workers: int, sort: bool) -> None:
        plan = self._plan
        plan.block, plan.parts = block, min(workers, scatter_plan.MOST_PARTS)
        if sort:
            plan.pieces, plan.parts = plan.parts, 1 << (plan.parts - 1).bit_length()
            plan.share = -(-block // plan.pieces)
            plan.capacity = plan.share * 3 // (2 * plan.parts) + 2 * AT_ONCE
        else:
            plan.share = -(-block // plan.parts)
            plan.capacity = plan.share // 2 + 1
        blocks, lists = -(-plan.last // block), (2, max(plan.pieces, 1), plan.parts)
        states, marks = np.zeros((blocks + 1) * STATE_SIZE, np.uint8), np.empty((0 if sort else 2, plan.rows), np.uint8)
        entries, lengths = np.empty((*lists, plan.capacity), np.int64), np.empty(lists, np.intp)
        plan.states, plan.marks, plan.lists, plan.lengths = (_address(array) for array in (states, marks, entries, lengths))
        self._share(OWN, workers, workers)
        if plan.left:  # from a block on of which one part had too much
            plan.first = plan.last - plan.left
            self._alone(DIVIDE)

    def _alone(self, phase: int) -> None:
        """What is left of a phase, on this thread."""
        self._plan.phase, self._plan.share = phase, max(self._plan.last, self._plan.runs, self._plan.length)
        arguments = (ctypes.c_ssize_t * 2)(ctypes.addressof(self._plan), 0)
        _Loop(self._work)(ctypes.addressof(arguments), 0, 0, 0)

    def _share(self, phase: int, tasks: int, workers: int) -> None:
        self._plan.phase = phase
        driving.share(work_together() if phase == OWN else self._work, ctypes.addressof(self._plan), tasks, workers)


_Loop: Callable[[int], Callable[..., None]] = ctypes.CFUNCTYPE(None, *[ctypes.c_ssize_t] * 4)  # which releases the GIL
