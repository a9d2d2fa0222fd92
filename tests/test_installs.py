"""What may be missing or broken beside fastops (Numba, a threading layer, tbb), how Python is started, and where fastops is installed."""

import os
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest
from cold_starts import FEW_CALLS, REPORT
from in_processes import EVERY_CALL, LAYERS, SOURCE, run

pytestmark = pytest.mark.usefixtures("kernels")


# --- no Numba -----------------------------------------------------------------------------------------------------------------------------
REFUSAL = "Numba needs NumPy 2.4 or less. Got NumPy 9.9."
# What stands in numba.py, variables, and what the warning must name.
CAUSES = {
    "missing": ("raise ModuleNotFoundError(\"No module named 'numba'\", name='numba')", {}, "No module named 'numba'"),
    "broken": ("raise OSError('libsvml is not there')", {}, "libsvml is not there"),
    "refuses this NumPy": (f"raise ImportError({REFUSAL!r})", {}, REFUSAL),
    "disabled": (None, {"NUMBA_DISABLE_JIT": 1}, "NUMBA_DISABLE_JIT is set"),
}
NUMPYS_RESULTS = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    results = [right(), right(), np.array_equal(fastops.mod.outer(i[:200], j[:200]), np.remainder.outer(i[:200], j[:200]))]
    results += [fastops.mod(7, 4) == 3, fastops.fmod(-7, 4) == -3]
    out = np.empty_like(x)
    results.append(fastops.fmod(x, y, out=out) is out and np.array_equal(out, want))
    quotients = fastops.scatter_div(np.arange(6), [0, 5, 5], [1, 2, 2])
    results.append(quotients.tolist() == [0, 1, 2, 3, 4, 1])
    for function in (fastops.mod, fastops.fmod):
        for dtype in "bhilqBHILQefd":
            a, b = (operand[:20_000].astype(dtype) for operand in ((x, y) if dtype in "efd" else (i, j | 1)))
            results.append(function(a, b).tobytes() == getattr(np, function.__name__)(a, b).tobytes())
    fastops.warmup("float32")
    fastops.warmup()
    fastops.mod(i, 0)
print(all(results), len(driven), len(caught), caught[0].category.__name__, CAUSE in str(caught[0].message), caught[0].filename)
"""
NO_PATCH = """
refused = 0
try:
    fastops.patch_numpy()
except RuntimeError as error:
    refused += CAUSE in str(error)
try:
    with fastops.patched():
        pass
except RuntimeError as error:
    refused += CAUSE in str(error)
fastops.unpatch_numpy()
print(refused, fastops.is_patched(), np.array_equal(i % j, want_integers))
"""
COMMANDS = """
import contextlib, io
from fastops import __main__
said = []
for command in (["info"], ["warmup"], ["run", "nothing.py"]):
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(text):
        try:
            code = __main__.main(command)
        except SystemExit as error:
            code = error.code
    said += [code, CAUSE in text.getvalue()]
print(*said)
"""


@pytest.mark.parametrize("cause", list(CAUSES))
def test_without_numba_one_warning_and_numpys_results(cause, tmp_path):
    """And from all else an answer that names the cause."""
    stub, environment, text = CAUSES[cause]
    if stub:
        (tmp_path / "numba.py").write_text(stub)
    code = EVERY_CALL + f"CAUSE = {text!r}" + NUMPYS_RESULTS + NO_PATCH + COMMANDS
    words = run(code, path=f"{tmp_path}{os.pathsep}{SOURCE.parent}", **environment)
    assert words[:6] == ["True", "0", "2", "RuntimeWarning", "True", "<string>"]  # the second one is of the division by zero
    assert words[6:9] == ["2", "False", "True"]
    assert words[9:] == ["0", "True", "1", "True", "1", "True"]


# --- no threading layer -------------------------------------------------------------------------------------------------------------------
WITHOUT_LAYERS = """
import sys
from importlib import metadata
def files(package, files=metadata.files):
    if package in hidden:
        raise metadata.PackageNotFoundError(package)
    return files(package)
metadata.files = files
sys.modules |= {f"numba.np.ufunc.{layer}{'pool' * (layer != 'workqueue')}": None for layer in hidden}
"""
WHICH_LAYER = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(right(), right(), len(driven) > 0, threads.launch() or "none", *(entry.category.__name__ for entry in caught))
"""


@pytest.mark.parametrize("hidden", [("omp",), ("tbb",), ("omp", "tbb"), ("omp", "tbb", "workqueue")], ids=" and ".join)
def test_without_threading_layers(hidden):
    """Those of libgomp and of the tbb package: the next one serves; without any, one thread and one warning."""
    remaining = [layer for layer in ("tbb", "omp", "workqueue") if layer in LAYERS and layer not in hidden]  # in Numba's order
    expected = ["True", remaining[0]] if remaining else ["False", "none", "RuntimeWarning"]
    assert run(f"hidden = {hidden}" + WITHOUT_LAYERS + EVERY_CALL + WHICH_LAYER) == ["True", "True", *expected]


# --- how Python is started ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("flags", ["-OO", "-I -W error -X utf8=0", pytest.param("-O", marks=pytest.mark.slow)])
def test_flags_of_python(flags):
    found = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r})\n"  # which -I ignores a variable for
    words = run(found + EVERY_CALL + "print(right(), fastops.__file__ is not None, len(driven) > 0)", *flags.split())
    assert words == ["True", "True", "True"]


# --- where it is installed ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("calls", [FEW_CALLS, pytest.param(EVERY_CALL, marks=pytest.mark.slow)], ids=["few", "every operation"])
@pytest.mark.parametrize("kind", ["regular", "editable"])
def test_folders_with_spaces_and_letters_of_all_kinds(kind, calls, tmp_path):
    """A virtual environment, the sources, and their cache: beside them, or in a home where no folder can be beside them."""
    folder = tmp_path / "Zoë's Übung"
    venv.create(folder, symlinks=os.name != "nt")
    python = folder / ("Scripts" if os.name == "nt" else "bin") / Path(sys.executable).name
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    sources = packages if kind == "regular" else folder / "my sources"
    shutil.copytree(SOURCE, sources / "fastops", ignore=shutil.ignore_patterns("__pycache__"))
    others = {str(Path(package.__file__).parents[1]) for package in (np, numba, llvmlite)}
    encoding = "utf-8" if sys.version_info >= (3, 13) else "locale"
    (packages / "fastops.pth").write_text("\n".join([str(sources), *others]), encoding)
    home = sources
    if kind == "editable":
        home = folder / "at home"
        for part in ("engine", "kernels"):
            (sources / "fastops" / part / "__pycache__").write_text("")
    code = calls + REPORT + "print(fastops.__file__.startswith(sys.prefix))"
    environment = {"PYTHONPATH": None, "NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": home}
    for found in (False, True):
        right, *functions, of_sources = run(code, "-W", "error", python=python, timeout=300, **environment)
        assert (right, of_sources) == ("True", "True")
        assert functions
        assert all(function.endswith(f":{found}") for function in functions)
    if os.name != "nt":  # which does not tell its home by a variable
        assert {file.name.partition(".")[2].rpartition("_")[0] + ":True" for file in home.rglob("*.nbc")} == set(functions)
