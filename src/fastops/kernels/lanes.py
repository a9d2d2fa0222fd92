"""Arithmetic in a value's own width.

Numba widens small integers to 64 bits, which costs three to five times in SIMD lanes. A formula is therefore written on `Lane` values,
whose operators emit one LLVM instruction each, in the width of the operands; `operation` turns it into an intrinsic for Numba's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

INT16, INT32, INT64 = (ir.IntType(bits) for bits in (16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()


class Processor(NamedTuple):
    """What the formulas ask of the processor that they are compiled for: whether it has, in SIMD lanes where that matters, …"""

    fused: bool  # a fused multiply-add
    half: bool  # conversions between half and single precision
    wide: bool  # conversions between 64-bit integers and double precision
    rounds: bool  # an instruction that rounds a float down, or towards zero, to an integer


class Lane:
    """One value of a formula, or a vector of them. Integers are bit patterns: unsigned, modulo 2**bits, so two's complement sums and
    products come right too."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value):
        self.builder, self.value, self.type = builder, value, value.type
        self.count = getattr(value.type, "count", None)
        element = value.type.element if self.count else value.type
        self.is_float = not isinstance(element, ir.IntType)
        self.bits = {"half": 16, "float": 32, "double": 64}[str(element)] if self.is_float else element.width

    def constant(self, number: Any) -> Lane:
        """`number` in the type of this lane."""
        if isinstance(number, Lane):
            return number
        return Lane(self.builder, ir.Constant(self.type, [number] * self.count if self.count else number))

    def _like(self, target: ir.Type) -> ir.Type:
        """That type, of as many values as there are here."""
        return ir.VectorType(target, self.count) if self.count else target

    def _emit(self, integer: str, floating: str, other: Any) -> Lane:
        operation = floating if self.is_float else integer
        return Lane(self.builder, getattr(self.builder, operation)(self.value, self.constant(other).value))

    def __neg__(self) -> Lane:
        return Lane(self.builder, self.builder.fneg(self.value) if self.is_float else self.builder.neg(self.value))

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

    def rest(self, other: Lane, signed: bool = False) -> Lane:
        """The rest of an integer division, with the sign of this lane."""
        return Lane(self.builder, (self.builder.srem if signed else self.builder.urem)(self.value, other.value))

    def over(self, other: Lane) -> Lane:
        """The quotient of signed integers, toward zero."""
        return Lane(self.builder, self.builder.sdiv(self.value, other.value))

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

    def shift_signed(self, bits: int) -> Lane:
        """Shifted right with copies of the sign."""
        return Lane(self.builder, self.builder.ashr(self.value, self.constant(bits).value))

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

    def is_negative(self) -> Lane:
        """Whether an integer's top bit is set."""
        return Lane(self.builder, self.builder.icmp_signed("<", self.value, self.constant(0).value))

    def to_float(self, target: ir.Type, signed: bool = False) -> Lane:
        """The number of an integer."""
        return Lane(self.builder, (self.builder.sitofp if signed else self.builder.uitofp)(self.value, self._like(target)))

    def to_integer(self, bits: int, signed: bool = False) -> Lane:
        """The integer part; out of range is undefined."""
        return Lane(self.builder, (self.builder.fptosi if signed else self.builder.fptoui)(self.value, self._like(ir.IntType(bits))))

    def low_bits(self, bits: int) -> Lane:
        """An integer modulo 2**bits, for at most as many bits as it has."""
        return self if bits == self.bits else self.narrow(ir.IntType(bits))

    def as_bits(self) -> Lane:
        return Lane(self.builder, self.builder.bitcast(self.value, self._like(ir.IntType(self.bits))))

    def as_float(self, target: ir.Type) -> Lane:
        """The bits of an integer read as a float of the same width."""
        return Lane(self.builder, self.builder.bitcast(self.value, self._like(target)))

    def extend(self, target: ir.Type, signed: bool = False) -> Lane:
        """To a wider integer (zeros above, or copies of the sign) or a wider float (exact)."""
        extend = self.builder.fpext if self.is_float else self.builder.sext if signed else self.builder.zext
        return Lane(self.builder, extend(self.value, self._like(target)))

    def narrow(self, target: ir.Type) -> Lane:
        """To a narrower integer (low bits) or a narrower float (to nearest even)."""
        return Lane(self.builder, (self.builder.fptrunc if self.is_float else self.builder.trunc)(self.value, self._like(target)))


def where(condition: Lane, x: Lane, y: Any) -> Lane:
    return Lane(x.builder, x.builder.select(condition.value, x.value, x.constant(y).value))


def minimum(x: Lane, y: Lane) -> Lane:
    return where(x < y, x, y)


def maximum(x: Lane, y: Lane) -> Lane:
    return where(x < y, y, x)


def absolute(x: Lane) -> Lane:
    """Of a signed integer; the lowest one's is its own bit pattern, read as unsigned."""
    return negated_where(x.is_negative(), x)


def negated_where(condition: Lane, x: Lane) -> Lane:
    return where(condition, -x, x)


def saturating_double(x: Lane) -> Lane:
    """2 * x of an unsigned integer, or the largest where that overflows."""
    kind = ir.FunctionType(x.type, [x.type, x.type])
    return Lane(x.builder, x.builder.call(x.builder.module.declare_intrinsic("llvm.uadd.sat", [x.type], kind), [x.value, x.value]))


def integer_part(x: Lane, floored: bool) -> Lane:
    """A float rounded down, or else towards zero. Only for processors that have the instruction."""
    module, name = x.builder.module, f"llvm.{'floor' if floored else 'trunc'}.{f'v{x.count}' if x.count else ''}f{x.bits}"
    function = module.globals.get(name) or ir.Function(module, ir.FunctionType(x.type, [x.type]), name)
    return Lane(x.builder, x.builder.call(function, [x.value]))


def fused_multiply_add(x: Lane, y: Lane, z: Lane) -> Lane:
    """x * y + z, rounded once. Only for processors that have the instruction: the library's substitute is slow where it exists at all."""
    return Lane(x.builder, x.builder.fma(x.value, y.value, z.value))


def multiply_add(processor: Processor, x: Lane, y: Lane, z: Lane) -> Lane:
    """x * y + z, rounded once where the processor can, and otherwise twice."""
    return fused_multiply_add(x, y, z) if processor.fused else x * y + z


# Adding 1.5 * 2**52 to a number in double precision, or 1.5 * 2**23 in single, rounds it to the nearest integer, ties to even, which then
# stands in the low bits of the sum: up to 2**51, or 2**22, in magnitude. (No call of a library's rint, as old processors need.)
MAGIC = {DOUBLE: 1.5 * 2.0**52, FLOAT: 1.5 * 2.0**23}
MAGIC_BITS = {DOUBLE: 0x4338 << 48, FLOAT: 0x4B40 << 16}


def operation(formula: Callable[..., Lane], result: types.Type, *operands: types.Type) -> Any:
    """A Numba intrinsic (operands) -> result from a formula on lanes."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return formula(*(Lane(builder, argument) for argument in arguments)).value

    typed = result(*operands), generate
    one_to_three: list[Callable[..., Any]] = [
        lambda typing, x: typed, lambda typing, x, y: typed, lambda typing, x, y, z: typed]  # fmt: skip
    return intrinsic(one_to_three[len(operands) - 1])


# --- half precision and bfloat16 as bit patterns ---


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
