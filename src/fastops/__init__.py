"""Fast remainders and ordered scatter-division of arrays: NumPy's results to the bit, from loops that Numba compiles."""

from .patching import is_patched, patch_numpy, patched, unpatch_numpy
from .scatter import scatter_div
from .ufuncs import fmod, mod, remainder, warmup

__all__ = ["fmod", "is_patched", "mod", "patch_numpy", "patched", "remainder", "scatter_div", "unpatch_numpy", "warmup"]
__version__ = "0.1.0"
