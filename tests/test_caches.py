"""A cache that cannot be used costs time, never a wrong result or an exception.

With a few remainders, which are compiled in seconds; the slow tests do the same with all operations.
"""

import os
import pickle
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest
from cold_starts import FEW_CALLS, REPORT, cold_start
from in_processes import ENTRY, EVERY_CALL, SCATTER_ENTRY, SOURCE, run, unix


class Calls(NamedTuple):
    """Code, the functions that it compiles, and those that a full disk loses."""

    code: str
    functions: list[str]
    lost: list[str]

    def report(self, *made: str) -> list[str]:
        """What it says if these are made, and the others found."""
        return ["True", *sorted(f"{name}:{name not in made}" for name in self.functions)]

    @property
    def made(self) -> list[str]:
        return self.report(*self.functions)


MORE_CALLS = """
def right(few=right):
    return few() and all(np.array_equal(fastops.mod(i.astype(kind), 7), i.astype(kind) % 7) for kind in ("b", "B", "h", "H"))
"""
FEW = FEW_CALLS + REPORT
REMAINDERS = Calls(
    FEW_CALLS + MORE_CALLS + REPORT,
    [ENTRY, "fmod_float64", *(f"remainder_{kind}" for kind in ("int32", "int8", "uint8", "int16", "uint16"))],
    ["fmod_float64", "remainder_int32"],
)
EVERY = Calls(
    EVERY_CALL + REPORT,
    [
        ENTRY,
        SCATTER_ENTRY,
        "fmod_float64",
        "remainder_int32",
        "scatter_div",
        "scatter_div_together",
        "scatter_div_float64",
        "drive_serially",
        "drive_in_parallel",
    ],
    ["fmod_float64", "remainder_int32", "scatter_div_float64"],
)

# Permissions mean nothing to root, as long as it has its capabilities.
UNPRIVILEGED = """
import ctypes, os, sys
if sys.platform == "linux" and os.geteuid() == 0:
    assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522), (ctypes.c_uint32 * 6)()) == 0
"""


def report(code: str, *flags: str, **environment: object) -> list[str]:
    """What the process says, with the functions in order."""
    right, *functions = run(code, *flags, timeout=300, **environment)
    return [right, *sorted(functions)]


