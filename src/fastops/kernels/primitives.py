# mypy: disable-error-code="untyped-decorator, no-any-return"
"""What Numba's Python cannot say: typed memory by address, and calls by address."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

WORD = types.intp
BYTES = ir.IntType(8).as_pointer()
INT32 = ir.IntType(32)

# Of a part of another function: nobody else calls it, so that it needs no wrapper, which would take as long to compile. Numba compiles it
# anew for each constant among its arguments, and faster code than LLVM makes of a constant that it finds in a variable.
inlined = njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")

# --- typed memory ---


@intrinsic
def pointer(typing: Any, address: Any) -> Any:
    """The address (an integer) as a pointer."""
    return types.voidptr(WORD), lambda context, builder, signature, values: builder.inttoptr(values[0], BYTES)


@intrinsic
def address(typing: Any, place: Any) -> Any:
    """The pointer as an integer."""
    return WORD(types.voidptr), lambda context, builder, signature, values: builder.ptrtoint(values[0], ir.IntType(WORD.bitwidth))


def _cell(context: Any, builder: ir.IRBuilder, kind: types.Type, place: ir.Value, offset: ir.Value) -> ir.Value:
    return builder.bitcast(builder.gep(place, [offset]), context.get_value_type(kind).as_pointer())


def reader(kind: types.Type, aligned: bool = True) -> Any:
    """An intrinsic (pointer, offset in bytes) -> kind."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        return builder.load(_cell(context, builder, kind, *values), align=kind.bitwidth // 8 if aligned else 1)

    return intrinsic(lambda typing, place, offset: (kind(types.voidptr, WORD), generate))


def writer(kind: types.Type, aligned: bool = True) -> Any:
    """An intrinsic (pointer, offset in bytes, kind) that stores."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        builder.store(values[2], _cell(context, builder, kind, values[0], values[1]), align=kind.bitwidth // 8 if aligned else 1)
        return context.get_dummy_value()

    return intrinsic(lambda typing, place, offset, value: (types.none(types.voidptr, WORD, kind), generate))


read_word, write_word = reader(WORD), writer(WORD)


def _prefetcher(to_write: int) -> Any:
    """An intrinsic (pointer, offset in bytes) that has the cache line there brought nearer, if there is any memory; to be written, it is
    taken from other cores as well."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        kind = ir.FunctionType(ir.VoidType(), [BYTES, INT32, INT32, INT32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [builder.gep(values[0], [values[1]]), INT32(to_write), INT32(3), INT32(1)])  # data, soon again
        return context.get_dummy_value()

    return intrinsic(lambda typing, place, offset: (types.none(types.voidptr, WORD), generate))


prefetch, prefetch_to_write = _prefetcher(0), _prefetcher(1)


