"""`fastops run`: an unchanged program, with NumPy patched."""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import sys
import types


class _NoProgram(Exception):
    """There is none to be run, and that is the exit code."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.text, self.code = text, code


def run(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Run a script, or a module after -m, with NumPy patched and all else as if Python itself had been asked to run it."""
    import fastops

    is_module = arguments[:1] == ["-m"]
    arguments = arguments[is_module:]
    if not arguments or arguments[0].startswith("-"):
        parser.error("it wants the name of a script, or -m and the name of a module")
    try:
        fastops.patch_numpy()
    except RuntimeError as error:
        return _stop(parser, _NoProgram(str(error), 1))
    main = types.ModuleType("__main__")
    sys.argv[:] = arguments
    sys.modules["__main__"] = main  # where pickle and multiprocessing look for what the program defines
    try:
        exec((_module if is_module else _script)(arguments[0], main), main.__dict__)
    except SystemExit:
        raise
    except _NoProgram as reason:
        return _stop(parser, reason)
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
        if not spec:
            raise _NoProgram(f"can't find '__main__' module in {file!r}", 1)
        return _code(spec, main)
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        raise _NoProgram(f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}", 2) from None
    # No __spec__: processes that multiprocessing spawns then find the script by its file, as they do under Python.
    main.__dict__.update(__file__=file, __cached__=None, __loader__=importlib.machinery.SourceFileLoader("__main__", file))
    return compile(source, file, "exec", dont_inherit=True)


def _module(name: str, main: types.ModuleType) -> types.CodeType:
    """The code of a module, or of the `__main__` of a package."""
    if name.startswith("."):
        raise _NoProgram("relative module names are not supported", 1)
    if name in sys.modules and getattr(sys.modules[name], "__spec__", None) is None:
        raise _NoProgram(f"there is no module specification of {name!r}", 1)
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()  # not where a console script lies
    try:
        spec = importlib.util.find_spec(name) if name else None
        if spec and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # something that the package imports
        spec = None
    if not spec:
        raise _NoProgram(f"No module named {name!r}, or it is a package without a '__main__'", 1)
    code = _code(spec, main)
    sys.argv[0] = main.__file__ or name
    return code


def _code(spec: importlib.machinery.ModuleSpec, main: types.ModuleType) -> types.CodeType:
    get_code = getattr(spec.loader, "get_code", None)
    code: types.CodeType | None = get_code(spec.name) if get_code else None
    if not code:
        raise _NoProgram(f"there is no code in {spec.name!r}", 1)
    main.__dict__.update(__file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader, __spec__=spec, __package__=spec.parent)
    return code


def _stop(parser: argparse.ArgumentParser, reason: _NoProgram) -> int:
    print(f"{parser.prog}: {reason.text}", file=sys.stderr)
    return reason.code
