# mypy: ignore-errors
"""The template of `scatter_div`: rows of input_x by rows of updates, in the order of the indices.

It is compiled once for each dtype, by the contract of inner loops, so that `engine.driving` shares its work out as it does theirs: `args`
are the address of a plan and the number of a task. The plan says which phase of the work that is a task of:

CHECK        the indices of some updates, and whether one of their integers is 0
WHOLE        all updates: checked, then divided
DIVIDE       all updates, for a part of every row: the columns, or the runs, that this task owns
PARTITION    some updates of a block: each is noted in the list of the owner of its row
APPLY        one owner's updates of a block, list by list, in the order of the updates

Whatever the phase, each element has one owner, who divides it in the order of the updates.
"""

from functools import reduce
from types import FunctionType
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from .division import RAISED_DIVIDE, RAISED_INVALID, RAISED_OVERFLOW, RAISED_UNDERFLOW, Division, of_dtype
from .elementwise import Elementwise
from .lanes import INT32, Lane, Processor, operation, where
from .primitives import (
    ALL_FLAGS,
    INVALID,
    OVERFLOW,
    UNDERFLOW,
    address,
    call_loop,
    default_control,
    or_atomically,
    pointer,
    prefetch,
    read_word,
    reader,
    restore_control,
    restore_flags,
    save_flags,
    scratch,
    write_word,
    writer,
)
from .primitives import DIVIDE as BY_ZERO
from .scatter_plan import APPLY, AT_ONCE, BLOCK_BITS, CHECK, CROWDED, DIVIDE, MOST_OWNERS, OUTSIDE, PARTITION, WHOLE, ZERO, Plan

PHASE, FOUND, LOOK, FIRST, LAST, SHARE = (getattr(Plan, name).offset for name in ("phase", "found", "look", "first", "last", "share"))
INDICES, INDEX_STEP, NARROW = (getattr(Plan, name).offset for name in ("indices", "index_step", "narrow"))
X, ROWS, X_ROW, X_STEP = (getattr(Plan, name).offset for name in ("x", "rows", "x_row", "x_step"))
U, U_ROW, U_STEP = (getattr(Plan, name).offset for name in ("updates", "update_row", "update_step"))
RUNS, LENGTH, OFFSETS = (getattr(Plan, name).offset for name in ("runs", "length", "offsets"))
OWNERS, LISTS, LENGTHS, CAPACITY = (getattr(Plan, name).offset for name in ("owners", "lists", "lengths", "capacity"))
NUMBERS = (1 << BLOCK_BITS) - 1
MIXER = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio: its products spread neighbours evenly
CACHE = 1 << 18  # bytes of an input_x that is near anyway
ONE_BY_ONE = 32  # updates after one that names the row of its neighbour
FAR = 8192  # bytes that a check looks ahead, for the processor does not look far enough

inlined = njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
read_32, read_64 = reader(types.int32, aligned=False), reader(types.int64, aligned=False)
owner_memory, call_memory = scratch(8 * MOST_OWNERS), scratch(16)
BY_32, BY_64, BY_LIST = range(3)  # where the numbers of rows come from


def note_outside(index: Lane, last: Lane, found: Lane) -> Lane:
    """Of a negative index, and of one above the last row, a difference is negative."""
    return found | index | (last - index)


outside_32 = operation(note_outside, types.int32, types.int32, types.int32, types.int32)
outside_64 = operation(note_outside, types.int64, types.int64, types.int64, types.int64)


