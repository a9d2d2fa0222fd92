"""The command line: `fastops`, or `python -m fastops`."""

from __future__ import annotations

import argparse
import errno
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .help_texts import CODES, EXAMPLES, SAYS


class Answer(NamedTuple):
    """What is printed, for people or for machines, and the exit code."""

    lines: Iterable[str]
    data: Any
    code: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser, commands = _parsers("fastops" if Path(sys.argv[0]).stem == "fastops" else "python -m fastops")
    if arguments[:1] == ["run"] and arguments[1:2] not in (["-h"], ["--help"]):
        from . import running

        return running.run(commands["run"], arguments[1:])
    with _leaving_quietly():
        options = parser.parse_args(arguments)
        if options.command == "run":
            parser.error("run goes first")
        if options.command not in (None, "jobs") and options.size is not None:
            parser.error(f"--size goes with the jobs, not with {options.command}")
        answer: Answer = options.answer(commands.get(options.command, parser), options)
        lines = [json.dumps(answer.data, indent=2)] if options.json else answer.lines
        print("".join(f"{line}\n" for line in lines), end="")
        return answer.code


@contextmanager
def _leaving_quietly() -> Iterator[None]:
    """No traceback if the user interrupts, or if nobody reads on, as behind `| head`."""
    try:
        try:
            yield
        finally:
            if sys.stdout:  # which is None where it was closed
                sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and not (os.name == "nt" and error.errno == errno.EINVAL):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at its end
        sys.exit(141)


