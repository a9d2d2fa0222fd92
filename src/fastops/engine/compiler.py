"""The one place that asks Numba for code.

`import fastops` loads no Numba: it is imported at the first call that needs a compiled function. Where it is missing or refuses to
work, one warning says why, and NumPy serves the call.

Caching is safe by construction. Numba's cache does not notice a change in a second file, and two processes that cache different
signatures under one name can mix them up; so every function here has one signature and a name of its own, which ends in a stamp of
fastops' sources, of the versions of Numba, LLVM and NumPy, and of the processor. Where the sources have changed since they were imported,
nothing is cached.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import errors, sources

if TYPE_CHECKING:
    from pathlib import Path


class Unavailable(Exception):
    """No compiled code can be had in this process; the text says why. Without a text: not at this moment."""


class Compiled(NamedTuple):
    """A compiled function: what Numba made, its entry point for C, and where it came from."""

    function: Any
    address: int
    name: str
    from_cache: bool


_lock = threading.RLock()
_made: dict[str, Compiled] = {}
_inside: list[int] = []  # the thread that is compiling
_forking: list[int] = []  # the threads that hold the lock while they fork
PATIENCE = 3.0  # seconds that a fork waits for a compile to end
_numba: Any = None
_reason: str | None = None  # why there is none


def before_fork() -> None:
    """LLVM's objects of a thread that is compiling are torn down in the child, which may end it: better it waits."""
    if _lock.acquire(timeout=PATIENCE):
        _forking.append(threading.get_ident())


def after_fork_in_parent() -> None:
    if threading.get_ident() in _forking:
        _forking.remove(threading.get_ident())
        _lock.release()


def after_fork_in_child() -> None:
    """Where another thread was compiling, Numba and LLVM are left in the middle of it, with locks that nobody will release."""
    global _lock, _reason
    _lock = threading.RLock()
    _forking.clear()
    numbas = getattr(_numbas_lock(), "_lock", _lock)
    if not numbas.acquire(blocking=False) or (_inside and _inside != [threading.get_ident()]):
        _reason = "this process was forked while another thread was compiling"
    else:
        numbas.release()


def is_lost() -> bool:
    """Whether nothing will ever be compiled in this process."""
    return _reason is not None


def compiled() -> list[Compiled]:
    """What this process has compiled or loaded so far."""
    return list(_made.values())


def numba() -> Any:
    """The numba module, ready to compile; otherwise `Unavailable`."""
    global _numba, _reason
    if _numba is None and _reason is None:
        if getattr(getattr(sys.modules.get("numba"), "__spec__", None), "_initializing", False):
            raise Unavailable  # called from a signal handler, a finalizer or another thread while others import Numba
        with compiling():
            try:
                import numba as module

                if module.config.DISABLE_JIT:
                    _reason = "NUMBA_DISABLE_JIT is set"
                else:
                    _numba = module
            except Exception as error:  # whatever a broken installation raises, in Numba or in a package that it loads
                _reason = f"{type(error).__name__}: {error}"
    if _reason is not None:
        raise Unavailable(_reason)
    return _numba


def _numbas_lock() -> AbstractContextManager[object]:
    """Numba's own, which is held by whoever compiles."""
    return getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None) or nullcontext()


@contextmanager
def compiling() -> Iterator[None]:
    """All that loads Numba or compiles goes in here, one thread at a time. Whatever goes wrong, in Numba, LLVM or a half-imported
    module, is `Unavailable` for good."""
    global _reason
    with _numbas_lock(), _lock:  # in this order, for what others compile may come here, such as by a remainder in a finalizer
        if _inside:
            raise Unavailable  # this thread itself is at it: called from a signal handler or a finalizer
        try:
            _inside.append(threading.get_ident())  # in here, for an interrupt may come right after it
            yield
        except (Unavailable, MemoryError, RecursionError):  # the last two are the caller's, and of the moment
            raise
        except Exception as error:
            if _is_foreign(error):
                raise
            _reason = f"{type(error).__name__}: {error}"
            raise Unavailable(_reason) from error
        finally:
            _inside.clear()


