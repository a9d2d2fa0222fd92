"""What the templates in loops.py are given for one operation and dtype: typed memory, and the formulas as loops over elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import llvmlite.ir as ir
from numba import types

from . import floats, integers
from .elementwise import Elementwise, as_intrinsic, copier
from .lanes import DOUBLE, INT16, Lane, Processor, operation, smaller
from .primitives import DIVIDE, INVALID, reader, scratch, writer

BLOCK_BYTES = 4096  # what is gathered at a time: the blocks of three operands stay in the first-level cache
UNLIMITED = 1 << 62


def memory(kind: Any, block: int) -> dict[str, Any]:
    size = kind.bitwidth // 8
    return {"SIZE": size, "BLOCK": block, "read": reader(kind), "write": writer(kind), "scratch": scratch(block * size),
            "copy": copier(kind.bitwidth)}


# --- integers ---
def integer_names(name: str, dtype: str, processor: Processor) -> dict[str, Any]:
    """The names in `loops.integer_loop` for one operation and dtype."""
    signed, floored = not dtype.startswith("u"), name == "remainder"
    kind: Any = getattr(types, dtype.lstrip("u").replace("int", "uint"))
    block = BLOCK_BYTES * 8 // kind.bitwidth
    by_array, by_scalar = (integer_loop(signed, floored, kind.bitwidth, processor, uniform) for uniform in (False, True))
    return {
        **memory(kind, block),
        "LONGEST": block if kind.bitwidth == 64 else UNLIMITED,  # 64 bits decide block by block
        "DIVIDE": DIVIDE,
        "by_array": as_intrinsic(by_array, 3),
        "by_scalar": as_intrinsic(by_scalar, 3),
        "single_remainder": operation(partial(integers.single_remainder, floored, signed), kind, kind, kind),
    }


def integer_loop(signed: bool, floored: bool, bits: int, processor: Processor, uniform: bool) -> Any:
    """What emits the loop (dividends, divisors or the one divisor, results, number); its notes are 0 if a divisor is."""
    kind = ir.IntType(bits)

    def formula(x: Lane, y: Lane) -> Lane:
        if bits == 8:
            return integers.signed_byte_remainder(floored, x, y) if signed else integers.byte_remainder(x, y)
        divisor = integers.divisor_magnitude(y, signed)
        if not signed:
            return integers.from_below(x, divisor, processor)
        return integers.signed_remainder(floored, integers.centred(x, divisor, processor), x, y, divisor)

    smallest: dict[str, Any] = {"note": lambda x, y, notes: smaller(notes, y), "clear": ir.Constant(kind, -1)}
    if uniform and bits <= (16 if signed else 32):
        return by_multiplier(signed, floored, kind)
    general = Elementwise((kind, kind), kind, formula, prepare=(lambda y: (y,)) if uniform else None, **smallest)
    return either(signed, floored, kind, processor, general) if bits == 64 else general.emit


def by_multiplier(signed: bool, floored: bool, kind: ir.IntType) -> Any:
    """By one divisor of up to 16 bits, or of up to 32 unsigned; bytes are computed in lanes of 16 bits."""

    def wide(x: Lane) -> Lane:
        return x.extend(INT16, signed) if x.bits == 8 else x

    def prepare(y: Lane) -> Sequence[Lane]:
        return y, *(integers.prepare_signed if signed else integers.prepare_unsigned)(wide(y))

    def formula(x: Lane, y: Lane, *prepared: Lane) -> Lane:
        r = integers.by_signed_multiplier(floored, wide(x), *prepared) if signed else integers.by_multiplier(wide(x), *prepared)
        return r.low_bits(x.bits)

    return Elementwise((kind, kind), kind, formula, lambda x, y, *rest: smaller(rest[-1], y), ir.Constant(kind, -1), prepare).emit


def either(signed: bool, floored: bool, kind: ir.IntType, processor: Processor, general: Elementwise) -> Any:
    """The loop in doubles for a block whose elements all suit it, otherwise the general one."""
    in_doubles = general._replace(formula=lambda x, y: integers.in_doubles(floored, signed, x, y, processor))
    fits = Elementwise((kind,), note=lambda x, notes: integers.bits_in_doubles(x, signed, notes))
    fits_too = fits._replace(inputs=(kind, kind), note=lambda x, y, notes: integers.bits_in_doubles(y, signed, integers.bits_in_doubles(x, signed, notes)))

    def emit(builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value) -> ir.Value:
        if general.prepare:
            one = Lane(builder, builder.load(builder.bitcast(places[1], kind.as_pointer()), align=8))
            bits = integers.bits_in_doubles(one, signed, Lane(builder, fits.emit(builder, places[:1], count)))
        else:
            bits = Lane(builder, fits_too.emit(builder, places[:2], count))
        notes = []
        with builder.if_else((bits < 1 << (integers.LIMIT_IN_DOUBLES + 1)).value) as branches:
            for branch, loop in zip(branches, (in_doubles, general), strict=True):
                with branch:
                    notes.append((loop.emit(builder, places, count), builder.block))
        result = builder.phi(kind)
        for value, block in notes:
            result.add_incoming(value, block)
        return result

    return emit


# --- floating-point numbers ---
def float_names(name: str, dtype: str, processor: Processor) -> dict[str, Any]:
    """The names in `loops.float_loop` for one operation and dtype."""
    form = floats.formats(processor)[dtype]
    kind: Any = {"float64": types.float64, "float32": types.float32}.get(dtype, types.uint16)
    quick, careful = (way(form, name == "remainder", processor) for way in (floats.Quick, floats.Careful))
    two = (form.storage, form.storage)
    quickly = Elementwise(two, form.storage, quick.remainder, quick.note, ir.Constant(quick.notes, 0))
    block = 512 if form.significand == 53 else 1024

    def loop(*arguments: Any) -> Any:
        built = Elementwise(*arguments)
        return as_intrinsic(built.emit, len(built.inputs) + 1)

    return {
        **memory(kind, block),
        "INVALID": INVALID,
        "quick_by_array": as_intrinsic(quickly.emit, 3),
        "quick_by_scalar": as_intrinsic(quickly._replace(prepare=quick.prepare).emit, 3),
        "careful": loop(two, form.storage, careful.remainder, careful.note),
        "start": loop(two[:1], DOUBLE, careful.start),
        "partial_step": loop((DOUBLE, form.storage), DOUBLE, careful.partial_step, careful.more_steps),
        "finish": loop((DOUBLE, *two), form.storage, careful.finish),
        "scratch_double": scratch(block * 8),
    }
