"""How many threads a call may use, on which of Numba's threading layers, and when it must not use any.

No environment variable and no setting of Numba is changed. Where the tbb package is installed its library is loaded by path, so that
Numba's own default order finds it; a layer that the user chose stays.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from . import compiler

WORTHWHILE = 40_000.0  # nanoseconds of work per thread below which starting threads costs more than it saves

_launched_in: int | None = None  # the process that launched Numba's threads
_one_caller = threading.Lock()  # for the layer that serves one Python thread at a time


def after_fork_in_child() -> None:
    global _one_caller
    _one_caller = threading.Lock()
    compiler.renew_lock_after_fork()


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
    """Launch Numba's threads if nobody has, and name their layer: "tbb", "omp" or "workqueue"."""
    global _launched_in
    numba = compiler.numba()
    if _launched_in is None:
        from numba.np.ufunc.parallel import _launch_threads

        if str(numba.config.THREADING_LAYER).lower() == "default":
            _load_tbb()
        _launch_threads()
        _launched_in = os.getpid()
    return str(numba.threading_layer())


@cache
def cpu_quota() -> int | None:
    """Processors that a Linux control group grants, rounded up; None without a limit."""
    from pathlib import Path

    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                root, quota = Path("/sys/fs/cgroup"), "cpu.max"
            elif "cpu" in controllers.split(","):
                root, quota = Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us"
            else:
                continue
            for folder in (root / path.lstrip("/"), root):
                if (folder / quota).exists():
                    words = (folder / quota).read_text().split()
                    period = words[1] if len(words) > 1 else (folder / "cpu.cfs_period_us").read_text()
                    if words[0] not in ("max", "-1"):
                        return max(1, -(-int(words[0]) // int(period)))
    except (OSError, ValueError):
        pass
    return None


def limit() -> int:
    """Threads that this process may run at once: its affinity, its control group, Numba's mask."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, cpu_quota() or processors, int(compiler.numba().get_num_threads()))


def worthwhile(work: float) -> bool:
    """Whether `work` nanoseconds of one core are worth starting threads for."""
    return work >= 2 * WORTHWHILE


@contextmanager
def team(work: float) -> Iterator[int]:
    """Threads for `work` nanoseconds of one core; 1 means: run serially, touch no parallel code.

    Serial where it does not pay; in a child forked after GNU OpenMP was started, which cannot use it; and in a second Python thread on the
    workqueue layer, which ends a process that it is entered twice.
    """
    layer = launch()
    threads = min(limit(), int(work / WORTHWHILE))
    if threads < 2 or (layer == "omp" and os.getpid() != _launched_in):
        yield 1
    elif layer != "workqueue":
        yield threads
    elif _one_caller.acquire(blocking=False):
        try:
            yield threads
        finally:
            _one_caller.release()
    else:
        yield 1
