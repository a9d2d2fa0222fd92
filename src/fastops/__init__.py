"""Fast remainders and ordered scatter-division of arrays: NumPy's results to the bit, from loops that Numba compiles."""

from .scatter import scatter_div
from .ufuncs import fmod, mod, remainder

__all__ = ["fmod", "mod", "remainder", "scatter_div"]
__version__ = "0.1.0"
