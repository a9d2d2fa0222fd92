"""The dispatcher: it finds the fastest right way for a call.

0. Small plain arrays, once a loop has been made, without a line of Python, by `engine.gate`: C-contiguous ones of that dtype run the loop
   itself, up to the size where threads pay; others go to the real ufunc.
1. Large plain arrays of one accelerated dtype: the driver, in parallel, or on one thread where it has tiles for them.
2. Everything else that the twelve dtypes take part in: the real ufunc, which is NumPy's machine around the same loops.
3. What is not accelerated, and subclasses of ndarray: NumPy's own ufunc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from . import real_ufuncs
from .engine import compiler, driving, errors, iteration, threads, vectorcall
from .engine.headers import WARN_ON_WRITE
from .engine.operands import (
    INPUTS,
    MOST_OF_AT,
    as_array,
    asked_dtype,
    broadcast_size,
    declared,
    every_operand,
    is_subclass,
    kind_of,
    look_at,
    overrides,
    result_size,
)
from .loops import LARGE, WithLoops, limit


class Choice(NamedTuple):
    """How a large call is done, and by what that was chosen."""

    loop: int = 0  # the address of what was compiled
    work: float = 0.0  # nanoseconds that it takes one core, about
    workers: int = 1
    was_planned: bool = False  # whether more threads or tiles were worth a plan
    plan: iteration.Plan | None = None

    @property
    def is_driven(self) -> bool:
        return self.plan is not None and (self.workers > 1 or self.plan.tile[0] > 1)


@vectorcall.with_room
class Remainder(WithLoops):
    """A callable like the ufunc `numpy.remainder` or `numpy.fmod`, with fastops' loops. A ufunc's methods and attributes are there."""

    def __init__(self, name: str, prototype: Callable[..., Any], truncated: Remainder | None = None):
        """`prototype` has the signature and the docstring; `truncated` is what the attribute `fmod=1` of ONNX's Mod asks for."""
        super().__init__(name, prototype)
        self._truncated = truncated

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = None
        if kwargs:
            if "fmod" in kwargs and self._truncated is not None:
                chosen = self._truncated if is_truncated(kwargs.pop("fmod")) else self
                return chosen.__call__(*args, **kwargs)  # not by the gate, past which NumPy would warn at this line
            if len(kwargs) > 1 or len(args) != 2 or "out" not in kwargs:
                return self._any("__call__", *args, **kwargs)
            x1, x2 = args
            out = kwargs["out"]
            if type(out) is tuple and len(out) == 1:
                out = out[0]
        elif len(args) == 2:
            x1, x2 = args
        elif len(args) == 3:
            x1, x2, out = args
        else:
            return self._any("__call__", *args)
        size1 = size2 = 1
        if type(x1) is ndarray and x1.dtype.num in self._served:
            size1 = x1.size
        elif type(x1) not in self._scalars:
            return self._any("__call__", *args, **kwargs)
        if type(x2) is ndarray and x2.dtype.num in self._served:
            size2 = x2.size
        elif type(x2) not in self._scalars:
            return self._any("__call__", *args, **kwargs)
        if out is not None and (type(out) is not ndarray or out.flags.num & WARN_ON_WRITE):
            return self._any("__call__", *args, **kwargs)
        if self._weak and not {float, int}.isdisjoint((type(x1), type(x2))):
            x1, x2 = self._weakly((x1, x2), (kind_of(x1), kind_of(x2)))
        # Two small operands of one shape need no look at the size that they broadcast to.
        if size1 * size2 >= LARGE and (size1 >= LARGE or size2 >= LARGE or x1.shape != x2.shape):
            result = self._large(x1, x2, out)
            if result is not None:
                return result
        # Plain operands run no Python code of others, so the ufunc may run in a context that is kept at hand: at sizes where every tenth
        # of a microsecond counts, entering `numpy.errstate` would cost three times the ufunc.
        run, notes = taker = errors.note_taker()
        try:
            result = run(self._real, x1, x2) if out is None else run(self._real, x1, x2, out)
            messages = notes[:] if notes else None
        finally:
            notes.clear()
            errors.idle.append(taker)
        if messages:
            errors.report(messages)
        return result

    # --- the three ways ---
    def _large(self, x1: Any, x2: Any, out: Any) -> Any:
        """The result by the driver; None where that is not chosen, or cannot be had."""
        try:
            chosen = self.choose(x1, x2, out)
            if chosen.plan is None or not chosen.is_driven:
                return None
            known = threads.start_is_known()
            raised = driving.drive(chosen.plan, chosen.loop, chosen.workers)
        except compiler.Unavailable as reason:
            compiler.warn_unavailable(str(reason))
            return None
        if not known:  # but better now
            limit()
        if raised:
            errors.report([f"{errors.DIVIDE if chosen.plan.out.dtype.kind in 'iu' else errors.INVALID} encountered in {self.__name__}"])
        return chosen.plan.out

    def choose(self, x1: Any, x2: Any, out: Any) -> Choice:
        """By the driver: in parallel where that pays, else on this thread, if it has tiles for them. Otherwise the ufunc is as good, or
        alone will do. A large call has its loop compiled in any case."""
        size = broadcast_size(x1, x2)
        dtype = self._resolve(kind_of(x1), kind_of(x2)) if size >= LARGE else None
        loop = self.loop(dtype)
        if dtype is None or not loop:
            return Choice()
        cost = real_ufuncs.cost(self.__name__, dtype)
        work = size * (cost.by_scalar if np.shape(x2)[-1:] in ((), (1,)) else cost.by_array)
        tiled = size >= iteration.WORTHWHILE and iteration.may_have_tiles(x1, x2, out)
        workers = threads.workers(work) if threads.worthwhile(work) else 1
        if workers < 2 and not tiled:
            return Choice(loop, work)
        return Choice(loop, work, workers, True, iteration.plan(x1, x2, out, dtype))

    def _by_numpy(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """By NumPy's own ufunc, which has all the loops."""
        return errors.as_caller(getattr(self._numpys, method), args, kwargs)

    def _any(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Any arguments, to the ufunc or to one of its methods."""
        inputs = INPUTS[method]
        if method == "at" and args and isinstance(args[0], np.ndarray) and args[0].ndim > MOST_OF_AT:
            raise ValueError(f"{self.__name__}.at takes arrays of up to {MOST_OF_AT} dimensions, got one of {args[0].ndim}")
        if len(args) <= inputs[-1] or any(map(is_subclass, every_operand(args, kwargs))):
            return self._by_numpy(method, args, kwargs)
        if method == "at" and not (isinstance(args[0], np.ndarray) or overrides(args[0])):
            return self._by_numpy(method, args, kwargs)  # which says that it wants an array, before it looks at the rest
        real = self._real if method == "__call__" else getattr(self._real, method)
        if any(map(overrides, every_operand(args, kwargs))):
            operands = [declared(args[k]) for k in inputs]
            if any(isinstance(kind, np.dtype) and kind.kind in "mM" for kinds, _ in operands for kind in kinds):
                return self._by_numpy(method, args, kwargs)
            self._prepare(operands)
            if method == "__call__":
                args = (*self._weakly(args[:2], [kinds[0] if len(kinds) == 1 else None for kinds, _ in operands]), *args[2:])
            try:
                return errors.as_caller(real, args, kwargs)
            except TypeError as error:
                if not str(error).startswith(errors.UNSERVED):
                    raise
            return self._by_numpy(method, args, kwargs)  # which they may know, and which has the loops for times
        try:
            args = tuple(as_array(x) if k in inputs[method == "at" :] else x for k, x in enumerate(args))  # `at` changes the first itself
            operands = [look_at(args[k]) for k in inputs]
        except Exception:  # what gives no array; but NumPy may have something to say of other arguments first
            return self._by_numpy(method, args, kwargs)
        kinds = [kind_of(x) for x in operands]
        asked = asked_dtype(method, args, kwargs)
        dtypes = [kind for kind in (*kinds, asked) if isinstance(kind, np.dtype)]
        if result_size(method, operands) >= LARGE:
            self.loop(asked or self._resolve(*kinds))
        for dtype in filter(real_ufuncs.is_bfloat16, dtypes):
            self.loop(dtype)  # of any size: ml_dtypes' own loops do not warn of a zero divisor
        if method == "__call__":
            args = (*self._weakly(args[:2], kinds), *args[2:])
        if all(dtype.num in self._served for dtype in dtypes):
            return errors.as_caller(real, args, kwargs)
        return self._by_numpy(method, args, kwargs)

    def _weakly(self, operands: Sequence[Any], dtypes: Sequence[Any]) -> Iterator[Any]:
        """Two operands of these dtypes, a number of Python's in the user-defined dtype of the other that takes it: the real ufunc knows the
        loop by NumPy's older rules, by which it would not (a float from ml_dtypes 0.7 on; an integer, too, with NumPy 2.0)."""
        for x, dtype in zip(operands, reversed(dtypes), strict=True):
            kinds = self._weak.get(getattr(dtype, "num", 0), ())
            if issubclass(type(x), kinds) and not isinstance(x, (bool, np.generic)) and np.result_type(x, dtype) == dtype:
                x = errors.as_caller(np.add, (x, dtype.type(-0.0)), {})  # as NumPy at hand converts it, with its warnings
            yield x

    def _prepare(self, operands: list[tuple[list[Any], int]]) -> None:
        """The loops that large objects of others will run: theirs is the call, of the real ufunc, in whatever pieces."""
        if max(size for _, size in operands) >= LARGE:
            for kinds in product(*(kinds for kinds, _ in operands)):
                self.loop(self._resolve(*kinds))


def is_truncated(flag: object) -> bool:
    """The attribute `fmod` of ONNX's Mod."""
    if not isinstance(flag, (int, np.integer, np.bool_)) or flag not in (0, 1):
        raise ValueError(f"fmod must be 0 or 1, got {flag!r}")
    return bool(flag)
