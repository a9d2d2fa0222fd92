"""The document of a comparison, in Markdown: who is how fast, cell by cell, and whose results differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import median, quantiles
from typing import Any

from libraries import LIBRARIES, LIMITS
from report import Cell, Times, machine, members, number, seconds, speed_ups, table_of, threads, times, title, wrong
from table import of_scatter, summary


def spread(report: Mapping[str, Any]) -> str:
    """By how much the rounds of a cell differ."""
    spreads = []
    for benchmark in report["benchmarks"]:
        rounds = benchmark["stats"]["data"]
        if len(rounds) > 3:
            lower, middle, upper = quantiles(rounds, n=4)
            spreads.append(100 * (upper - lower) / middle)
    return f" The middle half of a cell's rounds spans {median(spreads):.0f} % of its median, typically." if spreads else ""


def heads(found: Times, report: Mapping[str, Any]) -> dict[str, str]:
    """The columns: libraries with their versions, and the limits."""
    return {name: title(name, report) if name in LIBRARIES else LIMITS.get(name, name) for name in members(found)}


def label(cell: Cell) -> str:
    whole = ", whole range" if cell.values == "whole" else ""
    return f"{cell.title()}, {cell.dtype}{whole}"


def ratios(report: Mapping[str, Any], found: Times) -> Iterator[str]:
    """How many times as fast fastops is, a row for each cell."""
    columns = {name: text for name, text in heads(found, report).items() if name != "fastops"}
    by = {name: speed_ups(found, name, "fastops") for name in columns}
    differ = wrong(report)

    def line(cell: Cell) -> list[str]:
        return [f"{number(by[name][cell])}{'*' if (cell, name) in differ else ''}" if cell in by[name] else "" for name in columns]

    return table_of(["", *columns.values()], ([label(cell), *line(cell)] for cell in found))


def by_size(report: Mapping[str, Any], found: Times) -> Iterator[str]:
    """Nanoseconds an element, a row for each cell."""
    columns = heads(found, report)

    def line(cell: Cell) -> Iterable[str]:
        for name in columns:
            took = seconds(found[cell], name)
            yield f"{1e9 * took / cell.size:.3g}" if took is not None else ""

    cells = sorted(found, key=lambda cell: (cell.pattern, cell.dtype, cell.size))
    return table_of(["", *columns.values()], ([f"{label(cell)}, {cell.size:,}", *line(cell)] for cell in cells))


def by_threads(report: Mapping[str, Any], found: Times) -> Iterator[str]:
    """What more threads make of one's time, a row for each operation and dtype."""
    columns = heads(found, report)
    counts = sorted({cell.threads for cell in found} - {1})

    def line(cell: Cell) -> Iterable[str]:
        for name in columns:
            alone = seconds(found[cell], name)
            taken = [seconds(found.get(cell._replace(threads=count), {}), name) for count in counts]
            yield ", ".join(f"{alone / took:.2f}" for took in taken if took) if alone else ""

    size = next(iter(found)).size
    yield f"How many times as fast as on one thread: on {', '.join(map(str, counts))} threads, {size:,} elements. (These are two runs,"
    yield "between which the machine changes, too.)"
    yield from ("", *table_of(["", *columns.values()], ([label(cell), *line(cell)] for cell in found if cell.threads == 1)))


def whose_differ(report: Mapping[str, Any]) -> Iterator[str]:
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for (cell, name), info in wrong(report).items():
        groups[name, cell.operation, cell.dtype].append(info)
    lines = [
        [title(name, report), operation, dtype, f"{max(info['share'] for info in infos):.2%}", f"`{infos[0]['example']}`"]
        for (name, operation, dtype), infos in sorted(groups.items())
    ]
    return table_of(["", "operation", "dtype", "of the results, at most", "such as"], lines)


def document(report: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """`pictures` tells the path of each, by its title."""
    lines = ["# fastops and other libraries", "", "Made by `python bench/compare.py`, which CONTRIBUTING.md explains. " + machine(report)]
    lines[-1] += spread(report)
    if report.get("skipped"):
        lines += ["", "Not compared: " + "; ".join(f"{LIBRARIES[name].title} ({why})" for name, why in report["skipped"].items()) + "."]
    lines += [line for text, path in pictures.items() for line in ("", f"![{text}]({path})")]
    if found := times(report, lambda cell: cell.part == "table"):
        lines += ["", "## Remainders on one thread", "", "How many times as fast as others fastops is: medians, more is better."]
        lines += ["", *summary(report, found), "", *ratios(report, found), "", "\\* with other bits than NumPy's"]
    if found := times(report, lambda cell: cell.part == "sizes"):
        lines += ["", "## From small to large", "", "Nanoseconds an element, on one thread.", "", *by_size(report, found)]
    if found := times(report, lambda cell: cell.part == "threads"):
        lines += ["", "## Threads", "", *by_threads(report, found)]
        for count in sorted({cell.threads for cell in found}):
            of_count = {cell: runs for cell, runs in found.items() if cell.threads == count}
            lines += ["", f"How many times as fast as others fastops is, each on {threads(count)}:", "", *ratios(report, of_count)]
    if found := times(report, lambda cell: cell.part == "scatter"):
        lines += ["", "## scatter_div", "", *of_scatter(report, found)]
    if wrong(report):
        lines += ["", "## Other results than NumPy's", "", "(Sign and payload of NaN aside. `docs/peers.md` has the edge cases.)"]
        lines += ["", *whose_differ(report)]
    return "\n".join(lines) + "\n"
