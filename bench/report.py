"""What the JSON of the benchmarks says: the medians of each cell, and how many times as fast one member is as another."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

from libraries import LIBRARIES

OPERATIONS = {"remainder": "`mod`", "fmod": "`fmod`"}
PATTERNS = {
    "arrays": "array by array",
    "by_scalar": "by a scalar",
    "by_row": "by a row",
    "by_column": "by a column",
    "strided": "strided",
}
SIZE = 1_000_000  # of the tables in the README


class Unfit(Exception):
    """The JSON or the file to write to is not as needed; the text says why."""


def exit_code(program: str, work: Callable[[], int | None]) -> int:
    """Of a program that does this work: 1, after a line that says why, if something is unfit for it."""
    try:
        return work() or 0
    except (Unfit, OSError) as problem:
        print(f"{program}: {problem}", file=sys.stderr)
        return 1


class Cell(NamedTuple):
    operation: str
    pattern: str
    dtype: str
    values: str  # "small" or "whole", of the dtype's whole range
    size: int
    part: str  # of the comparison
    threads: int

    def title(self) -> str:
        return f"{OPERATIONS.get(self.operation, self.operation)}, {PATTERNS.get(self.pattern, self.pattern)}"


Times = dict[Cell, dict[str, dict[str, list[list[float]]]]]  # by run, member and turn
Ratios = dict[Cell, float]


def load(path: Path) -> Any:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unfit(f"{path}: {error}") from error
    if not isinstance(report, dict) or not isinstance(report.get("benchmarks"), Iterable):
        raise Unfit(f"{path} is no report of pytest-benchmark")
    return report


def cell_of(info: Mapping[str, Any]) -> Cell:
    given = {field: info.get(field, "") for field in ("operation", "pattern", "dtype", "values", "part")}
    return Cell(**given, size=info.get("size", 0), threads=info.get("threads", 0))


def times(report: Mapping[str, Any], wanted: Callable[[Cell], bool] = lambda cell: True) -> Times:
    """The rounds of the cells that are wanted."""
    found: Times = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        if wanted(cell := cell_of(info)):
            found[cell][info.get("run", "")][info["member"]].append(benchmark["stats"]["data"])
    return found


def typical(turns: Iterable[Sequence[float]]) -> float:
    """The median of the rounds; those of all turns count alike."""
    return median([seconds for turn in turns for seconds in turn])


def seconds(runs: Mapping[str, Mapping[str, list[list[float]]]], member: str) -> float | None:
    """What a member takes, in the first run that has it."""
    return next((typical(members[member]) for members in runs.values() if member in members), None)


def speed_ups(found: Times, slow: str, fast: str) -> Ratios:
    """How many times as fast the second member is as the first, in the cells where a run has both."""
    ratios = {
        cell: [typical(members[slow]) / typical(members[fast]) for members in runs.values() if {slow, fast} <= members.keys()]
        for cell, runs in found.items()
    }
    return {cell: geometric_mean(values) for cell, values in ratios.items() if values}


def members(found: Times) -> list[str]:
    """In the order of the table of libraries."""
    names = {member for runs in found.values() for run in runs.values() for member in run}
    return [name for name in LIBRARIES if name in names] + sorted(names - LIBRARIES.keys())


def wrong(report: Mapping[str, Any]) -> dict[tuple[Cell, str], dict[str, Any]]:
    """Of the cells and members with other bits than NumPy's: how many elements, and an example."""
    infos = (benchmark["extra_info"] for benchmark in report["benchmarks"])
    return {(cell_of(info), info["member"]): info for info in infos if info.get("wrong")}


def versions(report: Mapping[str, Any]) -> Mapping[str, str]:
    return report["machine_info"].get("versions", {})


def title(name: str, report: Mapping[str, Any]) -> str:
    """A library with its version."""
    library = LIBRARIES[name]
    return f"{library.title} {versions(report).get(library.package, '')}".strip()


# --- numbers in words ---------------------------------------------------------------------------------------------------------------------
def number(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.1f}"


def mean(ratios: Ratios) -> str:
    return number(geometric_mean(ratios.values()))


def worst(ratios: Ratios) -> str:
    cell = min(ratios, key=lambda cell: ratios[cell])
    both = {cell.values for cell in ratios} == {"small", "whole"}
    return f"{number(ratios[cell])} ({cell.title()}, {cell.dtype}{', whole range' if both and cell.values == 'whole' else ''})"


def duration(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-5 else f"{seconds * 1e3:.2f} ms"


def threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def table_of(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    """In Markdown; the first column stands to the left."""
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    yield from (f"| {' | '.join(line)} |" for line in lines)


def machine(report: Mapping[str, Any]) -> str:
    about = report["machine_info"]
    cpu = about.get("cpu", {}).get("brand_raw") or about.get("processor") or "unknown processor"
    packages = ("fastops", "numpy", "numba", "llvmlite")
    named = "".join(f", {package} {versions(report)[package]}" for package in packages if package in versions(report))
    timers = {benchmark["options"]["timer"] for benchmark in report["benchmarks"]}
    unusual = "" if timers == {"perf_counter"} else f" Timed by {', '.join(sorted(timers))}."
    loads = [load for benchmark in report["benchmarks"] if (load := benchmark["extra_info"].get("load")) is not None]
    busy = f" Load average {min(loads):.1f} to {max(loads):.1f}." if loads else ""
    target = f", {about['target']}" if "target" in about else ""
    system = f"{cpu} ({about['machine']}{target}), {about['system']}, Python {about['python_version']}"
    return f"{system}{named}; {report['datetime'][:10]}.{unusual}{busy}"
