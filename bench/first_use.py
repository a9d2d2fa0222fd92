"""First impressions: what import, the first calls and the cache cost.

    python bench/first_use.py

Each figure is the median of several processes of their own; the cache is a folder that is empty at first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROUNDS = 7
RESIDENT = "(int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20 if os.path.exists('/proc/self/statm') else float('nan'))"
START = (
    "import os, time; from time import perf_counter as now; import numpy as np; numpys = " + RESIDENT + "; start = now(); import fastops; "
)
IMPORT = START + "print((now() - start) * 1e3, " + RESIDENT + " - numpys)"
CALL = START + "x = np.arange(1, 100_001, dtype=np.{dtype}); start = now(); {call}; print((now() - start) * 1e3, " + RESIDENT + " - numpys)"
CALLS = {
    "small, by NumPy's loops": ("int32", "fastops.mod(x[:100], 7)"),
    "mod of int32": ("int32", "fastops.mod(x, 7)"),
    "fmod of float64": ("float64", "fastops.fmod(x, 7)"),
    "scatter_div of float64": ("float64", "fastops.scatter_div(x, np.arange(100_000), x)"),
    "warmup of all dtypes": ("float64", "fastops.warmup()"),
}


def measured(code: str, folder: str) -> tuple[float, float]:
    """Milliseconds, and MiB beside NumPy's."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process would compile the sources to bytecode
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=600)
    took, memory = map(float, done.stdout.split())
    return took, memory


def size(folder: str) -> float:
    return sum(file.stat().st_size for file in Path(folder).rglob("*.nb?")) / 2**20


def main() -> None:
    print("| | first time | later processes | memory beside NumPy's | cache |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        measured(IMPORT, folder)
        times = [measured(IMPORT, folder) for _ in range(ROUNDS)]
        print(f"| `import fastops` | | {median(t for t, _ in times):.0f} ms | {median(m for _, m in times):.0f} MiB | |")
    for name, (dtype, call) in CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            code = CALL.format(dtype=dtype, call=call)
            cold, _ = measured(code, folder)
            times = [measured(code, folder) for _ in range(ROUNDS)]
            took, memory = median(t for t, _ in times), median(m for _, m in times)
            print(f"| {name} | {cold / 1e3:.2f} s | {took:.1f} ms | {memory:.0f} MiB | {size(folder):.1f} MiB |", flush=True)


if __name__ == "__main__":
    main()
