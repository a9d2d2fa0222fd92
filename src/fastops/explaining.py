"""`fastops explain`: which way a call takes, on how many threads, and why, by a rehearsal of it (rehearsal.py)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from . import dispatch, info, loops, real_ufuncs, rehearsal, scatter, scatter_compiled, ufuncs
from .engine import compiler, threads, vectorcall
from .engine.operands import broadcast_size, kind_of
from .kernels.scatter_plan import CHECK, DIVIDE
from .rehearsal import DRIVER, KERNEL, NATIVE, NUMPY, UFUNC
from .scatter_operands import pieces, why_copied

WAYS = {
    NUMPY: "NumPy's own loop",
    NATIVE: "the native entry, past Python and NumPy",
    UFUNC: "fastops' loop in NumPy's ufunc machine",
    DRIVER: "fastops' driver",
    KERNEL: "the kernel",
}
MADE_PLAIN = "operands of few elements and of another dtype or layout are made plain first"
Story = dict[str, Any]


class Wrong(Exception):
    """What was asked for is no call: the text says why."""


# --- operands -----------------------------------------------------------------------------------------------------------------------------
def operand(text: str) -> Any:
    """An operand without content, by a text as `float32[1000,500]`, `int64[100][::2]`, `float32[20,30].T`, `float32` (a scalar) or `7`."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    found = re.fullmatch(r"([<>=]?\w+)(?:\[([\d,\s]*)\])?((?:\.T|\[[^\[\]]+\])*)", text)
    if not found or (found[3] and found[2] is None):
        raise Wrong(f"{text!r} is no operand such as float32[1000,500], int64[100][::2], float32[20,30].T, float32 or 7")
    try:
        dtype = dtype_of(found[1])
        if found[2] is None:
            return np.ones((), dtype)[()]
        x = np.zeros([int(length) for length in found[2].split(",") if length.strip()], dtype)  # which touches no memory
        for step in re.findall(r"\.T|\[[^\]]+\]", found[3]):
            x = x.T if step == ".T" else x[tuple(map(_index, step[1:-1].split(",")))]
    except (TypeError, ValueError, IndexError) as error:
        raise Wrong(f"{text!r}: {error}") from None
    return x


def dtype_of(name: str) -> np.dtype[Any]:
    if name == "bfloat16" and not info.load_bfloat16():
        raise Wrong("bfloat16 needs the package ml_dtypes, which is not installed")
    return np.dtype(name)


def _index(text: str) -> Any:
    """What stands between the commas of an index."""
    text = text.strip()
    if text in ("...", "None"):
        return {"...": ..., "None": None}[text]
    bounds = [int(bound) if bound.strip() else None for bound in text.split(":")]
    return slice(*bounds) if ":" in text else bounds[0]


# --- the story ----------------------------------------------------------------------------------------------------------------------------
def explain(operation: str, *texts: str, out: str | None = None) -> Story:
    """What is known of the call: the way of the first one in a process, in which nothing was compiled before; and of later ones, when its
    loop has been made and it is known what starting threads costs."""
    call = f"fastops.{operation}({', '.join(texts)}{'' if out is None else f', out={out}'})"
    try:
        operands = [operand(text) for text in texts]
        if operation == "scatter_div":
            if len(operands) != 3 or out is not None:
                raise Wrong("scatter_div takes input_x, indices and updates, and no output")
            return {"call": call, **_of_scatter_div(*operands)}
        if len(operands) != 2:
            raise Wrong(f"{operation} takes two operands")
        x1, x2 = operands
        result = {"x1": x1, "x2": x2, None: None}[out] if out in ("x1", "x2", None) else operand(str(out))
        return {"call": call, **_of_remainder(getattr(ufuncs, operation), x1, x2, result)}
    except MemoryError as error:
        raise Wrong(str(error)) from None


