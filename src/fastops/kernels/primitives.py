"""What Numba's Python cannot say: typed memory, arithmetic in a value's own width, and the floating-point flags.

Numba widens small integers to 64 bits, which costs three to five times in SIMD lanes. A formula is therefore written on `Lane` values, whose
operators emit one LLVM instruction each, in the width of the operands; `operation` turns such a formula into a Numba intrinsic.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

WORD = types.intp
BYTES = ir.IntType(8).as_pointer()
FLOAT, DOUBLE, HALF = ir.FloatType(), ir.DoubleType(), ir.HalfType()
ARM = platform.machine().lower() in ("arm64", "aarch64")
X86 = platform.machine().lower() in ("x86_64", "amd64")

# --- formulas in SIMD lanes -----------------------------------------------------------------------------------------------------------------


class Lane:
    """One value of a formula. Integers are bit patterns: unsigned, modulo 2**bits, so two's complement sums and products come right too."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value):
        self.builder, self.value, self.type = builder, value, value.type
        self.is_float = not isinstance(value.type, ir.IntType)
        self.bits = {"half": 16, "float": 32, "double": 64}[str(value.type)] if self.is_float else value.type.width

    def constant(self, number: Any) -> Lane:
        """`number` in the type of this lane."""
        return number if isinstance(number, Lane) else Lane(self.builder, ir.Constant(self.type, number))

    def _emit(self, integer: str, floating: str, other: Any) -> Lane:
        operation = floating if self.is_float else integer
        return Lane(self.builder, getattr(self.builder, operation)(self.value, self.constant(other).value))

    def _compare(self, symbol: str, other: Any) -> Lane:
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_unsigned
        return Lane(self.builder, compare(symbol, self.value, self.constant(other).value))

    def __add__(self, other: Any) -> Lane:
        return self._emit("add", "fadd", other)

    def __sub__(self, other: Any) -> Lane:
        return self._emit("sub", "fsub", other)

    def __mul__(self, other: Any) -> Lane:
        return self._emit("mul", "fmul", other)

    def __truediv__(self, other: Any) -> Lane:
        return self._emit("udiv", "fdiv", other)

    def __rtruediv__(self, other: Any) -> Lane:
        return self.constant(other) / self

    def __and__(self, other: Any) -> Lane:
        return self._emit("and_", "", other)

    def __or__(self, other: Any) -> Lane:
        return self._emit("or_", "", other)

    def __xor__(self, other: Any) -> Lane:
        return self._emit("xor", "", other)

    def __lshift__(self, other: Any) -> Lane:
        return self._emit("shl", "", other)

    def __rshift__(self, other: Any) -> Lane:
        return self._emit("lshr", "", other)

    def __invert__(self) -> Lane:
        return self ^ -1

    def __lt__(self, other: Any) -> Lane:
        return self._compare("<", other)

    def __ge__(self, other: Any) -> Lane:
        return self._compare(">=", other)

    def __eq__(self, other: Any) -> Lane:  # type: ignore[override]
        return self._compare("==", other)

    __hash__ = None  # type: ignore[assignment]

    def is_nan(self) -> Lane:
        return Lane(self.builder, self.builder.fcmp_unordered("uno", self.value, self.value))

    def sign_mask(self) -> Lane:
        """All bits set where an integer's top bit is."""
        return Lane(self.builder, self.builder.ashr(self.value, ir.Constant(self.type, self.bits - 1)))

    def to_float(self, target: ir.Type) -> Lane:
        """The number of an unsigned integer."""
        return Lane(self.builder, self.builder.uitofp(self.value, target))

    def to_integer(self, bits: int) -> Lane:
        """The integer part; out of range is undefined."""
        return Lane(self.builder, self.builder.fptoui(self.value, ir.IntType(bits)))

    def as_bits(self) -> Lane:
        return Lane(self.builder, self.builder.bitcast(self.value, ir.IntType(self.bits)))

    def as_float(self, target: ir.Type) -> Lane:
        """The bits of an integer read as a float of the same width."""
        return Lane(self.builder, self.builder.bitcast(self.value, target))

    def extend(self, target: ir.Type) -> Lane:
        """To a wider integer (zeros above) or a wider float (exact)."""
        return Lane(self.builder, (self.builder.fpext if self.is_float else self.builder.zext)(self.value, target))

    def narrow(self, target: ir.Type) -> Lane:
        """To a narrower integer (low bits) or a narrower float (to nearest even)."""
        return Lane(self.builder, (self.builder.fptrunc if self.is_float else self.builder.trunc)(self.value, target))


def where(condition: Lane, x: Lane, y: Any) -> Lane:
    return Lane(x.builder, x.builder.select(condition.value, x.value, x.constant(y).value))


def smaller(x: Lane, y: Lane) -> Lane:
    return where(x < y, x, y)


def larger(x: Lane, y: Lane) -> Lane:
    return where(x < y, y, x)


def fused_multiply_add(x: Lane, y: Lane, z: Lane) -> Lane:
    """x * y + z, rounded once. Only for processors that have the instruction: the library's substitute is slow where it exists at all."""
    return Lane(x.builder, x.builder.fma(x.value, y.value, z.value))


