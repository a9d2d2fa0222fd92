"""The comparison with other libraries: is a regression one, is the right result right, and is every process heard to its end?"""

from __future__ import annotations

import json
import sys
from datetime import date
from fractions import Fraction
from importlib import import_module
from math import copysign, isfinite, isinf, isnan, trunc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCH = Path(__file__).parents[1] / "bench"
sys.path.append(str(BENCH))  # at the end: there is a conftest, too
cases, values, verdicts, regression, report_of = map(import_module, ("edge_cases", "values", "verdicts", "regression", "report"))
compare, correctness = import_module("compare"), import_module("correctness")


# --- the edge cases, against exact arithmetic ---------------------------------------------------------------------------------------------
def exact_remainder(operation: str, x: Any, y: Any) -> Fraction | float:
    """A fraction; or, of what is none, a float."""
    if isinstance(x, int):
        quotient = Fraction(0) if y == 0 else Fraction(x, y)
        return Fraction(0) if y == 0 else x - y * Fraction(quotient // 1 if operation == "remainder" else trunc(quotient))
    sign = y if operation == "remainder" else x
    if isnan(x) or isnan(y) or isinf(x) or y == 0:
        return float("nan")
    if isinf(y):
        return y if operation == "remainder" and x != 0 and copysign(1, x) != copysign(1, y) else copysign(x, sign) if x == 0 else x
    quotient = Fraction(x) / Fraction(y)
    exact = Fraction(x) - Fraction(y) * (quotient // 1 if operation == "remainder" else trunc(quotient))
    return exact or copysign(0.0, sign)


def is_nearest(value: Any, exact: Fraction) -> bool:
    """Of the numbers of the value's dtype, none is nearer."""
    neighbours = [ml_dtypes_nextafter(value, sign) for sign in (-1, 1)]
    distance = abs(Fraction(float(value)) - exact)
    return all(distance <= abs(Fraction(float(other)) - exact) for other in neighbours if isfinite(other))


def ml_dtypes_nextafter(value: Any, sign: int) -> Any:
    return np.nextafter(value, value.dtype.type(sign * float("inf")))


@pytest.mark.parametrize("case", list(cases.remainders()), ids=lambda case: f"{case.group}-{case.operation}-{case.dtype}")
def test_remainders_are_right(case: Any):
    x, y = case.operands
    for a, b, value in zip(x, y, case.expected, strict=True):
        exact = exact_remainder(case.operation, *(n.item() if x.dtype.kind in "iu" else float(n) for n in (a, b)))
        if x.dtype.kind in "iu":
            assert value.item() == exact, (a, b)
        elif isinstance(exact, Fraction):
            assert is_nearest(value, exact), (a, b)
        else:
            assert isnan(value) if isnan(exact) else (float(value), copysign(1, value)) == (exact, copysign(1, exact)), (a, b)


@pytest.mark.parametrize("case", list(cases.divisions()), ids=lambda case: f"{case.group}-{case.dtype}")
def test_divisions_are_right(case: Any):
    x, rows, updates = case.operands
    if case.expected is None:
        assert (rows < 0).any() or (rows >= len(x)).any() or (updates == 0).any()
        return
    result = x.copy()
    for row, update in zip(rows, updates, strict=True):
        if x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            quotient = trunc(Fraction(int(result[row]), int(update)))
            result[row] = quotient if quotient <= limits.max else limits.min
        else:
            with np.errstate(all="ignore"):
                before, result[row] = float(result[row]), result[row] / update
            if update != 0 and isfinite(result[row]) and isfinite(before):
                assert is_nearest(result[row], Fraction(before) / Fraction(float(update)))
    assert not values.differences(case.expected, result)[0]


def test_fastops_gets_every_case_right():
    for case in correctness.all_cases():
        with np.errstate(all="ignore"):
            verdict, details = correctness.judged("fastops", case)
        assert verdict == "right", (case, details)


def test_what_a_library_lacks_is_no_fault():
    by_operation = {case.operation: case for case in correctness.all_cases()}
    assert correctness.judged("numpy_rows", by_operation["fmod"]) == ("lacking", "")
    assert correctness.judged("vectorize", by_operation["scatter_div"]) == ("lacking", "")
    assert correctness.judged("vectorize", next(case for case in cases.remainders() if case.dtype == "bfloat16")) == ("lacking", "")


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch):
    def off(operation: str, x: Any, y: Any, out: Any, count: int) -> Any:
        right = correctness.REMAINDERS["fastops"](operation, x, y, out, count)
        return right._replace(to_numpy=lambda result: np.where(np.arange(len(x)) == len(x) - 1, 99, result).astype(x.dtype))

    monkeypatch.setitem(correctness.REMAINDERS, "numpy", off)
    case = next(case for case in cases.remainders() if case.dtype == "int32")
    verdict, details = correctness.judged("numpy", case)
    assert verdict == "wrong"
    assert details == "remainder(-7, -3) = 99, not -1"


@pytest.mark.parametrize(
    ("result", "expected", "found"),
    [
        ([0.0, 1.0], [-0.0, 1.0], (1, 0)),
        ([1.0, np.nan], [1.0, -np.nan], (0, -1)),
        ([1.0, np.nan], [1.0, 2.0], (1, 1)),
        ([2, 3, 4], [2, 4, 5], (2, 1)),
    ],
)
def test_differences(result: list[Any], expected: list[Any], found: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    for block in (1 << 22, 1):
        monkeypatch.setattr(values, "BLOCK", block)
        assert values.differences(np.array(result), np.array(expected)) == found


# --- what is made of them -----------------------------------------------------------------------------------------------------------------
SCRIPT = """
import json, os, signal, sys
name, start = sys.argv[2:]
def say(what): print("\\n>>>" + json.dumps(what), flush=True)
say({"versions": {"numpy": "9.9"}})
for number in range(int(start), 4):
    say({"case": number})
    if number == 1:
        os.kill(os.getpid(), signal.SIGTERM) if os.name == "posix" else os._exit(3)
    say({"case": number, "verdict": "wrong" if number == 2 else "right", "details": "1, not 2" if number == 2 else ""})
"""


def four_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], dict[str, str]]:
    script = tmp_path / "worker.py"
    script.write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setattr(correctness, "__file__", str(script))
    versions: dict[str, str] = {}
    asked = [case for case in cases.remainders() if case.group == "integers of all signs" and case.operation == "fmod"]
    return list(correctness.verdicts("numpy", sys.executable, asked, versions)), versions