def _of_remainder(operation: dispatch.Remainder, x1: Any, x2: Any, out: Any) -> Story:
    try:
        shape = np.broadcast_shapes(*map(np.shape, (x1, x2) if out is None else (x1, x2, out)))
        if out is not None and np.shape(out) != shape:
            raise Wrong(f"the output has shape {np.shape(out)}, and the operands broadcast to {shape}")
        dtype = operation.resolve_dtypes((kind_of(x1), kind_of(x2), None if out is None else kind_of(out)))[0]
    except (TypeError, ValueError) as error:
        raise Wrong(str(error)) from None

    def tell() -> Story:
        found = rehearsal.of_remainder(operation, x1, x2, out)
        made = real_ufuncs.is_made(operation.__name__, dtype)
        way = NUMPY if found.way == UFUNC and not made else found.way
        workers = found.choice.workers if found.choice and way == DRIVER else 1
        return _story(way, workers, found.by_python, _whys_of_remainder(operation, x1, x2, dtype, way, found))

    def prepare() -> None:
        if real_ufuncs.is_served(dtype) and operation.loop(dtype):
            loops.launch()

    return {"elements": broadcast_size(x1, x2), "dtype": dtype.name, **_first_and_later(tell, prepare)}


def _whys_of_remainder(operation: Any, x1: Any, x2: Any, dtype: np.dtype[Any], way: str, found: rehearsal.Rehearsal) -> Iterator[str]:
    choice, size = found.choice, broadcast_size(x1, x2)
    if way == NUMPY and not real_ufuncs.is_served(dtype):
        yield f"fastops has no loop for {dtype}"
    elif way == NUMPY:
        yield (
            _unavailable()
            or real_ufuncs.problem
            or (f"no loop was compiled yet; the first call of {loops.LARGE:,} elements, or warmup, compiles it")
        )
    elif way == NATIVE:
        yield f"a call of C-contiguous arrays of {dtype}, or of one and a scalar, runs the loop at once"
        yield f"up to {_limit(operation, dtype):,} elements, from which threads pay by what this loop and the start of threads take here"
    elif choice is None or not choice.work:
        if size < loops.LARGE:
            yield f"fewer than {loops.LARGE:,} elements, but no C-contiguous arrays of one dtype and shape, or written in place"
        elif found.by_python:
            yield "operands that only NumPy's machine knows how to convert"
        else:
            few = f"fewer elements than the {_limit(operation, dtype):,} from which threads pay"
            yield f"arrays of one axis, strided or written in place, of {few}"
    else:
        yield from _whys_of_work(choice.work, choice.workers)
        if choice.is_driven and choice.plan is not None:
            rows, columns = choice.plan.tile
            yield f"the work is cut into {'tiles' if rows > 1 else 'segments'} of {f'{rows} x {columns}' if rows > 1 else columns} elements"
        elif choice.plan is not None:
            yield "long rows that need no tiles, for which NumPy's machine is as good"
        elif choice.was_planned:
            yield "operands of another dtype or byte order, that overlap the output, or with short axes only are for NumPy's machine"


def _of_scatter_div(x: Any, index: Any, updates: Any) -> Story:
    def tell() -> Story:
        try:
            found = rehearsal.of_scatter_div(x, index, updates)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise Wrong(str(error)) from None
        if found.way != KERNEL or found.operands is None:
            return _story(found.way, 1, found.by_python, _whys_of_small(x, updates, found))
        part, copied = _first_part(*found.operands)
        work, workers, (way, why, block) = scatter_compiled.choose(*part, CHECK, DIVIDE)
        whys = [*([MADE_PLAIN] if found.comes_again else []), *copied, *_whys_of_work(work, workers), *([why] if why else [])]
        workers = 1 if way == scatter_compiled.ALONE else workers
        return {**_story(KERNEL, workers, True, whys), "threads_by": way if workers > 1 else None, "block": block or None}

    def prepare() -> None:
        if not _unavailable():
            loops.launch()
            scatter.make_kernel(x.dtype.newbyteorder("="))

    told = _first_and_later(tell, prepare)  # which raises if this is no call
    return {"elements": np.size(updates), "dtype": x.dtype.newbyteorder("=").name, **told}