def _is_foreign(error: Exception) -> bool:
    """Whether somebody else's code raised it, such as a signal handler that ran in the middle."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    package = place.tb_frame.f_globals.get("__name__", "").partition(".")[0] if place is not None else ""
    return package not in {"fastops", "numba", "llvmlite", "numpy", *sys.stdlib_module_names}


@cache
def warn_unavailable(reason: str) -> None:
    """Once for each reason."""
    if reason:
        errors.warn(f"fastops runs NumPy's own loops, for Numba cannot be used here: {reason}")


@cache
def target() -> tuple[str, str, str]:
    """Triple, processor and features that Numba compiles for (the host's, or what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say)."""
    numba()
    from numba.core.registry import cpu_target

    return cpu_target.target_context.codegen().magic_tuple()  # type: ignore[no-any-return]


_PROBES = {
    "fused": "define double @probe(double %x) { %r = call double @llvm.fma.f64(double %x, double %x, double %x) ret double %r }"
    " declare double @llvm.fma.f64(double, double, double)",
    "half": "define half @probe(half %x) { %w = fpext half %x to float %s = fmul float %w, %w %r = fptrunc float %s to half ret half %r }",
    "rounds": "define double @probe(double %x) { %r = call double @llvm.floor.f64(double %x) ret double %r }"
    " declare double @llvm.floor.f64(double)",
    "wide": "define <4 x i64> @probe(<4 x double> %x) { %r = fptosi <4 x double> %x to <4 x i64> ret <4 x i64> %r }",
}


@cache
def features() -> dict[str, bool]:
    """Whether the processor has a fused multiply-add ("fused"), conversions of half precision ("half"), conversions between 64-bit integers
    and double precision in SIMD lanes ("wide"), and an instruction that rounds to integers ("rounds").

    LLVM is asked, not a table of processors: where an instruction is missing, its code calls a library function, which may not exist.
    """
    import llvmlite.binding as llvm

    triple, processor, flags = target()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, features=flags)
    substitute = re.compile(r"\b_?(fma|floor)\b|__\w*[hs]f\w*2\b|__gnu_\w+_ieee|cvttsd2si")  # a library call, or one lane at a time
    return {name: not substitute.search(machine.emit_assembly(llvm.parse_assembly(ir))) for name, ir in _PROBES.items()}


@cache
def stamp() -> str:
    """What a compiled function depends on beside its own file."""
    import hashlib

    import llvmlite

    versions = repr((target(), numba().__version__, llvmlite.__version__, np.__version__))
    return hashlib.sha256(versions.encode() + sources.content()).hexdigest()[:16]


def cache_folder(function: Callable[..., Any]) -> Path | None:
    """Where Numba keeps what it makes of a function; None if it can keep it nowhere."""
    from pathlib import Path

    from numba.core.caching import FunctionCache

    try:
        return Path(FunctionCache(function).cache_path)
    except (RuntimeError, ValueError):  # "no locator available", a path that cannot be encoded
        return None


def _specialise(template: Callable[..., Any], names: Mapping[str, Any], name: str) -> FunctionType:
    """A copy of `template` that sees `names` as globals. (Numba takes globals as constants and its cache knows a function by its name; a
    closure's cells it would hash, and those of intrinsics are new in every process.)"""
    function = FunctionType(template.__code__, {**template.__globals__, **names}, name)
    function.__qualname__ = f"{name}_{stamp()}"
    return function


def _make(name: str, body: Callable[..., Any], compile: Callable[[bool], Any]) -> Compiled:
    """Compile with the cache, or without where it cannot be used: no writable folder, a full disk, damaged files, other sources than those
    that were imported. Inside `compiling`."""
    if name not in _made:
        try:
            function = compile(sources.are_imported())
        except Exception as error:
            if _is_foreign(error):
                raise
            _discard(body)
            function = compile(False)
        _made[name] = Compiled(function, function.address, name, function.cache_hits > 0)
    return _made[name]


def _discard(body: Callable[..., Any]) -> None:
    """Its files in the cache, which may be damaged: the next process then makes them anew."""
    with suppress(Exception):  # nor can these be removed, perhaps
        folder = cache_folder(body)
        for file in folder.glob(f"*.{body.__qualname__}-*") if folder else ():
            file.unlink()


def c_function(template: Callable[..., Any], names: Mapping[str, Any], name: str, signature: Any, parallel: bool = False) -> Compiled:
    """`template` as a C function of that signature. Inside `compiling`."""
    module, body = numba(), _specialise(template, names, name)
    options = {"nopython": True, "parallel": parallel, "error_model": "numpy"}
    return _make(name, body, lambda cache: module.cfunc(signature, cache=cache, **options)(body))


def inner_loop(template: Callable[..., Any], names: Mapping[str, Any], name: str) -> Compiled:
    """`template` as a C function by the contract of NumPy's inner loops: (char **args, intp *dims, intp *steps, void *data)."""
    module = numba()
    words = module.types.CPointer(module.types.intp)
    return c_function(template, names, name, module.types.void(words, words, words, module.types.voidptr))
