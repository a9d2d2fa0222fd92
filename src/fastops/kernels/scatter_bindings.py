# mypy: ignore-errors
"""What the template of scatter_division.py are given for one dtype: typed memory, and the formulas for elements, fours and runs of them."""

from functools import reduce
from types import FunctionType
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.extending import intrinsic

from . import scatter_division
from .division import Division, Formula, of_dtype
from .elementwise import Elementwise
from .lanes import INT32, Lane, Processor, operation, where
from .primitives import inlined, reader, writer


def note_zero(y: Lane, found: Lane) -> Lane:
    return found | where(y == 0, y.constant(1), 0)


def no_zero(y: Lane, found: Lane) -> Lane:
    """Floats are not asked."""
    return found


def names(dtype: str, processor: Processor) -> dict[str, Any]:
    """The names in `scatter_division.divide` for one dtype."""
    way = of_dtype(dtype, processor)
    integer = "int" in dtype
    kind = {"float64": types.float64, "float32": types.float32}.get(dtype, types.uint16)
    if integer:
        kind = getattr(types, f"u{dtype.lstrip('u')}")
    size, quotient = kind.bitwidth // 8, operation(way.single, kind, kind, kind)
    names = {
        "SIZE": size,
        "LONG": 256 // size,  # elements from which two vectors at a time are worth their longer rest
        "NOTHING": np.dtype(kind.name).type(0),
        "read": reader(kind, aligned=False),
        "write": writer(kind, aligned=False),
        "quotient": quotient,
        "next_quotient": of_one(way.single, kind) if integer and dtype[0] != "u" else quotient,
        "note": operation(way.note or no_note, types.uint32, kind, kind, types.uint32),
        "are_four": are_four,
        "divide_four": four_in_place(way),
        "by_array": in_place(way, 2),
        "by_short_array": in_place(way, 1),
        "by_scalar": in_place(way, 1, by_scalar=True),
        "note_zero": operation(note_zero if integer else no_zero, kind, kind, kind),
    }
    for part in (scatter_division.divide_one, scatter_division.divide_singly, scatter_division.any_zero, scatter_division.divide_rows):
        names[part.__name__] = inlined(FunctionType(part.__code__, {**part.__globals__, **names}))
    return names


def of_one(careful: Formula, kind: Any) -> Any:
    """A Numba intrinsic x, y -> x / y of one signed integer: by the processor's instruction at once, and carefully where it could trap. A
    choice between two results, in place of the branch, would be one more link in a chain of updates of one row; and a branch for -1 would
    be guessed wrongly where the signs of divisors change."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        x, y = (Lane(builder, value) for value in values)
        with builder.if_else(((y == 0) | (x == 1 << x.bits - 1)).value, likely=False) as (then, otherwise):
            with then:
                seldom, first = careful(x, y).value, builder.block
            with otherwise:
                mostly, second = x.over(y).value, builder.block
        result = builder.phi(x.type)
        result.add_incoming(seldom, first)
        result.add_incoming(mostly, second)
        return result

    return intrinsic(lambda typing, x, y: (kind(kind, kind), generate))


def in_place(division: Division, vectors: int, by_scalar: bool = False) -> Any:
    """A Numba intrinsic (pointer, pointer, number of elements, not 0) -> notes: the first operand is the output too."""
    note, width = division.note or no_note, division.width
    way = Elementwise((division.kind,) * 2, division.kind, division.lanes, note, INT32(0), aligned=False, width=width)
    if by_scalar:
        way = way._replace(prepare=lambda y: (y,))

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        x, u, n = values
        if division.short is None:
            return way.loop(builder, (x, u, x), n, vectors).value
        note_long, short = division.short
        seen = way._replace(formula=None, note=note_long, clear=division.kind(0)).loop(builder, (x, u, x), n, vectors)
        with builder.if_else((seen == 0).value) as (then, otherwise):
            with then:
                way._replace(formula=short).loop(builder, (x, u, x), n, vectors)
            with otherwise:
                way.loop(builder, (x, u, x), n, vectors)
        return INT32(0)

    return intrinsic(lambda typing, x, u, n: (types.uint32(types.voidptr, types.voidptr, types.intp), generate))


def four_in_place(division: Division) -> Any:
    """A Numba intrinsic (pointer, four offsets, pointer, four offsets) -> notes: four different elements by four others."""
    kinds, note = ir.VectorType(division.kind, 4), division.note or no_note

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        places = [
            [builder.bitcast(builder.gep(values[first], [offset]), division.kind.as_pointer()) for offset in values[first + 1 : first + 5]]
            for first in (0, 5)
        ]
        x, u = (Lane(builder, _together(builder, [builder.load(place, align=1) for place in four])) for four in places)

        def put(result: Lane) -> None:
            for lane, place in enumerate(places[0]):
                builder.store(builder.extract_element(result.value, INT32(lane)), place, align=1)

        if division.short is None:
            put(division.lanes(x, u))
        else:
            note_long, short = division.short
            seen = _any(note_long(x, u, Lane(builder, ir.Constant(kinds, [0] * 4))))
            with builder.if_else((seen == 0).value) as (then, otherwise):
                with then:
                    put(short(x, u))
                with otherwise:
                    put(division.single(x, u))
        return _any(note(x, u, Lane(builder, ir.Constant(ir.VectorType(INT32, 4), [0] * 4)))).value

    signature = types.uint32(*(types.voidptr, *[types.intp] * 4) * 2)
    return intrinsic(lambda typing, x, x0, x1, x2, x3, u, u0, u1, u2, u3: (signature, generate))


@intrinsic
def are_four(typing: Any, row_0: Any, row_1: Any, row_2: Any, row_3: Any, last: Any) -> Any:
    """Whether four rows differ from each other, and are none below 0 or above the last."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        *rows, last = values
        four, lasts = _together(builder, rows), _together(builder, [last] * 4)
        turned = (
            builder.shuffle_vector(four, four, ir.Constant(ir.VectorType(INT32, 4), [(k + turn) % 4 for k in range(4)])) for turn in (1, 2)
        )
        same = builder.or_(*(builder.icmp_signed("==", four, other) for other in turned))
        outside = builder.icmp_signed("<", builder.or_(four, builder.sub(lasts, four)), ir.Constant(four.type, [0] * 4))
        wrong = builder.bitcast(builder.or_(same, outside), ir.IntType(4))
        return builder.icmp_signed("==", wrong, ir.IntType(4)(0))

    return types.boolean(*[types.intp] * 5), generate


def no_note(x: Lane, y: Lane, notes: Lane) -> Lane:
    return notes


def _together(builder: ir.IRBuilder, values: list[ir.Value]) -> ir.Value:
    """A vector of them."""
    vector = ir.VectorType(values[0].type, len(values))(ir.Undefined)
    for lane, value in enumerate(values):
        vector = builder.insert_element(vector, value, INT32(lane))
    return vector


def _any(vector: Lane) -> Lane:
    """All the bits that any value of the vector has."""
    values = [Lane(vector.builder, vector.builder.extract_element(vector.value, INT32(lane))) for lane in range(vector.count)]
    return reduce(Lane.__or__, values)
