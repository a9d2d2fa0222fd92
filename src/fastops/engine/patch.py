"""NumPy's own ufuncs with other inner loops: put in, and taken out again without a trace.

A ufunc points at two tables of NumPy's, one of loops and one of their data. A patch points it at copies of both, in which rows are changed,
and to take it out puts the two pointers back. (The function of the C-API that replaces a loop leaves its data as it was, in a table that
other ufuncs may share.) The loops of a user-defined dtype lie elsewhere, each with its data. In either place the two pointers are
neighbours and change in one step under the GIL, so that no thread sees one without the other.

Each changed row has `patched_loop` for its loop and a `Record` for its data. Records are never freed, for calls may be under way.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from . import capi, compiler, threads
from .capi import Pair, UnexpectedNumpy

SOON = 1_000_000  # elements of short calls after which a loop is compiled without one of them waiting for it
_DTYPES: dict[int, np.dtype[Any]] = {dtype.num: dtype for dtype in map(np.dtype, np.typecodes["All"]) if dtype.num in capi.NUMBERS}
_Callback = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class Record(ctypes.Structure):
    """What a patched loop knows of its operation and dtype."""

    _fields_ = [
        ("loop", ctypes.c_void_p),  # whom to call: NumPy's loop, until there is a compiled one
        ("data", ctypes.c_void_p),  # of NumPy's loop
        ("size", ctypes.c_ssize_t),  # of an element, in bytes
        ("compile", ctypes.c_void_p),  # the callback that compiles; 0 when there is nothing to compile any more
        ("long", ctypes.c_ssize_t),  # elements of a call that waits for it
        ("left", ctypes.c_ssize_t),  # elements of shorter calls, until they ask for it without waiting
        ("pending", ctypes.c_void_p),  # by this object,
        ("later", ctypes.c_void_p),  # which this function of CPython hands to the main thread,
        ("truth", ctypes.c_void_p),  # and this one calls there
        ("shared", ctypes.c_ssize_t),  # elements of a call that threads may share
        ("by_array", ctypes.c_double),  # nanoseconds that an element takes
        ("by_scalar", ctypes.c_double),
        ("team", ctypes.c_void_p),
        ("driver", ctypes.c_void_p),  # the callback that makes the parallel driver
        ("raised", ctypes.c_void_p),  # an object that raises, in the same way, what a callback could not; 0 where there is nothing
    ]


class _Pending:
    """A call for the main thread to make between two of its instructions. CPython calls a C function there, which for once is the one that
    asks an object for its truth: what is raised is raised in the program."""

    def __init__(self, call: Callable[[], object]):
        self._call = call

    def __bool__(self) -> bool:
        self._call()
        return False


def _raise() -> None:
    if _held:
        raise _held.pop(0)


_held: list[BaseException] = []
_raiser = _Pending(_raise)
_alive: list[Any] = []  # what NumPy points at


class Patch:
    """A patch of one ufunc, not yet applied.

    `compile(dtype)` is to make the loop of a dtype and to tell its record, and `drive()` to get the parallel driver ready. They are called
    in the middle of calls: of `long` elements and more, and of those that threads could share.
    """

    def __init__(self, ufunc: np.ufunc, long: int, compile: Callable[[np.dtype[Any]], object], drive: Callable[[], object]):
        self.ufunc, self.records = ufunc, dict[int, Record]()  # by type number
        self.put_in = False
        self._long, self._compile, self._drive = long, compile, drive
        self._dtypes: dict[int, np.dtype[Any]] = {}  # of the records, by their address
        self._callbacks = [_Callback(callback) for callback in (self._asked, self._asked_for_threads)]
        compiler.numba()
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
        self._try()

    def add(self, dtype: np.dtype[Any]) -> None:
        """A user-defined dtype too, if the ufunc has a loop for it."""
        place = capi.user_loop(self.ufunc, dtype) if dtype.num not in self.records else None
        if place is not None:
            self._places.append((place, bytes(place), bytes(Pair(*self._record(dtype, place.function, place.data)))))

    def _try(self) -> None:
        """`UnexpectedNumpy` if the ufunc does not run what it points at: NumPy may have copied its loops elsewhere (numpy#31068)."""
        self.apply()
        try:
            for number in self.records:
                one = np.ones(1, _DTYPES[number])
                self.ufunc(one, one)
        finally:
            self.remove()
        if any(record.left == SOON for record in self.records.values()):
            raise UnexpectedNumpy(f"numpy.{self.ufunc.__name__} of NumPy {np.__version__} does not run the loops that it points at")
        for record in self.records.values():
            record.left = SOON

    def _record(self, dtype: np.dtype[Any], loop: int | None, data: int | None) -> tuple[int, int]:
        """The loop, and its data, in the place of those."""
        compile, driver = map(_address, self._callbacks)
        later, truth = (_address(getattr(ctypes.pythonapi, name)) for name in ("Py_AddPendingCall", "PyObject_IsTrue"))
        pending, team = _Pending(partial(self._compile_beside, dtype)), ctypes.addressof(threads.team)
        record = Record(
            loop, data, dtype.itemsize, compile, self._long, SOON, id(pending), later, truth, sys.maxsize, 0.0, 0.0, team, driver
        )
        _alive.append((record, self._callbacks, pending))
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

    def check(self) -> None:
        """`UnexpectedNumpy` where somebody else has changed what this patch changed: neither must be lost."""
        if self.put_in and not (self.current and [list(table) for table in self._ours] == self._tables):
            raise UnexpectedNumpy(f"the loops of numpy.{self.ufunc.__name__} were changed after fastops changed them: undo that first")

    def apply(self) -> None:
        self.put_in = True
        for place, _, ours in self._places:
            place.replace(ours)

    def remove(self) -> None:
        """Leave NumPy as it was."""
        for place, numpys, _ in self._places:
            place.replace(numpys)
        self.put_in = False

    # --- called by the loop ---
    def _asked(self, record: int) -> None:
        _guarded(self._compile, self._dtypes[record], record)
        if compiler.is_lost():  # ask no more
            self.records[self._dtypes[record].num].compile = 0

    def _asked_for_threads(self, record: int) -> None:
        _guarded(lambda _: self._drive(), self._dtypes[record], record)
        if not threads.team.usable:  # ask no more
            self.records[self._dtypes[record].num].shared = sys.maxsize

    def _compile_beside(self, dtype: np.dtype[Any]) -> None:
        with suppress(RuntimeError):  # when no thread can be started (any more), or the caller's recursion is deep
            threading.Thread(target=self._compile, args=(dtype,), name=f"fastops compiles for {dtype}").start()


def _guarded(function: Callable[..., object], dtype: np.dtype[Any], record: int) -> None:
    """What is raised here cannot reach the caller of the ufunc. In the main thread it may come from a handler of signals, and then the
    loop is told of it, for it must come once more."""
    try:
        function(dtype)
    except (MemoryError, RecursionError):
        pass  # NumPy's loop needs neither; another time, then
    except BaseException as error:
        if threading.current_thread() is not threading.main_thread():
            raise
        _held.append(error)
        Record.from_address(record).raised = id(_raiser)


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
