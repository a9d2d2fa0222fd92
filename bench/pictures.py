"""The pictures of a comparison, by matplotlib: speed-ups by dtype, time by size beside the limits, threads, and rows that repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import matplotlib as mpl
from libraries import LIBRARIES, LIMITS
from report import OPERATIONS, Cell, Times, cell_of, members, seconds, speed_ups, times

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fastops.info import DTYPES

STYLE = {
    "svg.hashsalt": "fastops",  # the same file from the same data
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
COLORS = {name: f"C{k % 10}" for k, name in enumerate(name for name in LIBRARIES if name != "fastops")} | {"fastops": "black"}


def look(name: str) -> dict[str, Any]:
    """A limit is a broken line."""
    if name in LIBRARIES:
        width = 2 if name == "fastops" else 1.2
        return {"label": LIBRARIES[name].title, "color": COLORS[name], "marker": "o", "markersize": 3, "linewidth": width}
    broken = {"copy": ":", "divide": "--"}.get(name, "-.")
    return {"label": LIMITS[name].replace("`", ""), "color": "black", "linewidth": 1, "linestyle": broken}


def legend(figure: Figure) -> None:
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=6, frameon=False, fontsize=8)


def lines(axes: Axes, found: Times, along: Callable[[Cell], float], of: Callable[[Cell, float], float]) -> None:
    """A line for each member, over what `along` tells of a cell."""
    for name in members(found):
        took = {cell: seconds(found[cell], name) for cell in sorted(found, key=along)}
        points = [(along(cell), of(cell, value)) for cell, value in took.items() if value is not None]
        axes.plot(*zip(*points, strict=True), **look(name))


def by_dtype(report: Mapping[str, Any]) -> Figure | None:
    """Bars: each operation, over dtypes; the geometric mean of the patterns."""
    found = times(report, lambda cell: cell.part == "table" and cell.values == "small")
    names = [name for name in members(found) if name != "fastops"]
    if not names:
        return None
    figure, rows = plt.subplots(len(OPERATIONS), 1, figsize=(9, 6), layout="constrained", sharex=True, squeeze=False)
    width = 0.8 / len(names)
    for axes, operation in zip(rows[:, 0], OPERATIONS, strict=True):
        for k, name in enumerate(names):
            ratios = speed_ups(found, name, "fastops")
            for d, dtype in enumerate(DTYPES):
                if values := [ratio for cell, ratio in ratios.items() if (cell.operation, cell.dtype) == (operation, dtype)]:
                    style = {"color": COLORS[name], "label": LIBRARIES[name].title}
                    axes.bar(d + (k - len(names) / 2 + 0.5) * width, geometric_mean(values) - 1, width, bottom=1, **style)
        axes.set_yscale("log")
        axes.axhline(1, color="black", linewidth=1)
        axes.set_title(OPERATIONS[operation].strip("`"))
        axes.set_ylabel("times as fast")
        axes.set_xticks(range(len(DTYPES)), DTYPES)
    legend(figure)
    return figure


def by_size(report: Mapping[str, Any]) -> Figure | None:
    """Nanoseconds an element over the number of elements: rows of patterns, columns of dtypes."""
    found = times(report, lambda cell: cell.part == "sizes")
    if not found:
        return None
    dtypes = [dtype for dtype in DTYPES if any(cell.dtype == dtype for cell in found)]
    patterns = list(dict.fromkeys(cell.pattern for cell in found))
    size = (max(8, 2.4 * len(dtypes) + 1), 2.6 * len(patterns) + 1)
    figure, grid = plt.subplots(len(patterns), len(dtypes), figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False)
    for row, pattern in zip(grid, patterns, strict=True):
        for axes, dtype in zip(row, dtypes, strict=True):
            here = {cell: runs for cell, runs in found.items() if (cell.pattern, cell.dtype) == (pattern, dtype)}
            lines(axes, here, lambda cell: cell.size, lambda cell, took: 1e9 * took / cell.size)
            axes.set(xscale="log", yscale="log", title=next(iter(here)).title().replace("`", "") + f", {dtype}")
        row[0].set_ylabel("ns an element")
    for axes in grid[-1]:
        axes.set_xlabel("elements")
    legend(figure)
    return figure


def by_threads(report: Mapping[str, Any]) -> Figure | None:
    """Elements a nanosecond over threads, a panel for each operation and dtype."""
    found = times(report, lambda cell: cell.part == "threads")
    kinds = list(dict.fromkeys((cell.operation, cell.dtype) for cell in found))
    if not kinds:
        return None
    columns = min(6, len(kinds))
    size = (max(8, 2.2 * columns + 1), 5)
    figure, grid = plt.subplots(-(-len(kinds) // columns), columns, figsize=size, layout="constrained", squeeze=False)
    for axes, kind in zip(grid.flat, kinds, strict=False):
        here = {cell: runs for cell, runs in found.items() if (cell.operation, cell.dtype) == kind}
        lines(axes, here, lambda cell: cell.threads, lambda cell, took: 1e-9 * cell.size / took)
        axes.set(yscale="log", title=f"{OPERATIONS[kind[0]].strip('`')}, {kind[1]}", xlabel="threads")
        axes.set_xticks(sorted({cell.threads for cell in here}))
    for axes in grid[:, 0]:
        axes.set_ylabel("elements a nanosecond")
    legend(figure)
    return figure


def by_duplicates(report: Mapping[str, Any]) -> Figure | None:
    """`scatter_div` over how often a row is named, on one thread: a panel for each shape that several such cases have."""
    infos = (benchmark["extra_info"] for benchmark in report["benchmarks"])
    shapes = {cell_of(info): info for info in infos if info.get("part") == "scatter"}
    found = times(report, lambda cell: cell.part == "scatter" and cell.threads == 1 and "sorted" not in cell.pattern)
    panels: dict[str, Times] = {}
    for cell in found:
        panels.setdefault(cell.pattern.rpartition(", ")[0], {})[cell] = found[cell]
    panels = {name: cells for name, cells in panels.items() if len(cells) > 1}
    if not panels:
        return None
    figure, row = plt.subplots(1, len(panels), figsize=(9, 4.5), layout="constrained", squeeze=False)
    for axes, (name, here) in zip(row[0], panels.items(), strict=True):
        lines(axes, here, lambda cell: shapes[cell]["updates"] / shapes[cell]["rows"], lambda cell, took: 1e9 * took / cell.size)
        axes.set(xscale="log", yscale="log", title=name, xlabel="updates of a row", ylabel="ns an element")
    legend(figure)
    return figure


PICTURES = {
    "speed-ups by dtype": by_dtype,
    "time by size": by_size,
    "time by threads": by_threads,
    "scatter_div by duplicates": by_duplicates,
}


def draw(report: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """The pictures that the report has data for, by their titles."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    with mpl.rc_context(STYLE):
        for title, picture in PICTURES.items():
            if figure := picture(report):
                drawn[title] = folder / f"{title.replace(' ', '_').replace('-', '_')}.svg"
                figure.savefig(drawn[title], metadata={"Date": None})
                plt.close(figure)
    return drawn
