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
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

SECONDS, ROUNDS = 3.0, 5

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
end, times = float(sys.stdin.readline()), []
while time.time() < end:
    start = time.perf_counter()
    calls()
    times.append(time.perf_counter() - start)
print(len(times), sorted(times)[len(times) // 2] * 1e3)
"""


def together(count: int, **environment: str) -> tuple[int, float]:
    """Calls that so many processes finish, and the median of what one took, in milliseconds."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_NUM")} | environment
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for worker in workers:
            if worker.stdout is None or worker.stdout.readline() != "ready\n":
                raise SystemExit("a process did not start")
        for worker in workers:
            if worker.stdin is not None:
                worker.stdin.write(f"{time.time() + SECONDS}\n")
                worker.stdin.flush()
        results = [worker.communicate(timeout=120)[0].split() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    return sum(int(done) for done, _ in results), median(float(took) for _, took in results)


@contextmanager
def busy() -> Iterator[None]:
    """Meanwhile another process keeps a core."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
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
    for _ in range(ROUNDS):
        yardstick, _ = together(cores, **alone)
        (many, _), (serially, _) = together(4 * cores), together(4 * cores, **alone)
        with busy():
            (_, threaded), (_, serial) = together(1), together(1, **alone)
        figures = {
            "throughput of four processes a core": many / yardstick,
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