@inlined
def are_outside(indices, step, narrow, first, last, rows):
    """Whether one of the indices first, first + 1, …, last - 1 is no row."""
    found_32, found_64 = np.int32(0), np.int64(0)
    last_32 = np.int32(min(rows - 1, 0x7FFFFFFF))
    ahead = first
    while ahead < last:
        end = min(ahead + AT_ONCE, last)
        place = pointer(indices + ahead * step)
        for line in range(0, (end - ahead) * step, 64):
            prefetch(place, line + FAR)
        if narrow and step == 4:
            for k in range(end - ahead):
                found_32 = outside_32(read_32(place, k * 4), last_32, found_32)
        elif narrow:
            for k in range(end - ahead):
                found_32 = outside_32(read_32(place, k * step), last_32, found_32)
        elif step == 8:
            for k in range(end - ahead):
                found_64 = outside_64(read_64(place, k * 8), rows - 1, found_64)
        else:
            for k in range(end - ahead):
                found_64 = outside_64(read_64(place, k * step), rows - 1, found_64)
        ahead = end
    return found_32 < 0 or found_64 < 0


@inlined
def row_of(source, step, kind, k):
    """The row that the update of number k names, and where it is among the updates."""
    if kind == BY_32:
        return np.intp(read_32(source, k * step)), k
    if kind == BY_64:
        return np.intp(read_64(source, k * step)), k
    entry = read_64(source, k * 8)
    return entry >> BLOCK_BITS, entry & NUMBERS


@inlined
def partition(plan, first, last, sub):
    """Note the updates in lists, one for each owner of rows: rows whose first bytes share a cache line have the same owner. Not if an index
    is no row, nor if a list is full, for then one owner would have far more to do than the others; what was found."""
    owners, capacity, block = read_word(plan, OWNERS), read_word(plan, CAPACITY), read_word(plan, FIRST)
    indices, step, narrow = pointer(read_word(plan, INDICES)), read_word(plan, INDEX_STEP), read_word(plan, NARROW)
    x, x_row = read_word(plan, X), read_word(plan, X_ROW)
    lists, lengths = read_word(plan, LISTS) + sub * owners * capacity * 8, pointer(read_word(plan, LENGTHS) + sub * owners * 8)
    ends, bits = owner_memory(), 0
    while (1 << bits) < owners:
        bits += 1
    for owner in range(owners):
        write_word(ends, owner * 8, 0)
    for start in range(first, last, AT_ONCE):
        end = min(start + AT_ONCE, last)
        if are_outside(address(indices), step, narrow, start, end, read_word(plan, ROWS)):
            return OUTSIDE
        for k in range(start, end):
            row = np.intp(read_32(indices, k * step)) if narrow else np.intp(read_64(indices, k * step))
            mixed = np.int64((x + row * x_row) >> 6) * MIXER
            owner = np.intp((mixed >> (64 - bits)) & (owners - 1))
            place = read_word(ends, owner * 8)
            write_word(pointer(lists), (owner * capacity + place) * 8, (row << BLOCK_BITS) | (k - block))
            write_word(ends, owner * 8, place + 1)
        for owner in range(owners):
            if read_word(ends, owner * 8) + AT_ONCE > capacity:
                return CROWDED
    for owner in range(owners):
        write_word(lengths, owner * 8, read_word(ends, owner * 8))
    return 0


def look(args, dims, steps, data):
    """What needs to see no more than the indices: a task of CHECK, WHOLE or PARTITION. It is compiled once for all dtypes."""
    plan, task = pointer(args[0]), args[1]
    phase, share, first, last = read_word(plan, PHASE), read_word(plan, SHARE), read_word(plan, FIRST), read_word(plan, LAST)
    if phase != WHOLE:
        first += task * share
        last = min(first + share, last)
    if phase == PARTITION:
        found = partition(plan, first, last, task)
    else:
        outside = are_outside(
            read_word(plan, INDICES), read_word(plan, INDEX_STEP), read_word(plan, NARROW), first, last, read_word(plan, ROWS)
        )
        found = OUTSIDE if outside else 0
    if found:
        or_atomically(args[0] + FOUND, found)


