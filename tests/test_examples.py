"""The programs in examples/, in small. Each ends with "OK" if its results are NumPy's. (The one of Dask is in test_dask.py.)"""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {"own_njit.py": ["--size", "20000"], "onnx_model.py": ["--rows", "5000"], "pandas_weekdays.py": ["--rows", "20000"]}


@pytest.mark.parametrize("name", list(SMALL))
def test_example(name):
    done = subprocess.run([sys.executable, "-W", "error", EXAMPLES / name, *SMALL[name]], capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("OK\n"), done.stdout + done.stderr


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SMALL, "dask_larger_than_memory.py"}
