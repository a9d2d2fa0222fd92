# mypy: ignore-errors
"""The template of the inner loops, by NumPy's contract: `args` three addresses, `dims` the length, `steps` three strides in bytes.

It is compiled once for each operation and dtype; the names that stand nowhere in this file (SIZE, read, by_array …) are given then, by
`bindings.names`. `by_array`, `by_scalar` and `single` compute elements and tell whether the floating-point flag FLAG is to be raised.

Operands are read and results written where they lie if they are contiguous. Otherwise the loop goes in blocks: operands are gathered into,
and results scattered from, blocks of the stack, so that one vector loop serves every pattern. One divisor for all elements (stride 0) has a
loop of its own; one dividend is spread over a block. Where the output may overlap an operand in any other way than cell by cell (reduce,
accumulate), elements are taken one at a time: each is read after the one before was written. So are few elements, and those that lie far
apart, where that is as fast.
"""

from .primitives import default_control, overlaps, pointer, restore_control, restore_flags, save_flags


def inner_loop(args, dims, steps, data):
    n, (a, b, out), (step_a, step_b, step_out) = dims[0], (args[0], args[1], args[2]), (steps[0], steps[1], steps[2])
    state, control = save_flags(), default_control()
    raised = 0
    results = scratch()
    one_by_one = n <= FEW or step_a >= FAR or -step_a >= FAR or step_b >= FAR or -step_b >= FAR
    if one_by_one or overlaps(a, step_a, out, step_out, n, SIZE) or overlaps(b, step_b, out, step_out, n, SIZE):
        for i in range(n):
            raised |= single(pointer(a + i * step_a), pointer(b + i * step_b), results, 1)
            write(pointer(out), i * step_out, read(results, 0))
        restore_control(control)
        restore_flags(state | (FLAG if raised else 0))
        return
    block_a, block_b = scratch(), scratch()
    block = LONGEST if step_a == SIZE and (step_b == SIZE or step_b == 0) and step_out == SIZE else BLOCK
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
