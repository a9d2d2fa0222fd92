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
    which it makes what `formula` and `note` are given in its place. Without a formula nothing is written. `width` is the elements of a
    vector, where LLVM does not choose well: LLVM 15 takes conversions of halves for slow.
    """

    inputs: Sequence[ir.Type]
    output: ir.Type
    formula: Callable[..., Lane] | None
    note: Callable[..., Lane] | None = None
    clear: ir.Constant = NOTES(0)
    prepare: Callable[[Lane], Sequence[Lane]] | None = None
    aligned: bool = True
    width: int = 0

    def one(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> Lane:
        """For one element, without a loop; its operands are read once, before the output is written."""
        return self._note(self.put(builder, places))

    def put(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> list[Lane]:
        """The first element alone; its operands."""
        assert self.formula is not None
        lanes = self._first(builder, places)
        builder.store(self.formula(*lanes).value, self._typed(builder, places)[-1], align=size_of(self.output))
        return lanes

    def noted(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> Lane:
        """The notes about the first element."""
        return self._note(self._first(builder, places))

    def _note(self, lanes: Sequence[Lane]) -> Lane:
        assert self.note is not None
        return self.note(*lanes, Lane(lanes[0].builder, self.clear))

    def _first(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> list[Lane]:
        places = self._typed(builder, places)
        lanes = [Lane(builder, builder.load(place, align=size_of(kind))) for place, kind in zip(places, self.inputs, strict=False)]
        return [*lanes[:-1], *self.prepare(lanes[-1])] if self.prepare else lanes

    def _typed(self, builder: ir.IRBuilder, places: Sequence[ir.Value]) -> list[ir.Value]:
        return [builder.bitcast(place, kind.as_pointer()) for place, kind in zip(places, (*self.inputs, self.output), strict=True)]

    def _alignment(self, kind: ir.Type) -> int:
        return size_of(kind) if self.aligned else 1

    def loop(self, builder: ir.IRBuilder, places: Sequence[ir.Value], count: ir.Value, vectors: int = 2) -> Lane:
        """The loop at the builder's place, so many vectors at a time; the notes."""
        *places, target = self._typed(builder, places)
        uniform: Sequence[Lane] = ()
        if self.prepare:
            uniform = self.prepare(Lane(builder, builder.load(places.pop(), align=self._alignment(self.inputs[-1]))))
        with counted(builder, count, self.clear, vectors=vectors, width=self.width) as (index, group, notes):
            lanes = []
            for place, kind in zip(places, self.inputs, strict=False):
                load = builder.load(builder.gep(place, [index]), align=self._alignment(kind))
                load.set_metadata("llvm.access.group", group)
                lanes.append(Lane(builder, load))
            noted = self.note(*lanes, *uniform, Lane(builder, notes)).value if self.note else notes
            if self.formula:
                result = self.formula(*lanes, *uniform).value
                store = builder.store(result, builder.gep(target, [index]), align=self._alignment(self.output))
                store.set_metadata("llvm.access.group", group)
            notes.add_incoming(noted, builder.block)
        return Lane(builder, noted)


@contextmanager
def counted(
    builder: ir.IRBuilder, count: ir.Value, clear: ir.Value, first: ir.Value = START, unroll: bool = False, vectors: int = 2, width: int = 0
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
    if not unroll:  # so many vectors at a time, and what the vectoriser leaves over one by one
        hints += [("llvm.loop.interleave.count", ir.IntType(32)(vectors)), ("llvm.loop.unroll.disable",)]
    if width:
        hints += [("llvm.loop.vectorize.width", ir.IntType(32)(width))]
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


def one_by_one(single: Callable[[ir.IRBuilder, Sequence[ir.Value], ir.Value], Lane]) -> Any:
    """A Numba intrinsic (three times a pointer and a step in bytes; number of elements, not 0) -> notes. `single` reads both operands
    before it writes, and counts the elements that it notes."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        with counted(builder, values[-1], NOTES(0), unroll=True) as (index, _, notes):
            places = [builder.gep(place, [builder.mul(index, step)]) for place, step in zip(values[:-1:2], values[1::2], strict=True)]
            noted = builder.add(notes, single(builder, places, INDEX(1)).value)
            notes.add_incoming(noted, builder.block)
        return noted

    arguments = (types.voidptr, types.intp) * 3 + (types.intp,)
    return intrinsic(lambda typing, x, step_x, y, step_y, z, step_z, n: (types.int64(*arguments), generate))


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
