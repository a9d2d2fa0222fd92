"""Which way a call would take: the code that decides runs on its operands, and whatever would compute only takes a note.

A double of the operation has its state and its methods; NumPy's functions and the driver are exchanged for notes, and so are the loops in a
copy of what the native entry reads. So nothing here knows the rules, and no element of an operand is read, but for a few indices, on whose
order the way may depend, and rows, put back as they were, where input_x has the other byte order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from . import dispatch, loops, scatter
from .engine import compiler, vectorcall

NATIVE, UFUNC, DRIVER, NUMPY, KERNEL = "native entry", "ufunc", "driver", "NumPy", "kernel"
_PYTHON = "Python"
_Loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
_Gate = TypeVar("_Gate", bound=vectorcall.Gate)


class Rehearsal(NamedTuple):
    """What would run, and whether any Python of the package comes before it; of a large remainder, how it was chosen; of `scatter_div`,
    what it would divide, where that is not for the native entry, and whether operands are made plain first, and come to the entry again."""

    way: str
    by_python: bool
    choice: dispatch.Choice | None = None
    operands: tuple[Any, ...] | None = None
    comes_again: bool = False


def of_remainder(operation: dispatch.Remainder, x1: Any, x2: Any, out: Any = None) -> Rehearsal:
    """Of the call `operation(x1, x2, out)`. A large one has its loop made, as ever."""
    seen: list[str] = []
    choices: list[dispatch.Choice] = []

    def large(x1: Any, x2: Any, out: Any) -> Any:
        try:
            choice = operation.choose(x1, x2, out)
        except compiler.Unavailable:
            return None
        choices.append(choice)
        if choice.is_driven:
            seen.append(DRIVER)
        return choice.plan if choice.is_driven else None

    instead = {"_real": _noting(seen, UFUNC), "_by_numpy": _noting(seen, NUMPY), "_large": large, "loop": operation.loop}
    gate, double, loop = operation._gate, _double(operation, instead), _Loop(_noting(seen, NATIVE))
    if gate is not None:
        _let_in(double, gate, vectorcall.open_gate(double, double._real, loops.LARGE), loop, seen)
    double(x1, x2, *(() if out is None else (out,)))
    way = next(name for name in seen if name != _PYTHON)
    return Rehearsal(way, _PYTHON in seen or gate is None, choices[0] if choices else None)


def of_scatter_div(input_x: Any, indices: Any, updates: Any) -> Rehearsal:
    """Of that call, which counts as one. What is wrong with it is raised."""
    seen: list[str] = []
    divided: list[tuple[Any, ...]] = []

    def dividing(name: str) -> Callable[..., Any]:
        def divide(*operands: Any) -> tuple[int, tuple[()]]:
            seen.append(name)
            divided.append(operands)
            return 0, ()

        return divide

    original = scatter.scatter_div._function
    instead = {"scatter_compiled": SimpleNamespace(divide=dividing(KERNEL)), "_divide_plainly": dividing(NUMPY)}
    function = FunctionType(original.__code__, {**original.__globals__, **instead})
    gate = scatter.scatter_div._gate
    double, loop = _double(scatter.scatter_div, {"_function": function}), _Loop(_noting(seen, NATIVE))
    if gate is not None:
        opened = vectorcall.open_scatter_gate(double, None, scatter.LARGE)
        if opened is not None:
            double._gate, opened.work, opened.far = opened, ctypes.cast(loop, ctypes.c_void_p).value, gate.far
        _let_in(double, gate, opened, loop, seen)
    double(input_x, indices, updates)
    way = next(name for name in seen if name != _PYTHON)
    again = seen.count(_PYTHON) + (way == NATIVE) > 1
    return Rehearsal(way, _PYTHON in seen or gate is None, operands=divided[0] if divided else None, comes_again=again)


def _noting(seen: list[str], name: str) -> Callable[..., None]:
    return lambda *_, **__: seen.append(name)


def _double(operation: Any, instead: dict[str, Any]) -> Any:
    """An object of the same type and state, with other methods."""
    double = object.__new__(type(operation))
    vars(double).update(vars(operation), _gate=None, **instead)
    return double


def _let_in(double: Any, gate: _Gate, opened: _Gate | None, loop: Any, seen: list[str]) -> None:
    """Calls of the double enter as those of the operation do, but for a loop that takes a note."""
    if opened is None:
        return
    call = opened.other

    def other(*args: Any, **kwargs: Any) -> Any:
        seen.append(_PYTHON)
        return call(*args, **kwargs)

    opened.other = other
    for name in ("large", "served", "user_num", "scalars"):
        setattr(opened, name, getattr(gate, name))
    for served in opened.served:
        if served.loop:
            served.loop = ctypes.cast(loop, ctypes.c_void_p).value
