"""The maker of the README's tables, on reports made here."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fastops import info

sys.path.append(str(Path(__file__).parents[1] / "bench"))  # at the end: there is a conftest, too
table, comparison = import_module("table"), import_module("comparison")

MARKERS = {"begin": "<!-- table:begin -->", "end": "<!-- table:end -->"}


def measured(operation: str, pattern: str, dtype: str, member: str, *data: float, **other: Any) -> dict[str, Any]:
    info = {"operation": operation, "dtype": dtype, "pattern": pattern, "size": 1_000_000, "values": "small", "member": member, **other}
    stats = {"data": list(data), "median": -1.0}
    return {"group": f"{operation} {dtype} {pattern}", "extra_info": info, "options": {"timer": "perf_counter"}, "stats": stats}


@pytest.fixture
def report() -> dict[str, Any]:
    """NumPy takes 1 second; fastops 1/2 to 1/13 by dtype, 1/100 on all threads; int8 by a scalar is slower than NumPy's."""
    benchmarks = []
    for operation, pattern in table.COLUMNS:
        for k, dtype in enumerate(info.DTYPES):
            taken = 4.0 if (operation, pattern, dtype) == ("fmod", "by_scalar", "int8") else 1 / (k + 2)
            # two turns, one of them disturbed
            benchmarks += [measured(operation, pattern, dtype, "numpy", 1.0, 1.0, turn=turn) for turn in range(2)]
            benchmarks.append(measured(operation, pattern, dtype, "fastops_one_thread", taken, taken, taken, turn=0))
            benchmarks.append(measured(operation, pattern, dtype, "fastops_one_thread", 9.0, turn=1))
            benchmarks.append(measured(operation, pattern, dtype, "fastops_all_threads", 0.01))
    # what is not of the table
    benchmarks.append(measured("remainder", "arrays", "int8", "fastops_one_thread", *[77.0] * 9, size=100))
    benchmarks.append(measured("remainder", "by_row", "int8", "fastops_one_thread", *[77.0] * 9))
    benchmarks.append(measured("remainder", "arrays", "uint8", "numpy", 30.0, values="whole"))
    benchmarks.append(measured("remainder", "arrays", "uint8", "fastops_one_thread", 2.0, values="whole"))
    scatter = measured("scatter_div", "", "int8", "numpy", 5.0, table="wide", repeats="often")
    del scatter["extra_info"]["pattern"], scatter["extra_info"]["values"]
    benchmarks.append(scatter)
    return made(benchmarks)


def made(benchmarks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "benchmarks": benchmarks,
        "datetime": "2031-02-03T04:05:06.789+00:00",
        "machine_info": {
            "cpu": {"brand_raw": "Some Processor 9000"},
            "machine": "x86_64",
            "system": "Linux",
            "python_version": "3.14.1",
            "threads": {"layer": "tbb", "count": 8},
            "versions": {
                "fastops": "1.2.3",
                "numpy": "2.9.0",
                "numba": "0.70.0",
                "llvmlite": "0.52.0",
                "ml_dtypes": "0.7",
                "torch": "3.1",
                "jax": "0.15",
            },
        },
    }


@pytest.fixture
def peers_report() -> dict[str, Any]:
    """fastops takes 1 second; JAX 4, in the one cell of the whole range 8; PyTorch, of two dtypes and in a process where fastops takes 2
    seconds, 4, and 1 there, with another value. There is another part of the comparison, too."""
    benchmarks = []
    for operation, pattern in table.COLUMNS:
        for dtype in info.DTYPES:
            for values in ("small", "whole") if (operation, pattern, dtype) == ("fmod", "arrays", "float64") else ("small",):
                small = values == "small"
                cell = {"values": values, "part": "table", "threads": 1}
                benchmarks.append(measured(operation, pattern, dtype, "fastops", 1.0, wrong=0, run="a", **cell))
                benchmarks.append(measured(operation, pattern, dtype, "jax", 4.0 if small else 8.0, wrong=0, run="a", **cell))
                if dtype in ("float32", "float64"):
                    wrong = {"wrong": 0} if small else {"wrong": 250_000, "share": 0.25, "example": "fmod(5.0, 3.0) = 1.0, not 2.0"}
                    benchmarks += 2 * [measured(operation, pattern, dtype, "torch", 4.0 if small else 1.0, run="b", **wrong, **cell)]
                    benchmarks.append(measured(operation, pattern, dtype, "fastops", 2.0, wrong=0, run="b", **cell))
    for member, taken in {"fastops": 7.0, "jax": 1.0}.items():
        benchmarks.append(measured("fmod", "arrays", "float64", member, taken, wrong=0, part="sizes", threads=1))
        benchmarks.append(measured("fmod", "arrays", "float64", member, taken, wrong=0, part="table", threads=2))
    return made(benchmarks)