# --- the arguments ------------------------------------------------------------------------------------------------------------------------
def _checked(rule: str, convert: Callable[[str], Any], is_right: Callable[[Any], bool]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = convert(text)
            right = is_right(value)
        except ValueError:
            right = False
        if not right:
            raise argparse.ArgumentTypeError(f"{rule}, got {text!r}")
        return value

    return read


_fraction = _checked("F is a positive number", float, lambda value: 0 < value < math.inf)
_sizes = _checked("sizes are positive integers, separated by commas", lambda text: [*map(int, text.split(","))], lambda ns: min(ns) > 0)


def _parsers(prog: str) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """That of the whole, and those of the commands by name."""

    def texts(name: str) -> dict[str, Any]:
        epilog = f"examples:{EXAMPLES[name].format(prog=prog)}" + (f"\n\n{CODES}" if name != "run" else "")
        return {"description": SAYS[name], "epilog": epilog, "formatter_class": argparse.RawDescriptionHelpFormatter}

    def add_json(parser: argparse.ArgumentParser, default: Any) -> None:
        parser.add_argument("--json", action="store_true", default=default, help="print one JSON object, for programs")

    parser = argparse.ArgumentParser(prog, **texts(""))
    parser.set_defaults(answer=_jobs)
    add_json(parser, False)
    group = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    commands = {
        name: group.add_parser(name, help=SAYS[name].splitlines()[0].replace("%", "%%"), **texts(name)) for name in list(EXAMPLES)[1:]
    }
    for name, answer in (("jobs", _jobs), ("info", _info), ("warmup", _warm_up), ("bench", _bench), ("explain", _explain)):
        commands[name].set_defaults(answer=answer)
        add_json(commands[name], argparse.SUPPRESS)
    for of_jobs, default in ((parser, None), (commands["jobs"], argparse.SUPPRESS)):
        said = "multiple of the jobs' full size, below 1 or above (default: 1)"
        of_jobs.add_argument("--size", type=_fraction, metavar="F", default=default, help=said)
    commands["warmup"].add_argument("dtypes", nargs="*", metavar="DTYPE", help="what to compile for (default: all twelve)")
    commands["run"].usage = f"{prog} run [-m] PROGRAM [ARGUMENT ...]"
    commands["run"].add_argument("program", nargs="...", metavar="PROGRAM", help="a script, or -m and a module, and what it is given")
    commands["bench"].add_argument("dtypes", nargs="*", metavar="DTYPE", help="dtypes of the twelve (default: four of them)")
    commands["bench"].add_argument("--sizes", type=_sizes, default=[1_000_000], metavar="N,N,...", help="elements (default: 1000000)")
    commands["bench"].add_argument("--plot", type=Path, metavar="FILE.png", help="draw a chart (needs matplotlib)")
    commands["explain"].add_argument("operation", choices=["mod", "remainder", "fmod", "scatter_div"])
    commands["explain"].add_argument("operands", nargs="+", metavar="OPERAND", help="such as 'float32[1000,500]', float32, or 7")
    commands["explain"].add_argument("--out", metavar="OPERAND", help="where a remainder is written to: an operand, or x1 or x2")
    return parser, commands


# --- the answers --------------------------------------------------------------------------------------------------------------------------
def _jobs(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Answer:
    from . import jobs

    size = 1.0 if options.size is None else options.size
    with _within_memory(parser, f"--size {size:g}", size * max(job.elements for job in jobs.JOBS)):
        outcomes = jobs.run(size)
    equal = all(outcome is None or outcome.equal for outcome in outcomes.values())
    return _compared(jobs.table(outcomes, size), equal, jobs=jobs.data(outcomes, size))


def _info(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Answer:
    from . import info

    return Answer(info.lines(), info.data())


def _bench(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Answer:
    from . import comparison, info

    parts = _parts(parser, options.dtypes or comparison.DTYPES)
    if options.plot and (reason := comparison.why_no_plot(options.plot)):
        parser.error(reason)
    if reason := info.why_unavailable():
        return _failed(f"There is nothing to compare, since Numba cannot be used here: {reason}")
    with _within_memory(parser, f"--sizes {','.join(map(str, options.sizes))}", max(options.sizes)):
        outcomes = comparison.run(options.dtypes or comparison.DTYPES, options.sizes, parts)
    if options.plot:
        comparison.plot(outcomes, options.plot)
    equal = all(outcome.equal for outcome in outcomes)
    return _compared(comparison.table(outcomes), equal, results=[outcome._asdict() for outcome in outcomes])


def _explain(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Answer:
    from . import explaining, operand_texts

    try:
        story = explaining.explain(options.operation, *options.operands, out=options.out)
    except operand_texts.Wrong as error:
        parser.error(str(error))
    return Answer(explaining.lines(story), story)


def _warm_up(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Answer:
    from . import info, warming

    parts = _parts(parser, options.dtypes)
    if reason := info.why_unavailable():
        return _failed(f"Nothing was compiled, since Numba cannot be used here: {reason}")
    told = warming.run(options.dtypes, parts)
    return Answer(warming.lines(told), told, int("error" in told))


def _parts(parser: argparse.ArgumentParser, dtypes: Sequence[str]) -> list[tuple[str, Callable[[], object]]]:
    """What is to be compiled for those dtypes."""
    from . import info, ufuncs

    if not info.load_bfloat16() and "bfloat16" in dtypes:
        parser.error("bfloat16 needs the package ml_dtypes, which is not installed")
    try:
        return ufuncs.parts(*dtypes)
    except TypeError as error:
        parser.error(f"{error} (choose from {', '.join(info.DTYPES)})")


@contextmanager
def _within_memory(parser: argparse.ArgumentParser, asked: str, elements: float) -> Iterator[None]:
    """Arrays of more than there is were asked for, or of more than NumPy can count."""
    try:
        if elements > sys.maxsize // 64:
            raise MemoryError(f"arrays of {elements:.1e} elements")
        yield
    except MemoryError as error:
        parser.error(f"{asked} takes more memory than there is: {error}")


def _compared(lines: Iterable[str], equal: bool, **data: Any) -> Answer:
    from . import info

    machine = info.summary()
    return Answer([*lines, machine], {"machine": machine, **data, "equal": equal}, int(not equal))


def _failed(reason: str) -> Answer:
    print(reason, file=sys.stderr)
    return Answer([], {"error": reason}, 1)


if __name__ == "__main__":
    sys.exit(main())
