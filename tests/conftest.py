"""The tables that the tests of the remainders share: OPERATIONS x DTYPES x LAYOUTS x EDGE VALUES, and the ways to compare."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import signal
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import fastops
from fastops import dispatch, ufuncs
from fastops.engine import driving, iteration, threads


def pytest_configure() -> None:
    """Where the tests were started in the background, Ctrl-C is ignored, and would be by the processes that tests interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# --- operations and dtypes ----------------------------------------------------------------------------------------------------------------
OPERATIONS: dict[str, tuple[Callable[..., Any], np.ufunc]] = {
    "remainder": (fastops.remainder, np.remainder),
    "fmod": (fastops.fmod, np.fmod),
}

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = {name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}
FLOATS = {"float16": np.dtype("f2"), "bfloat16": BFLOAT16, "float32": np.dtype("f4"), "float64": np.dtype("f8")}
DTYPES = {**INTEGERS, **FLOATS}

each_operation = pytest.mark.parametrize("name", list(OPERATIONS))
each_dtype = pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=list(DTYPES))
each_integer = pytest.mark.parametrize("dtype", list(INTEGERS.values()), ids=list(INTEGERS))
each_float = pytest.mark.parametrize("dtype", list(FLOATS.values()), ids=list(FLOATS))


def for_each_operation_and_dtype(test: Callable[..., None]) -> Callable[..., None]:
    """One test for all of them, for a test of its own costs more than most of them do; the failure tells which it was."""
    signature = inspect.signature(test)

    @functools.wraps(test)
    def all_of_them(**arguments: Any) -> None:
        for name in OPERATIONS:
            for dtype in DTYPES.values():
                try:
                    test(name=name, dtype=dtype, **arguments)
                except BaseException as error:
                    error.add_note(f"by {name} of {dtype}")
                    raise

    others = [parameter for parameter in signature.parameters.values() if parameter.name not in ("name", "dtype")]
    all_of_them.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return all_of_them


