"""A native entry (`vectorcall`, PEP 590) for a callable object of Python, by the public C-API of CPython and ctypes.

For small arrays a `__call__` in Python takes three times as long as the ufunc that it finds. So objects of a type made by `with_room` have
room for the address of a C function, which CPython then calls instead: `gate.entry`, which hands plain small calls on to the ufunc, and
every other to `__call__`. Until `open_gate`, and wherever CPython or NumPy do not look as documented, `__call__` serves them all.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, TypeVar

import numpy as np

from . import compiler
from .operands import PLAIN_SCALARS

HEAD, WORD = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)  # the type of an object is the last word of its head
_HAVE_VECTORCALL, _TYPE_MEMBERS, _SIZE, _READ_ONLY = 1 << 11, 72, 19, 1  # as CPython's headers number them
_Class = TypeVar("_Class", bound=type)
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


class Array(ctypes.Structure):
    """The first fields of PyArrayObject (numpy/ndarraytypes.h)."""

    _fields_ = [
        ("object", ctypes.c_byte * HEAD),
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("base", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
    ]


class Dtype(ctypes.Structure):
    """The first fields of PyArray_Descr."""

    _fields_ = [("object", ctypes.c_byte * HEAD), ("scalar", ctypes.c_void_p), ("letters", ctypes.c_char * 4), ("num", ctypes.c_int)]


class Gate(ctypes.Structure):
    """What the entry reads of its object."""

    _fields_ = [
        ("vectorcall", ctypes.c_void_p),  # the C-API's PyObject_Vectorcall
        ("plain", ctypes.py_object),  # whom plain small calls are for
        ("other", ctypes.py_object),  # and the rest
        ("large", ctypes.c_ssize_t),  # elements that are no longer small
        ("user_num", ctypes.c_ssize_t),  # type number of the user-defined dtype that is plain too
        ("out", ctypes.py_object),  # the keyword
        ("none", ctypes.py_object),
        ("ndarray", ctypes.py_object),
        ("scalars", ctypes.c_void_p * (len(PLAIN_SCALARS) + 1)),  # types, and a zero
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


@cache
def _as_documented() -> bool:
    """Whether the entry will find what it looks for: memory compared with what Python says of the same objects."""

    def word(thing: object, offset: int) -> int | None:
        return ctypes.c_void_p.from_address(id(thing) + offset).value

    names = ("out",)
    right = word(names, HEAD - WORD) == id(tuple) and word(names, HEAD) == 1 and word(names, tuple.__basicsize__) == id(names[0])
    for x in (np.zeros((3, 0, 5), np.int8), np.zeros((), np.float64), np.zeros((7, 1), np.float16)[::2]):
        head = Array.from_address(id(x))
        right = right and word(x, HEAD - WORD) == id(np.ndarray) and (head.ndim, head.dtype) == (x.ndim, id(x.dtype))
        right = right and tuple(head.shape[: x.ndim]) == x.shape and Dtype.from_address(head.dtype).num == x.dtype.num
    return right


def open_gate(thing: Any, plain: Any, large: int) -> Gate | None:
    """From now on calls of `thing` with plain operands of fewer than `large` elements go straight to `plain`. None if that cannot be."""
    room = getattr(type(thing), "_room", 0)
    if not room or not _as_documented():
        return None
    with compiler.compiling():
        from . import gate

        entry = compiler.c_function(gate.entry, {"ROOM": room}, f"entry_{room}", gate.SIGNATURE).address
    address = ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value
    scalars = [int, float, *(PLAIN_SCALARS - {int, float})]  # the commonest first
    opened = Gate(address, plain, thing.__call__, large, -1, sys.intern("out"), None, np.ndarray)
    opened.scalars[: len(scalars)] = [id(kind) for kind in scalars]
    _alive.append(opened)
    cells = (ctypes.c_void_p * 2).from_address(id(thing) + room)
    cells[1] = ctypes.addressof(opened)
    cells[0] = entry
    return opened
