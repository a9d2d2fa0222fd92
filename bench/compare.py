"""fastops beside NumPy and every other library that is there: times, tables, pictures, and a check against an earlier run.

    pip install -e '.[bench,peers]'
    python bench/compare.py --quick                 a minute or two: does it work?
    python bench/compare.py                         all of it, about an hour: results/compare.json
    python bench/compare.py --parts threads scatter
    python bench/compare.py --python tensorflow=../tf/bin/python --python mindspore=../ms/bin/python
    python bench/compare.py --check baseline.json   ends with 1 if a cell has become slower than it was, beside NumPy
    python bench/compare.py --from results/scatter.json results/table.json --document docs/comparison.md --pictures docs/pictures

TensorFlow and MindSpore run in processes of their own, so that they may be installed in environments of their own (with numpy, numba,
ml_dtypes, pytest and pytest-benchmark; `--python` names them). Every process measures fastops too, for its libraries to be compared with. A
library that is not there is left out, and named. Each process runs pytest on bench/peers.py or bench/scatter_peers.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from libraries import LIBRARIES, installed
from regression import slower
from report import Unfit, exit_code, load, threads

ROOT = Path(__file__).parents[1]
PARTS = {"table": "peers.py", "sizes": "peers.py", "threads": "peers.py", "scatter": "scatter_peers.py"}
NEEDED = ("numpy", "numba", "ml_dtypes", "pytest", "pytest_benchmark", "tqdm")


class Process(NamedTuple):
    """Libraries that share one, and its interpreter."""

    name: str
    python: str
    members: tuple[str, ...]


def environment() -> dict[str, str]:
    """For the fastops of this tree to be the one that is measured, in any interpreter."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))}


def lacking(python: str, package: str) -> str:
    """What an interpreter lacks to measure a package; "" if nothing."""
    code = "import sys; from importlib.util import find_spec; print(*[name for name in sys.argv[1:] if find_spec(name) is None])"
    try:
        done = subprocess.run([python, "-c", code, package, *NEEDED], capture_output=True, text=True, timeout=60)
    except OSError as error:
        return str(error)
    return f"{python} lacks {done.stdout.strip()}" if done.stdout.strip() else done.stderr.strip()


def interpreter(package: str, pythons: Mapping[str, str]) -> tuple[str, str]:
    """Of a library's package; and what is lacking there."""
    if package in pythons:
        return pythons[package], lacking(pythons[package], package)
    return sys.executable, "" if installed(package) else "not installed"


def processes(pythons: Mapping[str, str]) -> tuple[list[Process], dict[str, str]]:
    """Those that can run, and why the other libraries cannot."""
    together, alone, skipped = [], [], {}
    for name, library in LIBRARIES.items():
        python, problem = interpreter(library.package, pythons)
        if problem:
            skipped[name] = problem
        elif library.alone or library.package in pythons:
            alone.append(Process(name, python, ("fastops", name)))
        else:
            together.append(name)
    return [Process("numpy", sys.executable, tuple(together)), *alone], skipped


def thread_counts(part: str, most: int) -> list[int]:
    """One; for the other parts than the table and the sizes, all too, and for the threads what lies between."""
    between = [1 << k for k in range(1, most.bit_length()) if 1 << k < most] if part == "threads" else []
    return sorted({1, *between, *([most] if part in ("threads", "scatter") else [])})


