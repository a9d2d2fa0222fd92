"""The division of `scatter_div` by compiled code: the kernel of a dtype, pieces that it can walk where they lie, and threads, as
scatter_sharing.py has them share the work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from . import scatter_sharing
from .engine import compiler, driving, errors, threads
from .kernels import scatter_plan
from .kernels.scatter_plan import AT_ONCE, CHECK, DIVIDE, OUTSIDE, OWN, RANGE, STATE_SIZE, WHOLE, ZERO
from .scatter_operands import is_line, offsets, pieces, why_copied
from .scatter_sharing import ALONE, BY_COLUMNS, BY_RANGES, BY_SORTED_BLOCKS, TASKS, Order, Sharing

UPDATE, ELEMENT = 2.0, 0.5  # nanoseconds that an update, and an element of it, take about on one core
INDEX_CHECK, ZERO_CHECK = 0.2, 0.1  # that the check of an index takes, and of an integer
PIECE, FEW = 1 << 18, 1 << 14  # elements of what is copied at a time, and of an input_x that is soon copied as a whole

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
        copy, index = x.astype(native), index.copy()  # which no other thread can change after the check: NumPy might fault
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


def choose(x: _Array, index: _Array, by: _Array, *phases: int, order: Order | None = None) -> tuple[float, int, Sharing]:
    """How operands are divided, or checked alone, that the kernel walks where they lie: nanoseconds that it takes one core, about; how many
    threads; and how they divide. The order of the indices is told by a few of them, if it is not given."""
    return _Work(x, index, by).choose(*phases, order=order)


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
        work, workers, sharing = self.choose(*phases)
        if sharing.way == BY_RANGES:
            if self._by_ranges(workers):
                return int(plan.found)
            phases = (DIVIDE,)  # all is checked
            sharing = self._sharing(work, workers, self._order(workers)._replace(ranges=False))
        if sharing.way == ALONE and (workers == 1 or DIVIDE in phases):
            self._alone(WHOLE if len(phases) == 2 else phases[0])
            return int(plan.found)
        if CHECK in phases:
            self._check(workers)
        if not plan.found and sharing.way == BY_COLUMNS:
            self._by_columns(workers)
        elif not plan.found and sharing.way != ALONE:
            self._by_blocks(sharing.block, workers, sort=sharing.way == BY_SORTED_BLOCKS)
        return int(plan.found)

    def choose(self, *phases: int, order: Order | None = None) -> tuple[float, int, Sharing]:
        """As above."""
        plan = self._plan
        work = plan.last * (UPDATE + plan.runs * plan.length * ELEMENT)
        workers = _workers(work)
        if workers == 1 or DIVIDE not in phases:
            return work, workers, Sharing()
        return work, workers, self._sharing(work, workers, order or self._order(workers))

    def _order(self, workers: int) -> Order:
        return scatter_sharing.order_of(self._operands[1], abs(self._plan.x_row), workers)

    def _sharing(self, work: float, workers: int, order: Order) -> Sharing:
        return scatter_sharing.sharing(self._plan, self._row_size, self._row_size == self._size, work, workers, order)

    def _by_ranges(self, workers: int) -> bool:
        """Whether all is done, or something was found; otherwise all is checked (once more, if it was before)."""
        plan, extents = self._plan, np.empty((TASKS * workers, 2), np.int64)
        plan.extents = _address(extents)
        tasks = self._check(workers)
        apart = not plan.found and scatter_sharing.are_apart(extents[:tasks])
        if apart:
            self._share(RANGE, tasks, workers)
        plan.extents = 0  # from here on tasks begin elsewhere
        return apart or bool(plan.found)

    def _check(self, workers: int) -> int:
        """Check all updates, by as many of the threads as that is worth; by how many tasks."""
        plan = self._plan
        plan.share = -(-plan.last // (TASKS * workers))
        tasks = -int(-plan.last // plan.share)
        work = plan.last * (INDEX_CHECK + plan.integer * plan.runs * plan.length * ZERO_CHECK)
        workers = min(workers, threads.workers(work))
        if workers > 1:
            self._share(CHECK, tasks, workers)
        else:
            plan.phase = CHECK
            for task in range(tasks):
                self._run(task)
        return tasks

    def _by_columns(self, workers: int) -> None:
        plan, parts = self._plan, min(workers, self._row_size // scatter_sharing.COLUMNS)
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
        self._run(0)

    def _run(self, task: int) -> None:
        arguments = (ctypes.c_ssize_t * 2)(ctypes.addressof(self._plan), task)
        _Loop(self._work)(ctypes.addressof(arguments), 0, 0, 0)

    def _share(self, phase: int, tasks: int, workers: int) -> None:
        self._plan.phase = phase
        driving.share(work_together() if phase == OWN else self._work, ctypes.addressof(self._plan), tasks, workers)


_Loop: Callable[[int], Callable[..., None]] = ctypes.CFUNCTYPE(None, *[ctypes.c_ssize_t] * 4)  # which releases the GIL
