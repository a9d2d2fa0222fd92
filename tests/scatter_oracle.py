"""What the tests of `scatter_div` share: a plain loop to compare with, all ways that a call may travel, and the layouts of operands."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
import pytest
from conftest import DTYPES, assert_same_bits, is_float, make_by_turns, mixed_values

from fastops import scatter, scatter_compiled, scatter_sharing
from fastops.engine import driving, threads
from fastops.scatter import scatter_div
from fastops.scatter_sharing import Order

Array = np.ndarray[Any, Any]


# --- the oracle ---------------------------------------------------------------------------------------------------------------------------
def quotient(dtype: np.dtype[Any]) -> Callable[[Any, Any], Any]:
    """Exact and toward zero for integers, which are objects here; NumPy's for floats."""
    if is_float(dtype):
        return np.divide
    most = int(np.iinfo(dtype).max)

    def exact(a: int, b: int) -> int:
        result = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        return a if result > most else result  # MIN / -1

    return np.frompyfunc(exact, 2, 1)


def sequential(x: Array, indices: Any, updates: Any) -> Array:
    """What scatter_div makes of x, row after row, in a copy."""
    native, indices = x.dtype.newbyteorder("="), np.asarray(indices)
    kind = native if is_float(native) else np.dtype(object)
    divide = quotient(native)
    with np.errstate(all="ignore"):
        result, updates = x.astype(kind, order="C"), np.asarray(updates).astype(native).astype(kind)
        for place in np.ndindex(indices.shape):
            row = int(indices[place])
            result[row] = divide(result[row], updates[place])
    return result.astype(native)


# --- the ways -----------------------------------------------------------------------------------------------------------------------------
Settings = dict[tuple[Any, str], Any]
NEVER = sys.maxsize


def alone(**settings: int) -> Settings:
    """On one thread."""
    return {(threads, "worthwhile"): lambda work: False, **at_their_places(settings)}


def at_their_places(settings: dict[str, Any]) -> Settings:
    return {(scatter_sharing if hasattr(scatter_sharing, name) else scatter_compiled, name): value for name, value in settings.items()}


def shared(workers: int, **settings: Any) -> Settings:
    """By so many threads, however little there is to do."""
    return {
        (threads, "worthwhile"): lambda work: True,
        (threads, "workers"): lambda work: workers,
        **at_their_places({"LEAST_UPDATES": 0, **settings}),
    }


def in_blocks(workers: int, **settings: Any) -> Settings:
    """By parts of blocks; rows of one element are sorted."""
    return shared(workers, **ANY_INPUT, **ANY_ORDER, NARROW=0, NAMED=1, LEAST_BLOCK=0, **settings)


def by_sorting(workers: int, **settings: Any) -> Settings:
    return shared(workers, **ANY_INPUT, **ANY_ORDER, NARROW=NEVER, **settings)


def by_ranges(workers: int, **settings: Any) -> Settings:
    """If indices ascend or descend; otherwise all is checked, and then one thread divides."""
    return shared(workers, order_of=lambda *_: Order(ranges=True), NARROW=NEVER, FAR_ALONE=NEVER, FAR=NEVER, FAR_FOR_MANY=NEVER, **settings)


def by_columns(workers: int, **settings: Any) -> Settings:
    """If a row has several."""
    return shared(workers, **ANY_ORDER, COLUMNS=1, NARROW=0, LEAST_BLOCK=NEVER, FAR_ALONE=NEVER, FAR_FOR_MANY=NEVER, **settings)


ANY_INPUT = {"FAR": 0, "FAR_ALONE": 0, "FAR_FOR_MANY": 0}
ANY_ORDER = {"order_of": lambda *_: Order()}
WAYS: dict[str, Settings] = {
    "entry": alone(),  # as far as the call is plain; the others have no native entry
    "compiled": alone(),
    "pieces": alone(PIECE=7),
    "blocks": in_blocks(3, BLOCK=5),
    "blocks, pieces": in_blocks(2, BLOCK=5, PIECE=23),
    "sorted": by_sorting(3, SORTED=2),
    "sorted, one block": by_sorting(2),
    "columns": by_columns(3),
    "ranges": by_ranges(3),
    "ranges, pieces": by_ranges(2, PIECE=23),
    "plain": {
        **{(scatter, name): NEVER for name in ("LARGE", "MANY", "OFTEN")},
        (scatter, "_calls"): {},
        (scatter_compiled, "kernels"): {},
    },
}
COMPILED = [way for way in WAYS if way != "plain"]
each_way = pytest.mark.parametrize("way", WAYS)


@cache
def load_kernels() -> None:
    """All of them and the driver, so that small calls run them too; from now on it is known what starting threads costs."""
    driving.warm_up()
    make_by_turns("kernel", scatter.make_kernel)
    while not threads.start_is_known():
        threads.learn_start(threads.USUAL)
    scatter_div._limit()


