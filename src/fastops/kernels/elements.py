# mypy: disable-error-code="untyped-decorator"
"""The two remainders of one element, for functions that Numba compiles for users: formulas that stand in their loops.

They raise no floating-point flag but INEXACT and, for what IEEE 754 calls so, INVALID: a ufunc that a user makes by `numba.vectorize`
reports flags.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import llvmlite.ir as ir
from numba import types

from . import division, floats, integers
from .flags import INVALID, X86, restore_flags, save_flags
from .lanes import Lane, Processor, operation

Emit = Callable[[Any, ir.IRBuilder, ir.Value, ir.Value], ir.Value]  # by Numba's context, at the builder's place, of two numbers of a dtype


def remainder(name: str, dtype: str, processor: Processor) -> Emit:
    """For an integer dtype, float32 or float64."""
    floored, kind = name == "remainder", getattr(types, dtype)
    return (of_floats if "float" in dtype else of_integers)(floored, kind, processor)


def of_integers(floored: bool, kind: Any, processor: Processor) -> Emit:
    """By a division in floating point, which has SIMD lanes, up to 32 bits; of 64 by the processor's."""
    quotient = partial(division.in_floats, processor, kind.signed) if kind.bitwidth < 64 else None

    def emit(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return integers.single_remainder(floored, kind.signed, Lane(builder, x), Lane(builder, y), quotient).value

    return emit


def of_floats(floored: bool, kind: Any, processor: Processor) -> Emit:
    """By one step where that serves, which is nearly always; else by as many as it takes, in a function of its own."""
    single = floats.Single(floats.formats(processor)[kind.name], floored, processor)
    in_steps = by_steps(floored, kind, processor)

    def emit(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        serves = single.serves(Lane(builder, x), Lane(builder, y))
        with builder.if_else(serves.value, likely=True) as (one_step, more):
            with one_step:
                quick, after_one = single.remainder(here(builder, x), here(builder, y)).value, builder.block
            with more:
                careful, after_more = context.compile_internal(builder, in_steps, kind(kind, kind), (x, y)), builder.block
        result = builder.phi(x.type)
        result.add_incoming(quick, after_one)
        result.add_incoming(careful, after_more)
        return result

    return emit


def here(builder: ir.IRBuilder, x: ir.Value) -> Lane:
    """The number, by an empty instruction: LLVM would otherwise divide by it before it is asked whether that raises flags."""
    constraint = "=x,0" if X86 else "=w,0"  # a register of floating-point numbers
    return Lane(builder, builder.asm(ir.FunctionType(x.type, [x.type]), "", constraint, [x], side_effect=True))


def by_steps(floored: bool, kind: Any, processor: Processor) -> Callable[[Any, Any], Any]:
    """Of any two numbers, in Numba's Python."""
    careful, double = floats.Careful(floats.formats(processor)[kind.name], floored, processor), types.float64
    start, step = operation(careful.start, double, kind), operation(careful.partial_step, double, double, double)
    is_left, finish = operation(careful.is_left, types.boolean, double, double), operation(careful.finish, kind, double, kind, kind)
    is_invalid = operation(floats.is_invalid, types.boolean, double, double)

    def in_steps(x: Any, y: Any) -> Any:
        state = save_flags()
        rest, divisor = start(x), start(y)
        if is_invalid(rest, divisor):
            state |= INVALID
        while is_left(rest, divisor):
            rest = step(rest, divisor)
        result = finish(rest, x, y)
        restore_flags(state)
        return result

    return in_steps
