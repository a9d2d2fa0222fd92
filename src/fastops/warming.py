"""`fastops warmup`: how much was compiled, how much loaded, and where it is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import info, real_ufuncs
from .engine import compiler
from .jobs import progress


def run(dtypes: Sequence[str], parts: Sequence[tuple[str, Callable[[], object]]]) -> dict[str, Any]:
    """What came of it, for programs; the dtypes are those that were asked for."""
    start = time.perf_counter()
    for _, make in progress(parts, "compiling", len(parts)):
        make()
    made = compiler.compiled()
    loaded = sum(function.from_cache for function in made)
    told = {
        "functions": len(made),
        "compiled": len(made) - loaded,
        "loaded": loaded,
        "seconds": time.perf_counter() - start,
        "left_out": [] if dtypes or real_ufuncs.bfloat16() else ["bfloat16"],
    }
    if reason := info.why_unavailable():  # by now: a warning said it, too
        return {**told, "error": reason}
    place = info.cache_place()
    return {**told, "cache": place and str(place)}


def lines(told: dict[str, Any]) -> Iterator[str]:
    """For people."""
    for name in told["left_out"]:
        yield f"{name} is left out, since ml_dtypes is not installed."
    yield f"{told['functions']} functions in {told['seconds']:.1f} s: {told['compiled']} compiled, {told['loaded']} loaded from the cache."
    if "error" not in told:
        yield f"The cache: {info.cache_text(info.cache_place())}"
