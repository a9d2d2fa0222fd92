"""The command line: `python -m fastops`, `python -m fastops info` and `python -m fastops warmup`."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
from collections.abc import Sequence


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError
    return value


_fraction.__name__ = "positive number"  # what argparse calls it


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fastops",
        description="Without arguments: do a few jobs that people have, by NumPy and by fastops, compare the results bit for bit, and\n"
        "show the times. With 'info': show versions, processor, threads, and which compiled code is kept where. With 'warmup':\n"
        "compile all that fastops runs, or load it from the cache, so that no later process has to compile.",
        epilog="examples:\n"
        "  python -m fastops                        the jobs; the first run also compiles, which takes some seconds\n"
        "  python -m fastops --size 0.05            the same on a twentieth of the data\n"
        "  python -m fastops info                   what to quote when you report a problem\n"
        "  python -m fastops warmup                 compile for all twelve dtypes\n"
        "  python -m fastops warmup float32 int64   compile for these\n\n"
        "exit codes: 0 all results equal, everything compiled; 1 a result differs, something cannot be compiled; 2 wrong usage",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", choices=["info", "warmup"], help="what to do instead of the jobs")
    parser.add_argument("dtypes", nargs="*", help="what to compile for (default: all twelve)")
    parser.add_argument("--size", type=_fraction, metavar="F", help="fraction of the jobs' full size (default: 1)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command and options.size is not None:
        parser.error(f"--size goes with the jobs, not with {options.command}")
    if options.command == "warmup":
        return _warm_up(parser, options.dtypes)
    if options.dtypes:
        parser.error(f"dtypes go with warmup, not with {options.command}")
    from . import info, jobs

    if options.command == "info":
        print(*info.lines(), sep="\n")
        return 0
    size = 1.0 if options.size is None else options.size
    outcomes = jobs.run(size)
    print(*jobs.table(outcomes, size), info.summary(), sep="\n")
    return int(any(outcome is not None and not outcome.equal for outcome in outcomes.values()))


def _warm_up(parser: argparse.ArgumentParser, dtypes: Sequence[str]) -> int:
    from . import info, jobs, ufuncs
    from .engine import compiler

    start = time.perf_counter()
    try:
        importlib.import_module("ml_dtypes")  # it tells NumPy what bfloat16 is
    except ImportError:
        if "bfloat16" in dtypes:
            parser.error("bfloat16 needs the package ml_dtypes, which is not installed")
        if not dtypes:
            print("bfloat16 is left out, since ml_dtypes is not installed.")
    try:
        parts = ufuncs.parts(*dtypes)
    except TypeError as error:
        parser.error(f"{error} (choose from {', '.join(info.DTYPES)})")
    try:
        compiler.numba()
    except compiler.Unavailable as reason:
        print(f"Nothing was compiled, since Numba cannot be used here: {reason}", file=sys.stderr)
        return 1
    for _, make in jobs.progress(parts, "compiling", len(parts)):
        make()
    made = compiler.compiled()
    loaded = sum(function.from_cache for function in made)
    seconds = time.perf_counter() - start
    print(f"{len(made)} functions in {seconds:.1f} s: {len(made) - loaded} compiled, {loaded} loaded from the cache.")
    try:
        compiler.numba()
    except compiler.Unavailable:
        return 1  # a warning said why
    print(f"The cache: {info.cache_text(info.cache_place())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
