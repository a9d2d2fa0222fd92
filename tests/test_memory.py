"""No call makes a temporary the size of an operand: at its peak it holds its output and at most 4 MiB more, in any pattern.

Only an output that overlaps an operand otherwise than cell by cell costs a copy, as in NumPy. NumPy reports its data to tracemalloc.
"""

import tracemalloc

import numpy as np
import pytest
from conftest import OPERATIONS, each_operation, in_parallel, serially

ROOM = 4 << 20
SIDE = 1 << 10  # an operand of SIDE x SIDE x 8 bytes is twice the room


def draw(*shape, dtype=np.int64):
    return np.ones(shape, dtype)


def wide(dtype, *shape):
    """Of as many bytes as int64 has, by a longer first axis."""
    return draw(shape[0] * (8 // np.dtype(dtype).itemsize), *shape[1:], dtype=dtype)


def unaligned(x):
    return np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape) + x.dtype.type(1)


PATTERNS = {
    "contiguous": lambda: (draw(SIDE, SIDE), draw(SIDE, SIDE)),
    "strided": lambda: (draw(SIDE, 2 * SIDE)[:, ::2], draw(SIDE, 3 * SIDE)[:, ::3]),
    "reversed": lambda: (draw(SIDE * SIDE)[::-1], draw(SIDE * SIDE)),
    "transposed": lambda: (draw(SIDE, SIDE).T, draw(SIDE, SIDE).T),
    "transposed divisor": lambda: (draw(SIDE, SIDE), draw(SIDE, SIDE).T),
    "transposed output": lambda: (draw(SIDE, SIDE), draw(SIDE, SIDE), draw(SIDE, SIDE).T),
    "strided output": lambda: (draw(SIDE, SIDE), draw(SIDE, SIDE), draw(SIDE, 2 * SIDE)[:, ::2]),
    "row": lambda: (draw(SIDE, SIDE), draw(SIDE)),
    "column": lambda: (draw(SIDE, SIDE), draw(SIDE, 1)),
    "outer": lambda: (draw(SIDE, 1), draw(SIDE)),
    "4-D": lambda: (draw(16, 1, 64, 64), draw(16, 1, 64)),
    "4-D permuted": lambda: (draw(32, 32, 32, 32).transpose(2, 0, 3, 1), draw(32, 32, 32, 32)),
    "short rows": lambda: (draw(SIDE * SIDE // 4, 4), draw(SIDE * SIDE // 4, 1)),
    "many short axes": lambda: (draw(*[2] * 20), draw(*[2] * 20).T),
    "broadcast_to": lambda: (np.broadcast_to(draw(SIDE), (SIDE, SIDE)), np.broadcast_to(draw(SIDE, 1), (SIDE, SIDE))),
    "Python divisor": lambda: (draw(SIDE, SIDE), 7),
    "int8": lambda: (wide("i1", SIDE, SIDE), wide("i1", SIDE, SIDE)[:, ::-1]),
    "float16, transposed": lambda: (wide("f2", SIDE, SIDE).T, wide("f2", SIDE, SIDE).reshape(SIDE, -1)),
    "float32, transposed": lambda: (wide("f4", SIDE, SIDE).T, wide("f4", SIDE, SIDE).reshape(SIDE, -1)),
    "int32 by int64": lambda: (draw(SIDE, SIDE, dtype=np.int32), draw(SIDE, SIDE)),
    "float32 by int64, transposed": lambda: (draw(SIDE, SIDE, dtype=np.float32), draw(SIDE, SIDE).T),
    "bool by int8": lambda: (wide("?", SIDE, SIDE), wide("i1", SIDE, SIDE)),
    "other byte order": lambda: (draw(SIDE, SIDE, dtype=">i8"), draw(SIDE, SIDE, dtype=">i8").T),
    "unaligned": lambda: (unaligned(draw(SIDE, SIDE)), draw(SIDE, SIDE)),
    "output of another dtype": lambda: (draw(SIDE, SIDE), draw(SIDE, SIDE), draw(SIDE, SIDE, dtype=np.float64)),
}
KEYWORDS = {
    "C": lambda: {"order": "C"},
    "F": lambda: {"order": "F"},
    "where": lambda: {"out": draw(SIDE, SIDE), "where": np.arange(SIDE) % 2 == 0},
    "dtype": lambda: {"dtype": np.float64},
}


def beside_output(call, *args, **kwargs):
    """Bytes that a call holds at its peak beside a result of its own."""
    call(*args, **kwargs)  # compiles
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = call(*args, **kwargs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before - (0 if any(result is x for x in (*args, kwargs.get("out"))) else result.nbytes)


@each_operation
@pytest.mark.parametrize("pattern", list(PATTERNS))
@pytest.mark.parametrize("path", [serially, lambda: in_parallel(must=False)], ids=["serial", "parallel"])
def test_patterns(name, pattern, path):
    args = PATTERNS[pattern]()
    with path():
        assert beside_output(OPERATIONS[name][0], *args) <= ROOM


@each_operation
@pytest.mark.parametrize("pattern", list(PATTERNS))
def test_as_users_call(name, pattern):
    """On the path that the dispatcher takes by itself; also in place."""
    x1, x2, *out = PATTERNS[pattern]()
    assert beside_output(OPERATIONS[name][0], x1, x2, *out) <= ROOM
    if x1.flags.writeable and x1.shape == np.broadcast_shapes(x1.shape, np.shape(x2)) and x1.dtype == np.result_type(x1, x2):
        assert beside_output(OPERATIONS[name][0], x1, x2, x1) <= ROOM


@each_operation
@pytest.mark.parametrize("keywords", list(KEYWORDS))
def test_keywords(name, keywords):
    for x2 in (draw(SIDE, SIDE), draw(SIDE, SIDE).T, draw(SIDE)):
        assert beside_output(OPERATIONS[name][0], draw(SIDE, SIDE), x2, **KEYWORDS[keywords]()) <= ROOM


@each_operation
def test_methods(name):
    operation = OPERATIONS[name][0]
    for x in (draw(SIDE, SIDE), draw(SIDE, SIDE).T):
        assert beside_output(operation.reduce, x) <= ROOM
        assert beside_output(operation.accumulate, x) <= ROOM
    assert beside_output(operation.outer, draw(SIDE), draw(SIDE)) <= ROOM
