"""What the template in loops.py is given for one operation and dtype: typed memory, and the formulas as loops over elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import llvmlite.ir as ir
from numba import types

from . import floats, integers
from .copying import copier
from .elementwise import INDEX, NOTES, Elementwise, as_function, as_intrinsic, counted, one_by_one
from .flags import DIVIDE, INVALID
from .lanes import DOUBLE, FLOAT, INT16, Lane, Processor, absolute, minimum, where
from .primitives import BYTES, scratch

UNLIMITED = 1 << 62
FLOAT_BLOCK = 512  # elements that are computed again together
Emit = Callable[[ir.IRBuilder, Sequence[ir.Value], ir.Value], Lane]  # at the builder's place, for operands and a number of elements


def names(name: str, dtype: str, processor: Processor) -> dict[str, Any]:
    """The names in `loops.inner_loop` for one operation and dtype."""
    floored = name == "remainder"
    if "float" in dtype:
        kind: Any = {"float64": types.float64, "float32": types.float32}.get(dtype, types.uint16)
        ways = float_ways(floats.formats(processor)[dtype], floored, processor)
    else:
        kind = getattr(types, dtype.lstrip("u").replace("int", "uint"))
        ways = (wide_ways if kind.bitwidth == 64 else narrow_ways)(not dtype.startswith("u"), floored, ir.IntType(kind.bitwidth), processor)
    size = kind.bitwidth // 8
    block = 4096 // size if "int" in dtype else min(FLOAT_BLOCK, 4096 // size)  # three of them stay in the first-level cache
    at_once = "int" in dtype and size < (4 if processor.rounds else 8)  # nothing is ever computed again
    return {
        "SIZE": size,
        "LINE": 64,
        "FAR": 1 << 20 if "int" in dtype else UNLIMITED,  # more than the second-level cache keeps
        "COLUMN": 2048,  # elements of a single far operand whose lines it keeps: a matrix has its next column in the same ones
        "FEW": 8 if "int" in dtype else 3,  # as many elements one by one take no longer than the vector loop's beginning and end
        "BLOCK": block,
        "NEAR": 16,  # bytes: as long as a cache line holds several elements, the longer block is the faster one
        "SHORT": min(128, block),  # else so few that the processor reads the next ones while it computes these
        "LONGEST": UNLIMITED if at_once else block,
        "IN_PLACE": at_once,
        "FLAG": INVALID if "float" in dtype else DIVIDE,
        "scratch": scratch(block * size),
        "copy": copier(kind.bitwidth),
        "by_array": as_intrinsic(ways[0]),
        "by_scalar": as_intrinsic(ways[1]),
        "one_by_one": one_by_one(ways[2]),
    }


def raised(condition: Lane) -> Lane:
    return condition.extend(NOTES)


# --- integers ---
def narrow_ways(signed: bool, floored: bool, kind: ir.IntType, processor: Processor) -> tuple[Emit, Emit, Emit]:
    """Of up to 32 bits."""
    bits = kind.width

    def formula(x: Lane, y: Lane) -> Lane:
        if bits == 8:
            return integers.signed_byte_remainder(floored, x, y) if signed else integers.byte_remainder(x, y)
        if bits == 16 and processor.rounds:
            return integers.by_quotient(floored, signed, FLOAT, processor, x, where(y == 0, y.constant(1), y))
        return general_formula(signed, floored, processor, x, y)

    by_array = Elementwise((kind, kind), kind, formula, smallest_divisor, kind(-1))
    by_scalar = by_array._replace(prepare=lambda y: (y,))
    if bits <= 16 or not (signed or processor.wide):
        by_scalar = by_multiplier(signed, floored, by_array)
    single = single_integer(signed, floored, kind)
    if bits < 32 or not processor.rounds:
        return zero_raises(by_array), zero_raises(by_scalar), single
    return *if_short(by_array, by_scalar, signed, floored, FLOAT, processor), single


def if_short(
    by_array: Elementwise, by_scalar: Elementwise, signed: bool, floored: bool, number: ir.Type, processor: Processor
) -> tuple[Emit, Emit]:
    """By a formula for short numbers, unless a block has an element that is not."""
    formula = partial(integers.by_quotient, floored, signed, number, processor)
    prepare = partial(integers.prepare_reciprocal, signed, number, processor)
    scalar_bits = integers.SHORT[number] - 1
    if not processor.rounds:
        formula, prepare = partial(integers.in_doubles, floored, signed, processor), partial(integers.prepare_in_doubles, signed, processor)
        scalar_bits = integers.SHORT[number]

    def way(general: Elementwise, bits: int, **others: Any) -> Emit:
        def note(x: Lane, y: Lane, *rest: Lane) -> Lane:
            return integers.note_bits(signed, bits, x, y, rest[-1])

        quick = general._replace(formula=formula, note=note, clear=general.output(0), **others)
        return unless_served(quick, partial(integers.are_short, signed, bits), zero_raises(general))

    return way(by_array, integers.SHORT[number]), way(by_scalar, scalar_bits, prepare=prepare)


def general_formula(signed: bool, floored: bool, processor: Processor, x: Lane, y: Lane) -> Lane:
    divisor = integers.divisor_magnitude(y, signed)
    if x.bits == 64 and not processor.wide:
        _, r = integers.by_halves(absolute(x) if signed else x, divisor, processor)
        return integers.with_signs(floored, r, x, y, divisor) if signed else r
    if not signed:
        return integers.from_below(x, divisor, processor)
    return integers.signed_remainder(floored, integers.centred(x, divisor, processor), x, y, divisor)


def smallest_divisor(x: Lane, y: Lane, *rest: Lane) -> Lane:
    return minimum(rest[-1], y)


def zero_raises(way: Elementwise) -> Emit:
    """A loop that notes the smallest divisor."""
    return lambda builder, places, count: raised(way.loop(builder, places, count) == 0)


def single_integer(signed: bool, floored: bool, kind: ir.IntType) -> Emit:
    way = Elementwise((kind, kind), kind, partial(integers.single_remainder, floored, signed), smallest_divisor, kind(-1))
    return lambda builder, places, count: raised(way.one(builder, places) == 0)


def by_multiplier(signed: bool, floored: bool, by_array: Elementwise) -> Elementwise:
    """By one divisor of up to 16 bits, or of up to 32 unsigned; bytes are computed in lanes of 16 bits."""

    def widened(x: Lane) -> Lane:
        return x.extend(INT16, signed) if x.bits == 8 else x

    def prepare(y: Lane) -> Sequence[Lane]:
        return y, *(integers.prepare_signed if signed else integers.prepare_unsigned)(widened(y))

    def formula(x: Lane, y: Lane, *prepared: Lane) -> Lane:
        wide = widened(x)
        r = integers.by_signed_multiplier(floored, wide, *prepared) if signed else integers.by_multiplier(wide, *prepared)
        return r.low_bits(x.bits)

    return by_array._replace(formula=formula, prepare=prepare)


def wide_ways(signed: bool, floored: bool, kind: ir.IntType, processor: Processor) -> tuple[Emit, Emit, Emit]:
    """Of 64 bits."""
    general = Elementwise((kind, kind), kind, partial(general_formula, signed, floored, processor), smallest_divisor, kind(-1))
    by_scalar = general._replace(prepare=lambda y: (y,))
    return *if_short(general, by_scalar, signed, floored, DOUBLE, processor), single_integer(signed, floored, kind)


def unless_served(quick: Elementwise, serves: Callable[[Lane], Lane], careful: Emit, loop: bool = True) -> Emit:
    """What is quick and, if by its notes it does not serve all elements, what is careful, over the same operands; at once, if the first
    element is not served, for its neighbours will be like it."""

    def emit(builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value) -> Lane:
        first = serves(quick.noted(builder, places))
        start = builder.block
        with builder.if_then(first.value, likely=True):
            notes = quick.loop(builder, places, count) if loop else quick.one(builder, places)
            served, tried = serves(notes).value, builder.block
        both = builder.phi(served.type)
        both.add_incoming(served.type(0), start)
        both.add_incoming(served, tried)
        before = builder.block
        with builder.if_then(builder.not_(both), likely=False):
            flag, inside = careful(builder, places, count).value, builder.block
        result = builder.phi(NOTES)
        result.add_incoming(NOTES(0), before)
        result.add_incoming(flag, inside)
        return Lane(builder, result)

    return emit


# --- floating-point numbers ---
def float_ways(form: floats.Format, floored: bool, processor: Processor) -> tuple[Emit, Emit, Emit]:
    way = floats.Quick(form, floored, processor)
    quick = Elementwise((form.storage, form.storage), form.storage, way.remainder, way.note, way.notes(0))
    careful = as_function("careful", (BYTES, BYTES, BYTES, INDEX), NOTES, partial(carefully, form, floored, processor))

    def serves(notes: Lane) -> Lane:
        return notes == 0

    def by_array(builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value) -> Lane:
        return Lane(builder, careful(builder, *places, count))

    def by_scalar(builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value) -> Lane:
        """The divisor is spread over a block first."""
        divisors = block_of(builder, form.storage)
        spread = Elementwise((form.storage,), form.storage, lambda y: y, prepare=lambda y: (y,))
        spread.loop(builder, (places[1], divisors), count)
        return by_array(builder, (places[0], divisors, places[2]), count)

    return (
        unless_served(quick, serves, by_array),
        unless_served(quick._replace(prepare=way.prepare), serves, by_scalar),
        through_cell(unless_served(quick, serves, by_array, loop=False), form.storage),
    )


def through_cell(single: Emit, kind: ir.Type) -> Emit:
    """One element, whose operands are read to the end before its place in the output is written."""

    def emit(builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value) -> Lane:
        *operands, target = places
        with builder.goto_entry_block():
            cell = builder.bitcast(builder.alloca(kind), BYTES)
        notes = single(builder, [*operands, cell], count)
        Elementwise((kind,), kind, lambda z: z).put(builder, (cell, target))
        return notes

    return emit


def block_of(builder: ir.IRBuilder, kind: ir.Type) -> ir.Value:
    """A block of the stack."""
    with builder.goto_entry_block():
        return builder.bitcast(builder.alloca(ir.ArrayType(kind, FLOAT_BLOCK)), BYTES)


def carefully(
    form: floats.Format, floored: bool, processor: Processor, builder: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value, count: ir.Value
) -> Lane:
    """All elements by one step each; and if there are huge quotients, by as many as they need."""
    way, storage = floats.Careful(form, floored, processor), form.storage
    notes = Elementwise((storage, storage), storage, way.remainder, way.note).loop(builder, (x, y, z), count)
    with builder.if_then((notes >= 1 << 32).value):
        rests = step_by_step(builder, way, storage, x, y, count)
        Elementwise((DOUBLE, storage, storage), storage, way.finish).loop(builder, (rests, x, y, z), count)
    return raised(~((notes & 0xFFFFFFFF) == 0))


def step_by_step(builder: ir.IRBuilder, way: floats.Careful, storage: ir.Type, x: ir.Value, y: ir.Value, count: ir.Value) -> ir.Value:
    """The block of |x| mod |y|. Whenever no more than half of the elements are left, the others make room for them."""
    done, rests, divisors, numbers = (block_of(builder, kind) for kind in (DOUBLE, DOUBLE, DOUBLE, INDEX))
    for operand, block in ((x, rests), (y, divisors)):
        Elementwise((storage,), DOUBLE, way.start).loop(builder, (operand, block), count)
    with counted(builder, count, NOTES(0)) as (index, _, nothing):
        builder.store(index, element(builder, numbers, INDEX, index))
        nothing.add_incoming(nothing, builder.block)

    def settle(length: ir.Value) -> ir.Value:
        """Store the rests; move together what is left, and count it."""
        with counted(builder, length, INDEX(0)) as (index, _, left):
            places = [element(builder, block, kind, index) for block, kind in ((rests, DOUBLE), (divisors, DOUBLE), (numbers, INDEX))]
            rest, divisor, number = map(builder.load, places)
            builder.store(rest, element(builder, done, DOUBLE, number))
            for value, block in ((rest, rests), (divisor, divisors), (number, numbers)):
                builder.store(value, element(builder, block, value.type, left))
            more = way.is_left(Lane(builder, rest), Lane(builder, divisor)).extend(INDEX).value
            following = builder.add(left, more)
            left.add_incoming(following, builder.block)
        return following

    before = builder.block
    again, after = builder.append_basic_block("again"), builder.append_basic_block("finished")
    builder.branch(again)
    builder.position_at_end(again)
    length = builder.phi(INDEX)
    length.add_incoming(count, before)
    step = Elementwise((DOUBLE, DOUBLE), DOUBLE, way.partial_step, way.count_left)
    left = step.loop(builder, (rests, divisors, rests), length)
    halved = (left + left < Lane(builder, builder.add(length, INDEX(1)))).value
    same = builder.block
    with builder.if_then(halved):
        shorter, moved = settle(length), builder.block
    following = builder.phi(INDEX)
    following.add_incoming(length, same)
    following.add_incoming(shorter, moved)
    length.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("==", following, INDEX(0)), after, again)
    builder.position_at_end(after)
    return done


def element(builder: ir.IRBuilder, block: ir.Value, kind: ir.Type, index: ir.Value) -> ir.Value:
    return builder.gep(builder.bitcast(block, kind.as_pointer()), [index])
