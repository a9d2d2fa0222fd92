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
_orphaned = False  # forked from a process in which another Python thread had led the team: Numba's threads may be beyond repair


class Team(ctypes.Structure):
    """What machine code knows of the threads. `kernels.driver` numbers the first six words."""

    _fields_ = [
        ("alone", ctypes.c_ssize_t),  # whether the layer ends a process in which a second Python thread enters it
        ("busy", ctypes.c_ssize_t),  # so one is noted while it is in there
        ("caller", ctypes.c_ssize_t),  # the first Python thread that led the team, by its number
        ("several", ctypes.c_ssize_t),  # whether another one did
        ("identify", ctypes.c_void_p),  # the function that gives the number
        ("run", ctypes.c_void_p),  # what each thread does, once the parallel driver is there: the serial one
        ("main", ctypes.c_ssize_t),  # the main thread
        ("usable", ctypes.c_ssize_t),
        ("most", ctypes.c_ssize_t),  # threads, beside what the affinity and Numba's mask allow
        ("affinity", ctypes.c_void_p),  # the functions that tell them; 0 where there is none
        ("mask", ctypes.c_void_p),
        ("share", ctypes.c_double),  # nanoseconds of work that a thread must have
        ("drive", ctypes.c_void_p),  # the parallel driver, once it is there
    ]


team = Team()


def after_fork_in_child() -> None:
    global _inherited, _orphaned
    _inherited = _inherited or bool(getattr(sys.modules.get("numba.np.ufunc.parallel"), "_is_initialized", False))
    compiler.after_fork_in_child()
    _orphaned = _orphaned or bool(team.several) or team.caller not in (0, threading.get_ident())
    team.busy, team.main = 0, threading.get_ident()
    _judge()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=compiler.before_fork, after_in_parent=compiler.after_fork_in_parent, after_in_child=after_fork_in_child)


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
                _describe()
            except Exception as error:  # such as a layer that was asked for and is not there
                _layer, failure, team.most = "", str(error), 1
        if failure:
            errors.warn(f"fastops runs on one thread, for Numba cannot launch its threads: {failure}")
    return _layer


def _describe() -> None:
    """What was launched, for machine code."""
    import llvmlite.binding as llvm

    team.identify = ctypes.cast(ctypes.pythonapi.PyThread_get_thread_ident, ctypes.c_void_p).value
    team.main = threading.main_thread().ident or 0
    team.mask = llvm.address_of_symbol("get_num_threads")
    team.most, team.share, team.alone = cpu_quota() or os.cpu_count() or 1, _share(), _layer == "workqueue"
    if hasattr(os, "sched_getaffinity"):
        team.affinity = ctypes.cast(ctypes.CDLL(None).sched_getaffinity, ctypes.c_void_p).value
    _judge()


def _judge() -> None:
    """Numba's threads are of no use where there are none; in a child forked after GNU OpenMP was started, which cannot use it, or after
    another Python thread led the team, which TBB does not survive. (On the workqueue layer a second Python thread at a time runs alone.)"""
    team.usable = bool(_layer) and not _orphaned and not (_layer == "omp" and _inherited)


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
    team.share = _share()


def _share() -> float:
    """Nanoseconds of work that a thread must have."""
    return WORTHWHILE * (_start if _start is not None and start_is_known() else USUAL)


def least() -> float:
    """Nanoseconds of one core's work that are worth starting threads for."""
    return 2 * _share()


def worthwhile(work: float) -> bool:
    """Whether `work` nanoseconds of one core are."""
    return work >= least()


def workers(work: float) -> int:
    """Threads for `work` nanoseconds of one core; 1 means: run serially, touch no parallel code."""
    launch()
    return max(1, int(min(limit(), work / _share()))) if team.usable and not _is_nested() else 1


def _is_nested() -> bool:
    """Whether the layer ends the process if this thread starts others, for it may be one of its own: a user's parallel function called
    back into Python, whose thread this is not."""
    return bool(team.alone) and isinstance(threading.current_thread(), threading._DummyThread)
