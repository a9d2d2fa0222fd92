"""What the compiler's wrapper makes of exceptions: its own are a reason to do without, those of others pass through."""

import pytest

from fastops.engine import compiler


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
        compiler._make("never", compile)
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
