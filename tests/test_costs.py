"""Threads start where the measured cost of the loop pays for them; a measurement touches nothing, and none, however wrong, does harm."""

import pathlib
from itertools import accumulate, cycle
from math import inf

import numpy as np
import pytest
from conftest import OPERATIONS, assert_same, each_dtype, each_operation, in_python

from fastops import real_ufuncs
from fastops.engine import costs, driving, threads
from fastops.loops import LARGE

FLOAT64 = np.dtype("f8")

CLOCKS = {  # nanoseconds from one look at the clock to the next
    "stands still": [0],
    "runs backwards": [-1_000],
    "jumps": [1, 10**15],
    "is coarse": [0, 0, 0, 15_000_000],
    "is slow": [10**12],
}
each_clock = pytest.mark.parametrize("steps", CLOCKS.values(), ids=CLOCKS)


@pytest.fixture
def set_clock(monkeypatch):
    return lambda steps: monkeypatch.setattr(costs, "perf_counter_ns", accumulate(cycle(steps)).__next__)


@pytest.fixture
def set_start(monkeypatch):
    """Starting threads costs so much, and there are so many threads."""

    def set_start(nanoseconds, limit):
        monkeypatch.setattr(threads, "_start", nanoseconds)
        monkeypatch.setattr(threads, "_measured", 0 if nanoseconds is None else threads.MEASUREMENTS)
        monkeypatch.setattr(threads, "limit", lambda: limit)

    return set_start


@pytest.fixture
def driven(monkeypatch):
    """The calls that took the parallel driver."""
    driven, drive = [], driving.drive

    def counted(plan, loop, workers):
        if workers > 1:
            driven.append(workers)
        return drive(plan, loop, workers)

    monkeypatch.setattr(driving, "drive", counted)
    return driven


# --- measuring ----------------------------------------------------------------------------------------------------------------------------
@each_operation
@each_dtype
def test_each_loop_is_measured_when_it_is_made(name, dtype):
    real_ufuncs.loop(name, dtype)
    low, high = costs.BOUNDS
    for cost in real_ufuncs.cost(name, dtype):
        assert low <= cost <= high


@each_operation
@each_dtype
def test_the_measured_operands_raise_nothing(name, dtype):
    with np.errstate(all="raise"):
        OPERATIONS[name][0](*costs.operands(dtype))


def test_the_fastest_run_counts(set_clock):
    set_clock([0, 900, 0, 700, 0, 50, 0, 800, 0, 1_000])  # looks before and after a run
    assert costs.best(lambda: None, 5) == 50


def test_a_slow_moment_does_not_count(monkeypatch):
    """Nor does it where only one of the measurements met it: of no elements, array by array, and by a scalar, in turn."""
    measured = iter([5_000, 5_100, 5_050, 100, 1_124, 9_000, 4_000, 4_000, 612])
    monkeypatch.setattr(costs, "best", lambda run, runs: next(measured))
    assert costs.of_loop(real_ufuncs.loop("fmod", FLOAT64), FLOAT64) == (1.0, 0.5)  # of 1024 elements


@each_clock
def test_no_clock_leads_astray(steps, set_clock, set_start):
    set_clock(steps)
    low, high = costs.BOUNDS
    measured = costs.of_loop(real_ufuncs.loop("fmod", FLOAT64), FLOAT64)
    assert low <= min(measured) <= max(measured) <= high
    set_start(None, 8)
    for _ in range(threads.MEASUREMENTS):
        threads.learn_start(costs.best(lambda: None, 3))
    assert not threads.worthwhile(threads.QUICKEST)
    assert threads.worthwhile(2 * threads.WORTHWHILE * threads.SLOWEST)


def test_the_start_is_measured_in_the_first_parallel_calls(set_start, driven):
    set_start(None, 2)
    x, known = np.full(4_000_000, 7.5), []
    rest = np.ones_like(x)
    for _ in range(threads.MEASUREMENTS + 1):
        known.append(threads.start_is_known())
        OPERATIONS["fmod"][0](x, x, out=rest)
    assert known == [False] * threads.MEASUREMENTS + [True]
    assert len(driven) == len(known)
    assert not rest.any()


def test_what_the_start_costs_is_told_to_all_operations(set_start, monkeypatch):
    set_start(None, 2)
    monkeypatch.setattr(threads, "QUICKEST", threads.SLOWEST)  # so much is measured
    for operation, _ in OPERATIONS.values():
        operation._limit()
    served = [operation._gate.served[FLOAT64.num] for operation, _ in OPERATIONS.values()]
    before = [entry.large for entry in served]
    x = np.full(4_000_000, 7.5)
    for _ in range(threads.MEASUREMENTS):
        OPERATIONS["fmod"][0](x, x)
    after = [entry.large for entry in served]
    for operation, _ in OPERATIONS.values():
        operation._limit()
    assert after == [entry.large for entry in served]
    assert all(new > old for new, old in zip(after, before, strict=True))


@pytest.fixture(autouse=True)
def limits_as_before():
    """What a test made of the limits does not outlast it."""
    yield
    for operation, _ in OPERATIONS.values():
        operation._limit()


