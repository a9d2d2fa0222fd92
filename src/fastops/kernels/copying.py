"""Copies between memory of any steps: into, and out of, the blocks in which loops compute what does not lie contiguously."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

from .elementwise import INDEX, NOTES, START, as_function, counted, size_of
from .primitives import BYTES

Steps = tuple[ir.Value, ir.Value]  # a pointer, and the step in bytes from element to element


def copier(bits: int) -> Any:
    """A Numba intrinsic (pointer, step in bytes, pointer, step, number of elements, not 0) that copies elements of that many bits between
    places that do not overlap. Steps of one element, forwards and backwards, and (to read) of none and of two have vector loops; from
    other steps to one element, vectors are put together."""
    size, kind = bits // 8, ir.IntType(bits)

    def emit(builder: ir.IRBuilder, place: ir.Value, step: ir.Value, target: ir.Value, target_step: ir.Value, count: ir.Value) -> None:
        for known, target_known in [(size, size), (0, size), (-size, size), (size, -size), (2 * size, size)]:
            fits = builder.and_(builder.icmp_signed("==", step, INDEX(known)), builder.icmp_signed("==", target_step, INDEX(target_known)))
            with builder.if_then(fits):
                to = target, INDEX(target_known)
                first = _every_other(builder, kind, place, to, count) if known == 2 * size else START
                _copy(builder, kind, (place, INDEX(known)), to, first, count)
                builder.ret_void()
        with builder.if_then(builder.icmp_signed("==", target_step, INDEX(size))):
            to = target, INDEX(size)
            _copy(builder, kind, (place, step), to, _gathered(builder, kind, (place, step), to, count), count)
            builder.ret_void()
        _copy(builder, kind, (place, step), (target, target_step), START, count)

    copy = as_function("copy", (BYTES, INDEX, BYTES, INDEX, INDEX), ir.VoidType(), emit)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        copy(builder, *values)
        return context.get_dummy_value()

    signature = types.none(types.voidptr, types.intp, types.voidptr, types.intp, types.intp)
    return intrinsic(lambda typing, place, step, target, target_step, count: (signature, generate))


def _copy(builder: ir.IRBuilder, kind: ir.IntType, source: Steps, target: Steps, first: ir.Value, count: ir.Value) -> None:
    with counted(builder, count, NOTES(0), first, unroll=True) as (index, group, notes):
        load = builder.load(_at(builder, source, index, kind), align=size_of(kind))
        store = builder.store(load, _at(builder, target, index, kind), align=size_of(kind))
        load.set_metadata("llvm.access.group", group)
        store.set_metadata("llvm.access.group", group)
        notes.add_incoming(notes, builder.block)


def _every_other(builder: ir.IRBuilder, kind: ir.IntType, place: ir.Value, target: Steps, count: ir.Value) -> ir.Value:
    """Elements that are two apart by vectors of 64 bytes, as long as the elements between them exist. (LLVM takes them one by one.)"""
    size = size_of(kind)
    lanes = 64 // size
    pairs = ir.VectorType(kind, 2 * lanes)
    even = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(0, 2 * lanes, 2)))

    def vector(index: ir.Value) -> ir.Value:
        load = builder.load(_at(builder, (place, INDEX(2 * size)), index, pairs), align=size)
        return builder.shuffle_vector(load, pairs(ir.Undefined), even)

    return _by_vectors(builder, vector, ir.VectorType(kind, lanes), target, count)


def _gathered(builder: ir.IRBuilder, kind: ir.IntType, source: Steps, target: Steps, count: ir.Value) -> ir.Value:
    """Elements that are any step apart, put together to vectors of 16 bytes: one store in place of many."""
    lanes = 16 // size_of(kind)
    kinds = ir.VectorType(kind, lanes)

    def vector(index: ir.Value) -> ir.Value:
        first, together = builder.gep(source[0], [builder.mul(index, source[1])]), kinds(ir.Undefined)
        for lane in range(lanes):
            load = builder.load(_at(builder, (first, source[1]), INDEX(lane), kind), align=size_of(kind))
            together = builder.insert_element(together, load, ir.IntType(32)(lane))
        return together

    return _by_vectors(builder, vector, kinds, target, count)


def _by_vectors(
    builder: ir.IRBuilder, vector: Callable[[ir.Value], ir.Value], kinds: ir.VectorType, target: Steps, count: ir.Value
) -> ir.Value:
    """Write vectors of elements while there are more elements than a vector has; how many were written, less than all."""
    lanes, size = INDEX(kinds.count), size_of(kinds.element)
    before, body, after = builder.block, builder.append_basic_block("vectors"), builder.append_basic_block("rest")
    builder.cbranch(builder.icmp_unsigned(">", count, lanes), body, after)
    builder.position_at_end(body)
    index = builder.phi(INDEX)
    builder.store(vector(index), _at(builder, target, index, kinds), align=size)
    following = builder.add(index, lanes)
    index.add_incoming(START, before)
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("<", builder.add(following, lanes), count), body, after)
    builder.position_at_end(after)
    written = builder.phi(INDEX)
    written.add_incoming(START, before)
    written.add_incoming(following, body)
    return written


def _at(builder: ir.IRBuilder, where: Steps, index: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.bitcast(builder.gep(where[0], [builder.mul(index, where[1])]), kind.as_pointer())
