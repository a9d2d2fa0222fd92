# mypy: disable-error-code="untyped-decorator, no-any-return"
"""What Numba's Python cannot say: typed memory by address, calls by address, and the floating-point flags."""

from __future__ import annotations

import sys
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

WORD = types.intp
BYTES = ir.IntType(8).as_pointer()
INT32, INT64 = ir.IntType(32), ir.IntType(64)

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


# --- floating-point flags ---
# `save_flags` gives the state of this thread, `restore_flags` puts a state back, with the bits INVALID or DIVIDE added where they were
# earned. On x86 the state is the MXCSR register, elsewhere what the C library's fenv.h says, by its numbers on Arm and on Windows.
_PROCESSOR = llvm.get_process_triple().partition("-")[0]  # not the machine's, which may emulate it, or run 32-bit code
X86 = _PROCESSOR in ("x86_64", "amd64")
if not X86 and _PROCESSOR not in ("arm64", "aarch64"):
    raise ImportError(f"fastops knows the floating-point flags of x86-64 and of 64-bit Arm, not of {_PROCESSOR}")
_WINDOWS = sys.platform == "win32"
INVALID, DIVIDE, ALL_FLAGS = (0x01, 0x04, 0x3D) if X86 else (0x10, 0x08, 0x1F) if _WINDOWS else (0x01, 0x02, 0x1F)
OVERFLOW, UNDERFLOW = (0x08, 0x10) if X86 else (0x04, 0x02) if _WINDOWS else (0x04, 0x08)

DEFAULT = 0x1F80 if X86 else 0  # of the control bits: to the nearest, ties to even; subnormal numbers are numbers; no traps
# A library that was linked with -ffast-math may have left the thread with others: a loop puts them back by `default_control`, and at its
# end calls `restore_control` with what that gave. (On x86 they are part of the state, and `restore_flags` does it.)

if X86:

    def _register_call(builder: ir.IRBuilder, name: str, slot: ir.Value) -> None:
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [BYTES]), name)
        builder.call(function, [builder.bitcast(slot, BYTES)])

    @intrinsic
    def save_flags(typing: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
            slot = cgutils.alloca_once(builder, INT32)
            _register_call(builder, "llvm.x86.sse.stmxcsr", slot)
            return builder.load(slot)

        return types.uint32(), generate

    @intrinsic
    def restore_flags(typing: Any, state: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
            slot = cgutils.alloca_once(builder, INT32)
            builder.store(values[0], slot)
            _register_call(builder, "llvm.x86.sse.ldmxcsr", slot)
            return context.get_dummy_value()

        return types.none(types.uint32), generate

    @intrinsic
    def default_control(typing: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
            slot = cgutils.alloca_once(builder, INT32)
            builder.store(INT32(DEFAULT), slot)
            _register_call(builder, "llvm.x86.sse.ldmxcsr", slot)
            return INT64(0)

        return types.int64(), generate

    @register_jitable
    def restore_control(control: int) -> None:
        pass

else:
    _CONTROL = "llvm.aarch64.{}.fpcr"

    @intrinsic
    def default_control(typing: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
            get = cgutils.get_or_insert_function(builder.module, ir.FunctionType(INT64, []), _CONTROL.format("get"))
            put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [INT64]), _CONTROL.format("set"))
            before = builder.call(get, [])
            builder.call(put, [INT64(DEFAULT)])
            return before

        return types.int64(), generate

    @intrinsic
    def restore_control(typing: Any, control: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
            put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [INT64]), _CONTROL.format("set"))
            builder.call(put, [values[0]])
            return context.get_dummy_value()

        return types.none(types.int64), generate

    _test = types.ExternalFunction("fetestexcept", types.int32(types.int32))
    _clear = types.ExternalFunction("feclearexcept", types.int32(types.int32))
    _raise = types.ExternalFunction("feraiseexcept", types.int32(types.int32))

    @register_jitable
    def save_flags() -> int:
        return types.uint32(_test(ALL_FLAGS))

    @register_jitable
    def restore_flags(state: int) -> None:
        _clear(ALL_FLAGS)
        _raise(types.int32(state))
