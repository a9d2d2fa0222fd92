"""Caches, and what may be missing or broken: Numba, its cache folder, a part of it."""

import os
import subprocess
import sys
import zipfile

import pytest
from in_processes import ENTRY, LARGE_CALLS, SOURCE, run

# --- caches -------------------------------------------------------------------------------------------------------------------------------
REPORT = """
from fastops.engine import compiler
print(right(), len(driven), *(f"{made.name}:{made.from_cache}" for made in compiler.compiled()))
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder of its own, filled by a first process."""
    folder = tmp_path_factory.mktemp("cache")
    first = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=folder)
    assert first[:2] == ["True", "2"]
    assert sorted(first[2:]) == ["drive_in_parallel:False", f"{ENTRY}:False", "fmod_float64:False", "remainder_int32:False"]
    return folder


def test_second_process_compiles_nothing(warm):
    second = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=warm)
    assert second[:2] == ["True", "2"]
    assert sorted(second[2:]) == ["drive_in_parallel:True", f"{ENTRY}:True", "fmod_float64:True", "remainder_int32:True"]


def test_another_processor_compiles_anew(warm):
    """Its code is not the first one's, also from the same folder."""
    other = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=warm, NUMBA_CPU_NAME="generic")
    assert other[0] == "True"
    assert all(entry.endswith("False") for entry in other[2:])


@pytest.mark.parametrize("damage", ["index", "code", "truncated"])
def test_damaged_cache(warm, tmp_path, damage):
    files = [file for file in warm.rglob("*") if file.suffix in (".nbi", ".nbc")]
    assert len(files) >= 6
    for file in files:
        content = file.read_bytes()
        if file.suffix == {"index": ".nbi", "code": ".nbc"}.get(damage):
            content = b"garbage" * 100
        elif damage == "truncated":
            content = content[: len(content) // 2]
        copy = tmp_path / file.relative_to(warm)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    assert run(LARGE_CALLS + "print(right())", "-W", "error", NUMBA_CACHE_DIR=tmp_path) == ["True"]


def test_no_place_for_a_cache(tmp_path):
    """The package in an archive, no home, and a cache folder that cannot be made."""
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in SOURCE.rglob("*.py"):
            packed.write(file, file.relative_to(SOURCE.parent))
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = LARGE_CALLS + "print(right(), len(driven), 'package.zip' in fastops.__file__)"
    environment = {"HOME": blocked / "home", "XDG_CACHE_HOME": blocked / "cache"}
    assert run(code, "-W", "error", path=archive, NUMBA_CACHE_DIR=blocked / "cache", **environment) == ["True", "2", "True"]
    assert run(code, "-W", "error", path=archive, **environment) == ["True", "2", "True"]


def test_two_processes_fill_one_cache_at_once(tmp_path):
    code = LARGE_CALLS + "print(right())"
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        assert [process.communicate(timeout=200)[0].split() for process in both] == [["True"], ["True"]]
    finally:
        for process in both:
            process.kill()
    third = run(LARGE_CALLS + REPORT, NUMBA_CACHE_DIR=tmp_path)
    assert third[0] == "True"
    assert all(entry.endswith("True") for entry in third[2:])


# --- no Numba -----------------------------------------------------------------------------------------------------------------------------
NO_NUMBA = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    results = [right(), right(), np.array_equal(fastops.mod.outer(i[:200], j[:200]), np.remainder.outer(i[:200], j[:200]))]
    results += [fastops.mod(7, 4) == 3, fastops.fmod(-7, 4) == -3]
    out = np.empty_like(x)
    results.append(fastops.fmod(x, y, out=out) is out and np.array_equal(out, want))
    zeros = fastops.mod(i, 0)
kinds = [entry.category.__name__ for entry in caught]
print(all(results), len(driven), *kinds)
print(str(caught[0].message).replace(" ", "_"))
"""


def test_missing_numba_is_one_warning_and_numpys_results():
    words = run("import sys; sys.modules['numba'] = None" + LARGE_CALLS + NO_NUMBA)
    assert words[:4] == ["True", "0", "RuntimeWarning", "RuntimeWarning"]  # the second one for the division by zero
    assert len(words) == 5
    assert "numba" in words[4].lower()
    assert "Error" in words[4]


def test_broken_numba_is_one_warning_and_numpys_results(tmp_path):
    (tmp_path / "numba.py").write_text("raise OSError('libsvml is not there')")
    words = run(LARGE_CALLS + NO_NUMBA, path=f"{tmp_path}{os.pathsep}{SOURCE.parent}")
    assert words[:4] == ["True", "0", "RuntimeWarning", "RuntimeWarning"]
    assert len(words) == 5
    assert "libsvml_is_not_there" in words[4]


def test_disabled_jit_is_one_warning_and_numpys_results():
    words = run(LARGE_CALLS + NO_NUMBA, NUMBA_DISABLE_JIT=1)
    assert words[:4] == ["True", "0", "RuntimeWarning", "RuntimeWarning"]
    assert len(words) == 5
    assert "NUMBA_DISABLE_JIT" in words[4]


def test_the_warning_of_missing_numba_points_at_the_caller():
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fastops.mod(i, j)
print(caught[0].filename)
"""
    assert run("import sys; sys.modules['numba'] = None" + LARGE_CALLS + code) == ["<string>"]
