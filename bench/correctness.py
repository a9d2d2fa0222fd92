"""Which library gets which edge case wrong: docs/peers.md.

    pip install -e '.[bench,peers]'
    python bench/correctness.py --write docs/peers.md --python tensorflow=../tf/bin/python --python mindspore=../ms/bin/python

Each library runs in a process of its own, for some cases end it; a new one then goes on. Without `--write` the tables are printed. It takes
some minutes. The cases are in edge_cases.py.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from compare import environment, interpreter, of_python
from edge_cases import RULES, Case, Rule, divisions, remainders
from libraries import LIBRARIES, versions
from onnx_rules import ENGINES, judged_rule
from remainders import REMAINDERS, goes_well
from report import Unfit, exit_code
from scatters import SCATTERS
from table import write
from values import DTYPES, Array, differences, example
from verdicts import Verdict, document

import fastops

SECONDS = 600  # that a process may take


def all_cases() -> list[Case]:
    return [*remainders(), *divisions()]


# --- in the process of a library ----------------------------------------------------------------------------------------------------------
def result(name: str, operation: str, operands: tuple[Array, ...]) -> Array:
    """Of one call; of what is computed in place, the array is noticed also when it raises."""
    if operation == "scatter_div":
        scatter = SCATTERS[name](*operands, 1)
        given = scatter.operands()
        try:
            return scatter.to_numpy(scatter.call(*given))
        except Exception as error:
            if not isinstance(given[0], list) and differences(scatter.to_numpy(given[0]), operands[0])[0]:
                raise PartlyWritten(type(error).__name__) from error
            raise
    return REMAINDERS[name](operation, *operands, np.empty_like(operands[0]), 1).result()


class PartlyWritten(Exception):
    """An error after the first write."""


def has(name: str, operation: str, dtype: np.dtype[Any]) -> bool:
    x = np.array([5, 5], dtype)
    if name not in (SCATTERS if operation == "scatter_div" else REMAINDERS):
        return False
    if operation == "scatter_div":
        return goes_well(SCATTERS[name], x, np.array([1], np.int64), np.array([2], dtype), 1)
    return goes_well(partial(REMAINDERS[name], operation), x, np.array([3, 2], dtype), np.empty_like(x), 1)


def judged(name: str, case: Case) -> tuple[str, str]:
    """ "right", "wrong", "refused" or "lacking", and details."""
    if not has(name, case.operation, DTYPES[case.dtype]):
        return "lacking", ""
    try:
        given = result(name, case.operation, case.operands)
    except PartlyWritten as error:
        return "wrong", f"{error}, with part of it written"
    except Exception as error:
        return "right" if case.expected is None else "refused", f"{type(error).__name__}"
    if case.expected is None:
        return "wrong", f"no error, but {given.tolist()}"
    wrong, place = differences(given, case.expected)
    if not wrong:
        return "right", ""
    if case.operation == "scatter_div":
        return "wrong", f"{given.tolist()}, not {case.expected.tolist()}"
    return "wrong", example(case.operation, case.operands, given, case.expected, place)


def work(name: str, start: int) -> None:
    """Say of each case, beginning with a number, what becomes of it."""
    say({"versions": {"fastops": fastops.__version__, **versions()}})
    np.seterr(all="ignore")
    judge, cases = (judged_rule, RULES) if name in ENGINES else (judged, all_cases())
    for number, case in enumerate(cases[start:], start):
        say({"case": number})
        verdict, details = judge(name, case)
        say({"case": number, "verdict": verdict, "details": details})


def say(what: dict[str, Any]) -> None:
    print(f"\n>>>{json.dumps(what)}", flush=True)


# --- in the process that was called -------------------------------------------------------------------------------------------------------
def verdicts(name: str, python: str, cases: Sequence[Case | Rule], found: dict[str, str]) -> Iterator[Verdict]:
    """From as many processes as it takes; `found` receives the versions."""
    at = 0
    while at < len(cases):
        command = [python, str(Path(__file__)), "--worker", name, str(at)]
        before = at
        try:
            done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=SECONDS)
            output, ended = done.stdout, how_ended(done.returncode)
        except subprocess.TimeoutExpired as timeout:
            output, ended = (timeout.stdout or b"").decode(), "does not end"
        for line in output.splitlines():
            if line.startswith(">>>"):
                told = json.loads(line[3:])
                found.update(told.get("versions", {}))
                if "verdict" in told:
                    yield Verdict(name, cases[told["case"]], told["verdict"], told["details"])
                    at = told["case"] + 1
        if at < len(cases):
            if not ended or f'{{"case": {at}}}' not in output:
                raise Unfit(f"{name}: the process says nothing of case {at}: {ended}, from {before}")
            yield Verdict(name, cases[at], "crashed", ended)
            at += 1


def how_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}" if code else ""
    return signal.Signals(-code).name


def judge_all(options: argparse.Namespace) -> None:
    found: dict[str, str] = {}
    skipped: dict[str, str] = {}
    judgements: list[Verdict] = []
    for name in (*LIBRARIES, *ENGINES):
        package = ENGINES[name] if name in ENGINES else LIBRARIES[name].package
        python, problem = interpreter(package, dict(options.python))
        print(f"{name}: {problem or 'runs'}", file=sys.stderr)
        if problem:
            skipped[name] = problem
        else:
            judgements += verdicts(name, python, RULES if name in ENGINES else all_cases(), found)
    text = document(judgements, found, skipped, date.today())
    if options.write:
        write(options.write, {"correctness": text})
    else:
        print(text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", type=of_python, default=[], metavar="PACKAGE=INTERPRETER")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the file that has the markers <!-- correctness:begin --> and :end")
    parser.add_argument("--worker", nargs=2, metavar=("LIBRARY", "START"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(options.worker[0], int(options.worker[1]))
        return 0
    return exit_code("correctness.py", lambda: judge_all(options))


if __name__ == "__main__":
    sys.exit(main())
