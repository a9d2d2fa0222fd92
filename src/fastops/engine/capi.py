"""NumPy's public C-API for ufuncs, by ctypes: make a ufunc, register a loop for a user dtype, replace a loop; and where a ufunc has them.

NumPy exports the table of its ufunc functions in a capsule; the numbers below are those of `numpy/__ufunc_api.h`, part of the stable ABI.
Nothing here is used before `clone` has compared what it reads with what Python knows of the same ufunc.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import headers

_FROM_FUNC_AND_DATA, _REGISTER_LOOP, _REPLACE_LOOP = 1, 2, 30
NUMBERS = frozenset({*range(1, 13), 23})  # type numbers NPY_BYTE to NPY_DOUBLE and NPY_HALF
_CLONED = NUMBERS | {13, 17}  # and NPY_LONGDOUBLE and NPY_OBJECT, for those who are handed a clone; timedelta64 wants a resolver of units
_INNER_LOOP, _POINTER, _INT = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
_alive: list[Any] = []  # what the ufuncs point at


class UnexpectedNumpy(Exception):
    """NumPy's C-API does not look as documented: fastops leaves it alone."""


class _UfuncHead(ctypes.Structure):
    """The first fields of PyUFuncObject (numpy/ufuncobject.h)."""

    _fields_ = [
        ("object", ctypes.c_byte * object.__basicsize__),
        ("nin", _INT),
        ("nout", _INT),
        ("nargs", _INT),
        ("identity", _INT),
        ("functions", ctypes.POINTER(_INNER_LOOP)),
        ("data", ctypes.POINTER(_POINTER)),
        ("ntypes", _INT),
        ("reserved", _INT),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_ubyte)),
        ("doc", ctypes.c_void_p),
        ("ptr", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("userloops", ctypes.c_void_p),  # a dictionary, from type numbers to capsules with a list of loops
    ]


class _UserLoop(ctypes.Structure):
    """PyUFunc_Loop1d."""


_UserLoop._fields_ = [
    ("function", _INNER_LOOP),
    ("data", _POINTER),
    ("numbers", ctypes.POINTER(_INT)),
    ("next", ctypes.POINTER(_UserLoop)),
]


def _entry(number: int, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)(headers.of_numpy("_UFUNC_API", number))


def _head(ufunc: np.ufunc) -> _UfuncHead:
    head = _UfuncHead.from_address(id(ufunc))
    if (head.nin, head.nout, head.ntypes) != (ufunc.nin, ufunc.nout, ufunc.ntypes) or head.name.decode() != ufunc.__name__:
        raise UnexpectedNumpy(f"the head of numpy.{ufunc.__name__} is not laid out as NumPy's headers say")
    return head


class Pair(ctypes.Structure):
    """Two pointers that lie side by side in a ufunc or in a loop of it: to a function, or to functions; and to its data."""

    _fields_ = [("function", ctypes.c_void_p), ("data", ctypes.c_void_p)]

    def replace(self, pointers: bytes) -> None:
        """In one step, under the GIL."""
        memoryview(self).cast("B")[:] = pointers


def tables(ufunc: np.ufunc) -> tuple[Pair, int, dict[int, int]]:
    """The ufunc's pointers to its loops and to their data, the number of rows, and the row of each number type, whose operands and result
    are of that type."""
    head = _head(ufunc)
    rows = {}
    for row in range(head.ntypes):
        numbers = set(head.types[head.nargs * row : head.nargs * (row + 1)])
        if len(numbers) == 1 and numbers <= NUMBERS:
            rows[numbers.pop()] = row
    return Pair.from_address(ctypes.addressof(head) + _UfuncHead.functions.offset), head.ntypes, rows


def user_loop(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Pair | None:
    """The loop that the ufunc has for a user-defined dtype, and its data; None if there is none."""
    loops = _head(ufunc).userloops
    capsule = ctypes.cast(loops, ctypes.py_object).value.get(dtype.num) if loops else None
    if capsule is None:
        return None
    loop = ctypes.cast(headers.in_capsule(capsule), ctypes.POINTER(_UserLoop))
    while loop:
        if loop.contents.numbers[: ufunc.nargs] == [dtype.num] * ufunc.nargs:
            return Pair.from_address(ctypes.addressof(loop.contents))
        loop = loop.contents.next
    return None


def clone(ufunc: np.ufunc) -> np.ufunc:
    """A new ufunc of the same name with NumPy's own loops, ready to have them replaced."""
    try:
        head = _head(ufunc)
        kinds = [tuple(head.types[head.nargs * row + k] for k in range(head.nargs)) for row in range(head.ntypes)]
        rows = [row for row, numbers in enumerate(kinds) if _CLONED.issuperset(numbers)]
        functions = (_INNER_LOOP * len(rows))(*(head.functions[row] for row in rows))
        data = (_POINTER * len(rows))(*(head.data[row] for row in rows))  # some of NumPy's loops find the C library's fmod here
        numbers = (ctypes.c_ubyte * (3 * len(rows)))(*(number for row in rows for number in kinds[row]))
        make = _entry(_FROM_FUNC_AND_DATA, ctypes.py_object, *[_POINTER] * 3, *[_INT] * 4, *[ctypes.c_char_p] * 2, _INT)
        name, text = ufunc.__name__.encode(), (ufunc.__doc__ or "").partition("\n\n")[2].encode()
        _alive.append((functions, data, numbers, name, text))
        addresses = (ctypes.addressof(array) for array in (functions, data, numbers))
        return make(*addresses, len(rows), ufunc.nin, ufunc.nout, -1, name, text, 0)  # type: ignore[no-any-return]
    except (AttributeError, ValueError, TypeError) as error:
        raise UnexpectedNumpy(f"NumPy {np.__version__} does not show its ufunc C-API: {error}") from error


def replace_loop(ufunc: np.ufunc, number: int, loop: int) -> int:
    """Let `ufunc` run the inner loop at the address `loop` for operands of one type number; the address that was there before."""
    replace = _entry(_REPLACE_LOOP, _INT, ctypes.py_object, _INNER_LOOP, ctypes.POINTER(_INT), ctypes.POINTER(_INNER_LOOP))
    before = _INNER_LOOP()
    if replace(ufunc, loop, (_INT * 3)(number, number, number), ctypes.byref(before)) != 0:
        raise UnexpectedNumpy(f"{ufunc.__name__} has no loop for type number {number}")
    return int(before.value or 0)


def register_loop(ufunc: np.ufunc, dtype: np.dtype[Any], loop: int) -> None:
    """Give `ufunc` the inner loop at the address `loop` for a user-defined dtype, such as bfloat16."""
    register = _entry(_REGISTER_LOOP, _INT, ctypes.py_object, _INT, _INNER_LOOP, ctypes.POINTER(_INT), _POINTER)
    numbers = (_INT * 3)(dtype.num, dtype.num, dtype.num)
    _alive.append(numbers)
    if register(ufunc, dtype.num, loop, numbers, None) != 0:
        raise UnexpectedNumpy(f"{ufunc.__name__} takes no loop for {dtype}")
