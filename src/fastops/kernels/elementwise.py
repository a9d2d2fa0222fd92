"""Loops over the elements of arrays as LLVM's vectoriser wants them: one block, addresses that only count up, and the promise that no
element depends on another.

The promise is made by metadata ("llvm.loop.parallel_accesses"), for a test of overlapping memory would send calls in place to a scalar
loop. Those who run a loop keep it: an output overlaps an input cell by cell or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

from .lanes import Lane
from .primitives import BYTES

INDEX = ir.IntType(types.intp.bitwidth)
NOTES = ir.IntType(64)
START = INDEX(0)


class _Distinct(ir.values.MDValue):  # type: ignore[misc]
    """A metadata node that is equal to itself alone; a loop's names itself first."""

    def __init__(self, module: ir.Module, values: Sequence[Any], of_loop: bool):
        self.of_loop = of_loop
        super().__init__(module, values, name=str(len(module.metadata)))

    __eq__, __hash__ = object.__eq__, object.__hash__

    def descr(self, buf: list[str]) -> None:
        nodes = [self, *self.operands] if self.of_loop else self.operands
        buf += (f"distinct !{{ {', '.join(node.get_reference() for node in nodes)} }}", "\n")


class Elementwise(NamedTuple):
    """`output[i] = formula(*inputs[i])`, and notes about the elements, for a number of elements that is not 0.

    `note(*inputs, notes)` updates the notes, which begin as `clear`. With `prepare` the last input is one value for all elements, from
    which it makes what `formula` and `note` are given in its place.
    """

    inputs: Sequence[ir.Type]
    output: ir.Type
    formula: Callable[..., Lane]
    note: Callable[..., Lane] | None = None
    clear: ir.Constant = NOTES(0)
    prepare: Callable[[Lane], Sequence[Lane]] | None = None

    def one(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> Lane:
        """For one element, without a loop."""
        target = self._typed(builder, places)[-1]
        builder.store(self.formula(*self._first(builder, places)).value, target, align=size_of(self.output))
        return self.noted(builder, places)

    def noted(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> Lane:
        """The notes about the first element."""
        assert self.note is not None
        return self.note(*self._first(builder, places), Lane(builder, self.clear))

    def _first(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> list[Lane]:
        places = self._typed(builder, places)
        lanes = [Lane(builder, builder.load(place, align=size_of(kind))) for place, kind in zip(places, self.inputs, strict=False)]
        return [*lanes[:-1], *self.prepare(lanes[-1])] if self.prepare else lanes

    def _typed(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> list[ir.Value]:
        return [builder.bitcast(place, kind.as_pointer()) for place, kind in zip(places, (*self.inputs, self.output), strict=True)]

    def loop(self, builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value) -> Lane:
        """The loop at the builder's place; the notes."""
        *places, target = self._typed(builder, places)
        uniform: Sequence[Lane] = ()
        if self.prepare:
            uniform = self.prepare(Lane(builder, builder.load(places.pop(), align=size_of(self.inputs[-1]))))
        with counted(builder, count, self.clear) as (index, group, notes):
            lanes = []
            for place, kind in zip(places, self.inputs, strict=False):
                load = builder.load(builder.gep(place, [index]), align=size_of(kind))
                load.set_metadata("llvm.access.group", group)
                lanes.append(Lane(builder, load))
            noted = self.note(*lanes, *uniform, Lane(builder, notes)).value if self.note else notes
            store = builder.store(self.formula(*lanes, *uniform).value, builder.gep(target, [index]), align=size_of(self.output))
            store.set_metadata("llvm.access.group", group)
            notes.add_incoming(noted, builder.block)
        return Lane(builder, noted)


@contextmanager
def counted(
    builder: ir.IRBuilder, count: ir.Value, clear: ir.Value, first: ir.Value = START, unroll: bool = False
) -> Iterator[tuple[ir.Value, ir.Value, ir.PhiInstr]]:
    """A loop whose body is what the builder emits: the index, the group that its loads and stores belong to, and the notes."""
    group = _Distinct(builder.module, (), of_loop=False)
    before, body, after = builder.block, builder.append_basic_block("each"), builder.append_basic_block("after")
    builder.branch(body)
    builder.position_at_end(body)
    index, notes = builder.phi(INDEX), builder.phi(clear.type)
    index.add_incoming(first, before)
    notes.add_incoming(clear, before)
    yield index, group, notes
    following = builder.add(index, INDEX(1), flags=("nuw", "nsw"))
    index.add_incoming(following, builder.block)
    branch = builder.cbranch(builder.icmp_unsigned("<", following, count), body, after)
    hints: list[tuple[Any, ...]] = [("llvm.loop.parallel_accesses", group)]
    if not unroll:  # two vectors at a time, and what the vectoriser leaves over one by one
        hints += [("llvm.loop.interleave.count", ir.IntType(32)(2)), ("llvm.loop.unroll.disable",)]
    module = builder.module
    nodes = [module.add_metadata([ir.MetaDataString(module, name), *values]) for name, *values in hints]
    branch.set_metadata("llvm.loop", _Distinct(module, nodes, of_loop=True))
    builder.position_at_end(after)


def size_of(kind: ir.Type) -> int:
    return Lane(None, ir.Constant(kind, 0)).bits // 8


def as_intrinsic(emit: Callable[[ir.IRBuilder, Sequence[ir.Value], ir.Value], Lane]) -> Any:
    """A Numba intrinsic (three pointers, number of elements) -> notes."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        return emit(builder, values[:-1], values[-1]).value

    pointer = types.voidptr
    return intrinsic(lambda typing, x, y, z, n: (types.int64(pointer, pointer, pointer, types.intp), generate))


def as_function(name: str, kinds: Sequence[ir.Type], result: ir.Type, emit: Callable[..., Lane | None]) -> Callable[..., ir.Value]:
    """What emits a call of a function of the module, which is defined, by `emit(builder, *arguments)`, when it is first called."""

    def call(builder: ir.IRBuilder, *arguments: ir.Value) -> ir.Value:
        module = builder.module
        if name not in module.globals:
            function = ir.Function(module, ir.FunctionType(result, kinds), name)
            function.linkage = "internal"
            function.attributes.add("noinline")
            inside = ir.IRBuilder(function.append_basic_block())
            returned = emit(inside, *function.args)
            inside.ret(returned.value) if returned else inside.ret_void()
        return builder.call(module.globals[name], arguments)

    return call


Steps = tuple[ir.Value, ir.Value]  # a pointer, and the step in bytes from element to element


def copier(bits: int) -> Any:
    """A Numba intrinsic (pointer, step in bytes, pointer, step, number of elements, not 0) that copies elements of that many bits between
    places that do not overlap. Steps of one element, forwards and backwards, and (to read) of none and of two have vector loops."""
    size, kind = bits // 8, ir.IntType(bits)

    def emit(builder: ir.IRBuilder, place: ir.Value, step: ir.Value, target: ir.Value, target_step: ir.Value, count: ir.Value) -> None:
        for known, target_known in [(size, size), (0, size), (-size, size), (size, -size), (2 * size, size)]:
            fits = builder.and_(builder.icmp_signed("==", step, INDEX(known)), builder.icmp_signed("==", target_step, INDEX(target_known)))
            with builder.if_then(fits):
                to = target, INDEX(target_known)
                first = _every_other(builder, kind, place, to, count) if known == 2 * size else START
                _copy(builder, kind, (place, INDEX(known)), to, first, count)
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
    """Copy elements that are two apart by vectors of 64 bytes, as long as the elements between them exist; how many were copied, less than
    all. (LLVM's vectoriser takes them one by one.)"""
    size = size_of(kind)
    lanes = 64 // size
    pairs, vector = ir.VectorType(kind, 2 * lanes), ir.VectorType(kind, lanes)
    even = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(0, 2 * lanes, 2)))
    before, body, after = builder.block, builder.append_basic_block("pairs"), builder.append_basic_block("rest")
    builder.cbranch(builder.icmp_unsigned(">", count, INDEX(lanes)), body, after)
    builder.position_at_end(body)
    index = builder.phi(INDEX)
    load = builder.load(_at(builder, (place, INDEX(2 * size)), index, pairs), align=size)
    builder.store(builder.shuffle_vector(load, pairs(ir.Undefined), even), _at(builder, target, index, vector), align=size)
    following = builder.add(index, INDEX(lanes))
    index.add_incoming(START, before)
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("<", builder.add(following, INDEX(lanes)), count), body, after)
    builder.position_at_end(after)
    copied = builder.phi(INDEX)
    copied.add_incoming(START, before)
    copied.add_incoming(following, body)
    return copied


def _at(builder: ir.IRBuilder, where: Steps, index: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.bitcast(builder.gep(where[0], [builder.mul(index, where[1])]), kind.as_pointer())
