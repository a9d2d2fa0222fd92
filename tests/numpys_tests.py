"""NumPy's own tests, and pandas', xarray's and Dask's, with NumPy patched: `python tests/numpys_tests.py [SUITE …]`.

Each suite runs in two processes at once: in one as it is, in the other after `fastops.warmup()` and `fastops.patch_numpy()`. Every test
must end the same way in both (passed, failed, skipped …, and with the same warnings). Exits 1 if one does not, 3 if a suite is not
installed. This module is also the plugin of pytest that patches NumPy in these processes and writes down how each test ended.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastops
from fastops.engine import capi


class Suite(NamedTuple):
    package: str
    paths: tuple[str, ...]  # in the package's folder
    select: str = ""  # pytest's -k
    filters: tuple[str, ...] = ()  # of warnings, as the project has them


# NumPy's pytest.ini, which its wheels leave out, makes every warning an error but two; the last are newer pytest's own.
_NUMPYS_FILTERS = (
    "error",
    "ignore:the matrix subclass is not",
    "ignore:Importing from numpy.matlib is",
    "ignore::pytest.PytestDeprecationWarning",
)
_INVOLVED = (*(f"_core/tests/test_{name}.py" for name in ("umath", "scalarmath", "half", "ufunc", "multiarray", "indexing")), "ma/tests")

# Those that have to do with arithmetic, and need no package beside Dask.
_XARRAYS = ("dataarray", "dataset", "dask", "ufuncs", "computation", "duck_array_ops", "groupby", "rolling", "interp", "indexing",
            "namedarray", "coding_times", "accessor_dt", "weighted", "missing", "datatree")  # fmt: skip

SUITES = {
    "numpy-few": Suite("numpy", ("_core/tests/test_umath.py",), "mod or remainder or division", _NUMPYS_FILTERS),
    "numpy-quick": Suite("numpy", _INVOLVED, "mod or remainder or division or half or indexing", _NUMPYS_FILTERS),
    "numpy": Suite("numpy", _INVOLVED, "", _NUMPYS_FILTERS),
    "numpy-core": Suite("numpy", ("_core/tests", "lib/tests", "matrixlib/tests"), "", _NUMPYS_FILTERS),
    "pandas": Suite("pandas", ("tests/arithmetic", "tests/arrays")),
    "pandas-extension": Suite("pandas", ("tests/extension",), "mod or arith"),
    "xarray": Suite("xarray", tuple(f"tests/test_{name}.py" for name in _XARRAYS)),
    "dask": Suite("dask", ("array/tests",)),
}


# --- the plugin ---------------------------------------------------------------------------------------------------------------------------
_UFUNCS = (np.remainder, np.fmod)
_SIGNALLING = (np.array([0x7F800001], "u4").view("f4"), np.array([0x7FF0000000000001], "u8").view("f8"))


def _addresses() -> dict[str, int]:
    """Where the inner loops of NumPy's ufuncs are."""
    found = {}
    for ufunc in _UFUNCS:
        place, count, rows = capi.tables(ufunc)
        loops = (ctypes.c_size_t * count).from_address(place.function)
        found |= {f"{ufunc.__name__} {number}": loops[row] for number, row in rows.items()}
    return found


_NUMPYS = _addresses()


