"""The README's tables of speed-ups, from the JSON that the benchmarks wrote.

pytest bench -m table --benchmark-json=results/bench.json
python bench/compare.py --json results/compare.json
python bench/table.py results/bench.json                       prints the table against NumPy
python bench/table.py results/bench.json --write README.md     puts it between its markers there
python bench/table.py results/compare.json                     the same of the other libraries, and of scatter_div
python bench/table.py results/all.json --cells                 prints the times in every cell of any report
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from libraries import LIBRARIES, PEERS
from report import (
    SIZE,
    Cell,
    Ratios,
    Times,
    Unfit,
    duration,
    exit_code,
    load,
    machine,
    mean,
    members,
    number,
    seconds,
    speed_ups,
    table_of,
    threads,
    times,
    title,
    worst,
    wrong,
)

from fastops.info import DTYPES

COLUMNS = tuple(product(("remainder", "fmod"), ("arrays", "by_scalar")))
FASTOPS = ("fastops_one_thread", "fastops_all_threads")  # the members of the suite against NumPy


def is_of_table(cell: Cell) -> bool:
    return (cell.operation, cell.pattern) in COLUMNS and cell.size == SIZE and cell.part in ("", "table")


def of_values(ratios: Ratios, values: str) -> Ratios:
    return {cell: ratio for cell, ratio in ratios.items() if cell.values == values}


def rows(ratios: Ratios) -> Iterator[str]:
    """A row for each dtype, and one for the geometric means."""
    heads = [Cell(*column, "", "", 0, "", 0).title() for column in COLUMNS]
    by = {(cell[:2], cell.dtype): ratio for cell, ratio in ratios.items()}
    lines = [[dtype, *(number(by[column, dtype]) if (column, dtype) in by else "not run" for column in COLUMNS)] for dtype in DTYPES]
    means = [{cell: ratio for cell, ratio in ratios.items() if cell[:2] == column} for column in COLUMNS]
    return table_of(["", *heads], [*lines, ["geometric mean", *(mean(column) if column else "not run" for column in means)]])


def against_numpy(report: Mapping[str, Any], found: Times) -> Iterator[str]:
    """The README's main table."""
    one, every = (speed_ups(found, "numpy", member) for member in FASTOPS)
    small = of_values(one, "small")
    if not small:
        raise Unfit("the JSON holds no cell of the table: run pytest bench -m table --benchmark-json=results/bench.json")
    yield f"How many times as fast as NumPy: {SIZE:,} elements, `out=` given, **one thread**, medians (more is better)."
    yield from ("", *rows(small), "")
    count = report["machine_info"].get("threads", {}).get("count", "")
    others = {
        f"Of these {len(small)} cells": small,
        f"On all {count} threads".replace("  ", " "): of_values(every, "small"),
        "With operands of the dtypes' whole range, one thread": of_values(one, "whole"),
    }
    yield from (f"{label}: geometric mean **{mean(them)}**, worst {worst(them)}." for label, them in others.items() if them)
    yield from ("", f"{machine(report)} Made by `pytest bench -m table --benchmark-json=results/bench.json` and")
    yield "`python bench/table.py results/bench.json --write README.md`."


def fastest(found: Times, without: Mapping[tuple[Cell, str], Any]) -> Ratios:
    """How many times as fast fastops is as the fastest of the others in each cell, those without which being left out."""
    ratios: dict[Cell, list[float]] = defaultdict(list)
    for name in PEERS:
        for cell, ratio in speed_ups(found, name, "fastops").items():
            if (cell, name) not in without:
                ratios[cell].append(ratio)
    return {cell: min(values) for cell, values in ratios.items()}


def summary(report: Mapping[str, Any], found: Times) -> Iterator[str]:
    """A row for each library."""
    differ = wrong(report)
    lines = []
    for name in PEERS:
        if ratios := speed_ups(found, name, "fastops"):
            others = sum((cell, name) in differ for cell in ratios)
            lines.append([title(name, report), str(len(ratios)), str(others), mean(ratios), worst(ratios)])
    for label, without in {"the fastest in each cell": {}, "the fastest in each cell with NumPy's values": differ}.items():
        if ratios := fastest(found, without):
            lines.append([label, str(len(ratios)), "", f"**{mean(ratios)}**", worst(ratios)])
    return table_of(["", "cells that it has", "with values other than NumPy's", "geometric mean", "worst"], lines)


