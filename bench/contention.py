"""Several processes on few cores: what they reach together, and what a call takes beside somebody else's work.

    python bench/contention.py

Throughput is the number of calls that all processes finish in some seconds: of `fastops.mod` of a million int32, of `fmod` of 300 000
float64, and of `scatter_div` of 2 000 rows of 128 float64, in turn. The yardstick is as many processes as there are cores, each on one
thread. (What one process reaches with threads depends on how much memory bounds it, and is in the table of the README.)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from subprocess import PIPE, Popen

SECONDS, ROUNDS = 1.0, 15

WORKER = """
import sys, time
import numpy as np, fastops
random = np.random.default_rng(0)
i, j = random.integers(1, 2**31, (2, 1_000_000), np.int32)
x, y = random.normal(size=(2, 300_000))
table, rows, by = np.ones((500, 128)), random.integers(0, 500, 2_000), np.full((2_000, 128), 1.0)
outs = np.empty_like(i), np.empty_like(x)
def calls():
    fastops.mod(i, j, out=outs[0])
    fastops.fmod(x, y, out=outs[1])
    fastops.scatter_div(table, rows, by)
for _ in range(5):
    calls()
print("ready", flush=True)
for line in sys.stdin:
    end, times = float(line), []
    while time.time() < end:
        start = time.perf_counter()
        calls()
        times.append(time.perf_counter() - start)
    print(len(times), sorted(times)[len(times) // 2] * 1e3, flush=True)
"""


class Team:
    """Processes that wait to be told until when to call."""

    def __init__(self, count: int, environment: dict[str, str], group: ExitStack) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_NUM")} | environment
        self._workers = [
            group.enter_context(Popen([sys.executable, "-c", WORKER], env=env, stdin=PIPE, stdout=PIPE, text=True)) for _ in range(count)
        ]
        for worker in self._workers:
            group.callback(worker.kill)
            self._line(worker)  # it is ready

    def calls(self) -> tuple[int, float]:
        """How many they finish, and the median of what one took, in milliseconds."""
        until = time.time() + SECONDS
        for worker in self._workers:
            if worker.stdin is not None:
                worker.stdin.write(f"{until}\n")
                worker.stdin.flush()
        results = [self._line(worker).split() for worker in self._workers]
        return sum(int(done) for done, _ in results), median(float(took) for _, took in results)

    @staticmethod
    def _line(worker: Popen[str]) -> str:
        line = worker.stdout.readline() if worker.stdout else ""
        if not line:
            raise SystemExit("a process has ended before its time")
        return line


@contextmanager
def busy() -> Iterator[None]:
    """Meanwhile another process keeps a core."""
    other = Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    alone = {"NUMBA_NUM_THREADS": "1"}
    ratios: dict[str, list[float]] = {}
    with ExitStack() as group:
        yard, many, many_alone = (Team(count, env, group) for count, env in [(cores, alone), (4 * cores, {}), (4 * cores, alone)])
        one, one_alone = Team(1, {}, group), Team(1, alone, group)
        for _ in range(ROUNDS):
            yardstick, together, serially = (team.calls()[0] for team in (yard, many, many_alone))
            with busy():
                threaded, serial = one.calls()[1], one_alone.calls()[1]
            figures = {
                "throughput of four processes a core": together / yardstick,
                "the same, each on one thread": serially / yardstick,
                "time of a process beside one that is busy": threaded / serial,
            }
            for name, figure in figures.items():
                ratios.setdefault(name, []).append(figure)
    result = {
        name: {"median": round(median(values), 2), "rounds": [round(value, 2) for value in values]} for name, values in ratios.items()
    }
    if options.json:
        print(json.dumps({"cores": cores, **result}))
        return
    print(f"{cores} cores, by what processes of one thread reach (median of {ROUNDS} rounds):")
    for name, figure in result.items():
        print(f"  {name}: {figure['median']}  {figure['rounds']}")


if __name__ == "__main__":
    main()
