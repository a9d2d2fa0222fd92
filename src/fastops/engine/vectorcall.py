"""A native entry (`vectorcall`, PEP 590) for a callable object of Python, by the public C-API of CPython and ctypes.

For small arrays a `__call__` in Python takes three times as long as the ufunc that it finds. So objects of a type made by `with_room` have
room for the address of a C function, which CPython then calls instead: `gate.entry`, which runs the loop itself in the plainest calls,
hands other plain small ones on to the ufunc, and the rest to `__call__`. Until `open_gate`, and wherever CPython or NumPy do not look as
documented, `__call__` serves them all.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from . import compiler, headers, threads
from .headers import WORD
from .operands import PLAIN_SCALARS

BUILT_IN = 24  # type numbers below are NumPy's own
_HAVE_VECTORCALL, _TYPE_MEMBERS, _SIZE, _READ_ONLY = 1 << 11, 72, 19, 1  # as CPython's headers number them
_Class = TypeVar("_Class", bound=type)
_Gate = TypeVar("_Gate", bound="Gate")
_alive: list[Any] = []  # what types and objects point at


# --- what the headers say -----------------------------------------------------------------------------------------------------------------
class _Member(ctypes.Structure):
    """PyMemberDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = [("number", ctypes.c_int), ("content", ctypes.c_void_p)]


class _Specification(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


class Served(ctypes.Structure):
    """A dtype whose loop is compiled."""

    _fields_ = [
        ("dtype", ctypes.c_void_p),  # the dtype of its number that the C-API gives
        ("loop", ctypes.c_void_p),
        ("large", ctypes.c_ssize_t),  # elements that are no longer for the loop at once
        ("size", ctypes.c_ssize_t),  # of an element, in bytes
        # What it takes of Python's numbers: integers from `low` to `high`, floats by their bits and without the sign.
        ("low", ctypes.c_int64),
        ("high", ctypes.c_int64),
        ("smallest", ctypes.c_int64),
        ("largest", ctypes.c_int64),
    ]


class Gate(ctypes.Structure):
    """What the entry reads of its object."""

    _fields_ = [
        ("functions", headers.Functions),
        ("plain", ctypes.py_object),  # whom plain small calls are for
        ("other", ctypes.py_object),  # and the rest
        ("large", ctypes.c_ssize_t),  # elements that are no longer small
        ("served", Served * (BUILT_IN + 1)),  # by type number; the last is the user-defined one
        ("user_num", ctypes.c_ssize_t),  # type number of the user-defined dtype that is plain too
        ("out", ctypes.py_object),  # the keyword
        ("none", ctypes.py_object),
        ("ndarray", ctypes.py_object),
        ("int", ctypes.py_object),
        ("float", ctypes.py_object),
        ("scalars", ctypes.c_void_p * (len(PLAIN_SCALARS) + 2)),  # types; the user-defined one or a zero; a zero
    ]


class ScatterGate(Gate):
    """What the entry of `scatter_div` reads beside; `plain` is called with input_x and the flags that were raised."""

    _fields_ = [
        ("index_32", ctypes.py_object),  # the dtypes of indices
        ("index_64", ctypes.py_object),
        ("work", ctypes.c_void_p),  # the function that does the work
        ("far", ctypes.c_ssize_t),  # bytes of an input_x of rows of one element from which threads may pay
        ("team", ctypes.c_void_p),
        ("numbers", ctypes.py_object * 16),  # all that flags can be
    ]


# --- room for an entry, and the entry -----------------------------------------------------------------------------------------------------
def with_room(kind: _Class) -> _Class:
    """A subclass of `kind`, under the same name, whose objects have room for the addresses of an entry and of its `Gate`; where that is not
    to be had, `kind` itself."""
    if sys.implementation.name != "cpython" or hasattr(sys, "gettotalrefcount"):  # CPython's debug build wants `__call__` to be in C too
        return kind
    room = kind.__basicsize__
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", _SIZE, room, _READ_ONLY, None))
    slots = (_Slot * 2)(_Slot(_TYPE_MEMBERS, ctypes.addressof(members)))
    name = f"{kind.__module__}.{kind.__name__}".encode()
    specification = _Specification(name, room + 2 * WORD, 0, _HAVE_VECTORCALL, slots)
    _alive.append((members, specification))
    try:
        make = ctypes.pythonapi.PyType_FromSpecWithBases
        make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_Specification), ctypes.py_object]
        made: Any = make(specification, (kind,))
    except Exception:  # whatever a later CPython has against it
        return kind
    if made.__basicsize__ != room + 2 * WORD or not made.__flags__ & _HAVE_VECTORCALL:
        return kind
    made.__doc__, made._room = kind.__doc__, room
    return made  # type: ignore[no-any-return]


