"""Operands of all kinds for the fuzzer: arrays of any layout between pages that nobody may touch, and what is no array, or refuses.

(POSIX only: the pages are made by `mprotect`.)
"""

from __future__ import annotations

import copy
import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
from conftest import BFLOAT16, DTYPES
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
PAGE, ROOM, REGIONS = mmap.PAGESIZE, 1 << 19, 4
ODD = [np.dtype(kind) for kind in ("?", "c8", "g", "m8[s]", "M8[D]", "S3", "i4,f4")]  # which fastops has no loops for


# --- memory -------------------------------------------------------------------------------------------------------------------------------
def guarded() -> Array:
    """Bytes between two pages without access."""
    libc = ctypes.CDLL(None, use_errno=True)
    memory = mmap.mmap(-1, ROOM + 2 * PAGE)
    room = np.frombuffer(memory, np.uint8)
    for place in (0, PAGE + ROOM):
        if libc.mprotect(ctypes.c_void_p(room.ctypes.data + place), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return room[PAGE : PAGE + ROOM]


class Memory:
    """The regions that arrays lie in."""

    def __init__(self) -> None:
        self.regions = [guarded() for _ in range(REGIONS)]

    def copy(self) -> list[bytes]:
        return [region.tobytes() for region in self.regions]

    def restore(self, copies: list[bytes]) -> None:
        for region, values in zip(self.regions, copies, strict=True):
            region[:] = np.frombuffer(values, np.uint8)

    def twins(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same arrays if they lie in the regions, and copies of everything else."""
        arrays = [x for x in operands if isinstance(x, np.ndarray)]
        kept = [x for x in arrays if any(np.may_share_memory(x, region) for region in self.regions)]
        return copy.deepcopy(operands, {id(x): x for x in kept})

    def array(self, draw: Draw, dtype: np.dtype[Any], shape: tuple[int, ...], writes: bool = False) -> Array:
        """An array in one of the regions, at its very end or beginning, by strides of any kind that fit."""
        strides, step = [0] * len(shape), dtype.itemsize
        for axis in draw(st.permutations(range(len(shape)))):
            kind = draw(st.sampled_from(["next", "next", "next", "gap", "back", "odd", *([] if writes else ["none", "near"])]))
            strides[axis] = {"next": step, "gap": 2 * step, "back": -step, "odd": step + 1, "none": 0, "near": dtype.itemsize}[kind]
            step = max(step, abs(strides[axis]) * shape[axis])
        low = sum(min(stride, 0) * (length - 1) for stride, length in zip(strides, shape, strict=True) if length)
        high = sum(max(stride, 0) * (length - 1) for stride, length in zip(strides, shape, strict=True) if length) + dtype.itemsize
        if high - low > ROOM:
            strides, low, high = list(np.empty(shape, np.bool_).strides), 0, int(np.prod(shape)) * dtype.itemsize
            strides = [stride * dtype.itemsize for stride in strides]
        region = draw(st.sampled_from(self.regions))
        first = draw(st.sampled_from([0, ROOM - (high - low), draw(st.integers(0, 64 if high - low < ROOM - 64 else 0))]))
        if 0 in shape:
            return np.empty(shape, dtype)
        values = fill(draw, dtype, (high - low) // dtype.itemsize + 1)
        region[first : first + high - low] = values.view(np.uint8)[: high - low]
        return np.ndarray(shape, dtype, region, first - low, strides)


def fill(draw: Draw, dtype: np.dtype[Any], count: int) -> Array:
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    kind = draw(st.sampled_from(["bits", "small", "few"]))
    if kind == "bits" or dtype.newbyteorder("=") not in DTYPES.values():
        return np.frombuffer(random.bytes(count * dtype.itemsize + 8), np.uint8).copy()
    if kind == "small":
        return random.integers(0 if dtype.kind == "u" else -9, 10, count).astype(dtype)
    return np.resize(np.array([3, 1, 7, 2, 100]), count).astype(dtype)


# --- operands -----------------------------------------------------------------------------------------------------------------------------
class Refusing(np.ndarray):  # type: ignore[type-arg]
    __array_ufunc__ = None


class Raising(np.ndarray):  # type: ignore[type-arg]
    def __array_wrap__(self, *args: Any, **kwargs: Any) -> Any:
        raise LookupError("wrap")


class Catching(np.ndarray):  # type: ignore[type-arg]
    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise LookupError("ufunc")


class Bad:
    def __mod__(self, other: Any) -> Any:
        raise LookupError("mod")

    __rmod__ = fmod = __mod__


class NoArray:
    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise LookupError("array")


SCALARS = (
    0,
    1,
    -1,
    3,
    2**31,
    2**64,
    -(2**70),
    0.0,
    -2.5,
    float("nan"),
    True,
    None,
    "x",
    b"y",
    1j,
    np.float16(2),
    np.int8(-128),
    BFLOAT16.type(3),
)
OBJECTS = (
    [1, 2],
    [[1.5]],
    (),
    [[1], [2, 3]],
    Bad(),
    NoArray(),
    np.array([Bad()]),
    np.array([7, 2.5, None], object),
    np.ma.array([5, 6], mask=[0, 1]),
)
LENGTHS = st.sampled_from([0, 1, 1, 2, 3, 5, 16, 33, 130])


def shapes(draw: Draw) -> tuple[int, ...]:
    if draw(st.integers(0, 5)) == 0:
        return (draw(st.sampled_from([1_000, 9_999, 10_000, 30_000])),)
    shape = tuple(draw(st.lists(LENGTHS, max_size=4)))
    return shape if np.prod([length or 1 for length in shape], dtype=float) <= 30_000 else shape[:1]  # `like` may leave out an axis


def dtypes(draw: Draw) -> np.dtype[Any]:
    dtype = draw(st.sampled_from([*DTYPES.values()] * 3 + ODD))
    return dtype.newbyteorder() if dtype != BFLOAT16 and draw(st.integers(0, 9)) == 0 else dtype


def operand(draw: Draw, memory: Memory, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    kind = draw(st.integers(0, 19))
    if kind < 2:
        return draw(st.sampled_from(SCALARS))
    if kind == 2:
        return copy.deepcopy(draw(st.sampled_from(OBJECTS)))
    array = memory.array(draw, dtype, shape)
    return disguised(draw, array) if kind == 3 else array[()] if kind == 4 else array


def disguised(draw: Draw, array: Array) -> Array:
    return array.view(draw(st.sampled_from([Refusing, Raising, Catching, *([np.matrix] if array.ndim == 2 else [])])))


def like(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with it, mostly."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return shapes(draw)
    return (
        shape[draw(st.integers(0, len(shape))) if kind == 1 else 0 :] if kind < 7 else tuple(1 if draw(st.booleans()) else n for n in shape)
    )
