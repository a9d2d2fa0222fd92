"""The README's tables of speed-ups, from the JSON that pytest-benchmark wrote.

pytest bench -m table --benchmark-json=results/bench.json
pytest bench/peers.py --benchmark-json=results/peers.json
python bench/table.py results/bench.json                       prints the table against NumPy
python bench/table.py results/bench.json --write README.md     puts it between its markers there
python bench/table.py results/peers.json                       the same of the other libraries
python bench/table.py results/scatter.json                     and of scatter_div, from bench/scatter_peers.py
python bench/table.py results/all.json --cells                 prints the times in every cell of any report
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")
COLUMNS = {
    ("remainder", "arrays"): "`mod`, array by array",
    ("remainder", "by_scalar"): "`mod`, by a scalar",
    ("fmod", "arrays"): "`fmod`, array by array",
    ("fmod", "by_scalar"): "`fmod`, by a scalar",
}
SIZE = 1_000_000
PEERS = {"torch": "PyTorch", "onnxruntime": "ONNX Runtime", "jax": "JAX", "numexpr": "numexpr"}
SCATTER = {"numpy_at": "`ufunc.at`", "numpy_rows": "a loop over rows", "tensorflow": "TensorFlow", "mindspore": "MindSpore"}
FASTOPS = ("fastops_one_thread", "fastops_all_threads")


class Cell(NamedTuple):
    operation: str
    pattern: str
    dtype: str
    values: str  # "small" or "whole", of the dtype's whole range


Times = dict[Cell, dict[str, float]]  # the median time of each member
Ratios = dict[Cell, float]


class Unfit(Exception):
    """The JSON or the file to write to is not as needed; the text says why."""


def is_of_table(info: Mapping[str, Any]) -> bool:
    return (info["operation"], info.get("pattern")) in COLUMNS and info["size"] == SIZE


def cell_of(info: Mapping[str, Any]) -> Cell:
    return Cell(*(info[field] for field in Cell._fields))


def medians(report: Mapping[str, Any]) -> Times:
    """Of the table's cells; the rounds of all turns count alike."""
    times: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        if is_of_table(info):
            times[cell_of(info)][info["member"]] += benchmark["stats"]["data"]
    return {cell: {member: median(data) for member, data in members.items()} for cell, members in times.items()}


def speed_ups(times: Times, slow: str, fast: str, values: Sequence[str] = ("small", "whole")) -> Ratios:
    """How many times as fast the second member is as the first, in the cells that have both."""
    both = {cell: members for cell, members in times.items() if cell.values in values and {slow, fast} <= members.keys()}
    return {cell: members[slow] / members[fast] for cell, members in both.items()}


def with_fastest(times: Times) -> Times:
    """With one member more, the fastest of the peers in each cell."""
    found = {cell: [time for member, time in members.items() if member in PEERS] for cell, members in times.items()}
    return {cell: {**members, "fastest": min(found[cell])} for cell, members in times.items() if found[cell]}


def number(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.1f}"


def mean(ratios: Ratios) -> str:
    return number(geometric_mean(ratios.values()))


def worst(ratios: Ratios) -> str:
    cell = min(ratios, key=lambda cell: ratios[cell])
    both = {cell.values for cell in ratios} == {"small", "whole"}
    return f"{number(ratios[cell])} ({COLUMNS[cell[:2]]}, {cell.dtype}{', whole range' if both and cell.values == 'whole' else ''})"


def rows(ratios: Ratios) -> Iterator[str]:
    """A row for each dtype, and one for the geometric means."""
    yield f"| | {' | '.join(COLUMNS.values())} |"
    yield f"|---|{'---:|' * len(COLUMNS)}"
    for dtype in DTYPES:
        cells = [Cell(*column, dtype, "small") for column in COLUMNS]
        yield f"| {dtype} | {' | '.join(number(ratios[cell]) if cell in ratios else 'not run' for cell in cells)} |"
    means = [{cell: ratio for cell, ratio in ratios.items() if cell[:2] == column} for column in COLUMNS]
    yield f"| geometric mean | {' | '.join(mean(column) if column else 'not run' for column in means)} |"