def evidence() -> dict[str, Any]:
    """Whose loops NumPy runs: what fastops says, what NumPy's tables say, and what a call does (of a signalling NaN only NumPy warns)."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for ufunc in _UFUNCS:
            for nan in _SIGNALLING:
                ufunc(nan, nan.dtype.type(1))
    here = _addresses()
    return {"is_patched": fastops.is_patched(), "numpys_loops": [key for key in here if here[key] == _NUMPYS[key]], "warned": len(warned)}


UNPATCHED = {"is_patched": False, "numpys_loops": list(_NUMPYS), "warned": len(_UFUNCS) * len(_SIGNALLING)}
PATCHED = {"is_patched": True, "numpys_loops": [], "warned": 0}


class _Recorder:
    """How each test ended, and the warnings that pytest saw in it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.outcomes: dict[str, list[str]] = {}

    def pytest_sessionstart(self) -> None:
        self.start = evidence()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self.outcomes.setdefault(report.nodeid, []).append(f"{report.outcome} in collection")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            expected = "expected to fail, " if hasattr(report, "wasxfail") else ""
            self.outcomes.setdefault(report.nodeid, []).append(f"{expected}{report.outcome} in {report.when}")

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        self.outcomes.setdefault(nodeid, []).append(f"warned: {warning_message.category.__name__}: {warning_message.message}")

    def pytest_sessionfinish(self) -> None:
        result = {"start": self.start, "end": evidence(), "outcomes": self.outcomes}
        Path(self.file).write_text(json.dumps(result), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes")
    parser.addoption("--patched", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--patched"):
        fastops.warmup()
        fastops.patch_numpy()
    config.pluginmanager.register(_Recorder(config.getoption("--outcomes")))


# --- the runs -----------------------------------------------------------------------------------------------------------------------------
def _start(suite: Suite, folder: Path, patched: bool) -> subprocess.Popen[str]:
    """pytest in a process that knows nothing of this project's settings, nor of the user's."""
    folder.mkdir()
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\nfilterwarnings =\n" + "".join(f"    {line}\n" for line in suite.filters), encoding="utf-8")
    package = Path(importlib.util.find_spec(suite.package).origin).parent
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTEST_ADDOPTS", "PYTHONWARNINGS")}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(Path(fastops.__file__).parents[1]), str(Path(__file__).parent)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONHASHSEED": "0",
        "NPY_AVAILABLE_MEM": "2 GB",  # tests that want more are skipped, whatever the other process takes
    }
    command = [sys.executable, "-m", "pytest", "-q", "--disable-warnings", "-p", "no:cacheprovider", "-p", Path(__file__).stem]
    command += ["-c", str(settings), "--rootdir", str(package.parent), "--basetemp", str(folder / "temporary")]
    command += ["--outcomes", str(folder / "outcomes.json"), *["--patched"] * patched, "-k", suite.select]
    command += [str(package / path) for path in suite.paths]
    with open(folder / "output.txt", "w", encoding="utf-8") as output:
        return subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)


def _outcomes(folder: Path, code: int, want: dict[str, Any]) -> dict[str, list[str]]:
    file = folder / "outcomes.json"
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or not file.exists():
        output = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"the tests were not run to the end, exit code {code}:\n{output[-5000:]}")
    result = json.loads(file.read_text(encoding="utf-8"))
    for state in result["start"], result["end"]:
        if state != want:
            raise RuntimeError(f"NumPy should have been in the state {want}, and was in {state}")
    return result["outcomes"]


def differences(unpatched: dict[str, list[str]], patched: dict[str, list[str]]) -> list[str]:
    """A line for each test that did not end the same way."""
    return [
        f"{test}: {unpatched.get(test, 'not run')} unpatched, {patched.get(test, 'not run')} patched"
        for test in sorted(unpatched.keys() | patched.keys())
        if unpatched.get(test) != patched.get(test)
    ]


def run(suite: Suite, folder: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """How each test of a suite ended, unpatched and patched."""
    processes = [_start(suite, folder / name, name == "patched") for name in ("unpatched", "patched")]
    codes = [process.wait() for process in processes]
    return _outcomes(folder / "unpatched", codes[0], UNPATCHED), _outcomes(folder / "patched", codes[1], PATCHED)


def counts(outcomes: dict[str, list[str]]) -> str:
    counted = Counter(line for lines in outcomes.values() for line in lines if not line.startswith("warned"))
    return ", ".join(f"{number:,} {text}" for text, number in counted.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="of " + ", ".join(SUITES) + " (default: all)")
    names = parser.parse_args().suites or list(SUITES)
    if unknown := set(names) - SUITES.keys():
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    different, left_out = 0, []
    for name in names:
        suite = SUITES[name]
        if importlib.util.find_spec(suite.package) is None:
            left_out.append(name)
            continue
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            unpatched, patched = run(suite, Path(folder))
        lines = differences(unpatched, patched)
        different += len(lines)
        print(f"{name}: {counts(unpatched)}; {len(lines)} different with NumPy patched; {time.perf_counter() - start:.0f} s", flush=True)
        print(*(f"  {line}" for line in lines), sep="\n", end="\n" if lines else "")
    if left_out:
        print(f"LEFT OUT, not installed: {', '.join(left_out)}")
    return 1 if different else 3 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
