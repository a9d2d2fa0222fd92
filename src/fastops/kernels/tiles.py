# mypy: ignore-errors
"""Copying between operands and the buffers of tiles: one loop for each size of items, by the contract of NumPy's generalized ufuncs."""

from __future__ import annotations

from typing import Any

from numba import types

from .primitives import pointer, reader, transposer, writer

SIDES = {1: 16, 2: 8, 4: 8, 8: 4}  # items that fill a register of 16 or 32 bytes: all rows of a square fit into the registers


def names(size: int) -> dict[str, Any]:
    kind: Any = getattr(types, f"uint{8 * size}")
    side = SIDES[size]
    return {"SIZE": size, "SIDE": side, "read": reader(kind), "write": writer(kind), "transpose": transposer(8 * size, side)}


def copy_loop(args, dims, steps, data):
    """args: from, to; dims: rows, columns; steps: strides in bytes of the rows and the columns of either.

    Where memory runs along the columns of the one and the rows of the other, squares are transposed in registers.
    """
    source, target, rows, columns = args[0], args[1], dims[0], dims[1]
    source_row, source_step, target_row, target_step = steps[0], steps[1], steps[2], steps[3]
    if source_step == SIZE and target_row == SIZE:
        row = 0
        while row + SIDE <= rows:
            column = 0
            while column + SIDE <= columns:
                x, y = source + row * source_row + column * SIZE, target + row * SIZE + column * target_step
                transpose(pointer(x), source_row, pointer(y), target_step)
                column += SIDE
            for k in range(row, row + SIDE):
                for i in range(column, columns):
                    write(pointer(target), k * SIZE + i * target_step, read(pointer(source), k * source_row + i * SIZE))
            row += SIDE
        source, target, rows = source + row * source_row, target + row * target_row, rows - row
    for row in range(rows):
        x, y = pointer(source + row * source_row), pointer(target + row * target_row)
        if source_step == SIZE and target_step == SIZE:
            for i in range(columns):
                write(y, i * SIZE, read(x, i * SIZE))
        elif source_step == 0 and target_step == SIZE:
            value = read(x, 0)
            for i in range(columns):
                write(y, i * SIZE, value)
        else:
            for i in range(columns):
                write(y, i * target_step, read(x, i * source_step))