def operation(formula: Callable[..., Lane], result: types.Type, *operands: types.Type) -> Any:
    """A Numba intrinsic (operands) -> result from a formula on lanes."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return formula(*(Lane(builder, argument) for argument in arguments)).value

    typed = result(*operands), generate
    one_to_four: list[Callable[..., Any]] = [
        lambda typing, x: typed, lambda typing, x, y: typed, lambda typing, x, y, z: typed, lambda typing, w, x, y, z: typed]  # fmt: skip
    return intrinsic(one_to_four[len(operands) - 1])


# --- half precision and bfloat16 as bit patterns ---------------------------------------------------------------------------------------------
INT16, INT32 = ir.IntType(16), ir.IntType(32)


def bfloat16_to_float(x: Lane) -> Lane:
    return (x.extend(INT32) << 16).as_float(FLOAT)


def float_to_bfloat16(x: Lane) -> Lane:
    """To nearest, ties to even; a NaN keeps its upper payload and stays a NaN."""
    bits = x.as_bits()
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return where(x.is_nan(), (bits >> 16) | 0x40, rounded).narrow(INT16)


def half_to_float(x: Lane, native: bool) -> Lane:
    """`native`: the processor converts (F16C, Arm). Otherwise a product moves the exponent, which serves subnormals too."""
    if native:
        return x.as_float(HALF).extend(FLOAT)
    bits = x.extend(INT32)
    magnitude = bits & 0x7FFF
    shifted = magnitude << 13
    finite = (shifted.as_float(FLOAT) * 2.0**112).as_bits()
    quieted = shifted | 0x7FC00000
    special = where(magnitude == 0x7C00, shifted.constant(0x7F800000), quieted)
    return (where(magnitude < 0x7C00, finite, special) | ((bits & 0x8000) << 16)).as_float(FLOAT)


def float_to_half(x: Lane, native: bool) -> Lane:
    """To nearest, ties to even; a NaN keeps its upper payload."""
    if native:
        return x.narrow(HALF).as_bits()
    bits = x.as_bits()
    magnitude = bits & 0x7FFFFFFF
    # Below half's normal range a sum with 0.5 rounds to a multiple of 2**-24, the subnormal step.
    subnormal = (magnitude.as_float(FLOAT) + 0.5).as_bits() - 0x3F000000
    normal = (magnitude - (112 << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13
    special = where(magnitude < 0x7F800001, magnitude.constant(0x7C00), ((magnitude >> 13) & 0x3FF) | 0x7E00)
    finite = where(magnitude < 0x38800000, subnormal, normal)
    return (where(magnitude < 0x47800000, finite, special) | ((bits >> 16) & 0x8000)).narrow(INT16)


# --- typed memory ----------------------------------------------------------------------------------------------------------------------------


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


def reader(kind: types.Type) -> Any:
    """An intrinsic (pointer, offset in bytes) -> kind."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        return builder.load(_cell(context, builder, kind, *values), align=kind.bitwidth // 8)

    return intrinsic(lambda typing, place, offset: (kind(types.voidptr, WORD), generate))


def writer(kind: types.Type) -> Any:
    """An intrinsic (pointer, offset in bytes, kind) that stores."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        builder.store(values[2], _cell(context, builder, kind, values[0], values[1]), align=kind.bitwidth // 8)
        return context.get_dummy_value()

    return intrinsic(lambda typing, place, offset, value: (types.none(types.voidptr, WORD, kind), generate))


read_word, write_word = reader(WORD), writer(WORD)


def scratch(size: int) -> Any:
    """An intrinsic () -> pointer to `size` bytes of the function's stack: memory that nothing else can overlap."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        memory = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), size))
        memory.align = 64
        return builder.bitcast(memory, BYTES)

    return intrinsic(lambda typing: (types.voidptr(), generate))


@intrinsic
def take_next(typing: Any, counter: Any) -> Any:
    """Add one to the word at an address, atomically; the value before."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        word = ir.IntType(WORD.bitwidth)
        return builder.atomic_rmw("add", builder.inttoptr(values[0], word.as_pointer()), ir.Constant(word, 1), "monotonic")

    return WORD(WORD), generate


@intrinsic
def call_loop(typing: Any, loop: Any, arguments: Any, dimensions: Any, steps: Any) -> Any:
    """Call the inner loop at the address `loop`, by NumPy's signature (char **, intp *, intp *, void *)."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        function = ir.FunctionType(ir.VoidType(), [BYTES] * 4)
        pointers = [builder.inttoptr(value, BYTES) for value in values[1:]]
        builder.call(builder.inttoptr(values[0], function.as_pointer()), [*pointers, ir.Constant(BYTES, None)])
        return context.get_dummy_value()

    return types.none(WORD, WORD, WORD, WORD), generate


# --- floating-point flags ----------------------------------------------------------------------------------------------------------------------
# `save_flags` gives the state of this thread, `restore_flags` puts a state back, with the bits INVALID or DIVIDE added where they were earned.
# On x86 the state is the MXCSR register, elsewhere what the C library's fenv.h says.
_WINDOWS = sys.platform == "win32"
INVALID, DIVIDE, ALL_FLAGS = (0x01, 0x04, 0x3D) if X86 else (0x10, 0x08, 0x1F) if _WINDOWS else (0x01, 0x02, 0x1F)

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

else:
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
