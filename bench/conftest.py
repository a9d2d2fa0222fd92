"""What the benchmark suites share: the members of a comparison, how long to measure, and what the JSON tells of the machine.

Run from the root of the repository:

    pytest bench --benchmark-json=results/bench.json             everything, some minutes
    pytest bench -m table --benchmark-json=results/bench.json    what the README's table needs
    pytest bench -k "remainder and float32 and by_row"   by operation, dtype, pattern, size, values, member
    pytest bench/peers.py -k "fmod and int8"       other libraries' remainders, as far as they are installed here
    pytest bench/scatter_peers.py --threads 2      and scatter_div; `python bench/compare.py` runs all of both and makes tables and pictures

The members of a group (NumPy, fastops on one thread, fastops on all; or the libraries) follow each other, in the table's cells several
times over, so that a machine that slows down slows down all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest
from libraries import LIBRARIES, installed, versions

import fastops
from fastops.engine import compiler, threads

MEMBERS = ("numpy", "fastops_one_thread", "fastops_all_threads")
ROUND = 20e-6  # seconds that a round takes at least, by repeating the call within it
Call = Callable[..., object]
Operands = Callable[[], tuple[Any, ...]]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("comparison", "of bench/peers.py and bench/scatter_peers.py")
    group.addoption("--part", default="table", help="which part of the comparison: table, sizes, threads or scatter")
    group.addoption("--threads", type=int, default=1, help="of every library")
    group.addoption("--members", help="the libraries, by comma; those that are installed, if not given")
    group.addoption("--quick", action="store_true", help="a few cells, for a moment each: to see that it works")
    group.addoption("--run-name", default="", help="what the JSON calls this process")
    group.addoption("--progress", metavar="LABEL", help="show a bar with this label")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "table: the cells of the README's table")
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError("the benchmarks need pytest-benchmark: pip install -e '.[bench]'")
    if config.getoption("progress"):
        config.pluginmanager.register(Progress(config.getoption("progress")))
    if config.getoption("benchmark_json"):
        config.getoption("benchmark_json").parent.mkdir(parents=True, exist_ok=True)


class Progress:
    """A bar on the standard error, which pytest leaves alone between tests."""

    def __init__(self, label: str) -> None:
        self.label = label

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        from tqdm import tqdm

        self.bar = tqdm(total=len(session.items), desc=self.label, unit=" cells")

    def pytest_runtest_logfinish(self) -> None:
        self.bar.update()

    def pytest_sessionfinish(self) -> None:
        self.bar.close()


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    machine_info.pop("node", None)  # the host's name is nobody's business
    machine_info["versions"] = {"fastops": fastops.__version__, **versions()}
    machine_info["threads"] = {"layer": threads.launch(), "count": threads.limit()}
    machine_info["target"] = compiler.target()[1]  # as LLVM calls the processor: the same name on the box may mean several


def chosen(config: pytest.Config) -> list[str]:
    """The libraries that are asked for, or those that are there: then TensorFlow only in its usual mode, which a process has one of."""
    if config.getoption("members"):
        return str(config.getoption("members")).split(",")
    return [name for name in LIBRARIES if installed(LIBRARIES[name].package) and name != "tensorflow_deterministic"]


def available_memory() -> int:
    """Bytes; where the system does not tell, four gigabytes."""
    names = getattr(os, "sysconf_names", {})
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_AVPHYS_PAGES" in names else 4 << 30


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., None]:
    """`measure(info, call, operands, seconds, fresh)`: time `call(*operands())` as the member `info["member"]`, for about that long.

    With `fresh`, every round gets new operands, for calls that change them.
    """

    def measure(info: dict[str, Any], call: Call, operands: Operands, seconds: float, fresh: bool = False) -> None:
        threads.launch()  # before Numba launches them itself, which would not find the tbb package
        numba = compiler.numba()
        benchmark.group = " ".join(str(value) for key, value in info.items() if key not in ("member", "turn"))
        benchmark.extra_info.update(info, load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None)
        before = numba.get_num_threads()
        numba.set_num_threads(1 if info["member"] == "fastops_one_thread" else info.get("threads", before))
        try:
            args = operands()
            call(*args)  # compiles and warms up
            args = operands() if fresh else args
            start = perf_counter()
            call(*args)
            took = perf_counter() - start
            iterations = 1 if fresh else max(1, int(ROUND / took))
            rounds = max(3 if took < 0.2 else 1, min(100, int(seconds / (took * iterations))))
            if fresh:
                benchmark.pedantic(call, setup=lambda: (operands(), {}), rounds=rounds)
            else:
                benchmark.pedantic(call, args, rounds=rounds, iterations=iterations)
        finally:
            numba.set_num_threads(before)

    return measure
