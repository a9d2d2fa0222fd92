"""From floating-point flags to NumPy's warnings and errors, at the line of the caller.

NumPy's C code warns at the Python line that called it, which for a dispatcher would be a line of fastops. So a ufunc runs under a
`numpy.errstate` that only takes notes, and what is noted is then reported under the caller's own.
"""

from __future__ import annotations

import contextvars
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

DIVIDE, OVERFLOW, UNDERFLOW, INVALID = "divide by zero", "overflow", "underflow", "invalid value"
_KINDS = {DIVIDE: ("divide", 1), OVERFLOW: ("over", 2), UNDERFLOW: ("under", 4), INVALID: ("invalid", 8)}  # NumPy's FPE numbers


class _Notes(list[str]):
    """What NumPy calls in the mode "log"."""

    def write(self, text: str) -> None:
        self.append(text.removeprefix("Warning: ").rstrip("\n"))


_pool: list[tuple[Callable[..., Any], _Notes]] = []


def _note_taker() -> tuple[Callable[..., Any], _Notes]:
    notes = _Notes()
    with np.errstate(all="log", call=notes):
        return contextvars.copy_context().run, notes


def noted(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Sequence[str]]:
    """`function(*args, **kwargs)` and the messages it gave, for `report`. Only for arguments that run no Python code of others: that would
    see the context variables of another time. Costs a tenth of a microsecond, where `numpy.errstate` costs more than one."""
    try:
        run, notes = taker = _pool.pop()
    except IndexError:
        run, notes = taker = _note_taker()
    try:
        result = run(function, *args, **kwargs) if kwargs else run(function, *args)
        return result, notes[:] if notes else ()
    finally:
        if notes:
            notes.clear()
        _pool.append(taker)


def noted_here(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Sequence[str]]:
    """The same in the caller's own context, for any arguments."""
    notes = _Notes()
    with np.errstate(all="log", call=notes):
        return function(*args, **kwargs), notes


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
            sys.stderr.write(f"Warning: {message}\n")
        elif mode in ("call", "log"):
            _call_back(mode, kind, number, message)


def _call_back(mode: str, kind: str, number: int, message: str) -> None:
    receiver = np.geterrcall()
    if receiver is None:
        wanted = "log specified for {} (in {}) but no object with write method found." if mode == "log" else (
            "python callback specified for {} (in {}) but no function found."
        )  # fmt: skip
        raise NameError(wanted.format(kind, message.partition(" encountered in ")[2]))
    if mode == "call":
        receiver(kind, number)  # type: ignore[operator]
    else:
        receiver.write(f"Warning: {message}\n")  # type: ignore[union-attr]


def warn(message: str) -> None:
    """A RuntimeWarning at the innermost line outside of this package."""
    frame, level = sys._getframe(1), 2
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
