"""`warmup` compiles what it is asked for, in a process of its own, since others share what is compiled."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import DTYPES

import fastops
from fastops import ufuncs

pytestmark = pytest.mark.usefixtures("kernels")
ENTRIES = {f"entry_{fastops.mod._room}", f"scatter_entry_{fastops.scatter_div._room}"}  # the native entries of small calls


def compiled_after(call, before="import sys"):
    tell = "from fastops.engine import compiler; print(*(made.name for made in compiler.compiled()))"
    code = f"import numpy as np; {before}; import fastops; {call}; {tell}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300, check=True)
    return set(done.stdout.split())


DRIVER = {"drive_serially", "drive_in_parallel", "scatter_div_together", "copy_1", "copy_2", "copy_4", "copy_8"}


def test_some_dtypes():
    names = {f"{operation}_{dtype}" for operation in ("remainder", "fmod", "scatter_div") for dtype in ("float32", "int64")}
    assert compiled_after("fastops.warmup(np.float32, '>i8')") == names | DRIVER | ENTRIES | {"scatter_div"}


@pytest.mark.parametrize(("before", "count"), [("pass", 3 * len(DTYPES) - 3), ("import ml_dtypes", 3 * len(DTYPES))])
def test_all_dtypes(before, count):
    names = compiled_after("fastops.warmup()", before)
    assert len(names - DRIVER - ENTRIES) == count + 1
    assert ("remainder_bfloat16" in names) == (count == 3 * len(DTYPES))


def test_a_dtype_named_twice_is_made_once():
    names = [name for name, _ in ufuncs.parts(np.float32, "f4", ">f4")]
    assert names == ["driver", "remainder float32", "fmod float32", "scatter_div float32"]


@pytest.mark.parametrize("dtype", [np.longdouble, np.complex64, "U3", object, bool])
def test_a_dtype_without_a_loop(dtype):
    with pytest.raises(TypeError, match=f"there is no loop for {np.dtype(dtype)}"):
        fastops.warmup(np.float32, dtype)


def test_large_objects_of_others_have_their_loop_compiled():
    calls = (
        "fastops.fmod(pd.Series(np.arange(20_000.0)), 3)",
        "fastops.fmod(pd.DataFrame({'a': np.arange(20_000)}), 3)",
        "fastops.mod(xr.DataArray(np.arange(20_000.0)), 3)",
        "fastops.mod(da.from_array(np.arange(20_000)), 3)",
    )
    names = compiled_after("; ".join(calls), "import pandas as pd, xarray as xr, dask.array as da")
    assert {"fmod_float64", "fmod_int64", "remainder_float64", "remainder_int64"} <= names
