"""Has a cell become slower? Judged by the ratio of fastops' time to NumPy's in the same process, for the machine's own speed changes."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from report import Cell, Unfit, times, typical

CELL = 1.25  # times the ratio of the baseline, that a cell may have; beyond it the ranges of the turns decide
ALL = 1.1  # the same of the median of all cells, whose noise is less


class Ratio(NamedTuple):
    """Of all rounds, and the least and the greatest of the turns."""

    typical: float
    least: float
    greatest: float


def ratios(report: Mapping[str, Any]) -> dict[Cell, Ratio]:
    found = {}
    for cell, runs in times(report).items():
        for members in runs.values():
            if {"numpy", "fastops"} <= members.keys():
                turns = [typical([ours]) / typical([numpys]) for ours, numpys in zip(members["fastops"], members["numpy"], strict=True)]
                found[cell] = Ratio(typical(members["fastops"]) / typical(members["numpy"]), min(turns), max(turns))
    return found


def slower(report: Mapping[str, Any], baseline: Mapping[str, Any]) -> tuple[int, list[str]]:
    """How many cells both have, and the regressions in words. A cell is one that is beyond its tolerance and whose quickest turn was slower
    than the baseline's slowest: noise rarely does both."""
    now, before = ratios(report), ratios(baseline)
    both = [cell for cell in now if cell in before]
    if not both:
        raise Unfit("the report and the baseline have no cell of NumPy and fastops in common")
    changes = {cell: now[cell].typical / before[cell].typical for cell in both}
    words = [
        f"{cell.part} {cell.operation} {cell.dtype} {cell.pattern} {cell.size} {cell.values} on {cell.threads}: "
        f"{before[cell].typical:.3g} of NumPy's time before, {now[cell].typical:.3g} now"
        for cell in sorted(both, key=lambda cell: -changes[cell])
        if changes[cell] > CELL and now[cell].least > before[cell].greatest
    ]
    overall = median(changes.values())
    if overall > ALL:
        words.append(f"all {len(both)} cells: {overall:.2f} times the ratios before, by the median")
    return len(both), words
