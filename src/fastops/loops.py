"""The dtypes that an operation serves, and their loops: made when they are wanted, and then given to all who run them, which are the real
ufunc, the native entry of small calls, and NumPy's own ufunc where it is patched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import real_ufuncs
from .engine import compiler, driving, threads, vectorcall
from .engine.operands import PLAIN_NUMBERS, PLAIN_SCALARS
from .engine.patch import Patch
from .ufunc_like import UfuncLike

LARGE = 10_000  # elements from which a loop is worth compiling
_operations: list[WithLoops] = []


class WithLoops(UfuncLike):
    """A ufunc's double, with loops by dtype."""

    def __init__(self, name: str, prototype: Callable[..., Any]):
        super().__init__(name, prototype)
        self._real: np.ufunc = getattr(real_ufuncs, name)
        self._served = set(PLAIN_NUMBERS)  # type numbers for which the real ufunc is right
        self._scalars = set(PLAIN_SCALARS)  # the types of such scalars
        self._weak: dict[int, tuple[Any, ...]] = {}  # of user-defined dtypes: numbers of Python that they take, unlike the real ufunc
        self._compiled: dict[int, np.dtype[Any]] = {}  # the dtypes whose loop there is, by type number
        self._resolved: dict[tuple[Any, ...], np.dtype[Any] | None] = {}
        self._patch: Patch | None = None  # of NumPy's ufunc
        _operations.append(self)
        self._gate: vectorcall.Gate | None = None  # once there is one, plain small calls do not come here

    def _resolve(self, *kinds: Any) -> np.dtype[Any] | None:
        """The dtype of NumPy's loop for operands of these kinds."""
        if any(getattr(kind, "metadata", None) for kind in kinds):
            return None  # equal to the dtype without, but not the same
        if kinds not in self._resolved:
            try:
                self._resolved[kinds] = self._numpys.resolve_dtypes((kinds[0], kinds[-1], None))[0]
            except TypeError:  # there is none
                self._resolved[kinds] = None
        return self._resolved[kinds]

    def loop(self, dtype: np.dtype[Any] | None) -> int:
        """The address of the compiled loop, which from now on the real ufunc runs too, and small calls at once; 0 if there is none."""
        loop = self._compile(dtype)
        if loop and self._gate is None:
            try:
                self._gate = vectorcall.open_gate(self, self._real, LARGE)
            except compiler.Unavailable as reason:
                compiler.warn_unavailable(str(reason))
            for known in list(self._compiled.values()):
                self._admit(known)
            self._limit()
        return loop

    def _compile(self, dtype: np.dtype[Any] | None) -> int:
        """As `loop`, for the real ufunc and for NumPy's, if that is patched."""
        if dtype is None or not (dtype.isnative and real_ufuncs.is_served(dtype)):
            return 0
        try:
            loop = real_ufuncs.loop(self.__name__, dtype)
        except compiler.Unavailable as reason:
            compiler.warn_unavailable(str(reason))
            return 0
        if dtype.num not in self._compiled:
            for twin in real_ufuncs.twins(dtype):
                self._serve(twin)
        return loop

    def _serve(self, dtype: np.dtype[Any]) -> None:
        """From now on calls of this dtype run the loop."""
        self._served.add(dtype.num)
        self._scalars.add(dtype.type)
        if dtype.num >= vectorcall.BUILT_IN:
            taken = (kind for kind in (int, float) if self._resolve(dtype, kind) == dtype)
            real = getattr(real_ufuncs, self.__name__)
            kinds = tuple(kind for kind in taken if real.resolve_dtypes((dtype, kind, None))[2] != dtype)
            if kinds:
                self._weak[dtype.num] = kinds
        self._admit(dtype)
        self._compiled[dtype.num] = dtype
        self._limit()
        self._patch_in(dtype)

    def _admit(self, dtype: np.dtype[Any]) -> None:
        """From now on small calls of this dtype go straight to the loop, if there is a gate."""
        if self._gate:
            python = [kind for kind in (int, float) if getattr(self._resolve(dtype, kind), "num", None) == dtype.num]
            vectorcall.serve(self._gate, dtype, real_ufuncs.loop(self.__name__, dtype), python)

    def _patch_in(self, dtype: np.dtype[Any]) -> None:
        """From now on NumPy's ufunc runs the loop, if there is a patch."""
        if self._patch:
            self._patch.limit(dtype, self._shared(dtype))
            self._patch.serve(dtype, real_ufuncs.loop(self.__name__, dtype), *real_ufuncs.cost(self.__name__, dtype))

    def _limit(self) -> None:
        """Calls are small enough for the loop at once while threads do not pay."""
        for dtype in list(self._compiled.values()):
            if self._gate:
                vectorcall.limit(self._gate, dtype, self._shared(dtype))
            if self._patch:
                self._patch.limit(dtype, self._shared(dtype))

    def _shared(self, dtype: np.dtype[Any]) -> int:
        """Elements from which threads pay."""
        return int(min(threads.least() / max(real_ufuncs.cost(self.__name__, dtype)), sys.maxsize))

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes the function for when it compiles a user's: Numba alone asks."""
        if sys.modules.get("numba") is None:
            raise AttributeError("_numba_type_")
        from . import njit

        return njit.type_of(self.__name__)

    def patch(self) -> Patch:
        """The patch of NumPy's ufunc by these loops, as many as there are by now and as will be."""
        if self._patch:
            self._patch.check()
        if self._patch is None or not self._patch.current:
            self._patch = Patch(self._numpys, LARGE, self._compile, launch)
        bfloat16 = real_ufuncs.bfloat16()
        if bfloat16:
            self._patch.add(bfloat16)
        for dtype in list(self._compiled.values()):
            if self._patch.waits_for(dtype):
                self._patch_in(dtype)
        return self._patch


def limit() -> None:
    """What starting threads costs is known, or known better."""
    for operation in _operations:
        operation._limit()


def launch() -> None:
    """The parallel driver, and what its start costs, for those who will not come here to learn it."""
    try:
        driving.learn_start()
    except compiler.Unavailable as reason:
        compiler.warn_unavailable(str(reason))
    limit()
