# mypy: ignore-errors
"""The driver: one function for every operation, dtype, rank and layout, since it calls inner loops by address."""

import llvmlite.ir as ir
import numpy as np
from numba import prange

from .flags import ALL_FLAGS, DIVIDE, INVALID, restore_flags, save_flags
from .primitives import (
    WORD,
    add_atomically,
    address,
    call_loop,
    caller,
    claim,
    exchange,
    inlined,
    or_atomically,
    pointer,
    read_word,
    scratch,
    write_word,
)

call_memory, copy_memory, position_memory, place_memory = (scratch(8 * words) for words in (7, 8, 64, 3))
word = ir.IntType(WORD.bitwidth)
identify, run = caller(word), caller(word, word, word)
CHUNK, LINE = 1 << 14, 64  # as in `iteration`

# The words of a plan, as `iteration.words` lays them down. The last two axes of the shape count the tiles of a matrix, across and down.
(TAKEN, RAISED, TEAM, LOOP, DATA, COPY, PER_TASK, TILES, HEIGHT, WIDTH, ROWS, COLUMNS, BY_ROW, SIZE, AXES, BUFFERS,
    BUFFER) = (8 * k for k in range(17))  # fmt: skip
ADDRESSES, ROW_STRIDES, STEPS, BUFFERED, SHAPE = (8 * k for k in range(17, 30, 3))
# The words of a team, the first of `threads.Team`.
ALONE, BUSY, CALLER, SEVERAL, IDENTIFY, RUN = (8 * k for k in range(6))