def test_the_least_measurement_of_the_start_counts(set_start):
    """And none, as long as a single one might keep all calls from being parallel."""
    set_start(None, 2)
    shares = []
    for nanoseconds in (60_000, 30_000, 90_000):
        threads.learn_start(nanoseconds)
        shares.append(threads._share())
    assert shares == [threads.WORTHWHILE * start for start in (threads.USUAL, threads.USUAL, 30_000)]


# --- the rule -----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("limit", "shares", "count"), [
    (8, 0, 1), (8, 1, 1), (8, 1.99, 1), (8, 2, 2), (8, 2.99, 2), (8, 7.5, 7), (8, 8, 8), (8, 1e6, 8), (8, inf, 8),
    (2, 2, 2), (2, 1e6, 2), (1, 2, 1), (1, inf, 1),
])  # fmt: skip
@pytest.mark.parametrize("start", [None, 5_000, 20_000, 150_000])
def test_each_thread_gets_its_share(limit, shares, count, start, set_start):
    set_start(start, limit)
    work = shares * threads.WORTHWHILE * (start or threads.USUAL)
    assert threads.worthwhile(work) == (shares >= 2)
    assert threads.workers(work) == count


PATTERNS = {  # the second operand of an array of 1000 x 100, and whether the loop takes it as a scalar
    "array": (np.full((1000, 100), 3.5), False),
    "row": (np.full(100, 3.5), False),
    "column": (np.full((1000, 1), 3.5), True),
    "number": (3.5, True),
    "scalar": (np.float64(3.5), True),
    "0-d": (np.array(3.5), True),
}


@pytest.mark.parametrize(("divisor", "by_scalar"), PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("slow", [True, False])
@each_operation
def test_the_cost_of_the_loop_decides(name, divisor, by_scalar, slow, set_start, driven, monkeypatch):
    set_start(20_000.0, 2)
    x = np.linspace(-50, 50, 100_000).reshape(1000, 100)
    least = 2 * threads.WORTHWHILE * 20_000.0 / x.size
    cost, other = (1.01 * least, 0.99 * least) if slow else (0.99 * least, 1.01 * least)
    costs_of_it = costs.Cost(other, cost) if by_scalar else costs.Cost(cost, other)
    monkeypatch.setitem(real_ufuncs._costs, (name, FLOAT64), costs_of_it)
    function, numpys = OPERATIONS[name]
    with in_python(LARGE):
        assert_same(function(x, divisor), numpys(x, divisor))
    assert len(driven) == slow


@each_operation
@each_dtype
@pytest.mark.parametrize("start", [None, 5_000.0, 150_000.0])
def test_the_native_entry_keeps_calls_while_threads_do_not_pay(name, dtype, start, set_start, monkeypatch):
    set_start(start, 8)
    operation = OPERATIONS[name][0]
    for served in operation._gate.served:
        monkeypatch.setattr(served, "large", 0)  # and as it was afterwards
    operation._limit()
    large = operation._gate.served[min(dtype.num, 24)].large
    cost = max(real_ufuncs.cost(name, dtype))
    assert not threads.worthwhile((large - 1) * cost)
    assert threads.worthwhile((large + 1) * cost)


# --- what a process is granted ------------------------------------------------------------------------------------------------------------
NEW, OLD = "sys/fs/cgroup", "sys/fs/cgroup/cpu"  # the folders of both versions of control groups
QUOTAS = {  # what a process is in, the files there, and the processors that these grant
    "none": ("0::/a/b", {f"{NEW}/a/b/cpu.max": "max 100000"}, None),
    "one and a half": ("0::/a/b", {f"{NEW}/a/b/cpu.max": "150000 100000"}, 2),
    "a tenth": ("0::/a", {f"{NEW}/a/cpu.max": "10000 100000"}, 1),
    "of the group around": ("0::/a/b", {f"{NEW}/a/b/cpu.max": "max 100000", f"{NEW}/a/cpu.max": "300000 100000"}, 3),
    "the least": ("0::/a/b", {f"{NEW}/a/b/cpu.max": "400000 100000", f"{NEW}/a/cpu.max": "200000 100000"}, 2),
    "of a container": ("0::/", {f"{NEW}/cpu.max": "200000 50000"}, 4),
    "of a container, as the host names it": ("0::/host/a", {f"{NEW}/cpu.max": "200000 100000"}, 2),
    "version 1": (
        "4:memory:/m\n3:cpu,cpuacct:/a",
        {f"{OLD}/a/cpu.cfs_quota_us": "250000", f"{OLD}/a/cpu.cfs_period_us": "100000", f"{OLD}/m/cpu.cfs_quota_us": "1"},
        3,
    ),
    "version 1, none": ("3:cpu:/a", {f"{OLD}/a/cpu.cfs_quota_us": "-1", f"{OLD}/a/cpu.cfs_period_us": "100000"}, None),
    "something else": ("0::/a", {f"{NEW}/a/cpu.max": "what is this"}, None),
    "no control groups": (None, {}, None),
}


@pytest.mark.parametrize(("groups", "files", "processors"), QUOTAS.values(), ids=QUOTAS)
def test_quotas_of_control_groups(groups, files, processors, tmp_path, monkeypatch):
    for name, text in {**files, **({"proc/self/cgroup": groups} if groups else {})}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    with monkeypatch.context() as patch:
        patch.setattr(pathlib, "Path", lambda path: tmp_path / path.lstrip("/"))
        granted = threads.cpu_quota.__wrapped__()
    assert granted == processors