def machine(report: Mapping[str, Any]) -> str:
    about = report["machine_info"]
    cpu = about.get("cpu", {}).get("brand_raw") or about.get("processor") or "unknown processor"
    versions = about.get("versions", {})
    named = "".join(f", {package} {versions[package]}" for package in ("fastops", "numpy", "numba", "llvmlite") if package in versions)
    timers = {benchmark["options"]["timer"] for benchmark in report["benchmarks"]}
    unusual = "" if timers == {"perf_counter"} else f" Timed by {', '.join(sorted(timers))}."
    return f"{cpu} ({about['machine']}), {about['system']}, Python {about['python_version']}{named}; {report['datetime'][:10]}.{unusual}"


def on_all_threads(report: Mapping[str, Any]) -> str:
    return f"all {report['machine_info'].get('threads', {}).get('count', '')} threads".replace("  ", " ")


def against_numpy(report: Mapping[str, Any], times: Times) -> Iterator[str]:
    """The README's main table, in Markdown."""
    ratios = speed_ups(times, "numpy", "fastops_one_thread", ["small"])
    if not ratios:
        raise Unfit("the JSON holds no cell of the table: run pytest bench -m table --benchmark-json=results/bench.json")
    yield f"How many times as fast as NumPy: {SIZE:,} elements, `out=` given, **one thread**, medians (more is better)."
    yield from ("", *rows(ratios), "")
    others = {
        f"Of these {len(ratios)} cells": ratios,
        f"On {on_all_threads(report)}": speed_ups(times, "numpy", "fastops_all_threads", ["small"]),
        "With operands of the dtypes' whole range, one thread": speed_ups(times, "numpy", "fastops_one_thread", ["whole"]),
    }
    yield from (f"{label}: geometric mean **{mean(them)}**, worst {worst(them)}." for label, them in others.items() if them)
    yield from ("", f"{machine(report)} Made by `pytest bench -m table --benchmark-json=results/bench.json` and")
    yield "`python bench/table.py results/bench.json --write README.md`."


def against_peers(report: Mapping[str, Any], times: Times) -> Iterator[str]:
    """The README's table of other libraries, in Markdown."""
    ours = next(member for member in FASTOPS if any(member in members for members in times.values()))
    versions = report["machine_info"].get("versions", {})
    infos = [benchmark["extra_info"] for benchmark in report["benchmarks"]]
    differ = {(cell_of(info), info["member"]) for info in infos if is_of_table(info) and not info["equal"]}
    how, option = ("one thread", "") if ours == "fastops_one_thread" else (on_all_threads(report), " --all-threads")
    yield f"How many times as fast as other libraries: the cells of the table above, with small and with whole-range operands, **{how}**."
    yield from ("", "| | cells that it has | with values other than NumPy's | geometric mean | worst |", "|---|---:|---:|---:|---:|")
    for peer, name in PEERS.items():
        if ratios := speed_ups(times, peer, ours):
            wrong = sum(member == peer for _, member in differ)
            yield f"| {name} {versions.get(peer, '')} | {len(ratios)} | {wrong} | {mean(ratios)} | {worst(ratios)} |"
    right = {cell: {member: time for member, time in members.items() if (cell, member) not in differ} for cell, members in times.items()}
    for label, them in {"the fastest in each cell": times, "the fastest in each cell with NumPy's values": right}.items():
        ratios = speed_ups(with_fastest(them), "fastest", ours)
        yield f"| {label} | {len(ratios)} | | **{mean(ratios)}** | {worst(ratios)} |"
    yield from ("", f"{machine(report)} Made by `pytest bench/peers.py{option} --benchmark-json=results/peers.json` and")
    yield "`python bench/table.py results/peers.json --write README.md`."


