# mypy: ignore-errors
"""The parallel driver: one function for every operation, dtype, rank and layout, since it calls inner loops by address."""

import numpy as np
from numba import prange

from .primitives import (
    ALL_FLAGS,
    DIVIDE,
    INVALID,
    address,
    call_loop,
    read_word,
    restore_flags,
    save_flags,
    scratch,
    take_next,
    write_word,
)

stack_of_words = scratch(8 * (64 + 7))


def drive_tasks(words):
    """See `iteration._words` for the layout. Each worker takes the next task until none is left, so a core that is busy elsewhere holds
    up no more than the task it has; the loops' floating-point flags are collected for the caller and leave no trace in the worker."""
    counter = words.ctypes.data
    loop, workers, tasks, per_task, segments, chunk, rows, length, size, outer = words[1:11]
    raised = np.zeros(workers, np.uint32)
    for worker in prange(workers):
        state = save_flags()
        restore_flags(state & ~np.uint32(ALL_FLAGS))
        # 64 words: position in the outer shape; then three addresses, one length, three steps
        memory = stack_of_words()
        arguments = 64 * 8
        for k in range(3):
            write_word(memory, arguments + (4 + k) * 8, words[14 + k])
        task = take_next(counter)
        while task < tasks:
            first_row, segment = (task // segments) * per_task, task % segments
            rest = first_row
            for axis in range(outer - 1, -1, -1):
                extent = words[17 + axis]
                write_word(memory, axis * 8, rest % extent)
                rest //= extent
            for _ in range(first_row, min(first_row + per_task, rows)):
                first, last = 0, length
                base_a, base_b, base_out = words[11], words[12], words[13]
                for axis in range(outer):
                    position = read_word(memory, axis * 8)
                    base_a += position * words[17 + outer + axis]
                    base_b += position * words[17 + 2 * outer + axis]
                    base_out += position * words[17 + 3 * outer + axis]
                if segments > 1:
                    lead = (base_out % 64) // size
                    first, last = max(0, segment * chunk - lead), min(length, (segment + 1) * chunk - lead)
                if first < last:
                    write_word(memory, arguments, base_a + first * words[14])
                    write_word(memory, arguments + 8, base_b + first * words[15])
                    write_word(memory, arguments + 16, base_out + first * words[16])
                    write_word(memory, arguments + 24, last - first)
                    start = address(memory) + arguments
                    call_loop(loop, start, start + 24, start + 32)
                axis = outer - 1
                while axis >= 0:  # the next row
                    position = read_word(memory, axis * 8) + 1
                    if position < words[17 + axis]:
                        write_word(memory, axis * 8, position)
                        break
                    write_word(memory, axis * 8, 0)
                    axis -= 1
            task = take_next(counter)
        raised[worker] = save_flags() & np.uint32(DIVIDE | INVALID)
        restore_flags(state)
    flags = 0
    for worker in range(workers):
        flags |= np.intp(raised[worker])
    return flags
