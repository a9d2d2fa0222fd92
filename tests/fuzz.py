"""A fuzzer of the public functions: operands of all kinds and layouts, in memory that ends at pages which nobody may touch.

    python tests/fuzz.py --minutes 20

Hypothesis makes the calls. What a remainder gives, raises and leaves in memory is compared with NumPy's function, bit for bit; what
`scatter_div` does, with a plain loop. All arrays lie between pages without access, so a read or a write outside of them ends the process,
and then the call is named that did it. Every fourth run has a thread that changes the operands meanwhile: then the process has to go on, no
more.
(POSIX only.)
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from conftest import BFLOAT16, DTYPES, INTEGERS, OPERATIONS, assert_same_bits, is_float
from hostile import OBJECTS, REGIONS, ROOM, SCALARS, Array, Draw, Memory, disguised, dtypes, like, operand, shapes
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from scatter_oracle import converts, sequential

import fastops
from fastops.engine import threads
from fastops.engine.iteration import cells_apart

ERRORS = (TypeError, ValueError, RuntimeError, OverflowError, IndexError, ZeroDivisionError)


# --- calls --------------------------------------------------------------------------------------------------------------------------------
def told(call: Callable[[], Any]) -> tuple[Any, type | None]:
    try:
        with np.errstate(all="ignore"):
            return call(), None
    except Exception as error:
        return None, type(error)


def text(values: Any) -> str:
    if isinstance(values, tuple | list) and len(values) < 5:
        return f"({', '.join(map(text, values))})"
    if isinstance(values, np.ndarray) and values.size > 20:
        return f"{type(values).__name__}({values.dtype}, shape={values.shape}, strides={values.strides}, at={values.ctypes.data:#x})"
    return f"{values!r:.500}"


def same(got: Any, want: Any) -> None:
    assert type(got) is type(want), (type(got), type(want))
    if isinstance(want, tuple):
        for a, b in zip(got, want, strict=True):
            same(a, b)
    elif isinstance(want, np.ma.MaskedArray):
        same(got.mask, want.mask)
        same(got.data, want.data)
    elif isinstance(want, np.ndarray | np.generic) and want.dtype in DTYPES.values():
        assert_same_bits(got, want)
    elif isinstance(want, np.ndarray | np.generic) and want.dtype.kind in "fc":  # wider ones have bits that nobody fills
        assert got.dtype == want.dtype
        assert np.array_equal(got, want, equal_nan=True)
    elif isinstance(want, np.ndarray | np.generic):
        assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes()) or want.dtype.hasobject


def remainders(draw: Draw, memory: Memory, log: Callable[[str], None], racing: bool) -> None:
    name, shape, dtype = draw(st.sampled_from(list(OPERATIONS))), shapes(draw), dtypes(draw)
    other = dtype if draw(st.integers(0, 3)) else dtypes(draw)
    x1, x2, out, keywords = operand(draw, memory, dtype, shape), operand(draw, memory, other, like(draw, shape)), None, dict[str, Any]()
    method = draw(st.sampled_from(["__call__"] * 8 + ["reduce", "accumulate", "outer", "at"]))
    args: tuple[Any, ...] = (x1, x2)
    if method in ("reduce", "accumulate"):
        args = (x1,)
    elif method == "at":
        args = (x1, draw(st.sampled_from([0, [0, 0], [1, -1], slice(None)])), x2)
    if method == "__call__" and draw(st.booleans()):
        kind = draw(st.sampled_from(["new", "first", "second"]))
        out = (
            memory.array(draw, draw(st.sampled_from([dtype, dtype, dtypes(draw)])), shape, writes=True)
            if kind == "new"
            else args[kind == "second"]
        )
        keywords["out"] = out
    if method == "__call__" and draw(st.integers(0, 5)) == 0:
        keywords |= draw(
            st.sampled_from([{"where": np.array([True])}, {"casting": "unsafe"}, {"dtype": "f8"}, {"order": "F"}, {"subok": False}])
        )
    if method == "outer" and getattr(x1, "size", 1) * getattr(x2, "size", 1) > 100_000:
        return
    log(f"{name}.{method} {text(args)} {text(list(keywords.items()))}")
    ours, twin = (getattr(function, method) for function in OPERATIONS[name])
    if racing:
        told(lambda: ours(*args, **keywords))
        return
    before = memory.copy()
    *twins, place = memory.twins((*args, out))
    want, wanted = told(lambda: twin(*twins, **(keywords if out is None else keywords | {"out": place})))
    want, left = (want.copy() if isinstance(want, np.ndarray) else want), memory.copy()
    memory.restore(before)
    got, error = told(lambda: ours(*args, **keywords))
    assert error is wanted, (error, wanted)
    involved = [np.asarray(x).dtype for x in (*args, out) if isinstance(x, np.ndarray | np.generic)]
    if BFLOAT16 in involved or (isinstance(out, np.ndarray) and not cells_apart(out)):
        return  # of bfloat16 ml_dtypes has other values; and of cells that share memory it is not said who comes last
    written = args[0] if method == "at" else out
    if error is None:
        same(got, want)
    if isinstance(written, np.ndarray):
        blank(memory, written, left)
    assert memory.copy() == left, "something else was written than by NumPy"


def blank(memory: Memory, x: Array, copies: list[bytes]) -> None:
    """Zeros for what is written, in the regions and in their copies: NaN may have other bits, and `same` compared them."""
    after = memory.copy()
    memory.restore(copies)
    x[...] = np.zeros((), x.dtype)
    copies[:] = memory.copy()
    memory.restore(after)
    x[...] = np.zeros((), x.dtype)


def scatter(draw: Draw, memory: Memory, log: Callable[[str], None], racing: bool) -> None:
    shape = draw(st.sampled_from([(5,), (300,), (7, 3), (40, 130), (6, 2, 5), (0,), (3, 0), (), (1, 40)]))
    dtype, kind = dtypes(draw), np.dtype(draw(st.sampled_from(["i8", "i8", "i8", "i4", ">i8", "i2", "u8", "f8"])))
    count = draw(st.sampled_from([(), (0,), (1,), (3,), (2, 3), (40,), (1_000,), (2, 40)]))
    count = count if np.prod((*count, *shape[1:])) * 16 <= ROOM else (3,)
    x = memory.array(draw, dtype, shape, writes=draw(st.integers(0, 9)) > 0)
    index = memory.array(draw, kind, count)
    if draw(st.integers(0, 9)) and shape and shape[0] and index.size:
        rows = np.random.default_rng(draw(st.integers(0, 99))).integers(0, shape[0], count)
        index[...] = rows if draw(st.booleans()) else np.sort(rows, axis=None).reshape(count)  # threads share these by ranges
    other = dtype if draw(st.integers(0, 3)) else dtypes(draw)
    updates: Any = memory.array(draw, other, count + shape[1:] if draw(st.integers(0, 9)) else shapes(draw))
    if draw(st.integers(0, 9)) and other in INTEGERS.values():
        updates[updates == 0] = 3
    if draw(st.integers(0, 9)) == 0:
        updates = draw(st.sampled_from([*SCALARS, *OBJECTS]))
    operands = [disguised(draw, a) if isinstance(a, np.ndarray) and not draw(st.integers(0, 9)) else a for a in (x, index, updates)]
    log(f"scatter_div {text(operands)}")
    if racing:
        told(lambda: fastops.scatter_div(*operands))
        return
    before, native = memory.copy(), dtype.newbyteorder("=")
    values, places, divisors = x.copy(), index.copy(), updates.copy() if isinstance(updates, np.ndarray) else updates
    result, error = told(lambda: fastops.scatter_div(*operands))
    if error is not None:
        assert memory.copy() == before, "an error after a write"
        assert issubclass(error, (LookupError, *ERRORS)), error
        right = native in DTYPES.values() and kind.kind == "i" and kind.itemsize >= 4 and x.ndim and cells_apart(x)
        if right and isinstance(divisors, np.ndarray) and divisors.dtype == native and divisors.shape == count + shape[1:]:
            inside = not places.size or (places.min() >= 0 and places.max() < len(x))
            assert not inside or (not is_float(native) and not divisors.all()), error
        return
    assert result is operands[0]
    assert native in DTYPES.values()
    if type(divisors) is int and is_float(native):
        divisors = float(divisors)  # which bfloat16 takes where it does not take every integer
    if not isinstance(divisors, np.ndarray) or converts(divisors.dtype, native):
        assert_same_bits(x.astype(native), sequential(values, places, divisors))
    left = memory.copy()
    memory.restore(before)
    blank(memory, x, left)
    assert memory.copy() == left, "something else was written than input_x"


# --- runs ---------------------------------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def changing(memory: Memory) -> Iterator[None]:
    """Another thread writes into all operands."""
    stop, random = threading.Event(), np.random.default_rng(1)

    def change() -> None:
        while not stop.is_set():
            region = memory.regions[random.integers(REGIONS)]
            first = int(random.integers(0, ROOM - 4096))
            region[first : first + 4096] = random.integers(0, 256, 4096, np.uint8) if random.integers(2) else 0

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def child(number: int, examples: int, place: str) -> None:
    """A run of so many calls, by that seed; before each, its text is written to the file."""
    faulthandler.enable()
    fastops.warmup()
    memory, racing = Memory(), number % 4 == 3
    if number % 2:
        threads.WORTHWHILE = 1e-9  # a second thread for whatever may have one
    with open(place, "wb", buffering=0) as file:

        def log(text: str) -> None:
            file.seek(0)
            file.write(f"{text[:4000]:4000}".encode(errors="replace"))

        @seed(number)
        @settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False)
        @given(st.data())
        def run(data: Any) -> None:
            (scatter if data.draw(st.integers(0, 2)) == 0 else remainders)(data.draw, memory, log, racing)

        with changing(memory) if racing else contextlib.nullcontext():
            run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--examples", type=int, default=2_000, help="calls of a process (default: 2000)")
    parser.add_argument("--seed", type=int, help="of a single process, such as one that failed")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options, failed, runs = parser.parse_args(), 0, 0
    if options.child:
        child(int(options.child[0]), options.examples, options.child[1])
        return
    end = time.monotonic() + 60 * options.minutes
    number = first = options.seed if options.seed is not None else int.from_bytes(os.urandom(3), "little") & ~3
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "call")
        while number == first or (options.seed is None and time.monotonic() < end):
            command = [sys.executable, "-W", "ignore", __file__, "--examples", str(options.examples), "--child", str(number), str(place)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
            runs += 1
            if done.returncode:
                failed += 1
                print(f"seed {number}: exit code {done.returncode}\n{place.read_text().rstrip()}\n{done.stderr[-6000:]}", flush=True)
            number += 1
    print(f"{runs} processes of {options.examples} calls: {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
