"""From floating-point flags to NumPy's warnings and errors, at the line of the caller.

NumPy's C code warns at the Python line that called it, which for a dispatcher in Python would be a line of fastops. (Calls that go past
Python, by `engine.gate`, need nothing of this.) There are two ways out: run the ufunc under a `numpy.errstate` that only takes notes and
report those under the caller's own (`note_taker`: fast, for plain operands), or run it in the caller's name (`as_caller`: for everything
else).
"""

from __future__ import annotations

import contextvars
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType, FunctionType
from typing import Any

import numpy as np

DIVIDE, OVERFLOW, UNDERFLOW, INVALID = "divide by zero", "overflow", "underflow", "invalid value"
# How a TypeError of NumPy begins when nobody has taken a ufunc, or when it has no loop.
UNSERVED = ("operand type(s) all returned NotImplemented from __array_ufunc__", "ufunc '")
_KINDS = {DIVIDE: ("divide", 1), OVERFLOW: ("over", 2), UNDERFLOW: ("under", 4), INVALID: ("invalid", 8)}  # NumPy's FPE numbers


class _Notes(list[str]):
    """What NumPy calls in the mode "log"."""

    def write(self, text: str) -> None:
        self.append(text.removeprefix("Warning: ").rstrip("\n"))


idle: list[tuple[Callable[..., Any], _Notes]] = []  # note takers that nobody uses at the moment


def note_taker() -> tuple[Callable[..., Any], _Notes]:
    """A function that runs another in a context where NumPy's floating-point errors are only noted, and its notes. Afterwards the caller
    reports and clears the notes and puts the pair back into `idle`.

    What runs there does not see the caller's context variables: it must not be Python code of others.
    """
    try:
        return idle.pop()
    except IndexError:
        notes, context = _Notes(), contextvars.Context()  # an empty context keeps nothing of the caller's alive
        context.run(np.errstate(all="log", call=notes).__enter__)
        return context.run, notes


def noted(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Sequence[str]]:
    """`function(*args, **kwargs)`, for any arguments, and the messages of NumPy's floating-point errors, for `report`."""
    notes = _Notes()
    with np.errstate(all="log", call=notes):
        return function(*args, **kwargs), notes


def noted_at_hand(function: Callable[..., Any], *args: Any) -> tuple[Any, Sequence[str]]:
    """As `noted`, in a third of the time, for what runs no Python code of others."""
    run, notes = taker = note_taker()
    try:
        return run(function, *args), notes[:] if notes else ()
    finally:
        notes.clear()
        idle.append(taker)


def report(messages: Sequence[str]) -> None:
    """Treat messages such as "invalid value encountered in fmod" by the current `numpy.errstate`, as NumPy would."""
    modes = np.geterr()
    for message in messages:
        kind = message.partition(" encountered in ")[0]
        name, number = _KINDS[kind]
        mode = modes[name]  # type: ignore[literal-required]
        if mode == "warn":
            warn(message)
        elif mode == "raise":
            raise FloatingPointError(message)
        elif mode == "print":
            with suppress(OSError):  # there may be no such stream
                os.write(2, f"Warning: {message}\n".encode())  # C's, as NumPy, whatever `sys.stderr` is
        elif mode in ("call", "log"):
            _call_back(mode, kind, number, message)


def _call_back(mode: str, kind: str, number: int, message: str) -> None:
    receiver = np.geterrcall()
    if receiver is None:
        wanted = "log specified for {} (in {}) but no object with write method found." if mode == "log" else (
            "python callback specified for {} (in  {}) but no function found."
        )  # fmt: skip
        raise NameError(wanted.format(kind, message.partition(" encountered in ")[2]))
    if mode == "call":
        receiver(kind, number)  # type: ignore[operator]
    else:
        receiver.write(f"Warning: {message}\n")  # type: ignore[union-attr]


def warn(message: str) -> None:
    """A RuntimeWarning at the caller's line."""
    _, level = _caller()
    warnings.warn(message, RuntimeWarning, stacklevel=level)


def _caller() -> tuple[FrameType, int]:
    """The innermost frame outside of this package, and its `stacklevel` for the function that asks."""
    frame, level = sys._getframe(1), 1
    package = __name__.partition(".")[0]
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == package:  # which may be anything
        frame, level = frame.f_back, level + 1
    return frame, level


_call = (lambda function, args, kwargs: function(*args, **kwargs)).__code__


def as_caller(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """`function(*args, **kwargs)` as if it stood in the caller's line, so that what NumPy's C code warns of is seen there, once a line.

    It runs in a function whose file, line and globals are those of the caller. Any code may run in it, in the caller's own context; it
    costs a few microseconds.
    """
    frame, _ = _caller()
    code = _call.replace(co_filename=frame.f_code.co_filename, co_firstlineno=frame.f_lineno, co_name=frame.f_code.co_name)
    return FunctionType(code, frame.f_globals)(function, args, kwargs)
