"""How many threads a call may use, on which of Numba's threading layers, and when it must not use any.

No environment variable and no setting of Numba is changed. Where the tbb package is installed its library is loaded by path, so that
Numba's own default order finds it; a layer that the user chose stays.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import cache

from . import compiler, errors

WORTHWHILE = 4.0  # times what starting threads costs: the work from which each of them pays, and does little harm where a core is busy
USUAL = 20_000.0  # nanoseconds that it costs, until it is measured
QUICKEST, SLOWEST = 5_000.0, 150_000.0  # and the bounds of what a measurement is believed, which may be made in a busy moment

MEASUREMENTS = 3  # of the start, each in a call of its own: the least counts, when there are so many
_start: float | None = None  # nanoseconds that starting threads costs a call, as measured
_measured = 0  # times
_layer: str | None = None  # what was launched; "" if nothing could be
_inherited = False  # Numba's threads were launched, by whomever, before this process was forked
_callers: set[int] = set()  # the Python threads that have run a team
_orphaned = False  # forked from a process in which another Python thread had: Numba's threads may be beyond repair
_one_caller = threading.Lock()  # for the layer that serves one Python thread at a time


def after_fork_in_child() -> None:
    global _one_caller, _inherited, _orphaned
    _one_caller = threading.Lock()
    _inherited = _inherited or bool(getattr(sys.modules.get("numba.np.ufunc.parallel"), "_is_initialized", False))
    compiler.after_fork_in_child()
    _orphaned = _orphaned or not _callers <= {threading.get_ident()}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork_in_child)


def _load_tbb() -> None:
    """Make the tbb package's library known to the loader; it lies outside of the loader's path."""
    from importlib import metadata
    from pathlib import Path

    name = {"win32": "tbb12.dll", "darwin": "libtbb.12.dylib"}.get(sys.platform, "libtbb.so.12")
    try:
        for file in metadata.files("tbb") or ():
            if file.name == name:
                path = Path(str(file.locate())).resolve()
                if sys.platform == "win32":
                    os.add_dll_directory(str(path.parent))
                ctypes.CDLL(str(path))
                return
    except (metadata.PackageNotFoundError, OSError):
        pass  # Numba takes its next choice


def launch() -> str:
    """Launch Numba's threads if nobody has, and name their layer: "tbb", "omp" or "workqueue"; "" where there is none to be had."""
    global _layer
    if _layer is None:
        numba, failure = compiler.numba(), ""
        with compiler.compiling():
            if str(numba.config.THREADING_LAYER).lower() in ("default", "tbb", "safe", "threadsafe", "forksafe"):
                _load_tbb()
            try:
                from numba.np.ufunc.parallel import _launch_threads

                _launch_threads()
                _layer = str(numba.threading_layer())
            except Exception as error:  # such as a layer that was asked for and is not there
                _layer, failure = "", str(error)
        if failure:
            errors.warn(f"fastops runs on one thread, for Numba cannot launch its threads: {failure}")
    return _layer


@cache
def cpu_quota() -> int | None:
    """Processors that the control groups of a Linux process grant, rounded up: the least of its own and of those around it; None without
    a limit."""
    from pathlib import Path

    quotas = []
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                root, file = Path("/sys/fs/cgroup"), "cpu.max"
            elif "cpu" in controllers.split(","):
                root, file = Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us"
            else:
                continue
            group = root / path.lstrip("/")
            for folder in (group, *group.parents):
                if folder.is_relative_to(root) and (folder / file).exists():
                    quota, *period = (folder / file).read_text().split()
                    if quota not in ("max", "-1"):
                        quotas.append(-(-int(quota) // int(*period or [(folder / "cpu.cfs_period_us").read_text()])))
    except (OSError, ValueError):
        pass
    return max(1, min(quotas)) if quotas else None


def processors() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit() -> int:
    """Threads that this process may run at once: its affinity, its control groups, Numba's mask."""
    available = processors()
    return min(available, cpu_quota() or available, int(compiler.numba().get_num_threads()))


def start_is_known() -> bool:
    return _measured >= MEASUREMENTS


def learn_start(nanoseconds: float) -> None:
    """What starting threads costs a call, as measured."""
    global _start, _measured
    believed = min(max(nanoseconds, QUICKEST), SLOWEST)
    _start = believed if _start is None else min(_start, believed)
    _measured += 1


def _share() -> float:
    """Nanoseconds of work that a thread must have."""
    return WORTHWHILE * (_start if _start is not None and start_is_known() else USUAL)


def least() -> float:
    """Nanoseconds of one core's work that are worth starting threads for."""
    return 2 * _share()


def worthwhile(work: float) -> bool:
    """Whether `work` nanoseconds of one core are."""
    return work >= least()


class Team:
    """`with Team(work) as threads`: threads for `work` nanoseconds of one core; 1 means: run serially, touch no parallel code.

    Serial where it does not pay; where Numba has no threads; in a child forked after GNU OpenMP was started, which cannot use it, or after
    another Python thread ran a team, which TBB does not survive; and in a second Python thread at a time on the workqueue layer, which ends
    a process that it is entered twice.
    """

    def __init__(self, work: float):
        layer = launch()
        self.threads, self.alone = 1, layer == "workqueue"
        if layer and not _orphaned and not (layer == "omp" and _inherited):
            self.threads = max(1, int(min(limit(), work / _share())))

    def __enter__(self) -> int:
        if self.threads > 1 and self.alone and not _one_caller.acquire(blocking=False):
            self.threads = 1
        if self.threads > 1:
            _callers.add(threading.get_ident())
        return self.threads

    def __exit__(self, *raised: object) -> None:
        if self.threads > 1 and self.alone:
            _one_caller.release()
