# mypy: ignore-errors
"""Templates of the inner loops, by NumPy's contract: `args` three addresses, `dims` the length, `steps` three strides in bytes.

A template is compiled once for each operation and dtype; the names that stand nowhere in this file (SIZE, read, remainder …) are given
then, by `bindings.integer_names` and `bindings.float_names`.

The loops go in blocks. An operand is read where it lies if it is contiguous; a scalar (stride 0) is spread over a block once, but an
integer divisor stays one value, whose reciprocal is computed once; anything else is gathered block by block. Results are computed into a
block of the stack, which no operand can overlap, and then stored, so one vector loop serves every pattern, in place too. Where the output
may overlap an operand in any other way than cell by cell (reduce, accumulate), elements are taken one at a time: each is read after the
one before was written.
"""

from numba import njit

from .primitives import pointer, restore_flags, save_flags

FEW = 8  # integers: as many divisions by the processor take no longer than it takes to set up the vector loop


@njit(forceinline=True, error_model="numpy")
def overlaps(start, step, out, out_step, n, size):
    """Whether `n` elements at `start` may share memory, by their extents, with those at `out`, otherwise than cell by cell."""
    if start == out and step == out_step and abs(step) >= size:
        return False
    last, out_last = start + step * (n - 1), out + out_step * (n - 1)
    low, high = min(start, last), max(start, last)
    out_low, out_high = min(out, out_last), max(out, out_last)
    return low < out_high + size and out_low < high + size


def integer_loop(args, dims, steps, data):
    n, (a, b, out), (step_a, step_b, step_out) = dims[0], (args[0], args[1], args[2]), (steps[0], steps[1], steps[2])
    state = save_flags()
    notes = clear
    if n <= FEW or overlaps(a, step_a, out, step_out, n, SIZE) or overlaps(b, step_b, out, step_out, n, SIZE):
        for i in range(n):
            divisor = read(pointer(b), i * step_b)
            notes = note(divisor, notes)
            write(pointer(out), i * step_out, single_remainder(read(pointer(a), i * step_a), divisor))
        restore_flags(state | (DIVIDE if notes else 0))
        return
    spread_a, spread_b = step_a == 0, step_b == 0
    block_a, block_b, results = scratch(), scratch(), scratch()
    if spread_a:
        value = read(pointer(a), 0)
        for i in range(min(n, BLOCK)):
            write(block_a, i * SIZE, value)
    first = 0
    while first < n:
        m = min(BLOCK, n - first)
        x, y, z = pointer(a + first * step_a), pointer(b + first * step_b), pointer(out + first * step_out)
        if spread_a:
            x = block_a
        elif step_a != SIZE:
            for i in range(m):
                write(block_a, i * SIZE, read(x, i * step_a))
            x = block_a
        if spread_b:  # the divisor's reciprocal is computed once
            divisor = read(y, 0)
            notes = note(divisor, notes)
            for i in range(m):
                write(results, i * SIZE, remainder(read(x, i * SIZE), divisor))
        else:
            if step_b != SIZE:
                for i in range(m):
                    write(block_b, i * SIZE, read(y, i * step_b))
                y = block_b
            for i in range(m):
                divisor = read(y, i * SIZE)
                notes = note(divisor, notes)
                write(results, i * SIZE, remainder(read(x, i * SIZE), divisor))
        if step_out == SIZE:
            for i in range(m):
                write(z, i * SIZE, read(results, i * SIZE))
        else:
            for i in range(m):
                write(z, i * step_out, read(results, i * SIZE))
        first += m
    restore_flags(state | (DIVIDE if notes else 0))


def float_loop(args, dims, steps, data):
    n, (a, b, out), (step_a, step_b, step_out) = dims[0], (args[0], args[1], args[2]), (steps[0], steps[1], steps[2])
    state = save_flags()
    block, spread_a, spread_b = BLOCK, step_a == 0, step_b == 0
    if n > 1 and (overlaps(a, step_a, out, step_out, n, SIZE) or overlaps(b, step_b, out, step_out, n, SIZE)):
        block, spread_a, spread_b = 1, False, False
    block_a, block_b, results, reduced = scratch(), scratch(), scratch(), scratch_double()
    if spread_a:
        value = read(pointer(a), 0)
        for i in range(min(n, block)):
            write(block_a, i * SIZE, value)
    if spread_b:
        value = read(pointer(b), 0)
        for i in range(min(n, block)):
            write(block_b, i * SIZE, value)
    raised = False
    first = 0
    while first < n:
        m = min(block, n - first)
        x, y, z = pointer(a + first * step_a), pointer(b + first * step_b), pointer(out + first * step_out)
        if step_a != SIZE:
            if not spread_a:
                for i in range(m):
                    write(block_a, i * SIZE, read(x, i * step_a))
            x = block_a
        if step_b != SIZE:
            if not spread_b:
                for i in range(m):
                    write(block_b, i * SIZE, read(y, i * step_b))
            y = block_b
        notes = clear
        for i in range(m):
            dividend, divisor = read(x, i * SIZE), read(y, i * SIZE)
            notes = note(dividend, divisor, notes)
            write(results, i * SIZE, remainder(dividend, divisor))
        if high_count(notes):  # a huge quotient: all elements step by step, most of them idle
            for i in range(m):
                write_double(reduced, i * 8, start(read(x, i * SIZE)))
            again = True
            while again:
                left = clear
                for i in range(m):
                    divisor = read(y, i * SIZE)
                    rest = partial_step(read_double(reduced, i * 8), divisor)
                    left = more_steps(rest, divisor, left)
                    write_double(reduced, i * 8, rest)
                again = left != clear
            for i in range(m):
                write(results, i * SIZE, finish(read_double(reduced, i * 8), read(x, i * SIZE), read(y, i * SIZE)))
        raised |= low_count(notes) != clear
        if step_out == SIZE:
            for i in range(m):
                write(z, i * SIZE, read(results, i * SIZE))
        else:
            for i in range(m):
                write(z, i * step_out, read(results, i * SIZE))
        first += m
    restore_flags(state | (INVALID if raised else 0))
