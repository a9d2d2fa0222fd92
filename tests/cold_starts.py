"""Processes that start cold at once, on one cache: is a result wrong, is a function lost? `python tests/cold_starts.py --times 20`

The test suite does it once, with few processes and functions.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress

from in_processes import EVERY_CALL

PROCESSES = 8
FEW_CALLS = """
import sys
import numpy as np
import fastops
x, y = np.random.default_rng(0).normal(size=(2, 20_000))
i, j = np.random.default_rng(0).integers(-(2**31), 2**31, (2, 20_000), np.int32) | 1
def right():
    pairs = (fastops.mod(i, j), np.mod(i, j)), (fastops.fmod(x, y), np.fmod(x, y)), (fastops.mod(i[:9], 7), np.mod(i[:9], 7))
    return all(np.array_equal(got, want) for got, want in pairs)
"""
REPORT = """
from fastops.engine import compiler
print(right(), *(f"{made.name}:{made.from_cache}" for made in compiler.compiled()))
"""
START = """
import numba
print("ready", flush=True)
sys.stdin.readline()
"""


def at_once(calls: str, cache: str, processes: int) -> list[list[str]]:
    """What so many processes that wait for each other say: whether all was right, and what they compiled or found. Less if they fail."""
    command, env = [sys.executable, "-W", "error", "-c", calls + START + REPORT], {**os.environ, "NUMBA_CACHE_DIR": cache}
    with ExitStack() as stack:
        running = [subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        for process in running:
            stack.callback(process.communicate)
            stack.callback(process.kill)
        for process in running:
            process.stdout.readline()
        for process in running:
            with suppress(OSError):  # of one that has failed
                process.stdin.write("\n")
                process.stdin.flush()
        said = [process.communicate(timeout=500)[0].split() for process in running]
        return [words if process.returncode == 0 else [] for words, process in zip(said, running, strict=True)]


def cold_start(calls: str, cache: str, processes: int = PROCESSES) -> tuple[int, int, int]:
    """How many processes got a wrong result or none, how many functions are not in the cache afterwards, and how many there are."""
    said = at_once(calls, cache, processes)
    wrong = sum(words[:1] != ["True"] for words in said)
    assert any(word.endswith(":False") for words in said for word in words), "nothing was compiled"
    ((right, *functions),) = at_once(calls, cache, 1)
    return wrong + (right != "True"), sum(word.endswith(":False") for word in functions), len(functions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=1, help="how often (default: once)")
    parser.add_argument("--every", action="store_true", help="all operations, on threads too: the time that it takes is a multiple")
    options = parser.parse_args()
    failures = 0
    for time in range(options.times):
        with tempfile.TemporaryDirectory() as cache:
            wrong, lost, functions = cold_start(EVERY_CALL if options.every else FEW_CALLS, cache)
        failures += bool(wrong or lost)
        print(f"{time + 1}: {wrong} of {PROCESSES} processes wrong, {lost} of {functions} functions lost", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
