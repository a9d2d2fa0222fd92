"""How each library computes remainders, in its fastest way for operands that it is given at run time: into an output that is there already,
where it can. A scalar is an operand like any other, as it is for NumPy; JAX would also take it at compile time, and then be faster for
integers. Libraries whose arrays are contiguous get contiguous copies beforehand."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from values import Array

import fastops as ours


class Prepared(NamedTuple):
    """A call, what makes its operands anew (of remainders, which are ready, there are none), and what makes a NumPy array of its result."""

    call: Callable[..., Any]
    operands: Callable[[], tuple[Any, ...]] = tuple
    to_numpy: Callable[[Any], Array] = np.asarray

    def result(self) -> Array:
        return self.to_numpy(self.call(*self.operands()))


def goes_well(prepare: Callable[..., Prepared], *operands: Any) -> bool:
    """Whether a library does a plain case, and gives it in the dtype of the first operand."""
    try:
        return bool(prepare(*operands).result().dtype == operands[0].dtype)
    except Exception:  # each library says in its own way that it has no such thing
        return False


# --- each library: operation, dividends, divisors, output, how many threads ---------------------------------------------------------------
def fastops(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    function = getattr(ours, operation)
    assert function.loop(x.dtype), "nothing can be compiled"
    return Prepared(partial(function, x, y, out))


def numpy(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    return Prepared(partial(getattr(np, operation), x, y, out))


@cache
def vectorized(operation: str, dtype: np.dtype[Any], target: str) -> Any:
    """A ufunc of `%`, or of `np.fmod`, for one dtype."""
    import numba

    kind = numba.from_dtype(dtype)

    def remainder(x: Any, y: Any) -> Any:
        return x % y

    def fmod(x: Any, y: Any) -> Any:
        return np.fmod(x, y)

    return numba.vectorize([kind(kind, kind)], target=target)({"remainder": remainder, "fmod": fmod}[operation])


def vectorize(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    return Prepared(partial(vectorized(operation, x.dtype, "cpu" if count == 1 else "parallel"), x, y, out))


def torch(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    import torch

    def tensor(array: Array) -> torch.Tensor:
        array = np.asarray(array)
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if x.dtype.name == "bfloat16" else torch.from_numpy(array)

    torch.set_num_threads(count)
    call = partial(getattr(torch, operation), tensor(x), tensor(y), out=tensor(out))
    return Prepared(call, to_numpy=lambda result: out)


def onnxruntime(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    # before opset 28, fmod=0 is for integers only
    opset = 28 if x.dtype.kind not in "iu" and operation == "remainder" else 13
    return onnx_session(int(operation == "fmod"), opset, x, y, out, count)


def onnx_model(fmod: int, opset: int, x: Array, y: Array, out: Array) -> Any:
    from onnx import helper

    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), np.shape(array))
        for name, array in {"x": x, "y": y, "out": out}.items()
    ]
    graph = helper.make_graph([helper.make_node("Mod", ["x", "y"], ["out"], fmod=fmod)], "mod", infos[:2], infos[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def onnx_session(fmod: int, opset: int, x: Array, y: Array, out: Array, count: int) -> Prepared:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = count
    options.log_severity_level = 4  # an operation that is lacking is an exception already
    model = onnx_model(fmod, opset, x, y, out)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    arrays = {"x": x, "y": y, "out": out}
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(np.require(array, requirements="C")) for name, array in arrays.items()}
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", values["x"])
    binding.bind_ortvalue_input("y", values["y"])
    binding.bind_ortvalue_output("out", values["out"])
    return Prepared(partial(session.run_with_iobinding, binding), to_numpy=lambda nothing: values["out"].numpy())


def start_jax(count: int) -> Any:
    os.environ["NPROC"] = str(count)  # read when the first array is made; XLA_FLAGS has nothing that limits these threads
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def jax(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    jax = start_jax(count)
    compiled = jax.jit(getattr(jax.numpy, operation))
    a, b = jax.numpy.asarray(x), jax.numpy.asarray(y)
    return Prepared(lambda: compiled(a, b).block_until_ready())


def numexpr(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    import numexpr

    numexpr.set_num_threads(count)
    expression = {"remainder": "x % y", "fmod": "fmod(x, y)"}[operation]
    return Prepared(partial(numexpr.evaluate, expression, {"x": x, "y": y}, out=out))


def start_tensorflow(count: int, deterministic: bool = False) -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    tensorflow.config.threading.set_intra_op_parallelism_threads(count)
    tensorflow.config.threading.set_inter_op_parallelism_threads(count)
    if deterministic:
        tensorflow.config.experimental.enable_op_determinism()
    return tensorflow


def tensorflow(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    tf = start_tensorflow(count)
    operator = {"remainder": tf.raw_ops.FloorMod, "fmod": tf.raw_ops.TruncateMod}[operation]
    return Prepared(partial(operator, x=tf.constant(x), y=tf.constant(y)), to_numpy=lambda result: result.numpy())


@cache
def start_mindspore(count: int) -> Any:
    os.environ.setdefault("GLOG_v", "3")
    import mindspore

    mindspore.set_device("CPU")
    mindspore.set_context(runtime_num_threads=count)
    with suppress(SystemError):  # of version 2.10 the first product fails, once, where there is NumPy 2
        mindspore.Tensor(1) * 2
    return mindspore


def mindspore(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    """By the operator that does it in one step; for the dtypes that it lacks, by the function that is made of several."""
    ms = start_mindspore(count)

    def tensor(array: Array) -> Any:
        bfloat16 = array.dtype.name == "bfloat16"
        return ms.Tensor(np.asarray(array, np.float32)).astype(ms.bfloat16) if bfloat16 else ms.Tensor(np.require(array, requirements="C"))

    def to_numpy(result: Any) -> Array:
        return result.float().asnumpy().astype(x.dtype) if result.dtype == ms.bfloat16 else result.asnumpy()

    a, b = tensor(x), tensor(y)
    one, several = {"remainder": (ms.ops.FloorMod(), ms.ops.remainder), "fmod": (ms.ops.Mod(), ms.ops.fmod)}[operation]

    def call(operator: Callable[..., Any] = one) -> Any:
        result = operator(a, b)
        ms.runtime.synchronize()
        return result

    if x.dtype.name in ("uint16", "uint32", "uint64", "bfloat16"):
        return Prepared(partial(call, several), to_numpy=to_numpy)
    return Prepared(call, to_numpy=to_numpy)


REMAINDERS: dict[str, Callable[[str, Array, Array, Array, int], Prepared]] = {
    function.__name__: function for function in (fastops, numpy, vectorize, torch, onnxruntime, jax, numexpr, tensorflow, mindspore)
}


# --- the limits: what a loop can come near ------------------------------------------------------------------------------------------------
def copy(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    return Prepared(partial(np.copyto, out, x))


def divide(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    """One division an element, in the width that the formulas need it."""
    wide = np.float32 if x.dtype.itemsize < 4 or x.dtype == np.float32 else np.float64
    return Prepared(partial(np.divide, x.astype(wide), y.astype(wide), out.astype(wide)))


def floor_divide(operation: str, x: Array, y: Array, out: Array, count: int) -> Prepared:
    return Prepared(partial(np.floor_divide, x, y, out))


LIMITS = {function.__name__: function for function in (copy, divide, floor_divide)}
