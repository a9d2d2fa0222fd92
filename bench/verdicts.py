"""What became of the edge cases, in Markdown: who gets which wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from edge_cases import Case, Rule
from libraries import LIBRARIES
from onnx_rules import ENGINES
from report import OPERATIONS, table_of

WORDS = {"wrong": "wrong", "refused": "an error", "crashed": "a crash"}


class Verdict(NamedTuple):
    library: str
    case: Case | Rule
    verdict: str  # right, wrong, refused, crashed or lacking
    details: str


def title(name: str, found: Mapping[str, str]) -> str:
    if name in ENGINES:
        return f"{name} {found.get(ENGINES[name], '')}".strip()
    return f"{LIBRARIES[name].title} {found.get(LIBRARIES[name].package, '')}".strip()


def cell(verdicts: Sequence[Verdict]) -> str:
    """Of the dtypes that a library has: in how many it goes wrong, and how."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    had = len(verdicts) - counts["lacking"]
    if not had:
        return ""
    bad = {
        f"a crash ({verdict.details})" if verdict.verdict == "crashed" else WORDS[verdict.verdict]: counts[verdict.verdict]
        for verdict in verdicts
        if verdict.verdict in WORDS
    }
    return ", ".join(f"{words} {count}/{had}" for words, count in bad.items()) or "right"


def matrix(verdicts: Sequence[Verdict], found: Mapping[str, str]) -> Iterator[str]:
    """A row for each group of cases and operation, a column for each library."""
    groups: dict[tuple[str, str], dict[str, list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for verdict in verdicts:
        if isinstance(verdict.case, Case):
            groups[verdict.case.operation, verdict.case.group][verdict.library].append(verdict)
    names = [name for name in LIBRARIES if any(name in row and cell(row[name]) for row in groups.values())]
    lines = [
        [f"{OPERATIONS.get(operation, operation)}: {group}", *(cell(row.get(name, [])) for name in names)]
        for (operation, group), row in groups.items()
    ]
    return table_of(["", *(title(name, found) for name in names)], lines)


def details(verdicts: Sequence[Verdict], found: Mapping[str, str]) -> Iterator[str]:
    """What each library gives, the dtypes of a case in one line where the words are the same but for numbers."""
    lines: dict[str, dict[tuple[str, str, str], list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for verdict in verdicts:
        if isinstance(verdict.case, Case) and verdict.verdict in WORDS:
            words = WORDS[verdict.verdict] + (f" ({verdict.details})" if verdict.verdict != "wrong" else "")
            lines[verdict.library][verdict.case.operation, verdict.case.group, words].append(verdict)
    for name, cases in lines.items():
        yield from ("", f"**{title(name, found)}**", "")
        for (operation, group, words), them in cases.items():
            dtypes = ", ".join(case.dtype for verdict in them if isinstance(case := verdict.case, Case))
            example = f": `{them[0].details}`" if words == "wrong" else ""
            yield f"- {OPERATIONS.get(operation, operation)}, {group}, {dtypes}: {words}{example}"


def rules(verdicts: Sequence[Verdict], found: Mapping[str, str]) -> Iterator[str]:
    by: dict[Rule, dict[str, Verdict]] = defaultdict(dict)
    for verdict in verdicts:
        if isinstance(verdict.case, Rule):
            by[verdict.case][verdict.library] = verdict
    names = list(dict.fromkeys(name for row in by.values() for name in row))

    def words(verdict: Verdict | None) -> str:
        if verdict is None:
            return ""
        said = verdict.details if verdict.verdict in ("wrong", "refused", "crashed") else ""
        return f"{WORDS.get(verdict.verdict, verdict.verdict)}{f' (`{said}`)' if said else ''}"

    lines = [
        [f"{rule.what} (opset {rule.opset})", "allowed" if rule.allowed else "an error", *(words(row.get(name)) for name in names)]
        for rule, row in by.items()
    ]
    return table_of(["", "is", *(title(name, found) for name in names)], lines)


def document(verdicts: Sequence[Verdict], found: Mapping[str, str], skipped: Mapping[str, str], day: date) -> str:
    lines = [f"As of {day.isoformat()}, numpy {found.get('numpy', '')}; made by `python bench/correctness.py --write docs/peers.md`."]
    if skipped:
        names = dict.fromkeys(LIBRARIES[name].title if name in LIBRARIES else name for name in skipped)
        lines.append(f"Not installed, and so left out: {', '.join(names)}.")
    lines += ["", *matrix(verdicts, found)]
    if any(isinstance(verdict.case, Rule) for verdict in verdicts):
        lines += ["", "## ONNX's rules", "", *rules(verdicts, found)]
    lines += ["", "## What they give", *details(verdicts, found)]
    return "\n".join(lines)
