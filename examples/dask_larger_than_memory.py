"""Remainders and an ordered scatter-division of data that do not fit in memory, chunk by chunk, by Dask.

    python examples/dask_larger_than_memory.py
    python examples/dask_larger_than_memory.py --megabytes 400

The process denies itself more memory than it has and a fifth of the data set (on Linux, which has such a limit), and compares every
element of every result with an exact expectation. It needs Dask, `pip install 'fastops-numba[dask]'`, and room on disk for the data set.
"""

import argparse
import re
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import dask
import dask.array as da
import numpy as np

import fastops
import fastops.dask

CHUNKS, COLUMNS, PERIOD, FACTOR, DIVISOR = 128, 256, 1009, 7919, 3.5
# Row k of the data set is DATA[k % PERIOD :][:COLUMNS], and so with the others.
DATA = np.arange(PERIOD + COLUMNS, dtype=np.float32) / 8 - 50
REMAINDERS = np.array([float(Fraction(float(value)) % Fraction(DIVISOR)) for value in DATA], np.float32)
UPDATES = np.arange(PERIOD + COLUMNS, dtype=np.float32) / 1024 + 1


def windows(line, k):
    """Rows number k."""
    return np.lib.stride_tricks.sliding_window_view(line, COLUMNS)[k % PERIOD]


def made(make, chunks):
    """A Dask array whose chunks are made when they are needed, of the numbers of their rows."""

    def chunk(block_info=None):
        return make(np.arange(*block_info[None]["array-location"][0]))

    return da.map_blocks(chunk, chunks=chunks, meta=make(np.arange(0)))


class Rows:
    """Rows in a file. They are read and written without a memory map, whose pages would count as memory of the process."""

    dtype, ndim = np.dtype(np.float32), 2

    def __init__(self, path, rows):
        self.path, self.shape = path, (rows, COLUMNS)
        path.touch()

    def __getitem__(self, place):
        start, stop, _ = place[0].indices(len(self))
        return np.fromfile(self.path, self.dtype, (stop - start) * COLUMNS, offset=4 * start * COLUMNS).reshape(-1, COLUMNS)

    def __setitem__(self, place, chunk):
        with self.path.open("r+b") as file:
            file.seek(4 * place[0].start * COLUMNS)
            chunk.tofile(file)

    def __len__(self):
        return self.shape[0]


class Check:
    """Where a result is stored chunk by chunk, to be compared, not kept."""

    def __init__(self, expected):
        self.expected, self.lengths = expected, []

    def __setitem__(self, place, chunk):
        want = self.expected(np.arange(place[0].start, place[0].stop))
        assert chunk.tobytes() == want.tobytes(), f"wrong in rows {place[0].start} to {place[0].stop}"
        self.lengths.append(len(chunk))


def check(result, expected):
    target = Check(expected)
    da.store(result, target, lock=False)
    assert sum(target.lengths) == len(result)


def divide_and_check(x, line, step, times):
    """Every row of x whose number divides by step is divided as many times, by updates that lie far apart."""
    named, chunk = len(x) // step, x.chunksize[0]
    sizes = da.core.normalize_chunks(chunk, (named * times,))
    indices = made(lambda k: k * FACTOR % named * step, sizes)
    updates = made(lambda k: windows(UPDATES, k), (*sizes, (COLUMNS,)))

    def expected(rows):
        want, dividing = windows(line, rows), rows % step == 0
        first = rows[dividing] // step * pow(FACTOR, -1, named) % named  # the first index that names the row
        for repeat in range(times):
            want[dividing] /= windows(UPDATES, first + repeat * named)
        return want

    check(fastops.dask.scatter_div(x, indices, updates), expected)


def run(megabytes, chunks, folder):
    """All of it. Yields what was done."""
    rows = megabytes * 2**20 // (4 * COLUMNS)
    sizes = (*da.core.normalize_chunks(rows // chunks, (rows,)), (COLUMNS,))
    data, file = made(lambda k: windows(DATA, k), sizes), Rows(folder / "remainders", rows)
    da.store(fastops.mod(data, DIVISOR), file, lock=False)
    yield "mod of all, stored on disk"
    x = da.from_array(file, chunks=sizes)
    check(x, lambda k: windows(REMAINDERS, k))
    yield "every remainder compared"
    divide_and_check(x, REMAINDERS, step=64, times=3)
    yield "scatter_div of the remainders by few updates, every quotient compared"
    divide_and_check(data[: rows // 32], DATA, step=1, times=32)
    yield "scatter_div of few rows by as many updates as the data set has rows, every quotient compared"


def memory(name):
    """What Linux says of this process, in MB."""
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def limit_memory(megabytes):
    """Have no more than so much beyond what there is."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (int((memory("VmData") + megabytes) * 2**20), resource.getrlimit(resource.RLIMIT_DATA)[1]))
    try:
        np.ones(2 * megabytes * 2**20, np.uint8)
    except MemoryError:
        print("an array of twice the limit: MemoryError")
    else:
        raise AssertionError("the limit is not in force")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1280, help="size of the data set (1280)")
    megabytes = parser.parse_args().megabytes
    linux = Path("/proc/self/status").exists()
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):  # idle threads would make chunks ahead
        fastops.warmup(np.float32)  # compiling takes memory
        for _ in run(16, 32, Path(folder)):  # in small: now all is imported and started
            pass
        print(f"data set: {megabytes} MB, in chunks of {megabytes / CHUNKS:.1f} MB")
        if linux:
            print(f"memory now: {memory('VmRSS'):.0f} MB; limit: {megabytes // 5} MB more")
            limit_memory(megabytes // 5)
        else:
            print("this system has no limit on memory that a process could set itself: without one")
        start = time.perf_counter()
        for done in run(megabytes, CHUNKS, Path(folder)):
            print(f"{time.perf_counter() - start:5.1f} s  {done}", flush=True)
        if linux:
            print(f"peak memory: {memory('VmHWM'):.0f} MB")
        print("OK")


if __name__ == "__main__":
    main()
