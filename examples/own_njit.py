"""`fastops.mod` in functions of one's own that Numba compiles: NumPy's results, which Numba's own remainders do not always give.

    python examples/own_njit.py
    python examples/own_njit.py --size 1000000

Phases are wrapped to one turn, keys counted by bucket, and clocks reduced to the second of the day.
"""

import argparse
import time

import numba
import numpy as np

import fastops


@numba.njit
def wrapped(phases):
    """Phases in [-pi, pi): an array at once, fused with what stands around it."""
    return fastops.mod(phases + np.pi, 2 * np.pi) - np.pi


@numba.njit
def bucket_sizes(keys, buckets):
    """How many keys there are in each bucket, element by element. A negative key has its bucket, too."""
    sizes = np.zeros(buckets, np.int64)
    for key in keys:
        sizes[fastops.mod(key, buckets)] += 1
    return sizes


@numba.njit(parallel=True)
def seconds_of_day(clocks, day):
    """Of 32-bit clocks, by a 32-bit divisor: so they stay in SIMD lanes of 32 bits. On all threads."""
    seconds = np.empty_like(clocks)
    for k in numba.prange(clocks.size):
        seconds[k] = fastops.mod(clocks[k], day)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=5_000_000, help="length of the arrays (5000000)")
    size = parser.parse_args().size
    rng = np.random.default_rng(0)
    phases, keys, buckets = rng.normal(0, 100, size), rng.integers(-(2**62), 2**62, size), 1_009
    clocks, day = rng.integers(-(2**31), 2**31, size, np.int32), np.int32(86_400)
    compare("wrapped phases", lambda: wrapped(phases), lambda: np.mod(phases + np.pi, 2 * np.pi) - np.pi)
    compare("bucket sizes", lambda: bucket_sizes(keys, buckets), lambda: np.bincount(np.mod(keys, buckets), minlength=buckets))
    compare("seconds of day", lambda: seconds_of_day(clocks, day), lambda: np.mod(clocks, day))
    print("OK")


def compare(what, call, by_numpy):
    """The same bits; and the time, of the second call, for the first one compiles."""
    call()
    start = time.perf_counter()
    got = call()
    middle = time.perf_counter()
    want = by_numpy()
    end = time.perf_counter()
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes(), what
    print(f"{what:16}  compiled {1e3 * (middle - start):8.2f} ms   NumPy {1e3 * (end - middle):8.2f} ms")


if __name__ == "__main__":
    main()
