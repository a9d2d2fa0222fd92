"""Fast remainders and ordered scatter-division of arrays: NumPy's results to the bit, from loops that Numba compiles."""

from .scatter import scatter_div
from .ufuncs import fmod, mod, remainder, warmup

__all__ = ["fmod", "mod", "remainder", "scatter_div", "warmup"]
__version__ = "0.1.0"
