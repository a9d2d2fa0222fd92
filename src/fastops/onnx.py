"""ONNX's operator Mod by its own strict rules: for arrays, for the reference evaluator, and as a backend for the official tests.

`mod` needs no onnx package; `Mod` and `Backend` do: ``pip install 'fastops-numba[onnx]'``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import ufuncs
from .dispatch import is_truncated

__all__ = ["Backend", "Mod", "mod"]

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")

# By version of the operator: the dtypes that it takes, and whether floating-point dtypes may be floored (fmod=0).
_VERSIONS = {
    10: ((*_INTEGERS, *_FLOATS), False),
    13: ((*_INTEGERS, "bfloat16", *_FLOATS), False),
    28: ((*_INTEGERS, "bfloat16", *_FLOATS), True),
}


def mod(A: ArrayLike, B: ArrayLike, *, fmod: int = 0, opset: int = 13) -> NDArray[Any]:
    """Element-wise remainder of A by B, with what ONNX's Mod forbids forbidden.

    >>> import numpy as np
    >>> from fastops import onnx
    >>> onnx.mod(np.array([-4, 7, 5]), np.array([2, -3, 8]))
    array([ 0, -2,  5])
    >>> onnx.mod(np.array([-4, 7, 5]), np.array([2, -3, 8]), fmod=1)
    array([0, 1, 5])
    >>> onnx.mod(np.array([-4.5, 7.0]), np.array([2.0]), opset=28)
    array([1.5, 1. ])
    >>> onnx.mod(np.array([-4.5, 7.0]), np.array([2.0]), opset=13)
    Traceback (most recent call last):
    ...
    ValueError: fmod must be 1 for floating-point tensors before opset 28, got fmod=0, float64 and opset 13

    Parameters
    ----------
    A, B
        Dividend and divisor: tensors of one dtype, of shapes that broadcast with each other. The dtypes are int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, float16, float32, float64 and, from opset 13 on, ml_dtypes' bfloat16. Python's numbers and lists are
        what `numpy.asarray` makes of them (int64, float64): ONNX has no weak scalars.
    fmod
        0: the result has the sign of B (floored division, `numpy.remainder`). 1: the sign of A (truncated division, `numpy.fmod`).
        Floating-point tensors need 1 before opset 28.
    opset
        The version of ONNX's operator set, 10 or more. Mod-10, Mod-13 or Mod-28 is in force, whichever is the newest up to it.

    Returns
    -------
    numpy.ndarray
        Of the inputs' dtype and the broadcast shape; 0-d stays an array. An integer by zero is 0, with NumPy's warning.

    Raises
    ------
    TypeError
        If A and B differ in dtype, if the operator's version does not take it, or if one is a masked array (a tensor has no mask).
    ValueError
        If `fmod` is not 0 or 1, or is 0 where it must be 1; if `opset` is not an integer of 10 or more; if the shapes do not broadcast.

    Notes
    -----
    Source: ONNX, operators Mod-10, Mod-13 and Mod-28. Where ONNX leaves a choice (the sign of a zero), it is NumPy's.
    """
    version = _version_in_force(opset)
    dtypes, may_floor_floats = _VERSIONS[version]
    fmod = is_truncated(fmod)
    a, b = _tensor("A", A), _tensor("B", B)
    for name, x in (("A", a), ("B", b)):
        # A dtype with fields may call itself uint16: onnx before 1.19 kept the bits of bfloat16 in such a one.
        if x.dtype.name not in dtypes or x.dtype.names:
            raise TypeError(f"{name} has dtype {x.dtype}, which is not one of Mod-{version}'s: {', '.join(dtypes)}")
    dtype = a.dtype.name  # without the byte order, which is no part of ONNX's types
    if dtype != b.dtype.name:
        raise TypeError(f"A and B must have the same dtype, got {dtype} and {b.dtype.name}")
    if not fmod and dtype not in _INTEGERS and not may_floor_floats:
        raise ValueError(f"fmod must be 1 for floating-point tensors before opset 28, got fmod={int(fmod)}, {dtype} and opset {opset}")
    operation = ufuncs.fmod if fmod else ufuncs.remainder
    return np.asarray(operation.__call__(a, b))  # so, it warns at the caller's line and not at this one


def _version_in_force(opset: int) -> int:
    try:
        if isinstance(opset, np.bool_):
            raise TypeError  # before NumPy 2.3 it counts as an index
        return max(version for version in _VERSIONS if version <= index(opset))
    except (TypeError, ValueError):  # not an integer; no version is old enough
        raise ValueError(f"opset must be an integer of 10 or more, as Mod exists since opset 10, got {opset!r}") from None


def _tensor(name: str, x: ArrayLike) -> NDArray[Any]:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a tensor, got a masked array of dtype {x.dtype}")
    return np.asarray(x)


try:
    from onnx import ModelProto, NodeProto, defs, helper
    from onnx.backend import base
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun
except ImportError as error:
    _missing: ImportError | None = error.with_traceback(None)
else:
    _missing = None

    class Mod(OpRun):
        """Mod for `onnx.reference.ReferenceEvaluator`, by the rules of `mod` and the operator set of the model.

        >>> import numpy as np
        >>> from fastops.onnx import Mod
        >>> from onnx.parser import parse_model
        >>> from onnx.reference import ReferenceEvaluator
        >>> model = parse_model('''<ir_version: 8, opset_import: ["" : 13]>
        ... graph (int64[N] x, int64[N] y) => (int64[N] z) { z = Mod(x, y) }''')
        >>> evaluator = ReferenceEvaluator(model, new_ops=[Mod])
        >>> evaluator.run(None, {"x": np.array([-4, 7, 5]), "y": np.array([2, -3, 8])})
        [array([ 0, -2,  5])]

        The evaluator words a TypeError of an operator anew; that of `mod` is its cause. It gives `new_ops` to the subgraphs of a model, but
        not to its functions: `Backend` does.

        Source: ONNX, operators Mod-10, Mod-13 and Mod-28.
        """

        op_domain = ""

        def _run(self, A: Any, B: Any, fmod: int | None = None) -> tuple[NDArray[Any]]:
            # The evaluator always fills in `fmod`, from the node, the schema's default or the attribute of an enclosing function.
            opset = self.run_params["opsets"][self.onnx_node.domain]
            return (mod(A, B, fmod=0 if fmod is None else fmod, opset=opset),)

    class _Evaluator(ReferenceEvaluator):
        """Makes the evaluators of a model's functions by its own class, without `new_ops`: so the class has to know them."""

        def __init__(self, proto: Any, opsets: dict[str, int] | None = None, **options: Any):
            super().__init__(proto, opsets, **{**options, "new_ops": [Mod, *(options.get("new_ops") or ())]})

    def _by_name(names: Sequence[str], inputs: Sequence[Any]) -> dict[str, Any]:
        if len(names) != len(inputs):
            raise ValueError(f"expected {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        return dict(zip(names, inputs, strict=True))

    class _Prepared(base.BackendRep):
        """A model that is ready to run."""

        def __init__(self, model: ModelProto, **options: Any):
            self._evaluator = _Evaluator(model, **options)
            initialized = {tensor.name for tensor in model.graph.initializer}
            self._names = [name for name in self._evaluator.input_names if name not in initialized]

        def run(self, inputs: Any, **options: Any) -> tuple[Any, ...]:
            """The outputs for `inputs`: a dict by name, or a sequence in the graph's order, those with initializers may lack."""
            if not isinstance(inputs, Mapping):
                inputs = _by_name(self._evaluator.input_names if len(inputs) > len(self._names) else self._names, inputs)
            return tuple(self._evaluator.run(None, inputs, **options))

    class Backend(base.Backend):
        """ONNX's reference evaluator with fastops' Mod, in the functions of a model too, as a backend on the CPU.

        >>> import numpy as np
        >>> from fastops.onnx import Backend
        >>> from onnx.helper import make_node
        >>> node = make_node("Mod", ["x", "y"], ["z"], fmod=1)
        >>> Backend.run_node(node, [np.array([-4.5, 7.0]), np.array([2.0])], opset_version=13)
        (array([-0.5,  1. ]),)

        Errors are those of `mod`, of `onnx.checker` and of the evaluator. Source: `onnx.backend.base`.
        """

        @classmethod
        def supports_device(cls, device: str) -> bool:
            """Whether it is the CPU."""
            return device.partition(":")[0] == "CPU"

        @classmethod
        def prepare(cls, model: ModelProto, device: str = "CPU", **options: Any) -> base.BackendRep:
            """The checked model, to `run`; `options` are those of `ReferenceEvaluator`."""
            cls._check_device(device)
            super().prepare(model, device)
            return _Prepared(model, **options)

        @classmethod
        def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any) -> tuple[Any, ...]:
            """The outputs of one node for the inputs that it has, by the rules of `opset_version` (else of the newest that onnx knows)."""
            cls._check_device(device)
            version = options.pop("opset_version", defs.onnx_opset_version())
            super().run_node(node, inputs, device, outputs_info, opset_version=version)
            feeds = _by_name([name for name in node.input if name], inputs)
            values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in feeds.items()]
            outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
            evaluator = _Evaluator(helper.make_graph([node], "node", values, outputs), {"": version}, **options)
            return tuple(evaluator.run(None, feeds))

        @classmethod
        def _check_device(cls, device: str) -> None:
            if not cls.supports_device(device):
                raise ValueError(f"device must be 'CPU', got {device!r}")


def __getattr__(name: str) -> Any:
    if name in ("Mod", "Backend"):  # not found: onnx is missing
        raise ImportError(f"fastops.onnx.{name} needs the package onnx: pip install 'fastops-numba[onnx]'") from _missing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