def test_after_a_crash_a_new_process_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found, versions = four_verdicts(tmp_path, monkeypatch)
    assert [verdict.verdict for verdict in found] == ["right", "crashed", "wrong", "right"]
    assert versions == {"numpy": "9.9"}
    crash = found[1].details
    text = verdicts.document(found, versions, {"jax": "not installed"}, date(2031, 2, 3))
    assert f"| `fmod`: integers of all signs | a crash ({crash}) 1/4, wrong 1/4 |" in text
    assert "| | NumPy 9.9 |" in text.replace("|  |", "| |")
    assert "As of 2031-02-03, numpy 9.9" in text
    assert "left out: JAX." in text
    assert f"- `fmod`, integers of all signs, int16: a crash ({crash})" in text
    assert "- `fmod`, integers of all signs, int32: wrong: `1, not 2`" in text


def test_a_process_that_says_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = tmp_path / "worker.py"
    script.write_text("print('hello')", encoding="utf-8")
    monkeypatch.setattr(correctness, "__file__", str(script))
    with pytest.raises(report_of.Unfit, match="says nothing"):
        list(correctness.verdicts("numpy", sys.executable, list(cases.remainders()), {}))


# --- has a cell become slower? ------------------------------------------------------------------------------------------------------------
def measured(ratios: dict[str, list[float]], speed: float = 1.0) -> dict[str, Any]:
    """Of each dtype, fastops' time by NumPy's, in each turn."""
    benchmarks = []
    for dtype, turns in ratios.items():
        info = {"operation": "fmod", "pattern": "arrays", "dtype": dtype, "size": 100, "values": "small", "part": "table", "threads": 1}
        for turn, ratio in enumerate(turns):
            for member, seconds in {"numpy": 1.0, "fastops": ratio}.items():
                extra = {**info, "run": "numpy", "member": member, "turn": turn}
                benchmarks.append({"extra_info": extra, "stats": {"data": 3 * [seconds * speed]}})
    return {"benchmarks": benchmarks}


