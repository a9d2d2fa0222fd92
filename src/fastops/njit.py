"""What `mod`, `remainder` and `fmod` are in functions that Numba compiles for users: a ufunc made by `numba.vectorize`, which Numba
broadcasts, fuses and shares among threads as it does NumPy's.

Numba itself asks for this module, by the attribute `_numba_type_` of the functions, when it first meets one of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types, vectorize
from numba.core.errors import NumbaNotImplementedError, TypingError
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype, from_dtype

from .engine import compiler
from .kernels import elements, lanes


@cache
def type_of(name: str) -> Any:
    """Numba's type of "remainder" or "fmod"."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        common = signature.return_type
        operands = [context.cast(builder, value, kind, common) for value, kind in zip(values, signature.args, strict=True)]
        return emitted(name, common.name)(context, builder, *operands)

    element = intrinsic(lambda typing, x, y: (common_type(name, x, y)(x, y), generate))

    def ufunc(x: Any, y: Any) -> Any:
        return element(x, y)

    ufunc.__name__ = ufunc.__qualname__ = name
    made = vectorize(ufunc)

    lowerer: Any = getattr(made, "_lower_me", None)
    if hasattr(lowerer, "kernel"):

        class Kernel(lowerer.kernel):  # type: ignore[misc]
            """What stands in the loops. (Numba's own calls the compiled function, into which LLVM cannot carry a divisor that it knows.)"""

            def generate(self, *values: Any) -> Any:
                result = generate(self.context, self.builder, self.inner_sig, values)
                return self.cast(result, self.inner_sig.return_type, self.outer_sig.return_type)

        lowerer.kernel = Kernel
    (template,) = cpu_target.typing_context.resolve_value_type(made).templates

    class Typing(template):  # type: ignore[misc, valid-type]
        def generic(self, operands: Any, keywords: Any) -> Any:
            if keywords:
                raise TypingError(
                    f"fastops.{name} takes no keywords in functions compiled by Numba: `out` comes third, fmod=1 is fastops.fmod"
                )
            if is_fast():
                raise TypingError(f"fastops.{name} is exact, and cannot be compiled with fastmath, under which LLVM drops its roundings")
            if len(operands) > 1:
                common = common_type(name, *(getattr(kind, "dtype", kind) for kind in operands[:2]))
                for out in operands[2:]:
                    check_output(name, common, out)
            return super().generic(operands, keywords)

    return types.Function(Typing)


def is_fast() -> bool:
    """Whether Numba will put flags on all that the function being compiled does with floats, and on what is put into it."""
    return bool(getattr(getattr(ConfigStack.top_or_none(), "fastmath", None), "flags", None))


def check_output(name: str, common: Any, out: Any) -> None:
    """Numba itself casts to whatever the array has."""
    if not isinstance(out, types.Array):
        return  # of which Numba says that it is none
    made, wanted = as_dtype(common), as_dtype(out.dtype)
    if not np.can_cast(made, wanted, "same_kind"):
        raise TypingError(f"fastops.{name}: cannot cast the output from {made} to {wanted} with casting rule 'same_kind'")


@cache
def emitted(name: str, dtype: str) -> elements.Emit:
    return elements.remainder(name, dtype, lanes.Processor(**compiler.features()))


def common_type(name: str, x: Any, y: Any) -> Any:
    """The type of NumPy's loop for two numbers of Numba's."""
    try:
        dtype = getattr(np, name).resolve_dtypes((*(as_dtype(types.unliteral(kind)) for kind in (x, y)), None))[0]
    except (NumbaNotImplementedError, TypeError):  # NumPy has no such dtype, or no loop
        dtype = None
    if dtype is None or dtype.kind not in "iuf" or dtype == np.float16:
        raise TypingError(f"fastops.{name} takes booleans, integers, float32 and float64 in functions compiled by Numba, not {x} and {y}")
    return from_dtype(dtype)