def files_of(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{ending}"))


def copy_package(folder: Path) -> Path:
    return shutil.copytree(SOURCE, folder / "fastops", ignore=shutil.ignore_patterns("__pycache__"))


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """With all that is in it."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in folders:
            path.chmod(0o755)


@pytest.fixture(scope="module", params=[REMAINDERS, pytest.param(EVERY, marks=pytest.mark.slow)], ids=["remainders", "every operation"])
def calls(request):
    return request.param


@pytest.fixture(scope="module")
def warm(calls, tmp_path_factory):
    """A cache folder of its own, filled by a first process; nobody changes it."""
    folder = tmp_path_factory.mktemp("a cache of Ünïcode")
    assert report(calls.code, "-W", "error", NUMBA_CACHE_DIR=folder) == calls.made
    return folder


@pytest.fixture
def cache(warm, tmp_path):
    """A copy of it."""
    return shutil.copytree(warm, tmp_path / "cache")


# --- whose code is it? --------------------------------------------------------------------------------------------------------------------
def test_second_process_compiles_nothing(warm, calls):
    assert report(calls.code, NUMBA_CACHE_DIR=warm) == calls.report()


ANOTHER_NUMPY = "import numba, numpy; numpy.__version__ = '2.0.0'\n"  # Numba itself knows it by its number, and compiles accordingly


@pytest.mark.parametrize(("before", "environment"), [("", {"NUMBA_CPU_NAME": "generic"}), (ANOTHER_NUMPY, {})], ids=["processor", "NumPy"])
def test_another_one_compiles_anew(before, environment, cache):
    """Its code is not the first one's, also from the same folder."""
    right, *functions = report(before + FEW, NUMBA_CACHE_DIR=cache, **environment)
    assert right == "True"
    assert functions
    assert all(function.endswith(":False") for function in functions)


def test_an_upgrade_in_place(warm, tmp_path):
    """The formula is in another file than the function that is compiled, and the cache of the old one is still there. A process that
    imported the old one before, and compiles afterwards, must not leave it to those that come later."""
    package = copy_package(tmp_path)
    for folder in ("engine", "kernels"):
        (package / folder / "__pycache__").mkdir()
        for file in warm.glob(f"{folder}_*/*"):
            shutil.copy(file, package / folder / "__pycache__")
    formula = package / "kernels" / "integers.py"
    old = formula.read_text("utf-8")
    new = old.replace("turned = (y if floored else x)", "turned = (x if floored else y)  # the other way about\n    turned = turned")
    assert new != old
    upgrade = f"import fastops.kernels.bindings, pathlib; pathlib.Path({str(formula)!r}).write_text({new!r}, 'utf-8')\n"
    which = REPORT.replace("right()", "np.array_equal(fastops.mod(i, j), np.mod(i, j)), np.array_equal(fastops.mod(i, j), np.fmod(i, j))")
    of_old, of_new = ["True", "False"], ["False", "True"]

    def words(before: str = "") -> list[str]:
        return run(before + FEW_CALLS + which, path=tmp_path, NUMBA_CACHE_DIR=None)

    assert words(upgrade) == [*of_old, "remainder_int32:False", f"{ENTRY}:False"]
    assert words() == [*of_new, "remainder_int32:False", f"{ENTRY}:False"]
    assert words() == [*of_new, "remainder_int32:True", f"{ENTRY}:True"]
    formula.write_text(old, "utf-8")
    assert words() == [*of_old, "remainder_int32:True", f"{ENTRY}:True"]


# --- damage -------------------------------------------------------------------------------------------------------------------------------
def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES = {
    "garbage": lambda file: file.write_bytes(b"garbage" * 100),
    "empty": lambda file: file.write_bytes(b""),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "unreadable": lambda file: file.chmod(0),
    "folder": as_folder,
}
OF_INDEX = {**DAMAGES, "of another Numba": lambda file: file.write_bytes(pickle.dumps("0.1") + b"whatever it wrote")}
OF_CODE = {**DAMAGES, "missing": Path.unlink}


@pytest.mark.parametrize(("ending", "damages"), [("nbi", OF_INDEX), ("nbc", OF_CODE)], ids=["index", "code"])
def test_damaged_files(ending, damages, cache, calls):
    """Each in another way. What is of no use does not stay, so that the next process, or the one after it, has a cache again."""
    times = {}
    for file, damage in zip(files_of(cache, ending), cycle(damages.values()), strict=False):
        damage(file)
        if file.is_file():
            times[file] = file.stat().st_mtime_ns
    right, *functions = report(UNPRIVILEGED + calls.code, "-W", "error", NUMBA_CACHE_DIR=cache)
    assert right == "True"
    found = [function for function in functions if function.endswith(":True")]
    if os.name == "nt":  # where every file can be read
        assert len(found) == 1
    else:
        assert not found
        assert not any(file.is_file() and file.stat().st_mtime_ns == time for file, time in times.items())


@unix
def test_a_full_disk(cache, calls):
    """As a limit to the size of files: an index is written, what it points at is not."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))\n"
    names = [file.name for file in files_of(cache, "nb?")]
    loops = [file for file in files_of(cache, "nb?") if any(f".{name}_" in file.name for name in calls.lost)]
    assert len(loops) == 2 * len(calls.lost)
    for file in loops:
        file.unlink()
    expected = calls.report(*calls.lost)
    assert report(limit + calls.code, "-W", "error", NUMBA_CACHE_DIR=cache) == expected
    assert not set(loops) & set(cache.rglob("*"))
    assert report(calls.code, "-W", "error", NUMBA_CACHE_DIR=cache) == expected
    assert [file.name for file in files_of(cache, "nb?")] == names  # nothing is left behind


# --- no place -----------------------------------------------------------------------------------------------------------------------------
@unix
def test_nothing_can_be_written(cache, tmp_path, calls):
    """The installation, the folder that was asked for, with a cache in it, and what should be a home. There is nowhere to write to."""
    copy_package(tmp_path)
    tried = f"""
for folder in ({str(cache)!r}, {str(tmp_path / "fastops" / "kernels")!r}, {str(tmp_path)!r}):
    try:
        open(os.path.join(folder, "new"), "w")
    except PermissionError:
        print("permission_denied")
"""
    environment = {"NUMBA_CACHE_DIR": cache, "HOME": tmp_path / "home", "XDG_CACHE_HOME": None}
    before = sorted(tmp_path.rglob("*"))
    with unwritable(tmp_path):
        words = run(UNPRIVILEGED + tried + calls.code, "-W", "error", path=tmp_path, timeout=300, **environment)
    assert words[:4] == ["permission_denied"] * 3 + ["True"]
    assert sorted(words[4:]) == calls.made[1:]
    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_without_a_place_for_a_cache(tmp_path):
    """No home, and a cache folder that cannot be made."""
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in SOURCE.rglob("*.py"):
            packed.write(file, file.relative_to(SOURCE.parent))
    blocked = tmp_path / "file"
    blocked.write_text("")
    environment = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "NUMBA_CACHE_DIR"), blocked / "folder")
    words = run(FEW + "print('package.zip' in fastops.__file__)", "-W", "error", path=archive, **environment)
    assert words[0] == words[-1] == "True"
    assert sorted(words[1:-1]) == sorted(f"{name}:False" for name in (ENTRY, "fmod_float64", "remainder_int32"))


# --- all at once --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("processes", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_fill_one_cache_at_once(processes, tmp_path):
    """`python tests/cold_starts.py` does it with eight, more often, and with all operations."""
    assert cold_start(FEW_CALLS, str(tmp_path), processes) == (0, 0, 3)  # wrong, lost, functions