def against_peers(report: Mapping[str, Any], found: Times) -> Iterator[str]:
    """The README's table of other libraries."""
    yield "How many times as fast as others: the cells of the table above, with small and with whole-range operands, **one thread**."
    yield from ("", *summary(report, found), "", f"{machine(report)} Made by `python bench/compare.py` and")
    yield "`python bench/table.py results/compare.json --write README.md`."


def of_scatter(report: Mapping[str, Any], found: Times) -> Iterator[str]:
    """The table of `scatter_div`."""
    one = {cell: runs for cell, runs in found.items() if cell.threads == 1}
    most = max(cell.threads for cell in found)
    on_all, differ = speed_ups(found, "numpy", "fastops"), wrong(report)  # of each run by itself: between runs the machine changes
    others = [name for name in members(one) if name in PEERS]
    ratios = {name: speed_ups(one, name, "fastops") for name in others}
    lines = []
    for cell, runs in one.items():
        cells = [f"{number(ratios[m][cell])}{'*' if (cell, m) in differ else ''}" if cell in ratios[m] else "" for m in others]
        took, of_all = seconds(runs, "fastops"), on_all.get(cell._replace(threads=most))
        if took is not None:
            lines.append([cell.pattern, *cells, duration(took), number(of_all) if of_all else ""])
    yield "How many times as fast as others `scatter_div` is on **one thread**; what it takes; and how many times as fast as NumPy on more."
    yield from ("", *table_of(["updates", *(title(name, report) for name in others), "takes", f"NumPy, {threads(most)}"], lines))
    if any(cell.part == "scatter" for cell, _ in differ):
        yield from ("", "\\* with other bits than those of the loop in order")
    yield from ("", f"{machine(report)} Made by `python bench/compare.py`.")


def every_cell(report: Mapping[str, Any]) -> Iterator[str]:
    """Nanoseconds an element of each member, cell by cell, and fastops' time by that of the fastest of the others."""
    data: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        data[benchmark["group"]][info["member"]] += [1e9 * seconds / info.get("size", 1) for seconds in benchmark["stats"]["data"]]
    columns = list(dict.fromkeys(member for members in data.values() for member in members))
    lines = []
    for group, rounds in data.items():
        taken = {member: median(values) for member, values in rounds.items()}
        ours = [taken[member] for member in ("fastops", *FASTOPS) if member in taken]
        others = [time for member, time in taken.items() if not member.startswith("fastops")]
        cells = [f"{taken[member]:{'.0f' if taken[member] >= 99.5 else '.3g'}}" if member in taken else "" for member in columns]
        lines.append([group, *cells, f"{ours[0] / min(others):.2f}" if ours and others else ""])
    return table_of(["ns an element", *columns, "fastops / fastest other"], lines)


def tables(report: Mapping[str, Any]) -> dict[str, str]:
    """The README's tables that the report is of, by the names of their markers."""
    texts: dict[str, Iterator[str]] = {}
    if any(member in LIBRARIES and member != "numpy" for member in members(times(report))):
        if found := times(report, lambda cell: is_of_table(cell) and cell.threads == 1):
            texts["peers"] = against_peers(report, found)
        if found := times(report, lambda cell: cell.part == "scatter"):
            texts["scatter"] = of_scatter(report, found)
    else:
        texts["table"] = against_numpy(report, times(report, is_of_table))
    return {name: "\n".join(text) for name, text in texts.items()}


def between_markers(text: str, name: str, new: str) -> str:
    """`text` with `new` in place of what stands between the markers."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise Unfit(f"the file needs one line {begin} and, after it, one line {end}")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{new}\n{end}{rest.partition(end)[2]}"


def write(path: Path, texts: Mapping[str, str]) -> None:
    """Those that the file has markers for; one of them at least."""
    text = path.read_text(encoding="utf-8")
    for name in [name for name in texts if f"<!-- {name}:" in text] or list(texts):
        text = between_markers(text, name, texts[name])
    path.write_text(text, encoding="utf-8")


def tabulate(options: argparse.Namespace) -> None:
    report = load(options.report)
    if options.cells:
        print("\n".join(every_cell(report)))
    elif options.write is None:
        print("\n\n".join(tables(report).values()))
    else:
        write(options.write, tables(report))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="the JSON")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", type=Path, metavar="FILE", help="the file that has the markers <!-- table:begin --> and so on")
    how.add_argument("--cells", action="store_true", help="print the times in every cell")
    options = parser.parse_args(arguments)
    return exit_code("table.py", lambda: tabulate(options))


if __name__ == "__main__":
    sys.exit(main())
