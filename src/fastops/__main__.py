"""The command line: `python -m fastops`, and with `info`, `warmup` and `run`."""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import io
import math
import os
import pkgutil
import sys
import time
import types
from collections.abc import Sequence
from typing import NoReturn


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
        "compile all that fastops runs, or load it from the cache, so that no later process has to compile. With 'run': run an\n"
        "unchanged program with NumPy patched: its %, numpy.remainder and numpy.fmod run fastops' loops, in every library.",
        epilog="examples:\n"
        "  python -m fastops                        the jobs; the first run also compiles, which takes some seconds\n"
        "  python -m fastops --size 0.05            the same on a twentieth of the data\n"
        "  python -m fastops info                   what to quote when you report a problem\n"
        "  python -m fastops warmup                 compile for all twelve dtypes\n"
        "  python -m fastops warmup float32 int64   compile for these\n"
        "  python -m fastops run script.py -x 3     run a script; what follows its name is its own\n"
        "  python -m fastops run -m module -x 3     run a module, as python -m does\n\n"
        "exit codes: 0 all results equal, everything compiled; 1 a result differs, something cannot be compiled; 2 wrong usage;\n"
        "with run, the program's own",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", choices=["info", "warmup", "run"], help="what to do instead of the jobs")
    parser.add_argument("dtypes", nargs="*", help="what to compile for (default: all twelve)")
    parser.add_argument("--size", type=_fraction, metavar="F", help="fraction of the jobs' full size (default: 1)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["run"] and arguments[1:2] not in (["-h"], ["--help"]):
        return _run(parser, list(arguments[1:]))
    options = parser.parse_args(arguments)
    if options.command == "run":
        parser.error("run goes first")
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


def _run(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Run a script, or a module after -m, with NumPy patched and all else as if Python itself had been asked to run it."""
    import fastops

    is_module = arguments[:1] == ["-m"]
    arguments = arguments[is_module:]
    if not arguments or arguments[0].startswith("-"):
        parser.error("run wants the name of a script, or -m and the name of a module")
    try:
        fastops.patch_numpy()
    except RuntimeError as error:
        _stop(str(error), 1)
    main = types.ModuleType("__main__")
    sys.argv[:] = arguments
    sys.modules["__main__"] = main  # where pickle and multiprocessing look for what the program defines
    try:
        exec((_module if is_module else _script)(arguments[0], main), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        # Shown as Python would, from the program's first frame on; raised again for the exit code alone.
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.excepthook = lambda *_: None
        raise
    return 0


def _script(path: str, main: types.ModuleType) -> types.CodeType:
    """The code of a script, or of the `__main__.py` in a folder or a zip file."""
    file = os.path.abspath(path)
    importer = pkgutil.get_importer(file)
    if not sys.flags.safe_path:
        sys.path[0] = file if importer else os.path.dirname(os.path.realpath(path))
    if importer:
        spec = importer.find_spec("__main__", None)
        return _code(spec, main) if spec else _stop(f"can't find '__main__' module in {file!r}", 1)
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        _stop(f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}", 2)
    # No __spec__: processes that multiprocessing spawns then find the script by its file, as they do under Python.
    main.__dict__.update(__file__=file, __cached__=None, __loader__=importlib.machinery.SourceFileLoader("__main__", file))
    return compile(source, file, "exec", dont_inherit=True)


def _module(name: str, main: types.ModuleType) -> types.CodeType:
    """The code of a module, or of the `__main__` of a package."""
    try:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # something that the package imports
        spec = None
    if not spec:
        _stop(f"No module named {name!r}, or it is a package without a '__main__'", 1)
    code = _code(spec, main)
    sys.argv[0] = main.__file__ or name
    return code


def _code(spec: importlib.machinery.ModuleSpec, main: types.ModuleType) -> types.CodeType:
    get_code = getattr(spec.loader, "get_code", None)
    code: types.CodeType | None = get_code(spec.name) if get_code else None
    if not code:
        _stop(f"there is no code in {spec.name!r}", 1)
    main.__dict__.update(__file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader, __spec__=spec, __package__=spec.parent)
    return code


def _stop(message: str, code: int) -> NoReturn:
    print(f"python -m fastops run: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    sys.exit(main())
