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

INDEX = ir.IntType(types.intp.bitwidth)
NOTES = ir.IntType(64)


class _Distinct(ir.values.MDValue):
    """A metadata node that is equal to itself alone; a loop's names itself first."""

    def __init__(self, module: ir.Module, values: Sequence[Any], of_loop: bool):
        self.of_loop = of_loop
        super().__init__(module, values, name=str(len(module.metadata)))

    __eq__, __hash__ = object.__eq__, object.__hash__  # type: ignore[assignment]

    def descr(self, buf: list[str]) -> None:
        nodes = [self, *self.operands] if self.of_loop else self.operands
        buf += (f"distinct !{{ {', '.join(node.get_reference() for node in nodes)} }}", "\n")


class Elementwise(NamedTuple):
    """`output[i] = formula(*inputs[i])`, and notes about the elements, for a number of elements that is not 0.

    `note(*inputs, notes)` updates the notes, which begin as `clear`. With `prepare` the last input is one value for all elements, from which
    it makes what `formula` and `note` are given in its place.
    """

    inputs: Sequence[ir.Type]
    output: ir.Type | None = None
    formula: Callable[..., Lane] | None = None
    note: Callable[..., Lane] | None = None
    clear: ir.Constant = ir.Constant(NOTES, 0)
    prepare: Callable[[Lane], Sequence[Lane]] | None = None

    def emit(self, builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value) -> ir.Value:
        """The loop at the builder's place; the notes."""
        kinds = [*self.inputs, *([self.output] if self.output else [])]
        places = [builder.bitcast(place, kind.as_pointer()) for place, kind in zip(places, kinds, strict=True)]
        varying = len(self.inputs) - (self.prepare is not None)
        uniform = self.prepare(Lane(builder, builder.load(places[varying], align=_size(kinds[varying])))) if self.prepare else ()
        with _counted(builder, count, self.clear) as (index, group, notes):
            lanes = []
            for place, kind in zip(places[:varying], kinds, strict=False):
                load = builder.load(builder.gep(place, [index]), align=_size(kind))
                load.set_metadata("llvm.access.group", group)
                lanes.append(Lane(builder, load))
            noted = self.note(*lanes, *uniform, Lane(builder, notes)).value if self.note else notes
            if self.formula:
                result = self.formula(*lanes, *uniform).value
                store = builder.store(result, builder.gep(places[-1], [index]), align=_size(kinds[-1]))
                store.set_metadata("llvm.access.group", group)
            notes.add_incoming(noted, builder.block)
        return noted


@contextmanager
def _counted(builder: ir.IRBuilder, count: ir.Value, clear: ir.Value, unroll: bool = False) -> Iterator[tuple[ir.Value, ir.Value, ir.PhiInstr]]:
    """A loop whose body is what the builder emits: the index, the group that its loads and stores belong to, and the notes."""
    group = _Distinct(builder.module, (), of_loop=False)
    before, body, after = builder.block, builder.append_basic_block("each"), builder.append_basic_block("after")
    builder.branch(body)
    builder.position_at_end(body)
    index, notes = builder.phi(INDEX), builder.phi(clear.type)
    index.add_incoming(INDEX(0), before)
    notes.add_incoming(clear, before)
    yield index, group, notes
    following = builder.add(index, INDEX(1), flags=("nuw", "nsw"))
    index.add_incoming(following, body)
    branch = builder.cbranch(builder.icmp_unsigned("<", following, count), body, after)
    hints: list[tuple[Any, ...]] = [("llvm.loop.parallel_accesses", group)]
    if not unroll:  # two vectors at a time, and what the vectoriser leaves over one by one
        hints += [("llvm.loop.interleave.count", ir.IntType(32)(2)), ("llvm.loop.unroll.disable",)]
    module = builder.module
    nodes = [module.add_metadata([ir.MetaDataString(module, name), *values]) for name, *values in hints]
    branch.set_metadata("llvm.loop", _Distinct(module, nodes, of_loop=True))
    builder.position_at_end(after)


def _size(kind: ir.Type) -> int:
    return Lane(None, ir.Constant(kind, 0)).bits // 8


def as_intrinsic(emit: Callable[[ir.IRBuilder, Sequence[ir.Value], ir.Value], ir.Value], pointers: int) -> Any:
    """A Numba intrinsic (pointer, …, number of elements) -> notes."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        notes = emit(builder, values[:-1], values[-1])
        return notes if notes.type == NOTES else builder.zext(notes, NOTES)

    typed = types.int64(*[types.voidptr] * pointers, types.intp), generate
    two_to_four: list[Callable[..., Any]] = [
        lambda typing, x, z, n: typed, lambda typing, x, y, z, n: typed, lambda typing, w, x, y, z, n: typed]  # fmt: skip
    return intrinsic(two_to_four[pointers - 2])



def copier(bits: int) -> Any:
    """A Numba intrinsic (pointer, step in bytes, pointer, step, number of elements, not 0) that copies elements of that many bits between
    places that do not overlap. It is one function in a module, with vector loops for steps of one element, forwards and backwards, and (to read)
    of none."""
    size = bits // 8
    steps = [(size, size), (0, size), (-size, size), (size, -size)]

    def define(module: ir.Module) -> ir.Function:
        name = f"copy_{bits}"
        if name in module.globals:
            return module.globals[name]
        pointer = ir.IntType(8).as_pointer()
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, INDEX, pointer, INDEX, INDEX]), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        place, step, target, target_step, count = function.args
        builder = ir.IRBuilder(function.append_basic_block())
        for known, target_known in steps:
            fits = builder.and_(builder.icmp_signed("==", step, INDEX(known)), builder.icmp_signed("==", target_step, INDEX(target_known)))
            with builder.if_then(fits):
                _copy(builder, bits, place, INDEX(known), target, INDEX(target_known), count)
                builder.ret_void()
        _copy(builder, bits, place, step, target, target_step, count)
        builder.ret_void()
        return function

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        builder.call(define(builder.module), values)
        return context.get_dummy_value()

    signature = types.none(types.voidptr, types.intp, types.voidptr, types.intp, types.intp)
    return intrinsic(lambda typing, place, step, target, target_step, count: (signature, generate))


def _copy(builder: ir.IRBuilder, bits: int, place: ir.Value, step: ir.Value, target: ir.Value, target_step: ir.Value, count: ir.Value) -> None:
    kind = ir.IntType(bits)

    def element(base: ir.Value, step: ir.Value, index: ir.Value) -> ir.Value:
        return builder.bitcast(builder.gep(base, [builder.mul(index, step)]), kind.as_pointer())

    with _counted(builder, count, NOTES(0), unroll=True) as (index, group, notes):
        load = builder.load(element(place, step, index), align=bits // 8)
        store = builder.store(load, element(target, target_step, index), align=bits // 8)
        load.set_metadata("llvm.access.group", group)
        store.set_metadata("llvm.access.group", group)
        notes.add_incoming(notes, builder.block)
