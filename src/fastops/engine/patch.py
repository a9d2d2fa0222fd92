"""NumPy's own ufuncs with other inner loops: put in, and taken out again without a trace.

A ufunc points at two tables of NumPy's, one of loops and one of their data. A patch points it at copies of both, in which rows are changed,
and to take it out puts the two pointers back. (The entry of the C-API that replaces a loop writes into NumPy's table of loops, and not the
data, a table that several ufuncs share.) The loops of a user-defined dtype lie elsewhere, each with its data. In either place the two
pointers are neighbours and change in one step under the GIL, so that no thread sees one without the other.

Each changed row has `patched_loop` for its loop and a `Record` for its data. Records are never freed, for calls may be under way.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import capi, compiler, threads
from .capi import Pair, UnexpectedNumpy

SOON = 1_000_000  # elements of short calls after which a loop is compiled without one of them waiting for it
_DTYPES: dict[int, np.dtype[Any]] = {dtype.num: dtype for dtype in map(np.dtype, "bBhHiIlLqQefd")}
_Callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Record(ctypes.Structure):
    """What a patched loop knows of its operation and dtype."""

    _fields_ = [
        ("loop", ctypes.c_void_p),  # whom to call: NumPy's loop, until there is a compiled one
        ("data", ctypes.c_void_p),  # of NumPy's loop
        ("size", ctypes.c_ssize_t),  # of an element, in bytes
        ("compile", ctypes.c_void_p),  # the callback that compiles; 0 when there is nothing to compile any more
        ("long", ctypes.c_ssize_t),  # elements of a call that waits for it
        ("left", ctypes.c_ssize_t),  # elements of shorter calls, until they ask for it without waiting:
        ("later", ctypes.c_void_p),  # by this function of CPython,
        ("pending", ctypes.c_void_p),  # for which it is this callback
        ("shared", ctypes.c_ssize_t),  # elements of a call that threads may share
        ("by_array", ctypes.c_double),  # nanoseconds that an element takes
        ("by_scalar", ctypes.c_double),
        ("team", ctypes.c_void_p),
        ("driver", ctypes.c_void_p),  # the callback that makes the parallel driver
        ("interrupt", ctypes.c_void_p),  # CPython's function for a callback that met Ctrl-C
    ]


_alive: list[Any] = []  # what NumPy points at


class Patch:
    """A patch of one ufunc, not yet applied.

    `compile(dtype)` is to make the loop of a dtype and to tell its record, and `drive()` to get the parallel driver ready. They are called
    in the middle of calls: of `long` elements and more, and of those that threads could share.
    """

    def __init__(self, ufunc: np.ufunc, long: int, compile: Callable[[np.dtype[Any]], object], drive: Callable[[], object]):
        self.ufunc, self.records = ufunc, dict[int, Record]()  # by type number
        self._long, self._compile, self._drive = long, compile, drive
        self._dtypes: dict[int, np.dtype[Any]] = {}  # of the records, by their address
        callbacks = (self._asked, self._asked_for_later, self._asked_for_threads)
        self._callbacks = [_Callback(callback) for callback in callbacks]
        with compiler.compiling():
            from . import patched_loop

            template = patched_loop.patched_loop
            self._loop = compiler.c_function(template, {}, template.__name__, patched_loop.SIGNATURE).address
        place, count, rows = capi.tables(ufunc)
        self._numpys = [(ctypes.c_void_p * count).from_address(pointer) for pointer in (place.function, place.data)]
        self._copies = [list(table) for table in self._numpys]
        self._ours = [(ctypes.c_void_p * count)(*copy) for copy in self._copies]
        for number, row in rows.items():
            loop, data = (copy[row] for copy in self._copies)
            self._ours[0][row], self._ours[1][row] = self._record(_DTYPES[number], loop, data)
        self._tables = [list(table) for table in self._ours]
        _alive.extend(self._ours)
        # Places, and what NumPy has there, and what this patch puts there.
        self._places = [(place, bytes(place), bytes(Pair(*map(ctypes.addressof, self._ours))))]

    def add(self, dtype: np.dtype[Any]) -> None:
        """A user-defined dtype too, if the ufunc has a loop for it."""
        place = capi.user_loop(self.ufunc, dtype) if dtype.num not in self.records else None
        if place is not None:
            self._places.append((place, bytes(place), bytes(Pair(*self._record(dtype, place.function, place.data)))))

    def _record(self, dtype: np.dtype[Any], loop: int | None, data: int | None) -> tuple[int, int]:
        """The loop, and its data, in the place of those."""
        compile, pending, driver = map(_address, self._callbacks)
        later, interrupt = (_address(getattr(ctypes.pythonapi, name)) for name in ("Py_AddPendingCall", "PyErr_SetInterrupt"))
        team = ctypes.addressof(threads.team)
        record = Record(
            loop, data, dtype.itemsize, compile, self._long, SOON, later, pending, sys.maxsize, 0.0, 0.0, team, driver, interrupt
        )
        _alive.append((record, self._callbacks))
        self.records[dtype.num], self._dtypes[ctypes.addressof(record)] = record, dtype
        return self._loop, ctypes.addressof(record)

    def waits_for(self, dtype: np.dtype[Any]) -> bool:
        """Whether no compiled loop was told of."""
        return dtype.num in self.records and bool(self.records[dtype.num].compile)

    def serve(self, dtype: np.dtype[Any], loop: int, by_array: float, by_scalar: float) -> None:
        """From now on calls of the dtype run the compiled loop at that address, of which an element takes so many nanoseconds."""
        record = self.records.get(dtype.num)
        if record:
            record.by_array, record.by_scalar = by_array, by_scalar
            record.loop = loop
            record.compile = 0

    def limit(self, dtype: np.dtype[Any], large: int) -> None:
        """Threads may share calls of so many elements."""
        if dtype.num in self.records:
            self.records[dtype.num].shared = large

    # --- in and out ---
    @property
    def applied(self) -> bool:
        return all(bytes(place) == ours for place, _, ours in self._places)

    @property
    def current(self) -> bool:
        """Whether NumPy has the loops that this patch knows of."""
        return [list(table) for table in self._numpys] == self._copies and all(bytes(place) in either for place, *either in self._places)

    def apply(self) -> None:
        for place, _, ours in self._places:
            place.replace(ours)

    def remove(self) -> None:
        """Leave NumPy as it was. `UnexpectedNumpy` where somebody else has changed it meanwhile, and then nothing is done."""
        if not self.current or [list(table) for table in self._ours] != self._tables:
            raise UnexpectedNumpy(f"the loops of numpy.{self.ufunc.__name__} were changed after fastops changed them: undo that first")
        for place, numpys, _ in self._places:
            place.replace(numpys)

    # --- called by the loop ---
    def _asked(self, record: int) -> int:
        return _guarded(self._compile, self._dtypes[record])

    def _asked_for_later(self, record: int) -> int:
        """In the main thread, between two of its instructions."""
        return _guarded(threading.Thread(target=self._compile, args=(self._dtypes[record],)).start)

    def _asked_for_threads(self, record: int) -> int:
        interrupted = _guarded(self._drive)
        if not threads.team.drive:  # there is no second thread: ask no more
            self.records[self._dtypes[record].num].shared = sys.maxsize
        return interrupted


def _guarded(function: Callable[..., object], *arguments: Any) -> int:
    """What is raised here cannot reach the caller of the ufunc; Ctrl-C can, when the loop is told of it, for it must come once more."""
    try:
        function(*arguments)
    except KeyboardInterrupt:
        return 1
    except RuntimeError:
        if not sys.is_finalizing():  # when no thread can be started any more
            raise
    return 0


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
