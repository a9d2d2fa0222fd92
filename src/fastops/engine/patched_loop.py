# mypy: ignore-errors
"""The inner loop that a patched ufunc of NumPy runs: by its data, a `patch.Record`, it knows which loop to call, and what for.

Before there is a compiled one it calls NumPy's; a long call asks Python to compile first, and waits, and many short ones ask without
waiting. Afterwards a long call is shared out among threads, if its output is contiguous, by the driver and the rules of fastops' own
calls. It may be called without the GIL, from any thread. All arguments are addresses.
"""

import llvmlite.ir as ir
import numpy as np
from numba import types

from ..kernels import driver
from ..kernels.flags import restore_flags, save_flags
from ..kernels.primitives import INT32, WORD, address, call_loop, caller, inlined, overlaps, scratch
from .objects import field, real, store, word_at
from .patch import Record
from .team import most, threads_of, usable
from .threads import Team

SIGNATURE = types.void(*[WORD] * 4)
word = ir.IntType(WORD.bitwidth)
ask, ask_later = caller(ir.VoidType(), word), caller(INT32, word, word)
drive = caller(word, word, word)
loop_of, data_of, size_of, compile_of, long_of, left_of, pending_of, later_of, truth_of, shared_of, team_of, driver_of, raised_of = (
    field(Record, name)
    for name in ("loop", "data", "size", "compile", "long", "left", "pending", "later", "truth", "shared", "team", "driver", "raised")
)
by_array, by_scalar = real(Record, "by_array"), real(Record, "by_scalar")
drive_of, alone, identify_of, main_of, share_of = (
    *(field(Team, name) for name in ("drive", "alone", "identify", "main")),
    real(Team, "share"),
)
set_left, set_raised = store(Record, "left"), store(Record, "raised")
NEVER = np.iinfo(np.intp).max
plan_memory = scratch(driver.SHAPE + 8 * 8)


@inlined
def quietly(function, record):
    """Let Python do something, which leaves no trace in the floating-point flags."""
    state = save_flags()
    ask(function, record)
    raised = raised_of(record)
    if raised != 0:
        set_raised(record, 0)
        ask_later(later_of(record), truth_of(record), raised)
    restore_flags(state)


@inlined
def shared(args, n, steps, record):
    """Run a long call by several threads; whether that was done."""
    team, size = team_of(record), size_of(record)
    a, b, out = word_at(args), word_at(args + 8), word_at(args + 16)
    step_a, step_b, step_out = word_at(steps), word_at(steps + 8), word_at(steps + 16)
    if step_out != size or overlaps(a, step_a, out, size, n, size) or overlaps(b, step_b, out, size, n, size):
        return False
    if drive_of(team) == 0 and (most(team) == 0 or threads_of(team) > 1):  # not launched, or launched when there was one thread
        quietly(driver_of(record), record)
    work = n * (by_scalar(record) if step_b == 0 else by_array(record))
    if drive_of(team) == 0 or not usable(team) or work < 2 * share_of(team):
        return False
    if alone(team) and driver.identify(identify_of(team)) != main_of(team):  # it may be one of the layer's own, in a user's function
        return False
    workers = min(threads_of(team), np.intp(work / share_of(team)))
    if workers < 2:
        return False
    place = plan_memory()
    driver.write_line(place, team, loop_of(record), data_of(record), n, size, a, b, out, step_a, step_b)
    raised = drive(drive_of(team), address(place), workers)
    if raised:
        restore_flags(save_flags() | np.uint32(raised))
    return True


def patched_loop(args, dims, steps, record):
    n = word_at(dims)
    if compile_of(record) != 0:
        left = left_of(record) - n
        if n >= long_of(record):
            quietly(compile_of(record), record)
        elif left < 0:
            set_left(record, NEVER)
            if ask_later(later_of(record), truth_of(record), pending_of(record)) != 0:  # CPython has no room for it at this moment
                set_left(record, 0)
        else:
            set_left(record, left)
    elif n >= shared_of(record) and shared(args, n, steps, record):
        return
    call_loop(loop_of(record), args, dims, steps, data_of(record))