def _whys_of_small(x: Any, updates: Any, found: rehearsal.Rehearsal) -> Iterator[str]:
    if found.way == NATIVE:
        if found.comes_again:
            yield MADE_PLAIN
        yield f"plain arrays, and fewer elements than the {_limit(scatter.scatter_div, x.dtype):,} from which threads may pay"
    elif not (x.size and np.size(updates)):
        yield "there is nothing to divide"
    else:
        yield _unavailable() or (
            f"no kernel was compiled yet; it is by the first call of {scatter.LARGE:,} elements ({scatter.MANY} rows, of integers and "
            f"bfloat16), by {scatter.OFTEN:,} calls, or by warmup"
        )


def _first_part(x: Any, index: Any, by: Any) -> tuple[tuple[Any, Any, Any], list[str]]:
    """What is divided first, or all that is, and what is to be said of copies."""
    why, native = why_copied(x, index, by), x.dtype.newbyteorder("=")
    if not why:
        return (x, index, by), ["the operands are walked where they lie"]
    if scatter_compiled.is_copied_whole(x, by):
        copy = x.astype(native)
        part, more = _first_part(copy, index, by)
        return part, [f"through a copy of input_x: {why}", *more]
    each = scatter_compiled.updates_of_piece(x)
    cells, *others = pieces(index.shape, each)
    piece = np.zeros(index[(*cells, ...)].shape, index.dtype.newbyteorder("="))
    rows = x if x.dtype.isnative else np.zeros((min(len(x), piece.size), *x.shape[1:]), native)
    text = f"through copies, in pieces of up to {each:,} updates, of which there {'are' if others else 'is'} {1 + len(others):,}: {why}"
    return (rows, piece, np.zeros(piece.shape + x.shape[1:], native)), [text]


# --- what both have in common -------------------------------------------------------------------------------------------------------------
def _first_and_later(tell: Callable[[], Story], prepare: Callable[[], None]) -> Story:
    before = len(compiler.compiled())
    first = tell()
    first["compiles"] = len(compiler.compiled()) > before
    prepare()
    return {"first": first, "later": {**tell(), "compiles": False}}


def _story(way: str, workers: int, by_python: bool, whys: Iterable[str]) -> Story:
    return {"way": way, "threads": workers, "past_python": not by_python, "why": list(whys)}


def _whys_of_work(work: float, workers: int) -> Iterator[str]:
    """The cost of a call against that of threads."""
    least = threads.least()
    share = f"each needs {least / 2e3:,.0f} microseconds of it to pay for its start" + (
        "" if threads.start_is_known() else ", as long as that is not measured"
    )
    if not threads.worthwhile(work):
        yield f"{work / 1e3:,.1f} microseconds of work, about; a second thread pays from {least / 1e3:,.0f} microseconds on"
    elif workers > 1:
        yield f"{work / 1e3:,.1f} microseconds of work, about; {share}; this process may use up to {threads.limit()} threads"
    else:
        yield f"{work / 1e3:,.1f} microseconds of work, about, but this process may use one thread only"


def _limit(operation: Any, dtype: np.dtype[Any]) -> int:
    """Elements from which the native entry leaves calls to Python."""
    return int(operation._gate.served[min(dtype.num, vectorcall.BUILT_IN)].large)


def _unavailable() -> str:
    reason = info.why_unavailable()
    return reason and f"Numba cannot be used here: {reason}"


def lines(story: Story) -> Iterator[str]:
    """For people to read."""
    yield f"{'call':12}{story['call']}: {story['elements']:,} elements, computed as {story['dtype']}"
    for label, told in (("first call", story["first"]), ("later", story["later"])):
        if label == "later" and all(told[key] == story["first"][key] for key in ("way", "threads", "past_python")):
            yield f"{label:12}the same"
            continue
        by = f" by {told['threads_by']}" if told.get("threads_by") else ""
        entry = ", past Python" if told["past_python"] and told["way"] != NATIVE else ""
        yield f"{label:12}{WAYS[told['way']]}{entry}, on {told['threads']} thread{'s' * (told['threads'] != 1)}{by}"
        for why in (*told["why"], *(["it waits until the loop is compiled, or loaded"] if told["compiles"] else [])):
            yield textwrap.fill(why, 110, initial_indent=" " * 12 + "- ", subsequent_indent=" " * 14)
