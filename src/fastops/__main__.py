"""The command line: `python -m fastops` and `python -m fastops info`."""

from __future__ import annotations

import argparse
import math
import sys
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
        "show the times. With 'info': show versions, processor, threads, and which compiled code is kept where.",
        epilog="examples:\n"
        "  python -m fastops               the jobs; the first run also compiles, which takes some seconds\n"
        "  python -m fastops --size 0.05   the same on a twentieth of the data\n"
        "  python -m fastops info          what to quote when you report a problem\n\n"
        "exit codes: 0 all results equal, 1 a result differs, 2 wrong usage",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", choices=["info"], help="show the installation instead of running the jobs")
    parser.add_argument("--size", type=_fraction, metavar="F", help="fraction of the jobs' full size (default: 1)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "info":
        if options.size is not None:
            parser.error("--size goes with the jobs, not with info")
        from . import info

        print(*info.lines(), sep="\n")
        return 0
    from . import info, jobs

    size = 1.0 if options.size is None else options.size
    outcomes = jobs.run(size)
    print(*jobs.table(outcomes, size), info.summary(), sep="\n")
    return int(any(outcome is not None and not outcome.equal for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