def work(args, dims, steps, data):
    """See above. The names that stand nowhere in this file (INTEGER, divide …) are given when this is compiled, by `names`."""
    plan, task = pointer(args[0]), args[1]
    phase, length, runs = read_word(plan, PHASE), read_word(plan, LENGTH), read_word(plan, RUNS)
    share, first, last = read_word(plan, SHARE), read_word(plan, FIRST), read_word(plan, LAST)
    indices, index_step, narrow = read_word(plan, INDICES), read_word(plan, INDEX_STEP), read_word(plan, NARROW)
    u, u_row, u_step, offsets = read_word(plan, U), read_word(plan, U_ROW), read_word(plan, U_STEP), pointer(read_word(plan, OFFSETS))
    if phase <= WHOLE:
        call = call_memory()
        write_word(call, 0, args[0])
        write_word(call, 8, task)
        call_loop(read_word(plan, LOOK), address(call), 0, 0, 0)
        found = read_word(plan, FOUND)
        if INTEGER and not found:
            start, end = (first, last) if phase == WHOLE else (first + task * share, min(first + task * share + share, last))
            repeat, span = end - start, length
            if runs == 1 and u_row == length * u_step:  # rows that follow one another are one long run
                repeat, span = 1, span * repeat
            for k in range(repeat):
                for r in range(runs):
                    place = pointer(u + (start + k) * u_row + read_word(offsets, 16 * r + 8))
                    if any_zero(place, u_step, span):
                        found = ZERO
                if found:
                    break
            if found:
                or_atomically(args[0] + FOUND, found)
        if found or phase == CHECK:
            return
    state, control = save_flags(), default_control()
    restore_flags(save_flags() & ~np.uint32(ALL_FLAGS))
    notes = 0
    listed, kind, source, entries, lists = phase == APPLY, BY_32 if narrow else BY_64, indices + first * index_step, last - first, 1
    first_run, column, owners, capacity = 0, 0, read_word(plan, OWNERS), read_word(plan, CAPACITY)
    if listed:
        kind, index_step, lists = BY_LIST, 8, (last - first + share - 1) // share
    elif phase == DIVIDE and runs > 1:
        first_run, runs = task * share, min(task * share + share, runs)
    elif phase == DIVIDE:
        column, length = task * share, min(share, length - task * share)
    for sub in range(lists):
        if listed:
            number = sub * owners + task
            entries = read_word(pointer(read_word(plan, LENGTHS)), number * 8)
            source = read_word(plan, LISTS) + number * capacity * 8
        notes |= divide(plan, pointer(source), index_step, kind, entries, u + first * u_row, first_run, runs, column, length)
    flags = save_flags()
    restore_control(control)
    restore_flags(state)
    raised = np.intp(notes)
    if not INTEGER:  # conversions of integers may raise false ones
        raised |= RAISED_DIVIDE if flags & BY_ZERO else 0
        raised |= RAISED_OVERFLOW if flags & OVERFLOW else 0
        raised |= RAISED_UNDERFLOW if flags & UNDERFLOW else 0
        raised |= RAISED_INVALID if flags & INVALID else 0
    if raised:
        or_atomically(args[0] + FOUND, raised)


# --- what is compiled for each dtype ------------------------------------------------------------------------------------------------------
def divide_singly(x, x_row, u, u_row, source, step, kind, n, ahead):
    """Rows of one element, four at a time. Where two of the four are one row, the next updates go one by one, for its like may follow; a
    row that is named again at once then stays in a register."""
    notes, k, far = np.uint32(0), 0, n - ahead - 4 if ahead else 0
    while k < n:
        few = n - k
        if few >= 4:
            (row_0, a), (row_1, b) = row_of(source, step, kind, k), row_of(source, step, kind, k + 1)
            (row_2, c), (row_3, d) = row_of(source, step, kind, k + 2), row_of(source, step, kind, k + 3)
            same = (row_0 == row_1) | (row_0 == row_2) | (row_0 == row_3) | (row_1 == row_2) | (row_1 == row_3) | (row_2 == row_3)
            if not same:
                if k < far:
                    for j in range(4):
                        row, _ = row_of(source, step, kind, k + ahead + j)
                        prefetch(x, row * x_row)
                notes |= divide_four(
                    x, row_0 * x_row, row_1 * x_row, row_2 * x_row, row_3 * x_row, u, a * u_row, b * u_row, c * u_row, d * u_row
                )
                k += 4
                continue
            few = min(few, ONE_BY_ONE)
        value, before = NOTHING, -1
        for j in range(k, k + few):
            row, number = row_of(source, step, kind, j)
            if row != before:
                value = read(x, row * x_row)
            divisor = read(u, number * u_row)
            notes = note(value, divisor, notes)
            value = quotient(value, divisor)
            write(x, row * x_row, value)
            before = row
        k += few
    return notes


