"""How each library divides rows in place. NumPy has two ways, `at` of its ufuncs and a loop over the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from remainders import Prepared, start_jax, start_mindspore, start_tensorflow
from values import Array

import fastops as ours


def operands_of(dtype: np.dtype[Any], table: tuple[int, ...], count: int, among: int) -> tuple[Array, Array, Array]:
    """So many updates of random rows among the first ones. Integers are not negative, so that NumPy's floor is right; floats stay near 1
    however often they are divided."""
    random, shape = np.random.default_rng(7), (count, *table[1:])
    rows = random.integers(0, among, count)
    if dtype.kind in "iu":
        high = min(1 << 20, np.iinfo(dtype).max)
        return random.integers(0, high, table).astype(dtype), rows, random.integers(1, 3, shape).astype(dtype)
    return random.uniform(1, 2, table).astype(dtype), rows, random.normal(1, 1e-3, shape).astype(dtype)


# --- each library: input_x, rows, updates, how many threads -------------------------------------------------------------------------------
def of_numpy(call: Callable[..., Any]) -> Callable[..., Prepared]:
    return lambda x, rows, updates, count: Prepared(call, lambda: (x.copy(), rows, updates))


def division(x: Array) -> np.ufunc:
    return np.floor_divide if x.dtype.kind in "iu" else np.divide


def by_at(x: Array, rows: Array, updates: Array) -> Array:
    division(x).at(x, rows, updates)
    return x


def row_by_row(x: Array, rows: Array, updates: Array) -> Array:
    divide = division(x)
    for row, update in zip(rows.tolist(), updates, strict=True):
        divide(x[row], update, x[row])
    return x


def by_numpy(x: Array, rows: Array, updates: Array) -> Array:
    """In the faster way."""
    return (row_by_row if x.ndim > 1 else by_at)(x, rows, updates)


def jax(x: Array, rows: Array, updates: Array, count: int) -> Prepared:
    jax = start_jax(count)
    compiled = jax.jit(lambda table, rows, updates: table.at[rows].divide(updates), donate_argnums=0)
    indices, divisors = jax.numpy.asarray(rows), jax.numpy.asarray(updates)

    def call(table: list[Any], rows: Any, updates: Any) -> Any:
        table[0] = compiled(table[0], rows, updates).block_until_ready()  # in the memory of the old one, which is given away
        return table[0]

    return Prepared(call, lambda: ([jax.numpy.array(x)], indices, divisors))


def tensorflow(x: Array, rows: Array, updates: Array, count: int, deterministic: bool = False) -> Prepared:
    tf = start_tensorflow(count, deterministic)
    variable, start, indices, divisors = tf.Variable(x), tf.constant(x), tf.constant(rows), tf.constant(updates)

    def again() -> tuple[Any, ...]:
        variable.assign(start)
        return variable, indices, divisors

    def call(variable: Any, indices: Any, divisors: Any) -> Any:
        tf.raw_ops.ResourceScatterDiv(resource=variable.handle, indices=indices, updates=divisors)
        return variable

    return Prepared(call, again, lambda variable: variable.numpy())


def narrow(rows: Array) -> Array:
    """int32, which is quicker there, where it holds the numbers."""
    narrowed = rows.astype(np.int32)
    return narrowed if np.array_equal(narrowed, rows) else rows


def mindspore(x: Array, rows: Array, updates: Array, count: int) -> Prepared:
    ms = start_mindspore(count)
    operator, indices, divisors = ms.ops.ScatterDiv(), ms.Tensor(narrow(rows)), ms.Tensor(updates)

    def again() -> tuple[Any, ...]:
        return ms.Parameter(ms.Tensor(x.copy())), indices, divisors

    def call(parameter: Any, indices: Any, divisors: Any) -> Any:
        operator(parameter, indices, divisors)
        ms.runtime.synchronize()
        return parameter

    return Prepared(call, again, lambda parameter: parameter.asnumpy())


SCATTERS: dict[str, Callable[[Array, Array, Array, int], Prepared]] = {
    "fastops": of_numpy(lambda x, rows, updates: ours.scatter_div(x, rows, updates)),
    "numpy": of_numpy(by_at),
    "numpy_rows": of_numpy(row_by_row),
    "jax": jax,
    "tensorflow": tensorflow,
    "tensorflow_deterministic": partial(tensorflow, deterministic=True),
    "mindspore": mindspore,
}
LIMITS = {"sum": of_numpy(lambda x, rows, updates: updates.sum())}  # reads the updates once: what memory allows
