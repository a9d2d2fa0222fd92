"""What the benchmark suites share: the members of a comparison, how long to measure, and what the JSON tells of the machine.

Run from the root of the repository:

    pytest bench --benchmark-json=results/bench.json             everything, some minutes
    pytest bench -m table --benchmark-json=results/bench.json    what the README's table needs
    pytest bench -k "remainder and float32 and by_row"   by operation, dtype, pattern, size, values, member
    pytest bench/peers.py --benchmark-json=results/peers.json    other libraries, which that file lists
    pytest bench/scatter_peers.py --benchmark-json=results/scatter.json    scatter_div, and other libraries' operators

The members of a group (NumPy, fastops on one thread, fastops on all) follow each other, in the table's cells several times over, so that a
machine that slows down slows down all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import metadata
from time import perf_counter
from typing import Any

import pytest

import fastops
from fastops.engine import compiler, threads

MEMBERS = ("numpy", "fastops_one_thread", "fastops_all_threads")
PEERS = ("torch", "onnxruntime", "jax", "numexpr")  # as their packages are called
SCATTER_PEERS = ("tensorflow", "mindspore")
ROUND = 20e-6  # seconds that a round takes at least, by repeating the call within it
Call = Callable[..., object]
Operands = Callable[[], tuple[Any, ...]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-threads", action="store_true", help="of bench/peers.py and bench/scatter_peers.py: each library on all threads, not on one"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "table: the cells of the README's table")
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError("the benchmarks need pytest-benchmark: pip install -e '.[bench]'")
    if config.getoption("benchmark_json"):
        config.getoption("benchmark_json").parent.mkdir(parents=True, exist_ok=True)


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    machine_info.pop("node", None)  # the host's name is nobody's business
    versions = {package: metadata.version(package) for package in ("numpy", "numba", "llvmlite", "ml_dtypes")}
    peers = {peer: sys.modules[peer].__version__ for peer in (*PEERS, *SCATTER_PEERS) if peer in sys.modules}
    machine_info["versions"] = {"fastops": fastops.__version__, **versions, **peers}
    machine_info["threads"] = {"layer": threads.launch(), "count": threads.limit()}


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., None]:
    """`measure(info, call, operands, seconds, fresh)`: time `call(*operands())` as the member `info["member"]`, for about that long.

    With `fresh`, every round gets new operands, for calls that change them.
    """

    def measure(info: dict[str, Any], call: Call, operands: Operands, seconds: float, fresh: bool = False) -> None:
        threads.launch()  # before Numba launches them itself, which would not find the tbb package
        numba = compiler.numba()
        benchmark.group = " ".join(str(value) for key, value in info.items() if key not in ("member", "turn"))
        benchmark.extra_info.update(info)
        before = numba.get_num_threads()
        numba.set_num_threads(1 if info["member"] == "fastops_one_thread" else before)
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