def text_of(report: dict[str, Any]) -> str:
    (text,) = table.tables(report).values()
    return text


def test_cells_are_ratios_of_medians(report: dict[str, Any]):
    lines = text_of(report).splitlines()
    cells = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in lines if line.startswith("|")}
    assert cells[""] == ["`mod`, array by array", "`mod`, by a scalar", "`fmod`, array by array", "`fmod`, by a scalar"]
    for k, dtype in enumerate(info.DTYPES):
        assert cells[dtype] == [f"{k + 2}.0"] * 3 + ["0.2" if dtype == "int8" else f"{k + 2}.0"]
    # 13! ** (1 / 12), and with 1/4 in place of 2
    assert cells["geometric mean"] == ["6.5", "6.5", "6.5", "5.5"]
    assert len(cells) == 1 + 1 + len(info.DTYPES) + 1


def test_text_below_the_table(report: dict[str, Any]):
    text = text_of(report)
    assert "Of these 48 cells: geometric mean **6.3**, worst 0.2 (`fmod`, by a scalar, int8)." in text
    assert "On all 8 threads: geometric mean **100**" in text
    assert "whole range, one thread: geometric mean **15.0**, worst 15.0 (`mod`, array by array, uint8)." in text
    assert "Some Processor 9000 (x86_64), Linux, Python 3.14.1, fastops 1.2.3, numpy 2.9.0, numba 0.70.0, llvmlite 0.52.0; " in text
    assert "; 2031-02-03. Made by" in text


def test_another_timer_is_named(report: dict[str, Any]):
    for benchmark in report["benchmarks"]:
        benchmark["options"]["timer"] = "process_time"
    assert "; 2031-02-03. Timed by process_time. Made by" in text_of(report)


def test_missing_cells_are_said_to_be(report: dict[str, Any]):
    report["benchmarks"] = [
        benchmark
        for benchmark in report["benchmarks"]
        if benchmark["extra_info"]["dtype"] != "bfloat16" and benchmark["extra_info"]["operation"] != "fmod"
    ]
    text = text_of(report)
    assert "| bfloat16 | not run | not run | not run | not run |" in text
    assert "| int8 | 2.0 | 2.0 | not run | not run |" in text
    assert "| geometric mean | 6.2 | 6.2 | not run | not run |" in text
    assert "Of these 22 cells" in text


def test_peers(peers_report: dict[str, Any]):
    ((name, text),) = table.tables(peers_report).items()
    assert name == "peers"
    assert "**one thread**" in text
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    worst = "0.5 (`fmod`, array by array, float64, whole range)"
    assert rows[2:] == [
        ["PyTorch 3.1", "9", "1", "1.7", worst],  # (2**8 / 2) ** (1 / 9)
        ["JAX 0.15", "49", "0", "4.1", "4.0 (`mod`, array by array, int8)"],  # (4**48 * 8) ** (1 / 49)
        ["the fastest in each cell", "49", "", "**3.4**", worst],  # (2**8 * 4**40 / 2) ** (1 / 49)
        ["the fastest in each cell with NumPy's values", "49", "", "**3.6**", "2.0 (`mod`, array by array, float32)"],  # * 8 for / 2
    ]


def test_peers_have_their_own_markers(peers_report: dict[str, Any], tmp_path: Path):
    results, readme = tmp_path / "results.json", tmp_path / "README.md"
    results.write_text(json.dumps(peers_report), encoding="utf-8")
    main_table = f"{MARKERS['begin']}\nmain\n{MARKERS['end']}\n"
    readme.write_text(f"{main_table}<!-- peers:begin -->\nold\n<!-- peers:end -->\n", encoding="utf-8")
    assert table.main([str(results), "--write", str(readme)]) == 0
    expected = f"{main_table}<!-- peers:begin -->\n{text_of(peers_report)}\n<!-- peers:end -->\n"
    assert readme.read_text(encoding="utf-8") == expected


