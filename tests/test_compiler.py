"""What the compiler's wrapper makes of exceptions (its own are a reason to do without, those of others pass through), and of processors."""

import llvmlite.binding as llvm
import numpy as np
import pytest
from conftest import OPERATIONS, each_operation

from fastops import real_ufuncs
from fastops.engine import capi, compiler


class Late(Exception):
    """As a signal handler may raise it at any place."""


def test_an_exception_of_others_passes_through():
    with pytest.raises(Late), compiler.compiling():
        raise Late
    assert compiler.numba().__name__ == "numba"  # nothing was remembered


def test_an_exception_of_others_is_not_tried_again():
    tried = []

    def compile(cache):
        tried.append(cache)
        raise Late

    with pytest.raises(Late):
        compiler._make("never", compile, compile)
    assert tried == [True]


def test_a_fault_of_the_compiler_is_remembered(monkeypatch):
    monkeypatch.setattr(compiler, "_reason", None)
    with pytest.raises(compiler.Unavailable, match="JSONDecodeError"), compiler.compiling():
        __import__("json").loads("{")  # raised in the standard library, as the compiler's own faults are in Numba or there
    with pytest.raises(compiler.Unavailable, match="JSONDecodeError"):
        compiler.numba()


def test_compiling_is_not_entered_twice():
    with compiler.compiling(), pytest.raises(compiler.Unavailable, match=r"^$"), compiler.compiling():
        pass
    assert compiler.numba().__name__ == "numba"


@each_operation
@pytest.mark.parametrize("code", "bhilqBHILQefd")
def test_every_type_of_c_has_the_loop(name, code):
    """Whichever of two equal dtypes was met first: long is long long on some systems, and int on others."""
    operation, dtype = OPERATIONS[name][0], np.dtype(code)
    ufunc = getattr(real_ufuncs, name)
    head = capi._UfuncHead.from_address(id(ufunc))
    assert head.functions[ufunc.types.index(f"{code}{code}->{code}")] == operation.loop(dtype)


@pytest.mark.parametrize("system", ["unknown-linux-gnu", "apple-darwin20", "pc-windows-msvc"])
@pytest.mark.parametrize(("processor", "features"), [
    ("x86_64 generic", set()),
    ("x86_64 haswell", {"fused", "half", "rounds"}),
    ("x86_64 skylake-avx512", {"fused", "half", "rounds", "wide"}),
    ("aarch64 generic", {"fused", "half", "rounds", "wide"}),
])  # fmt: skip
def test_features_on_every_system(system, processor, features, monkeypatch):
    """Library functions have other names on some."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine, processor = processor.split()
    monkeypatch.setattr(compiler, "target", lambda: (f"{machine}-{system}", processor, ""))
    assert {name for name, there in compiler.features.__wrapped__().items() if there} == features