def open_gate(thing: Any, plain: Any, large: int) -> Gate | None:
    """From now on calls of `thing` with plain operands of fewer than `large` elements go straight to `plain`. None if that cannot be."""
    return _open(thing, "gate", Gate, plain, large)


def open_scatter_gate(thing: Any, report: Any, large: int) -> ScatterGate | None:
    """From now on plain small calls of `thing`, which is `scatter_div`, run a kernel at once; those of `large` elements release the GIL.
    None if that cannot be."""
    opened = _open(thing, "scatter_gate", ScatterGate, report, large)
    if opened is not None:
        opened.index_32, opened.index_64, opened.numbers[:] = np.dtype(np.int32), np.dtype(np.int64), range(16)
        opened.team = ctypes.addressof(threads.team)
    return opened


def _open(thing: Any, module: str, kind: type[_Gate], plain: Any, large: int) -> _Gate | None:
    room = getattr(type(thing), "_room", 0)
    functions = headers.functions()
    if not room or functions is None:
        return None
    with compiler.compiling():
        machine = import_module(f".{module}", __package__)
        name = module.replace("gate", f"entry_{room}")
        entry = compiler.c_function(machine.entry, {"ROOM": room}, name, machine.SIGNATURE).address
    opened = kind(functions, plain, thing.__call__, large)
    opened.user_num, opened.out, opened.none, opened.ndarray, opened.int, opened.float = -1, sys.intern("out"), None, np.ndarray, int, float
    scalars = [int, float, *(PLAIN_SCALARS - {int, float})]  # the commonest first
    opened.scalars[: len(scalars)] = [id(kind) for kind in scalars]
    _alive.append(opened)
    cells = (ctypes.c_void_p * 2).from_address(id(thing) + room)
    cells[1] = ctypes.addressof(opened)
    cells[0] = entry
    return opened


def serve(gate: Gate, dtype: np.dtype[Any], loop: int, python: Sequence[type]) -> None:
    """From now on the plainest calls of the dtype run the loop at that address at once, up to `limit`, and a user-defined dtype is plain.
    `dtype`: the one that its scalar type gives; `python`: which of Python's numbers take it."""
    if dtype.num >= BUILT_IN:
        gate.scalars[len(PLAIN_SCALARS)], gate.user_num = id(dtype.type), dtype.num
    if not headers.scalars(dtype):
        return
    served = gate.served[min(dtype.num, BUILT_IN)]
    served.low, served.high = _integers(dtype) if int in python else (1, 0)
    served.smallest, served.largest = _floats(dtype) if float in python else (1, 0)
    served.loop, served.size = loop, dtype.itemsize
    served.dtype = id(dtype)  # from here on
    _alive.append(dtype)


def limit(gate: Gate, dtype: np.dtype[Any], large: int) -> None:
    """The elements of the dtype that are no longer for the loop at once."""
    gate.served[min(dtype.num, BUILT_IN)].large = large


def _integers(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The integers that the dtype can hold, all of them."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min), min(int(limits.max), 2**63 - 1)
    infinity = int(np.array([np.inf]).astype(dtype).view(f"u{dtype.itemsize}")[0])
    most = 2 * (infinity & -infinity)  # as many as a fraction and the hidden bit can tell
    return -most, most


def _floats(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The magnitudes that the dtype has without overflow or underflow."""
    if dtype == np.float64:
        return 0, 2**63 - 1
    limits = np.finfo(dtype)
    smallest, largest = np.array([limits.smallest_normal, limits.max], np.float64).view(np.int64)
    return int(smallest), int(largest)
