# mypy: ignore-errors
"""The template of the inner loops, by NumPy's contract: `args` three addresses, `dims` the length, `steps` three strides in bytes.

It is compiled once for each operation and dtype; the names that stand nowhere in this file (SIZE, copy, by_array …) are given then, by
`bindings.names`. `by_array`, `by_scalar` and `one_by_one` compute elements and tell whether the floating-point flag FLAG is to be raised.

Operands are read and results written where they lie if they are contiguous. Otherwise the loop goes in blocks: operands are gathered into,
and results scattered from, blocks of the stack, so that one vector loop serves every pattern. One divisor for all elements (stride 0) has a
loop of its own; one dividend is spread over a block. Where the output may overlap an operand in any other way than cell by cell (reduce,
accumulate), elements are taken one at a time: each is read after the one before was written. So are few elements, and those that have to
come from memory each with a cache line of its own: while they come, the processor divides.
"""

from .flags import default_control, restore_control, restore_flags, save_flags
from .primitives import overlaps, pointer


def inner_loop(args, dims, steps, data):
    n, (a, b, out), (step_a, step_b, step_out) = dims[0], (args[0], args[1], args[2]), (steps[0], steps[1], steps[2])
    state, control = save_flags(), default_control()
    reach, total = max(abs(step_a), abs(step_b), abs(step_out)), abs(step_a) + abs(step_b) + abs(step_out)
    singly = n <= FEW or (reach >= LINE and total * n > FAR and (n > COLUMN or total - reach >= LINE))
    if singly or overlaps(a, step_a, out, step_out, n, SIZE) or overlaps(b, step_b, out, step_out, n, SIZE):
        raised = one_by_one(pointer(a), step_a, pointer(b), step_b, pointer(out), step_out, n) if n else 0
        restore_control(control)
        restore_flags(state | (FLAG if raised else 0))
        return
    raised = 0
    block_a, block_b, results = scratch(), scratch(), scratch()
    block = LONGEST if step_a == SIZE and (step_b == SIZE or step_b == 0) and step_out == SIZE else BLOCK if reach < NEAR else SHORT
    direct = step_out == SIZE and (IN_PLACE or (a != out and b != out))
    if step_a == 0:
        copy(pointer(a), 0, block_a, SIZE, block if block < n else n)
    first = 0
    while first < n:
        m = block if block < n - first else n - first
        x, y, z = pointer(a + first * step_a), pointer(b + first * step_b), pointer(out + first * step_out)
        if step_a != SIZE:
            if step_a != 0:
                copy(x, step_a, block_a, SIZE, m)
            x = block_a
        if not direct:
            z = results
        if step_b == 0:
            raised |= by_scalar(x, y, z, m)
        else:
            if step_b != SIZE:
                copy(y, step_b, block_b, SIZE, m)
                y = block_b
            raised |= by_array(x, y, z, m)
        if not direct:
            copy(results, SIZE, pointer(out + first * step_out), step_out, m)
        first += m
    restore_control(control)
    restore_flags(state | (FLAG if raised else 0))