def divide(plan, source, step, kind, n, u, first_run, runs, column, length):
    """The updates that `source` tells of, for some runs of each row, or for some columns of its only run. While some are divided, the rows
    of the next ones come nearer."""
    x, x_row, x_step = read_word(plan, X), read_word(plan, X_ROW), read_word(plan, X_STEP)
    u_row, u_step, offsets = read_word(plan, U_ROW), read_word(plan, U_STEP), pointer(read_word(plan, OFFSETS))
    is_far = read_word(plan, ROWS) * abs(x_row) > CACHE
    x += column * x_step
    u += column * u_step
    notes = np.uint32(0)
    if length == 1 and runs == 1:
        a, b, ahead = pointer(x + read_word(offsets, 0)), pointer(u + read_word(offsets, 8)), 64 if is_far else 0
        if kind == BY_LIST:
            return divide_singly(a, x_row, b, u_row, source, step, BY_LIST, n, ahead)
        if kind == BY_32:
            return divide_singly(a, x_row, b, u_row, source, step, BY_32, n, ahead)
        if x_row == SIZE and u_row == SIZE and step == 8:
            return divide_singly(a, SIZE, b, SIZE, source, 8, BY_64, n, ahead)
        return divide_singly(a, x_row, b, u_row, source, step, BY_64, n, ahead)
    reach = min(length * SIZE, 1024) if is_far and x_step == SIZE else 0
    ahead = 4 if reach > 256 else 8
    for k in range(n):
        row, number = row_of(source, step, kind, k)
        if reach and k + ahead < n:
            later, _ = row_of(source, step, kind, k + ahead)
            near = pointer(x + later * x_row + read_word(offsets, 16 * first_run))
            for line in range(0, reach, 64):
                prefetch(near, line)
        for r in range(first_run, runs):
            a = pointer(x + row * x_row + read_word(offsets, 16 * r))
            b = pointer(u + number * u_row + read_word(offsets, 16 * r + 8))
            if x_step == SIZE and u_step == SIZE:
                notes |= by_short_array(a, b, length) if length < LONG else by_array(a, b, length)
            elif x_step == SIZE and u_step == 0:
                notes |= by_scalar(a, b, length)
            else:
                for j in range(length):
                    value, divisor = read(a, j * x_step), read(b, j * u_step)
                    notes = note(value, divisor, notes)
                    write(a, j * x_step, quotient(value, divisor))
    return notes