@contextlib.contextmanager
def by(way: str | Settings) -> Iterator[Callable[..., Any]]:
    """What is to be called: but for the entry it is what that falls back to, so that nothing of a call goes by the entry."""
    load_kernels()
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in (WAYS[way] if isinstance(way, str) else way).items():
            patch.setattr(module, name, value)
        yield scatter_div if way == "entry" else scatter._scatter_div


def functions_run(call: Callable[[], Any]) -> list[str]:
    """The functions of scatter_div's Python that the call runs."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if (
            event == "call"
            and frame.f_code.co_filename in (scatter.__file__, scatter_compiled.__file__)
            and frame.f_code.co_name != "<genexpr>"
        ):
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


# --- values -------------------------------------------------------------------------------------------------------------------------------
def values(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)
    with np.errstate(all="ignore"):  # a NaN that is not quiet is reported when it is looked at
        return mixed_values(dtype, size, seed).reshape(shape)


def divisors(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    """Of the dtype, and if it is an integer without a zero."""
    u = values(dtype, shape, seed + 100)
    return u if is_float(dtype) else np.where(u == 0, dtype.type(1), u)


# --- types --------------------------------------------------------------------------------------------------------------------------------
RANKS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]  # the order of the contract
SOURCES = {"bool": np.dtype(bool), **DTYPES}  # dtypes that updates may have


def common_type(x: str, u: str) -> str:
    """The name of the common type of two dtypes by name, as the contract words it."""
    if {x, u} == {"uint8", "int8"}:
        return "int16"
    if {x, u} == {"float16", "bfloat16"}:
        return "float32"
    if "bfloat16" in (x, u):  # beside any other it ranks as float16 does
        return "bfloat16" if common_type(x.removeprefix("b"), u.removeprefix("b")) == "float16" else common_type(x.strip("b"), u.strip("b"))
    if {x, u} <= set(RANKS):
        return max(x, u, key=RANKS.index)
    floats = [name for name in (x, u) if "float" in name]
    return floats[0] if floats else np.promote_types(x, u).name  # uint16, uint32 or uint64 with another


def converts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether updates of the source may divide the target."""
    return source in SOURCES.values() and common_type(source.name, target.name) == target.name


# --- layouts ------------------------------------------------------------------------------------------------------------------------------
def unaligned(x: Array) -> Array:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    result = memory[1:].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


def reverse(x: Array) -> Array:
    return x[(slice(None, None, -1),) * x.ndim]


LAYOUTS: dict[str, Callable[[Array], Array]] = {  # of arrays of rank 3
    "contiguous": lambda x: x,
    "Fortran order": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "middle axis first": lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2),
    "every second row": lambda x: np.repeat(x, 2, 0)[::2],
    "every third column": lambda x: np.repeat(x, 3, 2)[:, :, ::3],
    "rows backwards": lambda x: x[::-1].copy()[::-1],
    "columns backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "all backwards": lambda x: reverse(reverse(x).copy()),
    "part of each row": lambda x: np.concatenate((x, x), 2)[:, :, : x.shape[2]],
    "unaligned": unaligned,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "other byte order, unaligned": lambda x: unaligned(x.astype(x.dtype.newbyteorder())),
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


# --- comparing ----------------------------------------------------------------------------------------------------------------------------
def memory_of(x: Any) -> Any:
    """The array in whose memory it lies."""
    while isinstance(getattr(x, "base", None), np.ndarray):
        x = x.base
    return x


def frozen(x: Any) -> Any:
    """What is to be the same later."""
    return memory_of(x).tobytes() if isinstance(x, np.ndarray) else repr(x)


def agree(x: Array, indices: Any, updates: Any, ways: Iterable[str | Settings] = WAYS) -> None:
    """Divide in each way, and compare with the loop, also what lies around x. In the end x is divided."""
    want = sequential(x, indices, updates)
    memory = memory_of(x)
    kept, apart = memory.copy(), [y for y in (indices, updates) if not np.may_share_memory(memory, np.asarray(y))]
    operands = [frozen(y) for y in apart]
    x[...] = want
    all_of_it = memory.tobytes()
    for way in ways:
        memory[...] = kept
        with by(way) as call, np.errstate(all="ignore"):
            assert call(x, indices, updates) is x
        try:
            assert_same_bits(x.astype(want.dtype), want)
            x[...] = want
            assert memory.tobytes() == all_of_it, "something else was written"
            assert [frozen(y) for y in apart] == operands
        except BaseException as error:
            error.add_note(f"by {way}")
            raise


def refuses(error: type[Exception], message: str, x: Any, indices: Any, updates: Any, ways: Iterable[str | Settings] = WAYS) -> None:
    """The error, in each way, and all as before."""
    kept = [frozen(y) for y in (x, indices, updates)]
    for way in ways:
        with by(way) as call, pytest.raises(error, match=message):
            call(x, indices, updates)
        assert [frozen(y) for y in (x, indices, updates)] == kept, f"something was written by {way}"
