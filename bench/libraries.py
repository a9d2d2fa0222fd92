"""The libraries that are compared: one table for speed and for correctness."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec
from typing import NamedTuple


class Library(NamedTuple):
    title: str
    package: str
    remainders: bool = True  # remainders.py calls them
    scatter: bool = False  # scatters.py calls it
    alone: bool = False  # in a process of its own, and so in any environment


LIBRARIES = {
    "fastops": Library("fastops", "fastops", scatter=True),
    "numpy": Library("NumPy", "numpy", scatter=True),
    "numpy_rows": Library("NumPy, row by row", "numpy", remainders=False, scatter=True),
    "vectorize": Library("numba.vectorize", "numba"),
    "torch": Library("PyTorch", "torch"),
    "onnxruntime": Library("ONNX Runtime", "onnxruntime"),
    "jax": Library("JAX", "jax", scatter=True),
    "numexpr": Library("numexpr", "numexpr"),
    "tensorflow": Library("TensorFlow", "tensorflow", scatter=True, alone=True),
    "tensorflow_deterministic": Library("TensorFlow, deterministic", "tensorflow", remainders=False, scatter=True, alone=True),
    "mindspore": Library("MindSpore", "mindspore", scatter=True, alone=True),
}
PEERS = tuple(name for name in LIBRARIES if name != "fastops")
# what a loop can come near
LIMITS = {"copy": "`np.copyto`", "divide": "`np.divide`", "floor_divide": "`np.floor_divide`", "sum": "`sum` of the updates"}
PACKAGES = tuple(dict.fromkeys(library.package for library in LIBRARIES.values()))  # fastops first


def installed(package: str) -> bool:
    return find_spec(package) is not None


def versions() -> dict[str, str]:
    """Of what is installed beside fastops; by the name that is imported, which more than one distribution may bring."""
    distributions = metadata.packages_distributions()
    packages = dict.fromkeys((*PACKAGES[1:], "numba", "llvmlite", "ml_dtypes", "onnx"))
    return {package: metadata.version(distributions[package][0]) for package in packages if package in distributions}
