"""What the headers of CPython and NumPy say of the memory of objects, and the functions that machine code calls, by address.

Nothing here is used before `functions` has compared it with what Python says of the same objects.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

HEAD, WORD = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)  # the type of an object is the last word of its head
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # flags of arrays
WRITEBACKIFCOPY, WARN_ON_WRITE = 0x2000, 0x8000_0000


class Word(ctypes.Structure):
    _fields_ = [("word", ctypes.c_void_p)]


class Object(ctypes.Structure):
    """PyObject, or that of a scalar: after the head comes its value."""

    _fields_ = [("references", ctypes.c_byte * (HEAD - WORD)), ("type", ctypes.c_void_p), ("value", ctypes.c_int64)]


class Tuple(ctypes.Structure):
    """PyTupleObject, of one element or more."""

    _fields_ = [
        ("object", ctypes.c_byte * HEAD),
        ("length", ctypes.c_ssize_t),
        ("rest", ctypes.c_byte * (tuple.__basicsize__ - HEAD - WORD)),
        ("first", ctypes.c_void_p),
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
        ("flags", ctypes.c_int),
    ]


class Dtype(ctypes.Structure):
    """The first fields of PyArray_Descr."""

    _fields_ = [
        ("object", ctypes.c_byte * HEAD),
        ("scalar", ctypes.c_void_p),
        ("letters", ctypes.c_char * 2),
        ("order", ctypes.c_byte),  # of bytes: a letter
        ("flags", ctypes.c_byte),
        ("num", ctypes.c_int),
    ]


_CPYTHON = (
    *("PyObject_Vectorcall", "PyLong_AsLongLongAndOverflow", "Py_IncRef", "Py_DecRef", "PyErr_Clear"),
    *("PyEval_SaveThread", "PyEval_RestoreThread"),
)
# By their numbers in NumPy's table (numpy/__multiarray_api.h), part of the stable ABI.
_NUMPY = {"PyArray_Pack": 65, "PyArray_MultiplyList": 158, "PyArray_CompareLists": 161, "PyArray_NewLikeArray": 277}


class Functions(ctypes.Structure):
    """Of the C-API, by address."""

    _fields_ = [(name, ctypes.c_void_p) for name in (*_CPYTHON, *_NUMPY)]


def in_capsule(capsule: object) -> int:
    """The pointer in a capsule without a name."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, None)  # type: ignore[no-any-return]


def of_numpy(table: str, number: int) -> int:
    """The address of a function of NumPy's C-API, by one of the tables that NumPy exports in capsules."""
    addresses = in_capsule(getattr(np._core._multiarray_umath, table))  # type: ignore[attr-defined]
    return ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))[number] or 0


@cache
def functions() -> Functions | None:
    """The functions, if they do what they should and objects are laid out as the headers say; else None."""
    try:
        cpython = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in _CPYTHON]
        found = Functions(*(address.value for address in cpython), *(of_numpy("_ARRAY_API", number) for number in _NUMPY.values()))
        checks = (_heads(), _flags(), _integers(found), _lists(found), _new_arrays(found), _packing(found))
    except (AttributeError, ValueError):
        return None
    return found if all(checks) else None


# --- are they so? -------------------------------------------------------------------------------------------------------------------------
def _type(thing: object) -> int | None:
    return Object.from_address(id(thing)).type  # type: ignore[no-any-return]


def _heads() -> bool:
    names = ("out",)
    line = Tuple.from_address(id(names))
    right = _type(names) == id(tuple) and (line.length, line.first) == (1, id(names[0]))
    other = np.dtype(np.float16).newbyteorder()
    for x in (np.zeros((3, 0, 5), np.int8), np.zeros((), np.float64), np.zeros((7, 1), other)[::2]):
        head, dtype = Array.from_address(id(x)), Dtype.from_address(id(x.dtype))
        right = right and _type(x) == id(np.ndarray) and (head.ndim, head.dtype) == (x.ndim, id(x.dtype))
        right = right and tuple(head.shape[: x.ndim]) == x.shape and tuple(head.strides[: x.ndim]) == x.strides
        right = right and (dtype.num, dtype.scalar, chr(dtype.order)) == (x.dtype.num, id(x.dtype.type), x.dtype.byteorder)
    return right


def _flags() -> bool:
    right = True
    for x in (np.zeros((3, 2)), np.zeros((3, 2)).T, np.zeros(65, np.int8)[1:].view(np.int64), np.frombuffer(b"1234", np.int8)):
        head = Array.from_address(id(x))
        right = right and head.data == x.__array_interface__["data"][0]
        for flag, said in {C_CONTIGUOUS: x.flags.c_contiguous, ALIGNED: x.flags.aligned, WRITEABLE: x.flags.writeable}.items():
            right = right and bool(head.flags & flag) == said
    return right


def scalars(dtype: np.dtype[Any]) -> bool:
    """Whether a scalar of this dtype has its value right after its head."""
    one = dtype.type(1)
    return type(one) is dtype.type and ctypes.string_at(id(one) + HEAD, dtype.itemsize) == np.ones(1, dtype).tobytes()


def _integers(found: Functions) -> bool:
    convert = ctypes.PYFUNCTYPE(ctypes.c_longlong, ctypes.py_object, ctypes.POINTER(ctypes.c_int))(found.PyLong_AsLongLongAndOverflow)
    overflow = ctypes.c_int()
    results = [(convert(value, ctypes.byref(overflow)), overflow.value) for value in (5, -(2**63), 2**63)]
    return Object.from_address(id(1.5)).value == np.float64(1.5).view(np.int64) and results == [(5, 0), (-(2**63), 0), (-1, 1)]


def _lists(found: Functions) -> bool:
    product = ctypes.PYFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_int)(found.PyArray_MultiplyList)
    same = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(found.PyArray_CompareLists)
    lists = [(ctypes.c_ssize_t * 3)(*numbers) for numbers in ((7, 3, 5), (7, 3, 4))]
    return [(product(lists[0], n), same(*lists, n)) for n in range(4)] == [(1, 1), (7, 1), (21, 1), (105, 0)]


def _new_arrays(found: Functions) -> bool:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(found.PyArray_NewLikeArray)
    right = True
    for shape, kind in ((3, 1, 5), np.int16), ((0, 4), np.float64), ((1,), np.uint8):
        like = np.zeros(shape, np.dtype(kind, copy=True))  # a dtype that nobody else counts references of
        before = sys.getrefcount(like), sys.getrefcount(like.dtype)
        made = new(like, 0, None, 0)
        right = right and type(made) is np.ndarray and made.dtype is like.dtype and made.shape == like.shape and made.base is None
        right = right and made.flags.c_contiguous and made.flags.aligned and made.flags.writeable and made.flags.owndata
        right = right and sys.getrefcount(made) == sys.getrefcount(like)
        del made
        right = right and before == (sys.getrefcount(like), sys.getrefcount(like.dtype))
    return right


def _packing(found: Functions) -> bool:
    pack = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(found.PyArray_Pack)
    one = np.zeros(1, np.float32)
    return pack(one.dtype, one.ctypes.data, 0.1) == 0 and bool(one[0] == np.float32(0.1))
