# mypy: disable-error-code="untyped-decorator, no-any-return"
"""The floating-point flags.

`save_flags` gives the state of this thread, `restore_flags` puts a state back, with the bits INVALID or DIVIDE added where they were
earned. On x86 the state is the MXCSR register, elsewhere what the C library's fenv.h says, by its numbers on Arm and on Windows.
"""

from __future__ import annotations

import sys
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from .primitives import BYTES, INT32

INT64 = ir.IntType(64)

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