STEADY = {f"int{bits}": [0.1, 0.1, 0.11] for bits in (8, 16, 32, 64)}


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (STEADY, []),
        ({"int8": [0.14, 0.14, 0.14]}, ["int8"]),
        ({"int8": [0.12, 0.12, 0.12]}, []),  # within the tolerance
        ({"int8": [0.10, 0.30, 0.30]}, []),  # one turn was as quick as before: noise
        ({dtype: [0.115, 0.115, 0.115] for dtype in STEADY}, ["all 4 cells"]),  # each within its tolerance, but all of them
        ({dtype: [0.05] * 3 for dtype in STEADY}, []),
        ({"uint8": [9.0] * 3}, []),  # the baseline has no such cell
    ],
)
@pytest.mark.parametrize("speed", [1.0, 7.0])
def test_regressions(now: dict[str, list[float]], named: list[str], speed: float):
    count, words = regression.slower(measured({**STEADY, **now}, speed), measured(STEADY))
    assert count == 4
    assert len(words) == len(named)
    assert all(name in word for name, word in zip(named, words, strict=True))


def test_nothing_in_common_is_an_error():
    with pytest.raises(report_of.Unfit):
        regression.slower(measured(STEADY), measured({"uint8": [1.0]}))


def test_check_ends_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    paths = {}
    for name, ratio in {"baseline": 0.1, "same": 0.1, "slower": 0.2}.items():
        paths[name] = tmp_path / name
        paths[name].write_text(json.dumps(measured({"int8": 3 * [ratio]})), encoding="utf-8")
    assert compare.main(["--from", str(paths["same"]), "--check", str(paths["baseline"])]) == 0
    assert "0 regressions in 1 cells" in capsys.readouterr().out
    assert compare.main(["--from", str(paths["slower"]), "--check", str(paths["baseline"])]) == 1
    assert "table fmod int8 arrays 100 small on 1: 0.1 of NumPy's time before, 0.2 now" in capsys.readouterr().out


# --- who is measured ----------------------------------------------------------------------------------------------------------------------
def test_libraries_that_are_not_there_are_named():
    found, skipped = compare.processes({"tensorflow": "/nowhere/python", "jax": sys.executable})
    assert found[0].members[:2] == ("fastops", "numpy")
    assert "nowhere" in skipped["tensorflow"]
    assert "nowhere" in skipped["tensorflow_deterministic"]
    named = {name for process in found for name in process.members} | skipped.keys()
    assert named == compare.LIBRARIES.keys()
    assert not any("tensorflow" in process.members for process in found)


def test_thread_counts():
    assert compare.thread_counts("threads", 6) == [1, 2, 4, 6]
    assert compare.thread_counts("threads", 1) == [1]
    assert compare.thread_counts("scatter", 8) == [1, 8]
    assert compare.thread_counts("table", 8) == [1]


def test_reports_are_merged():
    reports = [
        {
            "machine_info": {"versions": {"numpy": "1", name: "2"}, "cpu": name},
            "datetime": name,
            "benchmarks": [
                {
                    "group": name,
                    "extra_info": {"member": name},
                    "options": {"timer": "perf_counter", "other": 1},
                    "stats": {"median": 1.0, "iqr": 0.1, "rounds": 1, "iterations": 1, "data": [1.0], "mean": 1.0},
                }
            ],
        }
        for name in ("torch", "jax")
    ]
    merged = compare.merged([{"benchmarks": []}, *reports])
    assert merged["machine_info"] == {"versions": {"numpy": "1", "torch": "2", "jax": "2"}, "cpu": "torch"}
    assert [benchmark["group"] for benchmark in merged["benchmarks"]] == ["torch", "jax"]
    assert merged["datetime"] == "torch"
    parts = [merged | {"skipped": {"torch": "not installed", "jax": "not installed"}}, merged | {"skipped": {"torch": "not installed"}}]
    whole = compare.together(parts)
    assert whole["skipped"] == {"torch": "not installed"}
    assert [benchmark["group"] for benchmark in whole["benchmarks"]] == ["torch", "jax"] * 2


def test_nothing_to_measure_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    monkeypatch.setattr(compare, "measured", lambda options: iter(()))
    assert compare.main(["--json", str(tmp_path / "report.json")]) == 1
    assert "nothing was measured" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