def run(process: Process, part: str, count: int, quick: bool) -> dict[str, Any] | str:
    """The report of one process, or what went wrong."""
    label = f"{part}, {threads(count)}, {LIBRARIES[process.name].title}{' …' if process.name == 'numpy' else ''}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        command = [process.python, "-m", "pytest", str(ROOT / "bench" / PARTS[part]), "--part", part, "--threads", str(count)]
        command += ["--members", ",".join(process.members), "--run-name", process.name, "--progress", label, f"--benchmark-json={file}"]
        # warnings of the libraries are not ours
        command += ["-q", "--benchmark-quiet", "-W", "default", "-p", "no:cacheprovider", *(["--quick"] if quick else [])]
        done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
        if done.returncode == 5:  # nothing to run: the library lacks it all
            return {"benchmarks": []}
        if done.returncode:
            return f"{label}: ended with {done.returncode}\n{done.stdout[-4000:]}"
        report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return report


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One report; of the statistics, the rounds and what sums them up."""
    first = next(report for report in reports if report["benchmarks"])
    versions: dict[str, str] = {}
    for report in reports:
        if "machine_info" in report:
            versions = report["machine_info"]["versions"] | versions
    benchmarks = [
        {
            "group": benchmark["group"],
            "extra_info": benchmark["extra_info"],
            "options": {"timer": benchmark["options"]["timer"]},
            "stats": {key: benchmark["stats"][key] for key in ("median", "iqr", "rounds", "iterations", "data")},
        }
        for report in reports
        for benchmark in report["benchmarks"]
    ]
    return {"machine_info": first["machine_info"] | {"versions": versions}, "datetime": first["datetime"], "benchmarks": benchmarks}


def together(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Reports of parts that were measured at several times; left out is what is in none."""
    if len(reports) == 1:
        return reports[0]
    skipped = [report.get("skipped", {}) for report in reports]
    return merged(reports) | {"skipped": {name: why for name, why in skipped[0].items() if all(name in others for others in skipped)}}


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any] | str]:
    """Part by part, the libraries after each other; a problem is a text."""
    from fastops.engine.threads import limit

    able, skipped = processes(dict(options.python))
    for name, why in skipped.items():
        print(f"{LIBRARIES[name].title} is left out: {why}", file=sys.stderr)
    reports = []
    for part in options.parts:
        for count in thread_counts(part, limit()):
            for process in able:
                library = LIBRARIES[process.name]
                if library.scatter if part == "scatter" else library.remainders:
                    report = run(process, part, count, options.quick)
                    if isinstance(report, str):
                        yield report
                    else:
                        reports.append(report)
    if any(report["benchmarks"] for report in reports):
        yield merged(reports) | {"skipped": skipped}


def of_python(text: str) -> tuple[str, str]:
    package, _, python = text.partition("=")
    if package not in {library.package for library in LIBRARIES.values()} or not python:
        raise argparse.ArgumentTypeError(f"expected PACKAGE=INTERPRETER, not {text}")
    return package, python


def made(options: argparse.Namespace, report: dict[str, Any]) -> None:
    """The document and the pictures that are asked for."""
    pictures: dict[str, str] = {}
    if options.pictures:
        from pictures import draw

        base = options.document.parent if options.document else Path.cwd()
        for title, path in draw(report, options.pictures).items():
            pictures[title] = os.path.relpath(path, base).replace(os.sep, "/")
            print(path)
    if options.document:
        from comparison import document

        options.document.parent.mkdir(parents=True, exist_ok=True)
        options.document.write_text(document(report, pictures), encoding="utf-8")
        print(options.document)


def compared(options: argparse.Namespace) -> int:
    """1 if a process failed, or a cell has become slower."""
    failed = False
    baseline = load(options.check) if options.check else None  # before an hour of measuring
    if options.sources:
        report = together([load(source) for source in options.sources])
    else:
        *problems, report = list(measured(options)) or ["nothing was measured: none of these libraries has such cells"]
        failed = bool(problems)
        for problem in problems:
            print(problem, file=sys.stderr)
        if isinstance(report, str):
            raise Unfit(report)
    if options.sources is None or len(options.sources) > 1:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report), encoding="utf-8")
        print(options.json)
    made(options, report)
    if baseline:
        count, words = slower(report, baseline)
        print(*words, f"{len(words)} regressions in {count} cells", sep="\n")
        failed = failed or bool(words)
    return int(failed)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few cells, for a moment each")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--python", action="append", type=of_python, default=[], metavar="PACKAGE=INTERPRETER")
    parser.add_argument(
        "--json", type=Path, default=Path("results/compare.json"), help="where the report goes, of all that was measured or read"
    )
    parser.add_argument("--from", type=Path, nargs="+", dest="sources", metavar="JSON", help="measure nothing: take reports of parts")
    parser.add_argument("--document", type=Path, help="where the tables go, in Markdown")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="where the pictures go (needs matplotlib)")
    parser.add_argument("--check", type=Path, metavar="JSON", help="an earlier report to compare with")
    options = parser.parse_args(arguments)
    return exit_code("compare.py", lambda: compared(options))


if __name__ == "__main__":
    sys.exit(main())