def transposer(bits: int, side: int) -> Any:
    """An intrinsic (from, its stride, to, its stride) that copies a square of `side` by `side` items of so many bits, rows to columns.

    `side` is a power of two: perfect shuffles of all rows, as many as it has bits, exchange the two halves of an item's number.
    """
    row = ir.VectorType(ir.IntType(bits), side)
    low, high = ([ir.Constant(INT32, half + k // 2 + k % 2 * side) for k in range(side)] for half in (0, side // 2))

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        def row_at(base: ir.Value, stride: ir.Value, k: int) -> ir.Value:
            return builder.bitcast(builder.gep(base, [builder.mul(stride, ir.Constant(stride.type, k))]), row.as_pointer())

        rows = [builder.load(row_at(values[0], values[1], k), align=bits // 8) for k in range(side)]
        for _ in range(side.bit_length() - 1):
            pairs = zip(rows[: side // 2], rows[side // 2 :], strict=True)
            rows = [builder.shuffle_vector(*pair, ir.Constant(ir.VectorType(INT32, side), part)) for pair in pairs for part in (low, high)]
        for k in range(side):
            builder.store(rows[k], row_at(values[2], values[3], k), align=bits // 8)
        return context.get_dummy_value()

    return intrinsic(lambda typing, source, stride, target, target_stride: (types.none(types.voidptr, WORD, types.voidptr, WORD), generate))


def scratch(size: int) -> Any:
    """An intrinsic () -> pointer to `size` bytes of the function's stack: memory that nothing else can overlap."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        with builder.goto_entry_block():  # not `cgutils.alloca_once`, which fills it with zeros, element by element
            memory = builder.alloca(ir.ArrayType(ir.IntType(8), size))
        memory.align = 64
        return builder.bitcast(memory, BYTES)

    return intrinsic(lambda typing: (types.voidptr(), generate))


def _atomic(operation: str) -> Any:
    """An intrinsic (address, value): put value and the word there together in one step; the word before."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        word = ir.IntType(WORD.bitwidth)
        return builder.atomic_rmw(operation, builder.inttoptr(values[0], word.as_pointer()), values[1], "seq_cst")

    return intrinsic(lambda typing, place, value: (WORD(WORD, WORD), generate))


add_atomically, or_atomically, exchange = (_atomic(operation) for operation in ("add", "or", "xchg"))


@intrinsic
def read_atomically(typing: Any, place: Any) -> Any:
    """The word at an address, and after it what others wrote before they wrote it."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        word = ir.IntType(WORD.bitwidth)
        return builder.load_atomic(builder.inttoptr(values[0], word.as_pointer()), "acquire", WORD.bitwidth // 8)

    return WORD(WORD), generate


@intrinsic
def claim(typing: Any, place: Any, value: Any) -> Any:
    """Write value to the word at an address if it is 0, in one step; the word before."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        pointer = builder.inttoptr(values[0], ir.IntType(WORD.bitwidth).as_pointer())
        pair = builder.cmpxchg(pointer, ir.Constant(values[1].type, 0), values[1], "seq_cst", "seq_cst")
        return builder.extract_value(pair, 0)

    return WORD(WORD, WORD), generate


def emit_call(builder: ir.IRBuilder, place: ir.Value, result: ir.Type, parameters: Any, words: Any) -> ir.Value:
    """A call of the C function at an address with words, which are cut to its parameters; its result as a word."""
    function = builder.inttoptr(place, ir.FunctionType(result, parameters).as_pointer())
    value = builder.call(function, [builder.trunc(word, kind) for word, kind in zip(words, parameters, strict=True)])
    word = ir.IntType(WORD.bitwidth)
    return ir.Constant(word, 0) if isinstance(result, ir.VoidType) else builder.sext(value, word)


def caller(result: ir.Type, *parameters: ir.Type) -> Any:
    """An intrinsic (address, words …) -> word: call the C function at that address, which has this signature."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        return emit_call(builder, values[0], result, parameters, values[1:])

    return words_to_word(len(parameters), generate)


def words_to_word(others: int, generate: Any) -> Any:
    """An intrinsic of a word and so many others, that gives a word."""
    typed = WORD(*[WORD] * (1 + others)), generate
    return intrinsic((
        lambda typing, place: typed,
        lambda typing, place, a: typed,
        lambda typing, place, a, b: typed,
        lambda typing, place, a, b, c: typed,
        lambda typing, place, a, b, c, d: typed,
    )[others])  # fmt: skip


_word = ir.IntType(WORD.bitwidth)
call_loop = caller(ir.VoidType(), *[_word] * 4)  # by NumPy's signature: addresses of arguments, dimensions and steps, and its data


@intrinsic
def overlaps(typing: Any, start: Any, step: Any, out: Any, out_step: Any, length: Any, size: Any) -> Any:
    """Whether `length` elements at the address `start` may share memory, by their extents, with those at `out`, otherwise than cell by
    cell. (In LLVM's terms, for Numba takes long to compile the same in Python.)"""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        start, step, out, out_step, length, size = values

        def extent(start: ir.Value, step: ir.Value) -> tuple[ir.Value, ir.Value]:
            last = builder.add(start, builder.mul(step, builder.sub(length, ir.Constant(length.type, 1))))
            backwards = builder.icmp_signed("<", step, ir.Constant(step.type, 0))
            return builder.select(backwards, last, start), builder.add(builder.select(backwards, start, last), size)

        def shorter(step: ir.Value) -> ir.Value:
            """Whether elements overlap each other."""
            return builder.and_(builder.icmp_signed("<", step, size), builder.icmp_signed("<", builder.neg(size), step))

        low, high = extent(start, step)
        out_low, out_high = extent(out, out_step)
        meet = builder.and_(builder.icmp_signed("<", low, out_high), builder.icmp_signed("<", out_low, high))
        same = builder.and_(builder.icmp_signed("==", start, out), builder.icmp_signed("==", step, out_step))
        return builder.and_(meet, builder.or_(builder.not_(same), shorter(step)))

    return types.boolean(WORD, WORD, WORD, WORD, WORD, WORD), generate
