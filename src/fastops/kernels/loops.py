# mypy: ignore-errors
"""Templates of the inner loops, by NumPy's contract: `args` three addresses, `dims` the length, `steps` three strides in bytes.

A template is compiled once for each operation and dtype; the names that stand nowhere in this file (SIZE, read, by_array …) are given then,
by `bindings.integer_names` and `bindings.float_names`.

Operands are read and results written where they lie if they are contiguous. Otherwise the loops go in blocks: operands are gathered into,
and results scattered from, blocks of the stack, so that one vector loop serves every pattern. One divisor for all elements (stride 0) has a
loop of its own; one dividend is spread over a block. Where the output may overlap an operand in any other way than cell by cell (reduce,
accumulate), elements are taken one at a time: each is read after the one before was written.
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
    zero = False
    if n <= FEW or overlaps(a, step_a, out, step_out, n, SIZE) or overlaps(b, step_b, out, step_out, n, SIZE):
        for i in range(n):
            divisor = read(pointer(b), i * step_b)
            zero |= divisor == 0
            write(pointer(out), i * step_out, single_remainder(read(pointer(a), i * step_a), divisor))
        restore_flags(state | (DIVIDE if zero else 0))
        return
    block_a, block_b, results = scratch(), scratch(), scratch()
    block = LONGEST if step_a == SIZE and (step_b == SIZE or step_b == 0) and step_out == SIZE else BLOCK
    if step_a == 0:
        copy(pointer(a), 0, block_a, SIZE, min(n, block))
    first = 0
    while first < n:
        m = min(block, n - first)
        x, y, z = pointer(a + first * step_a), pointer(b + first * step_b), pointer(out + first * step_out)
        if step_a != SIZE:
            if step_a != 0:
                copy(x, step_a, block_a, SIZE, m)
            x = block_a
        if step_out != SIZE:
            z = results
        if step_b == 0:
            zero |= by_scalar(x, y, z, m) == 0
        else:
            if step_b != SIZE:
                copy(y, step_b, block_b, SIZE, m)
                y = block_b
            zero |= by_array(x, y, z, m) == 0
        if step_out != SIZE:
            copy(results, SIZE, pointer(out + first * step_out), step_out, m)
        first += m
    restore_flags(state | (DIVIDE if zero else 0))


def float_loop(args, dims, steps, data):
    n, (a, b, out), (step_a, step_b, step_out) = dims[0], (args[0], args[1], args[2]), (steps[0], steps[1], steps[2])
    state = save_flags()
    block, one_divisor = BLOCK, step_b == 0
    if n > 1 and (overlaps(a, step_a, out, step_out, n, SIZE) or overlaps(b, step_b, out, step_out, n, SIZE)):
        block, one_divisor = 1, False
    direct = step_out == SIZE and a != out and b != out  # a block may have to be computed again, from operands that are still there
    block_a, block_b, results, reduced = scratch(), scratch(), scratch(), scratch_double()
    if step_a == 0 and block > 1:
        copy(pointer(a), 0, block_a, SIZE, min(n, block))
    raised = False
    first = 0
    while first < n:
        m = min(block, n - first)
        x, y, z = pointer(a + first * step_a), pointer(b + first * step_b), pointer(out + first * step_out)
        if step_a != SIZE:
            if step_a != 0 or block == 1:
                copy(x, step_a, block_a, SIZE, m)
            x = block_a
        if step_b != SIZE and not one_divisor:
            copy(y, step_b, block_b, SIZE, m)
            y = block_b
        if not direct:
            z = results
        unserved = quick_by_scalar(x, y, z, m) if one_divisor else quick_by_array(x, y, z, m)
        if unserved != 0:
            if one_divisor:
                copy(y, 0, block_b, SIZE, m)
                y = block_b
            notes = careful(x, y, z, m)
            raised |= notes & 0xFFFFFFFF != 0
            if notes >> 32 != 0:  # a huge quotient: all elements step by step, most of them idle
                start(x, reduced, m)
                while partial_step(reduced, y, reduced, m) != 0:
                    pass
                finish(reduced, x, y, z, m)
        if not direct:
            copy(results, SIZE, pointer(out + first * step_out), step_out, m)
        first += m
    restore_flags(state | (INVALID if raised else 0))