@inlined
def write_line(plan, team, loop, data, n, size, a, b, out, step_a, step_b):
    """The plan of one contiguous output, as `iteration._line` makes it."""
    segment = min(n, max(min(max(n // 32, CHUNK // 4), 4 * CHUNK) // LINE * LINE, LINE))
    for place in range(0, SHAPE, 8):
        write_word(plan, place, 0)
    write_word(plan, TEAM, team)
    write_word(plan, LOOP, loop)
    write_word(plan, DATA, data)
    write_word(plan, PER_TASK, max(1, CHUNK // segment))
    write_word(plan, HEIGHT, 1)
    write_word(plan, WIDTH, segment)
    write_word(plan, ROWS, 1)
    write_word(plan, COLUMNS, n)
    write_word(plan, BY_ROW, 1)
    write_word(plan, SIZE, size)
    write_word(plan, AXES, 2)
    tiles = (n + LINE // size - 1) // segment + 1 if segment < n else 1
    write_word(plan, TILES, tiles)
    write_word(plan, SHAPE, tiles)
    write_word(plan, SHAPE + 8, 1)
    for k, place, step in ((0, a, step_a), (8, b, step_b), (16, out, size)):
        write_word(plan, ADDRESSES + k, place)
        write_word(plan, STEPS + k, step)
        write_word(plan, SHAPE + 16 + 2 * k, segment * step)
        write_word(plan, SHAPE + 24 + 2 * k, 0)


@inlined
def locate(plan, index, position, places):
    """The position of the tile of that index in the shape, and where in memory its operands begin."""
    axes = read_word(plan, AXES)
    for k in range(3):
        write_word(places, 8 * k, read_word(plan, ADDRESSES + 8 * k))
    for axis in range(axes - 1, -1, -1):
        extent = read_word(plan, SHAPE + 8 * axis)
        place = index % extent
        index //= extent
        write_word(position, 8 * axis, place)
        for k in range(3):
            stride = read_word(plan, SHAPE + 8 * ((k + 1) * axes + axis))
            write_word(places, 8 * k, read_word(places, 8 * k) + place * stride)


@inlined
def advance(plan, position, places):
    """On to the next tile."""
    axes = read_word(plan, AXES)
    for axis in range(axes - 1, -1, -1):
        extent, place = read_word(plan, SHAPE + 8 * axis), read_word(position, 8 * axis) + 1
        back = extent if place == extent else 0
        write_word(position, 8 * axis, place - back)
        for k in range(3):
            stride = read_word(plan, SHAPE + 8 * ((k + 1) * axes + axis))
            write_word(places, 8 * k, read_word(places, 8 * k) + stride - back * stride)
        if not back:
            break


@inlined
def copy_tile(copy, call, source, source_row, source_step, target, target_row, target_step, rows, columns):
    """By the loop at the address `copy`, whose inner loop is to run along the source's memory, or else be long."""
    along_rows = rows >= 4 and 0 < abs(source_row) < abs(source_step)
    few = 8 if source_step == target_step else 16  # columns, measured: as few are copied faster down the rows, with vectors not so few
    swap = along_rows or (columns < rows and columns < few)
    write_word(call, 0, source)
    write_word(call, 8, target)
    write_word(call, 16, columns if swap else rows)
    write_word(call, 24, rows if swap else columns)
    write_word(call, 32, source_step if swap else source_row)
    write_word(call, 40, source_row if swap else source_step)
    write_word(call, 48, target_step if swap else target_row)
    write_word(call, 56, target_row if swap else target_step)
    call_loop(copy, address(call), address(call) + 16, address(call) + 32, 0)


@inlined
def run_tile(plan, position, places, call, copy_call, buffer, filled):
    """One call of the inner loop. `filled`: where the operands came from that the buffers hold, which broadcast rows do many times."""
    size, copy, blocks = read_word(plan, SIZE), read_word(plan, COPY), 8 * (read_word(plan, AXES) - 2)
    tile_rows, tile_columns, columns = read_word(plan, HEIGHT), read_word(plan, WIDTH), read_word(plan, COLUMNS)
    height = min(tile_rows, read_word(plan, ROWS) - read_word(position, blocks + 8) * tile_rows)
    column = read_word(position, blocks) * tile_columns
    lead = (read_word(places, 16) % 64) // size if tile_rows == 1 and tile_columns < columns else 0  # segments begin on cache lines
    first, last = max(-lead, -column), min(columns - column, tile_columns - lead)
    width = last - first
    if width <= 0:
        return
    whole = height == tile_rows and width == tile_columns
    for k in range(3):
        row_stride, step = read_word(plan, ROW_STRIDES + 8 * k), read_word(plan, STEPS + 8 * k)
        place = read_word(places, 8 * k) + first * step
        if read_word(plan, BUFFERED + 8 * k):
            target = buffer + k * read_word(plan, BUFFER)
            if k < 2 and not (whole and read_word(filled, 8 * k) == place):
                copy_tile(copy, copy_call, place, row_stride, step, target, width * size, size, height, width)
                write_word(filled, 8 * k, place if whole else 0)
            place, step = target, size
        write_word(call, 8 * k, place)
        write_word(call, 32 + 8 * k, step)
    by_row = read_word(plan, BY_ROW)
    write_word(call, 24, width if by_row else height * width)
    for _ in range(height if by_row else 1):
        call_loop(read_word(plan, LOOP), address(call), address(call) + 24, address(call) + 32, read_word(plan, DATA))
        for k in range(3):
            stride = width * size if read_word(plan, BUFFERED + 8 * k) else read_word(plan, ROW_STRIDES + 8 * k)
            write_word(call, 8 * k, read_word(call, 8 * k) + stride)
    if read_word(plan, BUFFERED + 16):
        row_stride, step = read_word(plan, ROW_STRIDES + 16), read_word(plan, STEPS + 16)
        copy_tile(
            copy,
            copy_call,
            buffer + 2 * read_word(plan, BUFFER),
            width * size,
            size,
            read_word(places, 16),
            row_stride,
            step,
            height,
            width,
        )


@inlined
def run_tasks(plan, counter, worker):
    """Take tasks, which are as many tiles, until none is left."""
    per_task, tiles = read_word(plan, PER_TASK), read_word(plan, TILES)
    position, places, call, copy_call = position_memory(), place_memory(), call_memory(), copy_memory()
    buffer, filled = read_word(plan, BUFFERS) + 3 * worker * read_word(plan, BUFFER), place_memory()
    write_word(filled, 0, 0)
    write_word(filled, 8, 0)
    tile = add_atomically(counter, 1) * per_task
    while tile < tiles:
        locate(plan, tile, position, places)
        for _ in range(min(per_task, tiles - tile)):
            run_tile(plan, position, places, call, copy_call, buffer, filled)
            advance(plan, position, places)
        tile = add_atomically(counter, 1) * per_task


@inlined
def enter(team):
    """Whether this thread may lead the team: where only one may at a time, another may be at it. Who has led it is noted."""
    if read_word(team, ALONE) and claim(address(team) + BUSY, 1) != 0:
        return False
    thread = identify(read_word(team, IDENTIFY))
    before = claim(address(team) + CALLER, thread)
    if before != 0 and before != thread:
        write_word(team, SEVERAL, 1)
    return True


def drive_serially(plan, worker):
    """Run tasks of the plan at that address on this thread, one of several maybe, until none is left. The floating-point flags that the
    loops raise are noted in the plan; they leave no trace in the thread."""
    state = save_flags()
    restore_flags(state & ~np.uint32(ALL_FLAGS))
    run_tasks(pointer(plan), plan + TAKEN, worker)
    or_atomically(plan + RAISED, np.intp(save_flags() & np.uint32(DIVIDE | INVALID)))
    restore_flags(state)
    return read_word(pointer(plan), RAISED)


def drive_in_parallel(plan, workers):
    """Run the plan at that address. Each worker takes the next task until none is left, so a core that is busy elsewhere holds up no more
    than the task it has. (What they do is called by its address: it would be compiled twice more here.)"""
    team = pointer(read_word(pointer(plan), TEAM))
    if enter(team):
        for worker in prange(workers):
            run(read_word(team, RUN), plan, worker)
        exchange(address(team) + BUSY, 0)
    else:
        run(read_word(team, RUN), plan, 0)
    return read_word(pointer(plan), RAISED)
