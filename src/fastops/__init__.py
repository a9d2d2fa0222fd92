"""Fast remainders and ordered scatter-division of arrays: NumPy's results to the bit, from loops that Numba compiles."""

from .ufuncs import fmod, mod, remainder

__all__ = ["fmod", "mod", "remainder"]
__version__ = "0.1.0"