def word(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned integers of the same width."""
    return np.dtype(f"u{dtype.itemsize}")


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == BFLOAT16


@functools.cache
def significand(dtype: np.dtype[Any]) -> int:
    """Bits of the significand, the hidden one too."""
    return int(ml_dtypes.finfo(dtype).nmant) + 1


def bits(x: Any) -> np.ndarray[Any, Any]:
    x = np.asarray(x)
    return x.view(word(x.dtype)) if x.ndim else x.reshape(1).view(word(x.dtype)).reshape(())


def is_nan(x: Any) -> np.ndarray[Any, Any]:
    """By the bits: NaNs that are not quiet raise a flag in ml_dtypes' isnan."""
    x = np.asarray(x)
    if not is_float(x.dtype):
        return np.zeros(x.shape, bool)
    native, fraction = x.astype(x.dtype.newbyteorder("=")), significand(x.dtype) - 1
    sign = 1 << (8 * x.itemsize - 1)
    infinity = sign - (1 << fraction)
    return (bits(native) & word(x.dtype).type(sign - 1)) > infinity


# --- values -------------------------------------------------------------------------------------------------------------------------------
def quiet(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`x` with its NaNs made quiet: processors report an invalid operation when they meet one that is not."""
    fraction = significand(x.dtype) - 1
    words = x.view(word(x.dtype))
    return np.where(is_nan(x), words | word(x.dtype).type(1 << (fraction - 1)), words).view(x.dtype)


def random_bits(dtype: np.dtype[Any], size: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Every bit pattern alike: the full range of integers; floats of all exponents, subnormals, infinities and quiet NaNs."""
    x = np.frombuffer(np.random.default_rng(seed).bytes(size * dtype.itemsize), dtype).copy()
    return quiet(x) if is_float(dtype) else x


def small_values(dtype: np.dtype[Any], size: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Small integers, also as floats: many zeros and exact multiples."""
    low = 0 if dtype.kind == "u" else -12
    return np.random.default_rng(seed).integers(low, 13, size).astype(dtype)


def usual_values(dtype: np.dtype[Any], size: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """What users have: no zero, no special value, moderate quotients."""
    rng = np.random.default_rng(seed)
    if not is_float(dtype):
        limits = np.iinfo(dtype)
        x = rng.integers(max(limits.min, -(10**6)), min(limits.max, 10**6), size, dtype, endpoint=True)
        return np.where(x == 0, dtype.type(3), x)
    x = (rng.normal(size=size) * 100).astype(dtype)
    return np.where(x == 0, dtype.type(3), x)


def mixed_values(dtype: np.dtype[Any], size: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """All of these and the edge values, shuffled."""
    return _mixed_values(dtype, size, seed).copy()


@functools.lru_cache(100)
def _mixed_values(dtype: np.dtype[Any], size: int, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    edges = EDGE_VALUES[str(dtype)]
    pools = [make(dtype, size, seed + 1) for make in (random_bits, small_values, usual_values)] + [edges[rng.integers(0, edges.size, size)]]
    return np.stack(pools)[rng.integers(0, len(pools), size), np.arange(size)]


def _integer_edges(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    limits = np.iinfo(dtype)
    some = (1, 2, 3, 7, 8, 15, 16, 23, 24, 25, 31, 32, 33, 47, 48, 49, 51, 52, 53, 54, 61, 62, 63)
    powers = range(1, limits.bits) if limits.bits <= 32 else some
    near = {2**power + offset for power in powers for offset in (-1, 0, 1)}
    near |= {0, 1, 3, 5, 7, 10, 100, 255, 1000, 10**9 + 7, 10**18, 10**18 + 9, 3**40, limits.max // 2, limits.max // 3, limits.max // 3 * 3}
    near |= {limits.max - 1, limits.max, limits.min, limits.min + 1, limits.min + 2, limits.min // 2, limits.min // 3 * 3}
    near |= {-value for value in near}
    return np.array(sorted(value for value in near if limits.min <= value <= limits.max), dtype)


def _float_edges(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    info, kind, fraction = ml_dtypes.finfo(dtype), word(dtype), significand(dtype) - 1
    infinity = int(bits(dtype.type(np.inf)))
    one = int(bits(dtype.type(1)))
    patterns = {0, 1, 2, 3, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, infinity - 1, infinity - 2, infinity}
    patterns |= {one - 1, one, one + 1, infinity | 1 << (fraction - 1), infinity | 1 << (fraction - 1) | 5}
    numbers = [0.5, 1.5, 2, 3, 4, 5.5, 6, 7, 9, 10, 21, 0.1, 0.2, 0.3, 0.7, 1 / 3, 1e-5, 1e-17, 5.476144900572913e-309, 3e-308, 1e308]
    numbers += [2.0**power for power in (-1000, -130, -60, 8, 11, 24, 29, 45, 50, 51, 52, 53, 60, 100, 1000)]
    numbers += [2.0 ** (fraction + 1) + offset for offset in (-3, -1, 0, 2)] + [2.0**53 - 1, 2.0**63, 3 * 2.0**40, 3 * 2.0**100]
    numbers += [float(info.max) / 3, float(info.max) / 2, float(info.tiny) * 3, float(info.tiny) * 1.5]
    with np.errstate(all="ignore"):
        patterns |= {int(pattern) for pattern in bits(np.array(numbers).astype(dtype))}
    patterns |= {int(pattern) for pattern in bits(random_bits(dtype, 10, seed=3))}
    patterns |= {pattern ^ 1 << (8 * dtype.itemsize - 1) for pattern in patterns}
    return np.array(sorted(patterns), kind).view(dtype)


EDGE_VALUES = {name: _float_edges(dtype) if name in FLOATS else _integer_edges(dtype) for name, dtype in DTYPES.items()}


def pairs(dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All pairs of edge values."""
    edges = EDGE_VALUES[str(dtype)]
    x1, x2 = (x.ravel().copy() for x in np.meshgrid(edges, edges, indexing="ij"))
    return x1, x2


# --- oracles ------------------------------------------------------------------------------------------------------------------------------
def oracle(name: str, x1: Any, x2: Any, **kwargs: Any) -> Any:
    """NumPy's result: its values, type and strides. For bfloat16 the values come by float32 and one rounding."""
    twin = OPERATIONS[name][1]
    with np.errstate(all="ignore"):
        result = twin(x1, x2, **kwargs)
        if getattr(result, "dtype", None) != BFLOAT16:
            return result
        exact = twin(*(np.asarray(x).astype(BFLOAT16).astype("f4") for x in (x1, x2))).astype(BFLOAT16)
    if not isinstance(result, np.ndarray):
        return exact[()]
    result[...] = exact
    return result


def exactly(name: str, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
    """The remainder of two finite numbers, y != 0, by rational arithmetic; one rounding at the end where the sum needs it."""
    a, b = Fraction(float(x)), Fraction(float(y))
    rest = abs(a) % abs(b) * (-1 if a < 0 else 1)
    if name == "fmod":
        return np.copysign(dtype.type(float(rest)), x)
    if rest and (rest < 0) != (b < 0):
        return rounded(rest + b, dtype)
    return np.copysign(dtype.type(float(rest)), y) if rest == 0 else dtype.type(float(rest))


def rounded(exact: Fraction, dtype: np.dtype[Any]) -> Any:
    """To nearest, ties to even, by the integers."""
    info = ml_dtypes.finfo(dtype)
    sign, magnitude = (-1 if exact < 0 else 1), abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    return dtype.type(sign * float(round(magnitude / unit) * unit))


def offends(x1: Any, x2: Any) -> np.ndarray[Any, Any]:
    """Which elements are reported: an integer by zero; a number by a zero or an infinity by a number."""
    x1, x2 = np.broadcast_arrays(x1, x2)
    if not is_float(x1.dtype):
        return x2 == 0
    return (np.isinf(x1) & ~is_nan(x2)) | ((x2 == 0) & ~is_nan(x1))


def should_warn(x1: Any, x2: Any) -> bool:
    return bool(np.any(offends(x1, x2)))


def message(name: str, dtype: np.dtype[Any]) -> str:
    return f"{'invalid value' if is_float(dtype) else 'divide by zero'} encountered in {name}"


class Outcome(NamedTuple):
    """What a call did."""

    result: Any
    warnings: list[tuple[type[Warning], str]]
    error: tuple[type[BaseException], str] | None


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Outcome:
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*args, **kwargs)
        except Exception as exception:
            error = type(exception), str(exception)
    return Outcome(result, [(entry.category, str(entry.message)) for entry in caught], error)


# --- comparing ----------------------------------------------------------------------------------------------------------------------------
def assert_same_bits(got: Any, want: Any, x1: Any = None, x2: Any = None) -> None:
    """Zero signs count; a NaN equals a NaN. Given the operands, a NaN that is the only one keeps its sign and payload."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    same = bits(got) == bits(want)
    if is_float(got.dtype) and not np.all(same):
        same |= is_nan(got) & is_nan(want)
    if not np.all(same):
        wrong = np.argwhere(~np.atleast_1d(same))
        place = tuple(wrong[0]) if got.ndim else ()
        operands = "" if x1 is None else f" for {np.broadcast_to(x1, got.shape)[place]!r} by {np.broadcast_to(x2, got.shape)[place]!r}"
        pytest.fail(f"{len(wrong)} of {got.size} differ, first at {place}: got {got[place]!r}, expected {want[place]!r}{operands}")
    if x1 is not None and is_float(got.dtype) and got.dtype != BFLOAT16:
        for x, y in ((x1, x2), (x2, x1)):
            x, y = np.broadcast_to(x, got.shape), np.broadcast_to(y, got.shape)
            alone = is_nan(x) & ~is_nan(y)
            assert np.array_equal(bits(got)[alone], bits(x.astype(got.dtype))[alone]), "a NaN lost its payload"


def assert_same(got: Any, want: Any, x1: Any = None, x2: Any = None) -> None:
    """Same bits, same type, same place of every element in memory."""
    assert type(got) is type(want)
    assert_same_bits(got, want, x1, x2)
    if isinstance(want, np.ndarray):
        assert got.strides == want.strides
        assert got.dtype.isnative
        assert got.flags.writeable
        assert got.flags.aligned


# --- paths --------------------------------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def in_python(large: int = 0) -> Iterator[None]:
    """No call of `large` elements or more goes past `Remainder.__call__`."""
    with pytest.MonkeyPatch.context() as patch:
        for operation, _ in OPERATIONS.values():
            patch.setattr(operation, "_limit", lambda: None)
            patch.setattr(operation._gate, "large", large)
            for served in operation._gate.served:
                patch.setattr(served, "large", min(large, served.large))
        yield


def _count_driven(patch: pytest.MonkeyPatch) -> list[Any]:
    """A list that grows by one for each call of the driver."""
    driven: list[Any] = []
    drive = driving.drive

    def counted(*args: Any) -> int:
        driven.append(args)
        return drive(*args)

    patch.setattr(driving, "drive", counted)
    return driven


@contextlib.contextmanager
def in_parallel(chunk: int | None = None, must: bool = True) -> Iterator[list[Any]]:
    """Arrays of two elements and more by the parallel driver, with three workers. The list given grows by one for each driven call."""
    with in_python(2), pytest.MonkeyPatch.context() as patch:
        driven = _count_driven(patch)
        patch.setattr(dispatch, "LARGE", 2)
        patch.setattr(threads, "WORTHWHILE", 1e-9)
        patch.setattr(iteration, "SHORT", 1)
        patch.setattr(iteration, "SHORTEST", 1)
        patch.setattr(iteration, "LEAST", 1)
        patch.setattr(threads, "limit", lambda: 3)
        if chunk:
            patch.setattr(iteration, "CHUNK", chunk)
            patch.setattr(iteration, "BUFFER", 1 << 13)
            patch.setattr(iteration, "CACHE", 0)  # items of eight bytes in tiles too
        yield driven
    assert driven or not must, "no call took the parallel driver"


@contextlib.contextmanager
def serially() -> Iterator[None]:
    """All arrays on this thread: by the native entry or the real ufunc."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "WORTHWHILE", float("inf"))
        patch.setattr(iteration, "WORTHWHILE", float("inf"))
        yield


@contextlib.contextmanager
def in_tiles() -> Iterator[list[Any]]:
    """Arrays that have tiles by the driver on this thread, short rows in small tiles; the rest by the real ufunc. The list as above."""
    with in_python(2), pytest.MonkeyPatch.context() as patch:
        driven = _count_driven(patch)
        patch.setattr(dispatch, "LARGE", 2)
        patch.setattr(threads, "WORTHWHILE", float("inf"))
        patch.setattr(iteration, "WORTHWHILE", 2)
        patch.setattr(iteration, "TILE", 200)
        patch.setattr(iteration, "CACHE", 0)
        patch.setattr(iteration, "LEAST", 1)
        yield driven


_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
_turns = list(DTYPES.values())
if int(_worker.removeprefix("gw") or 0) % 2:
    _turns = _turns[6:] + _turns[:6]


def make_by_turns(name: str, make: Callable[[Any], Any], things: Sequence[Any] = _turns) -> None:
    """What one of the processes of pytest-xdist compiles, the others wait for, and load; half of them begin in the middle."""
    for thing in things:
        place = f"{name} {thing}.lock"
        with contextlib.closing(sqlite3.connect(_locks[0] / place if _locks else ":memory:", timeout=600, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            assert make(thing), f"no {name} for {thing}"


_locks: list[Path] = []  # the folder of them


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All loops, so that small arrays go through them too; and the driver."""
    own = tmp_path_factory.getbasetemp()
    _locks.append(own.parent if _worker else own)
    for operation in (ufuncs.remainder, ufuncs.fmod):
        make_by_turns(operation.__name__, operation.loop)
    make_by_turns("driver", lambda _: driving.warm_up() in (False, True), [""])


@pytest.fixture(scope="session")
def kernels(compiled: None) -> None:
    """Those of `scatter_div` too. For tests whose processes would compile them."""
    from scatter_oracle import load_kernels  # which imports this module

    load_kernels()


# --- layouts ------------------------------------------------------------------------------------------------------------------------------
Draw = Callable[..., np.ndarray[Any, Any]]


def _unaligned(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    memory = np.empty(x.nbytes + 1, np.uint8)
    result = memory[1:].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


def _swapped(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x.astype(x.dtype.newbyteorder())


def _field(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A field of a packed record: steps that are no multiple of the item's size."""
    record = np.zeros(x.shape, np.dtype([("before", "u1"), ("x", x.dtype), ("after", "u2")]))
    record["x"] = x
    return record["x"]


def _line(n: int) -> Callable[[Draw], tuple[Any, Any]]:
    return lambda draw: (draw(n), draw(n))


def _by_scalar(n: int) -> Callable[[Draw], tuple[Any, Any]]:
    return lambda draw: (draw(n), draw()[()])


LAYOUTS: dict[str, Callable[[Draw], tuple[Any, Any]]] = {
    "contiguous": lambda draw: (draw(20, 41), draw(20, 41)),
    "reversed": lambda draw: (draw(700)[::-1], draw(700)[::-1]),
    "reversed dividend": lambda draw: (draw(700)[::-1], draw(700)),
    "reversed divisor": lambda draw: (draw(700), draw(700)[::-1]),
    "reversed axes": lambda draw: (draw(20, 41)[::-1, ::-1], draw(20, 41)[::-1, ::-1]),
    "reversed rows": lambda draw: (draw(20, 41)[:, ::-1], draw(20, 41)[::-1]),
    "step 2": lambda draw: (draw(1400)[::2], draw(1400)[::2]),
    "step 2 and 3": lambda draw: (draw(1400)[1::2], draw(2100)[2::3]),
    "step -2 and 5": lambda draw: (draw(1400)[::-2], draw(3500)[::5]),
    "step -3 and -1": lambda draw: (draw(2100)[::-3], draw(700)[::-1]),
    "transposed": lambda draw: (draw(41, 20).T, draw(41, 20).T),
    "transposed dividend": lambda draw: (draw(41, 20).T, draw(20, 41)),
    "transposed divisor": lambda draw: (draw(20, 41), draw(41, 20).T),
    "transposed, several tiles": lambda draw: (draw(150, 170).T, draw(170, 150)),
    "transposed and reversed, several tiles": lambda draw: (draw(170, 150)[::-1], draw(150, 170)[:, ::-1].T),
    "Fortran order": lambda draw: (np.asfortranarray(draw(7, 9, 11)), np.asfortranarray(draw(7, 9, 11))),
    "Fortran and C order": lambda draw: (np.asfortranarray(draw(7, 9, 11)), draw(7, 9, 11)),
    "row": lambda draw: (draw(20, 41), draw(41)),
    "row of dividends": lambda draw: (draw(1, 41), draw(20, 41)),
    "column": lambda draw: (draw(20, 41), draw(20, 1)),
    "column of dividends": lambda draw: (draw(20, 1), draw(20, 41)),
    "long column": lambda draw: (draw(3, 400), draw(3, 1)),
    "long column of dividends": lambda draw: (draw(3, 1), draw(3, 400)),
    "outer": lambda draw: (draw(30, 1), draw(31)),
    "outer with long rows": lambda draw: (draw(3, 1), draw(1, 300)),
    "outer reversed": lambda draw: (draw(30)[::-1, None], draw(62)[::-2]),
    "0-d divisor": lambda draw: (draw(700), draw()),
    "0-d dividend": lambda draw: (draw(), draw(700)),
    "scalar divisor": lambda draw: (draw(20, 41), draw()[()]),
    "scalar dividend": lambda draw: (draw()[()], draw(20, 41)),
    "Python divisor": lambda draw: (draw(20, 41), 7),
    "Python dividend": lambda draw: (100, draw(20, 41)),
    "Python divisor, strided": lambda draw: (draw(1400)[::-2], 5),
    "Python divisor, transposed": lambda draw: (draw(41, 20).T, 3),
    "one element as divisor": lambda draw: (draw(700), draw(1)),
    "3-D": lambda draw: (draw(7, 11, 13), draw(7, 11, 13)[::-1]),
    "3-D permuted": lambda draw: (draw(7, 11, 13).transpose(2, 0, 1), draw(13, 11, 7).transpose(0, 2, 1)),
    "3-D broadcast in the middle": lambda draw: (draw(7, 11, 13), draw(7, 1, 13)),
    "4-D": lambda draw: (draw(5, 6, 7, 8)[:, ::-1, :, ::2], draw(8, 5, 6, 4).transpose(1, 2, 0, 3)[:, :, 1:]),
    "4-D both ways": lambda draw: (draw(5, 1, 7, 1), draw(6, 1, 8)),
    "5-D": lambda draw: (draw(3, 4, 5, 3, 4)[::-1, :, ::-2], draw(4, 3, 3, 4, 3).transpose(4, 3, 2, 1, 0)),
    "5-D both ways": lambda draw: (draw(3, 1, 5, 1, 4)[..., ::-1], draw(4, 1, 6, 1)),
    "7-D": lambda draw: (draw(2, 3, 2, 3, 2, 3, 2).transpose(6, 1, 4, 3, 2, 5, 0), draw(3, 1, 3, 1, 3, 1)[::-1]),
    "broadcast_to": lambda draw: (np.broadcast_to(draw(41), (20, 41)), np.broadcast_to(draw(20, 1), (20, 41))),
    "broadcast_to in both": lambda draw: (np.broadcast_to(draw(41), (20, 41)), np.broadcast_to(draw(41), (20, 41))),
    "broadcast_to of scalars": lambda draw: (np.broadcast_to(draw(), (700,)), np.broadcast_to(draw(), (700,))),
    "part of the last axis": lambda draw: (draw(30, 60)[:, 5:37], draw(30, 50)[:, 10:42]),
    "step in the last axis": lambda draw: (draw(30, 64)[:, ::2], draw(30, 32)),
    "sliding window": lambda draw: (np.lib.stride_tricks.sliding_window_view(draw(300), 20), draw(281, 20)),
    "diagonal": lambda draw: (np.einsum("ii->i", draw(300, 300)), draw(300)),
    "packed record": lambda draw: (_field(draw(700)), _field(draw(700))),
    "unaligned": lambda draw: (_unaligned(draw(20, 41)), _unaligned(draw(20, 41))),
    "unaligned divisor": lambda draw: (draw(700), _unaligned(draw(700))),
    "other byte order": lambda draw: (_swapped(draw(20, 41)), _swapped(draw(20, 41))),
    "other byte order, dividend": lambda draw: (_swapped(draw(700)), draw(700)),
    "other byte order, divisor": lambda draw: (draw(700), _swapped(draw(700))),
    "axes of one": lambda draw: (draw(1, 20, 1, 41), draw(20, 1, 1)),
    "empty": lambda draw: (draw(0), draw(0)),
    "empty by row": lambda draw: (draw(3, 0), draw(1, 1)),
    "empty rows": lambda draw: (draw(0, 5), draw(5)),
    "empty, transposed": lambda draw: (draw(3, 0, 5).T, draw(5, 0, 3)),
    "0-d": lambda draw: (draw(), draw()),
    "scalars": lambda draw: (draw()[()], draw()[()]),
    "one element": lambda draw: (draw(1, 1, 1), draw(1)),
    "few": _line(3),
    "255": _line(255),
    "256": _line(256),
    "257": _line(257),
    "513 by a scalar": _by_scalar(513),
    "9 999": _line(9_999),
    "10 000": _line(10_000),
    "16 383 by a scalar": _by_scalar(16_383),
    "16 384": _line(16_384),
    "16 385 strided": lambda draw: (draw(2 * 16_385)[::2], draw(16_385)[::-1]),
    "70 000": _line(70_000),
    "long rows": lambda draw: (draw(2, 20_000), draw(20_000)),
    "long rows by column": lambda draw: (draw(3, 17_000)[:, ::-1], draw(3, 1)),
    "short rows by column": lambda draw: (draw(300, 3), draw(300, 1)),
    "short rows by row": lambda draw: (draw(700, 5), draw(5)),
    "short rows, both ways": lambda draw: (draw(300, 1), draw(3)),
    "part of short rows": lambda draw: (draw(300, 7)[:, 1:6], draw(300, 9)[:, ::2]),
    "rows of medium length": lambda draw: (draw(40, 60), draw(40, 1)),
    "many short rows": lambda draw: (draw(9_000, 6)[:, :3], draw(3)),
}  # fmt: skip

each_layout = pytest.mark.parametrize("layout", list(LAYOUTS))


def operands(layout: str, dtype: np.dtype[Any], seed: int = 0) -> tuple[Any, Any]:
    """Fresh operands in a layout."""
    drawn = iter(range(2))

    def draw(*shape: int) -> np.ndarray[Any, Any]:
        return mixed_values(dtype, int(np.prod(shape)), seed + 10 * next(drawn)).reshape(shape)

    return LAYOUTS[layout](draw)
