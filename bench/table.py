"""The README's table of speed-ups, from the JSON that pytest-benchmark wrote.

pytest bench -m table --benchmark-json=results/bench.json
python bench/table.py results/bench.json                       prints the table
python bench/table.py results/bench.json --write README.md     puts it between the markers there
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")
COLUMNS = {
    ("remainder", "arrays"): "`mod`, array by array",
    ("remainder", "by_scalar"): "`mod`, by a scalar",
    ("fmod", "arrays"): "`fmod`, array by array",
    ("fmod", "by_scalar"): "`fmod`, by a scalar",
}
SIZE = 1_000_000
BEGIN, END = "<!-- table:begin -->", "<!-- table:end -->"
Cell = tuple[str, str, str]  # operation, pattern, dtype
Ratios = dict[Cell, float]


class Unfit(Exception):
    """The JSON or the file to write to is not as needed; the text says why."""


def speed_ups(report: Mapping[str, Any], values: str, member: str) -> Ratios:
    """NumPy's median time by the member's in each cell that was measured; the rounds of all turns count alike."""
    times: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        cell = info["operation"], info.get("pattern", ""), info["dtype"]
        if cell[:2] in COLUMNS and (info["size"], info["values"]) == (SIZE, values):
            times[cell][info["member"]] += benchmark["stats"]["data"]
    return {cell: median(taken["numpy"]) / median(taken[member]) for cell, taken in times.items() if {"numpy", member} <= taken.keys()}


def number(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.1f}"


def described(ratios: Ratios) -> str:
    worst = min(ratios, key=lambda cell: ratios[cell])
    return f"geometric mean **{number(geometric_mean(ratios.values()))}**, worst {number(ratios[worst])} ({COLUMNS[worst[:2]]}, {worst[2]})"


def rows(ratios: Ratios) -> Iterator[str]:
    """A row for each dtype, and one for the geometric means."""
    yield f"| | {' | '.join(COLUMNS.values())} |"
    yield f"|---|{'---:|' * len(COLUMNS)}"
    for dtype in DTYPES:
        cells = [(*column, dtype) for column in COLUMNS]
        yield f"| {dtype} | {' | '.join(number(ratios[cell]) if cell in ratios else 'not run' for cell in cells)} |"
    means = [[ratio for cell, ratio in ratios.items() if cell[:2] == column] for column in COLUMNS]
    yield f"| geometric mean | {' | '.join(number(geometric_mean(column)) if column else 'not run' for column in means)} |"


def machine(report: Mapping[str, Any]) -> str:
    about = report["machine_info"]
    cpu = about.get("cpu", {}).get("brand_raw") or about.get("processor") or "unknown processor"
    versions = about.get("versions", {})
    named = ", ".join(f"{package} {version}" for package, version in versions.items() if package != "ml_dtypes")
    return f"{cpu} ({about['machine']}), {about['system']}, Python {about['python_version']}{', ' if named else ''}{named}"


def table(report: Mapping[str, Any]) -> str:
    """The Markdown text."""
    ratios = speed_ups(report, "small", "fastops_one_thread")
    if not ratios:
        raise Unfit("the JSON holds no cell of the table: run pytest bench -m table --benchmark-json=results/bench.json")
    lines = [f"How many times as fast as NumPy: {SIZE:,} elements, **one thread**, medians (more is better).", "", *rows(ratios), ""]
    lines.append(f"Of these {len(ratios)} cells: {described(ratios)}.")
    threads = report["machine_info"].get("threads", {}).get("count")
    others = {
        f"On all {threads or ''} threads".replace("  ", " "): speed_ups(report, "small", "fastops_all_threads"),
        "With operands of the dtypes' whole range, one thread": speed_ups(report, "whole", "fastops_one_thread"),
    }
    lines += [f"{label}: {described(others[label])}." for label in others if others[label]]
    lines += ["", f"{machine(report)}; {report['datetime'][:10]}. Made by `pytest bench -m table --benchmark-json=results/bench.json` and"]
    lines.append("`python bench/table.py results/bench.json --write README.md`.")
    return "\n".join(lines)


def between_markers(text: str, new: str) -> str:
    """`text` with `new` in place of what stands between the markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise Unfit(f"the file needs one line {BEGIN} and, after it, one line {END}")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{new}\n{END}{rest.partition(END)[2]}"


def load(path: Path) -> Any:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unfit(f"{path}: {error}") from error
    if not isinstance(report, dict) or not isinstance(report.get("benchmarks"), Iterable):
        raise Unfit(f"{path} is no report of pytest-benchmark")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="the JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"the file that has the markers {BEGIN} and {END}")
    options = parser.parse_args(arguments)
    try:
        text = table(load(options.report))
        if options.write is None:
            print(text)
        else:
            options.write.write_text(between_markers(options.write.read_text(encoding="utf-8"), text), encoding="utf-8")
    except (Unfit, OSError) as problem:
        print(f"table.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