def any_zero(place, step, n):
    zeros = NOTHING
    if step != SIZE:
        for j in range(n):
            zeros = note_zero(read(place, j * step), zeros)
        return zeros != 0
    first = 0
    while first < n:
        last = min(first + 4096 // SIZE, n)
        for line in range(first * SIZE, last * SIZE, 64):
            prefetch(place, line + FAR)
        for j in range(first, last):
            zeros = note_zero(read(place, j * SIZE), zeros)
        first = last
    return zeros != 0


def note_zero(y: Lane, found: Lane) -> Lane:
    return found | where(y == 0, y.constant(1), 0)


def names(dtype: str, processor: Processor) -> dict[str, Any]:
    """The names in `work` for one dtype."""
    way = of_dtype(dtype, processor)
    integer = "int" in dtype
    kind = {"float64": types.float64, "float32": types.float32}.get(dtype, types.uint16)
    if integer:
        kind = getattr(types, f"u{dtype.lstrip('u')}")
    size = kind.bitwidth // 8
    names = {
        "INTEGER": integer,
        "SIZE": size,
        "LONG": 256 // size,  # elements from which two vectors at a time are worth their longer rest
        "NOTHING": np.dtype(kind.name).type(0),
        "read": reader(kind, aligned=False),
        "write": writer(kind, aligned=False),
        "quotient": operation(way.single, kind, kind, kind),
        "note": operation(way.note or no_note, types.uint32, kind, kind, types.uint32),
        "divide_four": four_in_place(way),
        "by_array": in_place(way, 2),
        "by_short_array": in_place(way, 1),
        "by_scalar": in_place(way, 1, by_scalar=True),
        "note_zero": operation(note_zero, kind, kind, kind) if integer else None,
    }
    for part in (divide_singly, divide, any_zero):
        if integer or part is not any_zero:
            names[part.__name__] = inlined(FunctionType(part.__code__, {**globals(), **names}))
    return names


def in_place(division: Division, vectors: int, by_scalar: bool = False) -> Any:
    """A Numba intrinsic (pointer, pointer, number of elements, not 0) -> notes: the first operand is the output too."""
    way = Elementwise((division.kind,) * 2, division.kind, division.lanes, division.note or no_note, INT32(0), aligned=False)
    if by_scalar:
        way = way._replace(prepare=lambda y: (y,))

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        x, u, n = values
        if division.short is None:
            return way.loop(builder, (x, u, x), n, vectors).value
        note, short = division.short
        seen = way._replace(formula=None, note=note, clear=division.kind(0)).loop(builder, (x, u, x), n, vectors)
        with builder.if_else((seen == 0).value) as (then, otherwise):
            with then:
                way._replace(formula=short).loop(builder, (x, u, x), n, vectors)
            with otherwise:
                way.loop(builder, (x, u, x), n, vectors)
        return INT32(0)

    return intrinsic(lambda typing, x, u, n: (types.uint32(types.voidptr, types.voidptr, types.intp), generate))


def four_in_place(division: Division) -> Any:
    """A Numba intrinsic (pointer, four offsets, pointer, four offsets) -> notes: four different elements by four others."""
    kinds, note = ir.VectorType(division.kind, 4), division.note or no_note

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        places = [
            [builder.bitcast(builder.gep(values[first], [offset]), division.kind.as_pointer()) for offset in values[first + 1 : first + 5]]
            for first in (0, 5)
        ]
        x, u = (Lane(builder, _together(builder, [builder.load(place, align=1) for place in four])) for four in places)

        def put(result: Lane) -> None:
            for lane, place in enumerate(places[0]):
                builder.store(builder.extract_element(result.value, INT32(lane)), place, align=1)

        if division.short is None:
            put(division.lanes(x, u))
        else:
            note_long, short = division.short
            seen = _any(note_long(x, u, Lane(builder, ir.Constant(kinds, [0] * 4))))
            with builder.if_else((seen == 0).value) as (then, otherwise):
                with then:
                    put(short(x, u))
                with otherwise:
                    put(division.single(x, u))
        return _any(note(x, u, Lane(builder, ir.Constant(ir.VectorType(INT32, 4), [0] * 4)))).value

    signature = types.uint32(*(types.voidptr, *[types.intp] * 4) * 2)
    return intrinsic(lambda typing, x, x0, x1, x2, x3, u, u0, u1, u2, u3: (signature, generate))


def no_note(x: Lane, y: Lane, notes: Lane) -> Lane:
    return notes


def _together(builder: ir.IRBuilder, values: list[ir.Value]) -> ir.Value:
    """A vector of them."""
    vector = ir.VectorType(values[0].type, len(values))(ir.Undefined)
    for lane, value in enumerate(values):
        vector = builder.insert_element(vector, value, INT32(lane))
    return vector


def _any(vector: Lane) -> Lane:
    """All the bits that any value of the vector has."""
    values = [Lane(vector.builder, vector.builder.extract_element(vector.value, INT32(lane))) for lane in range(vector.count)]
    return reduce(Lane.__or__, values)
