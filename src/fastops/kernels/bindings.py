"""What the templates in loops.py are given for one operation and dtype: typed memory, and the formulas of modulus.py as intrinsics."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import types

from .lanes import Lane, operation, where
from .modulus import (
    Processor,
    Reduction,
    divided_remainder,
    finish,
    floored,
    formats,
    integer_remainder,
    is_invalid,
    magnitude,
    truncated,
    unsigned,
)
from .primitives import DIVIDE, INVALID, reader, scratch, writer

BLOCK = 256  # elements computed at a time: their operands and results stay in the first-level cache


def memory(kind: Any) -> dict[str, Any]:
    size = kind.bitwidth // 8
    return {"SIZE": size, "BLOCK": BLOCK, "read": reader(kind), "write": writer(kind), "scratch": scratch(BLOCK * size)}


def integer_names(name: str, dtype: str) -> dict[str, Any]:
    """The names in `loops.integer_loop` for one operation and dtype."""
    kind: Any = getattr(types, dtype.lstrip("u").replace("int", "uint"))
    signs = unsigned if dtype.startswith("u") else floored if name == "remainder" else truncated
    return {
        **memory(kind),
        "DIVIDE": DIVIDE,
        "remainder": operation(partial(signs, integer_remainder), kind, kind, kind),
        "single_remainder": operation(partial(signs, divided_remainder), kind, kind, kind),
        "note": operation(lambda y, notes: notes | where(y == 0, y.constant(1), y.constant(0)), kind, kind, kind),
        "clear": np.dtype(kind.name).type(0),
    }


def float_names(name: str, dtype: str, processor: Processor) -> dict[str, Any]:
    """The names in `loops.float_loop` for one operation and dtype."""
    form = formats(processor)[dtype]
    kind: Any = {"float64": types.float64, "float32": types.float32}.get(dtype, types.uint16)
    reduction = Reduction(form.significand, processor.fused)

    def both(x: Lane, y: Lane) -> tuple[Lane, Lane]:
        return magnitude(form.widen(x)), magnitude(form.widen(y))

    def finished(r: Lane, x: Lane, y: Lane) -> Lane:
        return form.round(finish(name == "remainder", r, form.widen(x), form.widen(y)))

    def remainder(x: Lane, y: Lane) -> Lane:
        return finished(reduction.step(*both(x, y)), x, y)

    def note(x: Lane, y: Lane, notes: Lane) -> Lane:
        x, y = both(x, y)
        return notes + is_invalid(x, y).extend(notes.type) + (reduction.unfinished(x, y).extend(notes.type) << 32)

    def start(x: Lane) -> Lane:
        return magnitude(form.widen(x))

    def partial_step(r: Lane, y: Lane) -> Lane:
        return reduction.partial_step(r, start(y))

    def more_steps(r: Lane, y: Lane, notes: Lane) -> Lane:
        return notes + reduction.more_steps(r, start(y)).extend(notes.type)

    double: Any = types.float64
    word: Any = types.uint64
    return {
        **memory(kind),
        "INVALID": INVALID,
        "remainder": operation(remainder, kind, kind, kind),
        "note": operation(note, word, kind, kind, word),
        "start": operation(start, double, kind),
        "partial_step": operation(partial_step, double, double, kind),
        "more_steps": operation(more_steps, word, double, kind, word),
        "low_count": operation(lambda notes: notes & 0xFFFFFFFF, word, word),
        "high_count": operation(lambda notes: notes >> 32, word, word),
        "clear": np.uint64(0),
        "finish": operation(finished, kind, double, kind, kind),
        "read_double": reader(double),
        "write_double": writer(double),
        "scratch_double": scratch(BLOCK * 8),
    }