def of_scatter(report: Mapping[str, Any]) -> Iterator[str]:
    """The README's table of `scatter_div`, in Markdown."""
    data: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    wrong = set()
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        data[info["case"]][info["member"]] += benchmark["stats"]["data"]
        if not info["equal"]:
            wrong.add((info["case"], info["member"]))
    times = {case: {member: median(taken) for member, taken in members.items()} for case, members in data.items()}
    versions = report["machine_info"].get("versions", {})
    found = {member for members in times.values() for member in members}
    others = {member: f"{name} {versions.get(member, '')}".strip() for member, name in SCATTER.items() if member in found}
    one, every = FASTOPS
    yield "How many times as fast as others `scatter_div` is on **one thread**; what it takes; and how much faster all threads are."
    yield from (
        "",
        f"| updates | {' | '.join(others.values())} | one thread | {on_all_threads(report)} |",
        f"|---|{'---:|' * (len(others) + 2)}",
    )
    for case, members in times.items():
        cells = [f"{number(members[m] / members[one])}{'*' if (case, m) in wrong else ''}" if m in members else "" for m in others]
        yield f"| {case} | {' | '.join(cells)} | {duration(members[one])} | {members[one] / members[every]:.2f} |"
    if wrong:
        yield from ("", "\\* with other bits than those of the loop in order")
    yield from ("", f"{machine(report)} Made by `pytest bench/scatter_peers.py --benchmark-json=results/scatter.json` and")
    yield "`python bench/table.py results/scatter.json --write README.md`."


def duration(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-5 else f"{seconds * 1e3:.2f} ms"


def every_cell(report: Mapping[str, Any]) -> Iterator[str]:
    """Nanoseconds an element of each member, cell by cell, and fastops' time by that of the fastest of the others."""
    data: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        data[benchmark["group"]][info["member"]] += [1e9 * seconds / info["size"] for seconds in benchmark["stats"]["data"]]
    columns = list(dict.fromkeys(member for members in data.values() for member in members))
    yield f"| ns an element | {' | '.join(columns)} | fastops / fastest other |"
    yield f"|---|{'---:|' * (len(columns) + 1)}"
    for group, members in data.items():
        times = {member: median(taken) for member, taken in members.items()}
        ours = [times[member] for member in FASTOPS if member in times]
        others = [time for member, time in times.items() if member not in FASTOPS]
        by_others = f"{ours[0] / min(others):.2f}" if ours and others else ""
        cells = (f"{times[member]:{'.0f' if times[member] >= 99.5 else '.3g'}}" if member in times else "" for member in columns)
        yield f"| {group} | {' | '.join(cells)} | {by_others} |"


def table(report: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the README's table that the report is of, and its text."""
    if any("case" in benchmark["extra_info"] for benchmark in report["benchmarks"]):
        return "scatter", "\n".join(of_scatter(report))
    times = medians(report)
    if any(members.keys() & PEERS for members in times.values()):
        return "peers", "\n".join(against_peers(report, times))
    return "table", "\n".join(against_numpy(report, times))


def between_markers(text: str, name: str, new: str) -> str:
    """`text` with `new` in place of what stands between the markers."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise Unfit(f"the file needs one line {begin} and, after it, one line {end}")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{new}\n{end}{rest.partition(end)[2]}"


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
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", type=Path, metavar="FILE", help="the file that has the markers <!-- table:begin --> and so on")
    how.add_argument("--cells", action="store_true", help="print the times in every cell")
    options = parser.parse_args(arguments)
    try:
        report = load(options.report)
        if options.cells:
            print("\n".join(every_cell(report)))
            return 0
        name, text = table(report)
        if options.write is None:
            print(text)
        else:
            options.write.write_text(between_markers(options.write.read_text(encoding="utf-8"), name, text), encoding="utf-8")
    except (Unfit, OSError) as problem:
        print(f"table.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
