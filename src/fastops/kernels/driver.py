# mypy: ignore-errors
"""The parallel driver: one function for every operation, dtype, rank and layout, since it calls inner loops by address."""

import numpy as np
from numba import njit, prange

from .primitives import (
    ALL_FLAGS,
    DIVIDE,
    INVALID,
    address,
    call_loop,
    pointer,
    read_word,
    restore_flags,
    save_flags,
    scratch,
    take_next,
    write_word,
)

call_memory, position_memory = scratch(8 * 7), scratch(8 * 64)


@njit(forceinline=True, error_model="numpy")
def run_tasks(plan, counter):
    """Take tasks until none is left. `plan`: the words that `iteration._words` lays down, as a pointer."""
    loop, tasks, per_task = read_word(plan, 8), read_word(plan, 16), read_word(plan, 24)
    segments, chunk, rows = read_word(plan, 32), read_word(plan, 40), read_word(plan, 48)
    length, size, outer = read_word(plan, 56), read_word(plan, 64), read_word(plan, 72)
    a, b, out = read_word(plan, 80), read_word(plan, 88), read_word(plan, 96)
    step_a, step_b, step_out = read_word(plan, 104), read_word(plan, 112), read_word(plan, 120)
    shape, strides_a, strides_b, strides_out = 128, 128 + 8 * outer, 128 + 16 * outer, 128 + 24 * outer
    call, position = call_memory(), position_memory()  # three addresses, one length, three steps; where in the outer shape
    write_word(call, 32, step_a)
    write_word(call, 40, step_b)
    write_word(call, 48, step_out)
    arguments = address(call)
    task = take_next(counter)
    while task < tasks:
        first_row, segment = (task // segments) * per_task, task % segments
        row_a, row_b, row_out, rest = a, b, out, first_row
        for axis in range(outer - 1, -1, -1):
            extent = read_word(plan, shape + 8 * axis)
            place = rest % extent
            rest //= extent
            write_word(position, 8 * axis, place)
            row_a += place * read_word(plan, strides_a + 8 * axis)
            row_b += place * read_word(plan, strides_b + 8 * axis)
            row_out += place * read_word(plan, strides_out + 8 * axis)
        for _ in range(first_row, min(first_row + per_task, rows)):
            first, last = 0, length
            if segments > 1:
                lead = (row_out % 64) // size  # so that segments begin on cache lines
                first, last = max(0, segment * chunk - lead), min(length, (segment + 1) * chunk - lead)
            if first < last:
                write_word(call, 0, row_a + first * step_a)
                write_word(call, 8, row_b + first * step_b)
                write_word(call, 16, row_out + first * step_out)
                write_word(call, 24, last - first)
                call_loop(loop, arguments, arguments + 24, arguments + 32)
            for axis in range(outer - 1, -1, -1):  # on to the next row
                place, extent = read_word(position, 8 * axis) + 1, read_word(plan, shape + 8 * axis)
                row_a += read_word(plan, strides_a + 8 * axis)
                row_b += read_word(plan, strides_b + 8 * axis)
                row_out += read_word(plan, strides_out + 8 * axis)
                if place < extent:
                    write_word(position, 8 * axis, place)
                    break
                write_word(position, 8 * axis, 0)
                row_a -= extent * read_word(plan, strides_a + 8 * axis)
                row_b -= extent * read_word(plan, strides_b + 8 * axis)
                row_out -= extent * read_word(plan, strides_out + 8 * axis)
        task = take_next(counter)


def drive_tasks(plan, workers):
    """Run the plan at that address. Each worker takes the next task until none is left, so a core that is busy elsewhere holds up no more
    than the task it has; the loops' floating-point flags are collected for the caller and leave no trace in the worker."""
    raised = np.zeros(workers, np.uint32)
    for worker in prange(workers):
        state = save_flags()
        restore_flags(state & ~np.uint32(ALL_FLAGS))
        run_tasks(pointer(plan), plan)
        raised[worker] = save_flags() & np.uint32(DIVIDE | INVALID)
        restore_flags(state)
    flags = 0
    for worker in range(workers):
        flags |= np.intp(raised[worker])
    return flags
