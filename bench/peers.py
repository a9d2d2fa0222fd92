"""The remainders against those of other libraries, in the cells of the README's table, with small operands and those of the whole range.

    pip install -e '.[bench,peers]'
    pytest bench/peers.py --benchmark-json=results/peers.json                              everything on one thread, some minutes
    pytest bench/peers.py --all-threads --benchmark-json=results/peers_all_threads.json    on all threads
    python bench/table.py results/peers.json --write README.md

`pytest bench` leaves them out: they are large, and need not be installed. What a library lacks (an operation for a dtype, with results of
that dtype), or all of it where it is not installed, is not among the cells. Each is called in its fastest way for operands that it is given
at run time: into an output that is there already, where it can. A scalar is an operand like any other, as it is for NumPy; JAX would also
take it at compile time, and then be faster for integers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import PEERS
from test_bench_mod import DTYPES, OPERATIONS, Array, Case, cases, operands

from fastops.engine import threads

TURNS, SECONDS = 3, 0.05


class Prepared(NamedTuple):
    """A call without arguments, and what makes a NumPy array of its result."""

    call: Callable[[], Any]
    to_numpy: Callable[[Any], Array]


# --- the libraries: operation, dividends, divisors, output, how many threads --------------------------------------------------------------
def fastops(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    ours = OPERATIONS[operation][1]
    assert ours.loop(x.dtype), "nothing can be compiled"
    return Prepared(partial(ours, x, y, out), np.asarray)


def torch(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    import torch

    def tensor(array: Array) -> torch.Tensor:
        array = np.asarray(array)
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if x.dtype.name == "bfloat16" else torch.from_numpy(array)

    torch.set_num_threads(count)
    call = partial(getattr(torch, operation), tensor(x), tensor(y), out=tensor(out))
    return Prepared(call, lambda result: out)


def onnxruntime(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    import onnxruntime
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    arrays = {"x": np.asarray(x), "y": np.asarray(y), "out": out}
    x_info, y_info, out_info = (helper.make_tensor_value_info(name, kind, array.shape) for name, array in arrays.items())
    node = helper.make_node("Mod", ["x", "y"], ["out"], fmod=int(operation == "fmod"))
    opset = 28 if x.dtype.kind == "f" and operation == "remainder" else 13  # before 28, fmod=0 is for integers only
    graph = helper.make_graph([node], "mod", [x_info, y_info], [out_info])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = count
    options.log_severity_level = 4  # an operation that is lacking is an exception already
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", values["x"])
    binding.bind_ortvalue_input("y", values["y"])
    binding.bind_ortvalue_output("out", values["out"])
    return Prepared(partial(session.run_with_iobinding, binding), lambda nothing: values["out"].numpy())


def jax(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    os.environ["NPROC"] = str(count)  # read when the first array is made; XLA_FLAGS has nothing that limits these threads
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(getattr(jax.numpy, operation))
    a, b = jax.numpy.asarray(x), jax.numpy.asarray(y)
    return Prepared(lambda: compiled(a, b).block_until_ready(), np.asarray)


def numexpr(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    import numexpr

    numexpr.set_num_threads(count)
    expression = {"remainder": "x % y", "fmod": "fmod(x, y)"}[operation]
    return Prepared(partial(numexpr.evaluate, expression, {"x": x, "y": y}, out=out), np.asarray)


PREPARE = {"fastops": fastops, "torch": torch, "onnxruntime": onnxruntime, "jax": jax, "numexpr": numexpr}


# --- the suite ----------------------------------------------------------------------------------------------------------------------------
@cache
def has(peer: str, operation: str, dtype: str, count: int) -> bool:
    x, y = (np.array(numbers, DTYPES[dtype]) for numbers in ([5, 5], [3, 2]))
    try:
        prepared = PREPARE[peer](operation, x, y, np.empty_like(x), count)
        return prepared.to_numpy(prepared.call()).dtype == x.dtype
    except Exception:  # each library says in its own way that it has no such thing
        return False


@lru_cache(maxsize=1)
def by_numpy(case: Case) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(OPERATIONS[case.operation][0](*operands(case)[:2]))


@lru_cache(maxsize=len(PREPARE))  # the members of a case take turns
def prepared(case: Case, member: str, count: int) -> tuple[Prepared, bool]:
    """And whether the values are NumPy's."""
    x, y, out = operands(case)
    ready = PREPARE[member](case.operation, x, y, np.zeros_like(out), count)
    return ready, np.array_equal(ready.to_numpy(ready.call()), by_numpy(case), equal_nan=True)


def turns(count: int) -> Iterator[Any]:
    for case in filter(Case.is_of_table, cases()):
        members = ["fastops", *(peer for peer in PEERS if has(peer, case.operation, case.dtype, count))]
        for turn in range(TURNS):
            for member in members:
                yield pytest.param(case, member, turn, id="-".join(map(str, (*case, member, turn))))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    threads.launch()  # before Numba launches them itself, which would not find the tbb package
    count = threads.limit() if metafunc.config.getoption("all_threads") else 1
    if not any(has(peer, "remainder", "float32", count) for peer in PEERS):
        raise pytest.UsageError("none of the other libraries is installed: pip install -e '.[bench,peers]'")
    metafunc.parametrize("count", [count], ids=["one_thread" if count == 1 else "all_threads"])
    metafunc.parametrize(("case", "member", "turn"), list(turns(count)))


def test_peers(measure: Callable[..., None], benchmark: Any, case: Case, member: str, turn: int, count: int) -> None:
    ready, equal = prepared(case, member, count)
    assert equal or member != "fastops"
    benchmark.extra_info["equal"] = equal
    if member == "fastops":
        member = "fastops_one_thread" if count == 1 else "fastops_all_threads"
    measure({**case._asdict(), "member": member, "turn": turn}, ready.call, lambda: (), SECONDS)
