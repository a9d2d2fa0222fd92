"""`fastops explain`: which way a call takes, on how many threads, and why, by a rehearsal of it (rehearsal.py)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from . import dispatch, info, loops, real_ufuncs, rehearsal, scatter, scatter_compiled, scatter_sharing, ufuncs
from .engine import compiler, threads, vectorcall
from .engine.operands import broadcast_size, kind_of
from .kernels.scatter_plan import CHECK, DIVIDE
from .operand_texts import Wrong, operand
from .rehearsal import DRIVER, KERNEL, NATIVE, NUMPY, UFUNC
from .scatter_operands import pieces, why_copied

WAYS = {
    NUMPY: "NumPy's own loop",
    NATIVE: "the native entry",
    UFUNC: "fastops' loop in NumPy's ufunc machine",
    DRIVER: "fastops' driver",
    KERNEL: "the kernel",
}
MADE_PLAIN = "operands of few elements and of another dtype, byte order or layout are made plain first"
Story = dict[str, Any]


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
    dtype = _dtype_of_remainder(operation, x1, x2, out)

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


def _dtype_of_remainder(operation: dispatch.Remainder, x1: Any, x2: Any, out: Any) -> np.dtype[Any]:
    """That of the loop, if the call is one."""
    if out is not None and not isinstance(out, np.ndarray):
        raise Wrong("the output must be an array, as float32[1000] is one, and neither float32 nor 7")  # for which NumPy 2.4 crashes
    kinds = [kind_of(x1), kind_of(x2)]
    try:
        shape = np.broadcast_shapes(*map(np.shape, (x1, x2) if out is None else (x1, x2, out)))
        operation.resolve_dtypes((*kinds, None))
    except ValueError as error:
        raise Wrong(str(error)) from None
    except TypeError:
        names = " and ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
        raise Wrong(f"there is no {operation.__name__} of {names}; fastops has loops for {', '.join(info.DTYPES)}") from None
    if out is not None and out.shape != shape:
        raise Wrong(f"the output has shape {out.shape}, and the operands broadcast to {shape}")
    try:
        dtypes: tuple[np.dtype[Any], ...] = operation.resolve_dtypes((*kinds, None if out is None else out.dtype))
    except TypeError as error:
        raise Wrong(str(error)) from None
    for x, dtype in zip((x1, x2), dtypes, strict=False):
        _check_integer(x, dtype)
    return dtypes[0]


def _check_integer(x: Any, dtype: np.dtype[Any]) -> None:
    """A number of Python's is of the other operand's dtype, and must fit it."""
    if type(x) is not int:
        return
    try:
        with np.errstate(all="ignore"):
            np.array(x, dtype)
    except (OverflowError, TypeError):
        limits = f", which has {np.iinfo(dtype).min} to {np.iinfo(dtype).max}" if dtype.kind in "iu" else ""
        raise Wrong(f"the integer {x} is out of bounds for {dtype}{limits}") from None


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
        _check_numbers(x, index, updates)
        if found.way != KERNEL or found.operands is None:
            return _story(found.way, 1, found.by_python, _whys_of_small(x, updates, found))
        part, copied = _first_part(*found.operands)
        work, workers, (way, why, block) = scatter_compiled.choose(*part, CHECK, DIVIDE, order=scatter_sharing.Order())
        whys = [*([MADE_PLAIN] if found.comes_again else []), *copied, *_whys_of_work(work, workers), *([why] if why else [])]
        if workers > 1 and scatter_sharing.may_have_ranges(part[1].size, workers):
            whys[-1] += ", if indices come in no order; threads share those that ascend or descend by ranges of rows"
        workers = 1 if way == scatter_sharing.ALONE else workers
        return {**_story(KERNEL, workers, True, whys), "threads_by": way if workers > 1 else None, "block": block or None}

    def prepare() -> None:
        if not _unavailable():
            loops.launch()
            scatter.make_kernel(x.dtype.newbyteorder("="))

    told = _first_and_later(tell, prepare)  # which raises if this is no call
    return {"elements": np.size(updates), "dtype": x.dtype.newbyteorder("=").name, **told}


def _check_numbers(x: Any, index: Any, updates: Any) -> None:
    """What `scatter_div` raises for, whatever there is in arrays."""
    if np.size(index) and not len(x):
        raise Wrong("input_x has no rows that indices could name")
    if type(index) is int and not 0 <= index < len(x):
        raise Wrong(f"indices is {index}, outside of the valid range [0, {len(x)}) of rows of input_x")
    if type(updates) is int and not updates and x.dtype.kind in "iu":
        raise Wrong(f"{x.dtype.newbyteorder('=')} is to be divided by zero")


def _whys_of_small(x: Any, updates: Any, found: rehearsal.Rehearsal) -> Iterator[str]:
    if found.way == NATIVE:
        if found.comes_again:
            yield MADE_PLAIN
        limit = _limit(scatter.scatter_div, x.dtype)
        if np.size(updates) < limit:
            yield f"plain arrays, and fewer elements than the {limit:,} from which threads may pay"
        else:
            yield "plain arrays, and rows of one element of a near input_x: threads pay only for many indices that ascend or descend"
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
    count = story["elements"]
    yield f"{'call':12}{story['call']}: {count:,} element{'s' * (count != 1)}, computed as {story['dtype']}"
    for label, told in (("first call", story["first"]), ("later", story["later"])):
        if label == "later" and all(told[key] == story["first"][key] for key in ("way", "threads", "past_python")):
            yield f"{label:12}the same"
            continue
        by = f" by {told['threads_by']}" if told.get("threads_by") else ""
        past = ["Python"] * told["past_python"] + ["NumPy"] * (told["way"] == NATIVE)
        entry = f", past {' and '.join(past)}" if past else ""
        yield f"{label:12}{WAYS[told['way']]}{entry}, on {told['threads']} thread{'s' * (told['threads'] != 1)}{by}"
        for why in (*told["why"], *(["it waits until the loop is compiled, or loaded"] if told["compiles"] else [])):
            yield textwrap.fill(why, 110, initial_indent=" " * 12 + "- ", subsequent_indent=" " * 14)