def test_every_cell(report: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    results = tmp_path / "results.json"
    report["benchmarks"].append(measured("remainder", "arrays", "int16", "limit", 0.2, 0.5, 0.2))
    results.write_text(json.dumps(report), encoding="utf-8")
    assert table.main([str(results), "--cells"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| ns an element | numpy | fastops_one_thread | fastops_all_threads | limit | fastops / fastest other |"
    assert "| remainder int16 arrays | 1000 | 250 | 10 | 200 | 1.25 |" in lines
    assert "| remainder int32 arrays | 1000 | 167 | 10 |  | 0.17 |" in lines
    assert "| scatter_div int8  | 5000 |  |  |  |  |" in lines


def test_write_replaces_what_is_between_the_markers(report: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    results, readme = tmp_path / "results.json", tmp_path / "README.md"
    results.write_text(json.dumps(report), encoding="utf-8")
    readme.write_text(f"# Höhe\n{MARKERS['begin']}\nold\n{MARKERS['end']}\nend\n", encoding="utf-8")
    for _ in range(2):  # a second time changes nothing
        assert table.main([str(results), "--write", str(readme)]) == 0
        assert readme.read_text(encoding="utf-8") == f"# Höhe\n{MARKERS['begin']}\n{text_of(report)}\n{MARKERS['end']}\nend\n"
    assert table.main([str(results)]) == 0
    assert capsys.readouterr().out == text_of(report) + "\n"


@pytest.mark.parametrize("text", ["", "{begin}", "{end}", "{end}\n{begin}", "{begin}\n{begin}\n{end}"])
def test_write_needs_both_markers(text: str, report: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    results, readme = tmp_path / "results.json", tmp_path / "README.md"
    results.write_text(json.dumps(report), encoding="utf-8")
    text = text.format(**MARKERS)
    readme.write_text(text, encoding="utf-8")
    assert table.main([str(results), "--write", str(readme)]) == 1
    assert MARKERS["begin"] in capsys.readouterr().err
    assert readme.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"benchmarks": []}'])
def test_unfit_reports(text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    results = tmp_path / "results.json"
    if text is not None:
        results.write_text(text, encoding="utf-8")
    assert table.main([str(results)]) == 1
    assert capsys.readouterr().err.startswith("table.py: ")


@pytest.fixture
def scatter_report() -> dict[str, Any]:
    """NumPy takes 6 milliseconds, in one of three rounds disturbed; fastops 2, and 1 on all threads; TensorFlow 8, with other bits, while
    fastops takes 4."""
    case, other = "5x7 float32 into 3, random", "1 float32 into 9, sorted"
    example = {"wrong": 7, "share": 1 / 3, "example": "a division of (1.0) = 2.0, not 3.0"}
    return made(
        [
            scattered(case, "numpy", 6e-3, 6e-3, 9.0),
            scattered(case, "fastops", 2e-3, 2e-3, 9.0),
            scattered(case, "fastops", 1e-3, threads=8),
            scattered(case, "numpy", 5e-3, threads=8),
            scattered(case, "fastops", 4e-3, run="b"),
            scattered(case, "tensorflow", 8e-3, run="b", **example),
            scattered(other, "numpy", 1e-6),
            scattered(other, "fastops", 1e-6),
            scattered(other, "fastops", 1e-6, threads=8),
            scattered(other, "numpy", 4e-6, threads=8),
        ]
    )


def scattered(case: str, member: str, *data: float, **other: Any) -> dict[str, Any]:
    return measured("scatter_div", case, "float32", member, *data, **{"run": "a", "threads": 1, "part": "scatter", "wrong": 0, **other})


def test_scatter_div(scatter_report: dict[str, Any]):
    case, other = "5x7 float32 into 3, random", "1 float32 into 9, sorted"
    scatter_report["machine_info"]["versions"]["tensorflow"] = "3.0"
    ((name, text),) = table.tables(scatter_report).items()
    assert name == "scatter"
    lines = text.splitlines()
    assert "| updates | NumPy 2.9.0 | TensorFlow 3.0 | takes | NumPy, 8 threads |" in lines
    assert f"| {case} | 3.0 | 2.0* | 2.00 ms | 5.0 |" in lines
    assert f"| {other} | 1.0 |  | 1.00 µs | 4.0 |" in lines
    assert "\\* with other bits than those of the loop in order" in lines
    assert lines[-1].endswith(" Made by `python bench/compare.py`.")


def test_document(peers_report: dict[str, Any], scatter_report: dict[str, Any]):
    report = made(peers_report["benchmarks"] + scatter_report["benchmarks"]) | {"skipped": {"mindspore": "not installed"}}
    lines = comparison.document(report, {"a picture": "pictures/a.svg"}).splitlines()
    assert [line for line in lines if line.startswith("## ")] == [
        "## Remainders on one thread",
        "## From small to large",
        "## scatter_div",
        "## Other results than NumPy's",
    ]
    assert "Not compared: MindSpore (not installed)." in lines
    assert "![a picture](pictures/a.svg)" in lines
    assert "| `mod`, array by array, float32 | 2.0 | 4.0 |" in lines
    assert "| `fmod`, array by array, float64, whole range | 0.5* | 8.0 |" in lines
    assert "| `fmod`, array by array, float64, 1,000,000 | 7e+03 | 1e+03 |" in lines
    assert "| PyTorch 3.1 | fmod | float64 | 25.00% | `fmod(5.0, 3.0) = 1.0, not 2.0` |" in lines
    assert "| TensorFlow | scatter_div | float32 | 33.33% | `a division of (1.0) = 2.0, not 3.0` |" in lines
