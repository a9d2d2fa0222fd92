"""The command line, as people run it, in processes of their own; or in this one, where that makes no difference."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastops
from fastops import __main__, comparison, info, jobs, ufuncs
from fastops.__main__ import main

pytestmark = pytest.mark.usefixtures("kernels")
QUICK = ("--size", "0.002")
RUN = "import sys; from fastops.__main__ import main; sys.exit(main(sys.argv[1:]))"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python with warnings as errors; a command that begins with `-` is Python's own."""
    command = command if command[0] in ("-c", "-m") else ("-m", "fastops", *command)
    environment = {**os.environ, "COLUMNS": "150", **environment}
    return subprocess.run([sys.executable, "-W", "error", *command], capture_output=True, text=True, timeout=300, env=environment)


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """As `run`, in this process."""

    def run_here(*command: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", [__main__.__file__, *command])
        code = main()
        return subprocess.CompletedProcess(command, code, *capsys.readouterr())

    return run_here


def rows_of_jobs(output: str) -> dict[str, str]:
    """The row of each job in the table, less its name."""
    lines = output.splitlines()
    return {job.name: line.removeprefix(job.name).strip() for job in jobs.JOBS for line in lines if line.startswith(job.name)}


# --- the jobs -----------------------------------------------------------------------------------------------------------------------------
def test_jobs_are_equal_and_say_so():
    done = run(*QUICK)
    assert done.returncode == 0, done.stderr
    rows = rows_of_jobs(done.stdout)
    assert list(rows) == [job.name for job in jobs.JOBS]
    for row in rows.values():
        assert re.fullmatch(r"[\d,]+ +\d+\.\d\d +\d+\.\d\d +\d+\.\dx  yes", row)
    assert f"All {len(rows)} results equal NumPy's, bit for bit." in done.stdout
    machine = done.stdout.splitlines()[-1]
    for promised in (info.processor_name(), "Python ", f"NumPy {np.__version__}", "Numba ", "fastops ", " thread"):
        assert promised in machine
    assert "\x1b" not in done.stdout
    assert "compiling" in done.stderr
    assert "running the jobs" in done.stderr
    assert "running the jobs" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "size"),
    [("", 1), ("jobs", 1), ("--size 0.5", 0.5), ("jobs --size 0.5", 0.5), ("--size 0.5 jobs", 0.5), ("--size 0.5 jobs --size 3", 3)],
)
def test_the_jobs_have_a_name(arguments: str, size: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    outcomes = {job.name: jobs.Outcome(3.0, 1.0, True) for job in jobs.JOBS}
    monkeypatch.setattr(jobs, "run", {size: outcomes}.__getitem__)
    assert main(arguments.split()) == 0
    assert list(rows_of_jobs(capsys.readouterr().out)) == list(outcomes)


def faulty(job: jobs.Job) -> jobs.Job:
    def wrong(library: Any, *operands: Any) -> Any:
        results = job.run(library, *operands)
        if library is fastops:
            results[-1].reshape(-1).view("u1")[0] ^= 1
        return results

    return job._replace(run=wrong)


@pytest.fixture
def two_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "JOBS", [*jobs.JOBS[:3], *map(faulty, jobs.JOBS[3:5]), *jobs.JOBS[5:]])


@pytest.mark.usefixtures("two_faults")
def test_exit_code_of_a_wrong_result(run_here: Run):
    done = run_here(*QUICK)
    assert done.returncode == 1, done.stderr
    verdicts = [row.split()[-1] for row in rows_of_jobs(done.stdout).values()]
    assert verdicts == ["yes"] * 3 + ["NO"] * 2 + ["yes"] * (len(jobs.JOBS) - 5)
    assert f"DIFFERENT from NumPy's: {jobs.JOBS[3].name}; {jobs.JOBS[4].name}." in done.stdout
    assert "results equal NumPy's" not in done.stdout


@pytest.mark.parametrize("job", jobs.JOBS, ids=[job.name for job in jobs.JOBS])
def test_one_wrong_bit_is_found(job: jobs.Job):
    size = 1_000 / job.elements
    assert jobs.measure(job, size).equal
    assert not jobs.measure(faulty(job), size).equal


def test_without_tqdm():
    done = run("-c", "import sys; sys.modules['tqdm'] = None\n" + RUN, *QUICK)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"compiling: \d+ …\nrunning the jobs: \d+ …\n", done.stderr)


def test_without_ml_dtypes():
    done = run("-c", "import sys; sys.modules['ml_dtypes'] = None\n" + RUN, *QUICK)
    assert done.returncode == 0, done.stderr
    assert rows_of_jobs(done.stdout)["activations by fmod, bfloat16"] == "not run: ml_dtypes is not installed"
    assert f"All {len(jobs.JOBS) - 1} results equal" in done.stdout


def test_without_numba():
    done = run("-c", "import sys, warnings; warnings.simplefilter('default'); sys.modules['numba'] = None\n" + RUN, *QUICK)
    assert done.returncode == 0, done.stderr
    assert "NO NUMBA, fastops runs NumPy's own loops (ModuleNotFoundError" in done.stdout
    assert f"All {len(jobs.JOBS)} results equal" in done.stdout


def test_comparison_is_of_bits():
    zeros = np.zeros(3, "f4")
    nans = np.array([0x7FC00000, 0x7FC00001], "u4").view("f4")
    assert jobs.same_bits((zeros, nans), (zeros.copy(), nans.copy()))
    assert not jobs.same_bits((zeros,), (-zeros,))
    assert not jobs.same_bits((nans,), (nans[::-1],))
    assert not jobs.same_bits((zeros,), (zeros.astype("f8"),))
    assert not jobs.same_bits((zeros,), (zeros.view("i4"),))
    assert not jobs.same_bits((zeros,), (zeros[:1],))
    assert not jobs.same_bits((zeros,), (zeros, zeros))


# --- info ---------------------------------------------------------------------------------------------------------------------------------
def test_info_shows_what_it_promises():
    done = run("info")
    assert done.returncode == 0, done.stderr
    for promised in (
        r"^fastops +\d",
        rf"^python +{re.escape(sys.version.split()[0])}",
        rf"^numpy +{re.escape(np.__version__)}$",
        *(rf"^{package} +(\d|not installed)" for package in info.PACKAGES),
        r"^processor +\S.*; Numba compiles for \S+$",
        r"^ +fused multiply-add: (used|not there)$",
        r"^ +half-precision conversions: (used|not there)$",
        r"^ +64-bit integers to double precision in SIMD lanes: (used|not there)$",
        r"^threads +up to \d+, by the layer (tbb|omp|workqueue)$",
        r"^ +processors that this process may run on: \d+$",
        r"^ +quota of its control group: (none|\d+)$",
        r"^ +Numba's own limit: \d+$",
        r"^cache +\S.* \((beside the sources|NUMBA_CACHE_DIR|the user's)\)$",
        r"^ +\d+ files, \d+\.\d MB; of these sources, versions and processor: \d+ files, \d+\.\d MB$",
        r"^loops +compiled, in the cache:",
        r"^ +compiled, in this process: none$",
    ):
        assert re.search(promised, done.stdout, re.MULTILINE), promised


def test_info_lists_what_the_cache_holds(tmp_path: Path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    compile_two = "import numpy as np, fastops; fastops.fmod.loop(np.dtype('u1')); fastops.fmod.loop(np.dtype('i2'))\n"
    before = run("info", **cache).stdout
    during = run("-c", compile_two + RUN, "info", **cache).stdout
    after = run("info", **cache).stdout
    assert "compiled, in the cache: none" in before
    for output in (before, during, after):
        assert re.search(rf"^cache +{re.escape(str(tmp_path))}.* \(NUMBA_CACHE_DIR\)$", output, re.MULTILINE)
    listed = re.compile(r"in the cache:\n +fmod: uint8 int16\n +compiled, in this process:(.*(?:\n .*)?)")
    assert listed.search(during).group(1).split() == ["fmod:", "uint8", "int16"]
    assert listed.search(after).group(1).split() == ["none"]
    assert "4 files, " in after


def test_info_ignores_what_another_version_cached(tmp_path: Path):
    stamp, tag = info.compiler.stamp(), f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    for name in (
        f"loops.fmod_int8_{stamp}-29.{tag}.nbi",
        f"loops.fmod_int16_{'0' * 16}-29.{tag}.nbi",
        f"loops.fmod_int32_{stamp}-29.py27.nbi",
        f"loops.fmod_int64_{stamp}-29.{tag}.1.nbc",
        "unrelated.nbi",
    ):
        (tmp_path / name).touch()
    assert info.cached(tmp_path) == ["fmod_int8"]


def test_info_without_a_place_for_the_cache(monkeypatch: pytest.MonkeyPatch):
    def no_place(function: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("numba.core.caching.FunctionCache", no_place)
    text = "\n".join(info.lines())
    assert "every process compiles anew" in text
    assert "compiled, in the cache: none" in text


def test_info_without_numba():
    done = run("-c", "import sys; sys.modules['numba'] = None\n" + RUN, "info")
    assert done.returncode == 0, done.stderr
    assert "NOT AVAILABLE, fastops runs NumPy's own loops: ModuleNotFoundError" in done.stdout
    assert info.processor_name() in done.stdout


# --- warmup -------------------------------------------------------------------------------------------------------------------------------
def functions(output: str) -> tuple[int, int, int]:
    """How many functions were made, compiled and loaded, by the output."""
    found = re.search(r"^(\d+) functions in \d+\.\d s: (\d+) compiled, (\d+) loaded from the cache\.$", output, re.MULTILINE)
    assert found, output
    return int(found[1]), int(found[2]), int(found[3])


# Functions that are no part: the native entries of small calls, what the driver consists of beside the parallel one, and what all kernels
# of scatter_div share, one of them only on several threads.
BESIDE = 2 + 5 + 2


@pytest.mark.slow
def test_warmup_compiles_once(tmp_path: Path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    made = len(ufuncs.parts("u1", "u2")) + BESIDE
    first, second, third = (run("warmup", *dtypes, **cache) for dtypes in (["uint8"], ["uint8", "uint16"], ["uint16", "uint8"]))
    before = len(ufuncs.parts("u1")) + BESIDE
    assert [functions(done.stdout) for done in (first, second, third)] == [
        (before, before, 0),
        (made, made - before, before),
        (made, 0, made),
    ]
    assert f"The cache: {tmp_path}" in first.stdout
    assert "(NUMBA_CACHE_DIR)" in first.stdout
    for done in (first, second, third):
        assert done.returncode == 0
        assert "compiling" in done.stderr
        assert "\x1b" not in done.stdout


def test_warmup_makes_everything():
    done = run("warmup")
    assert done.returncode == 0, done.stderr
    made, compiled, loaded = functions(done.stdout)
    assert made == len(ufuncs.parts()) + BESIDE == compiled + loaded


def test_warmup_without_tqdm():
    done = run("-c", "import sys; sys.modules['tqdm'] = None\n" + RUN, "warmup", "uint8")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"compiling: {len(ufuncs.parts('u1'))} …\n"


def test_warmup_without_ml_dtypes():
    without = "import sys; sys.modules['ml_dtypes'] = None\n" + RUN
    done = run("-c", without, "warmup")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bfloat16 is left out, since ml_dtypes is not installed.\n")
    assert functions(done.stdout)[0] == len(ufuncs.parts()) - len(ufuncs.parts("bfloat16")) + 1 + BESIDE
    done = run("-c", without, "warmup", "uint8", "bfloat16")
    assert done.returncode == 2
    assert done.stderr.endswith("error: bfloat16 needs the package ml_dtypes, which is not installed\n")


def test_warmup_without_numba():
    done = run("-c", "import sys; sys.modules['numba'] = None\n" + RUN, "warmup")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"Nothing was compiled, since Numba cannot be used here: ModuleNotFoundError: .*\n", done.stderr)


@pytest.mark.parametrize(
    ("broken", "made"),
    [
        ("from fastops.engine import compiler; compiler.c_function = None", 0),
        ("from fastops.kernels import scatter_bindings; scatter_bindings.names = None", len(ufuncs.parts("u1")) - 1 + BESIDE - 1),
    ],
)
def test_warmup_that_stops_half_way(broken: str, made: int):
    """At the first thing that is compiled, or at the last before the last entry."""
    broken = f"import warnings; warnings.simplefilter('default'); {broken}\n"
    done = run("-c", broken + RUN, "warmup", "uint8")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "fastops runs NumPy's own loops, for Numba cannot be used here: TypeError" in done.stderr
    assert functions(done.stdout)[0] == made


@pytest.mark.parametrize("dtype", ["nonsense", "complex64", "bool", "float32,int64"])
def test_warmup_of_a_dtype_without_a_loop(dtype: str):
    done = run("warmup", "int8", dtype)
    assert (done.returncode, done.stdout) == (2, "")
    *_, message = done.stderr.splitlines()
    assert message.startswith("python -m fastops warmup: error: ")
    assert message.endswith(f"(choose from {', '.join(info.DTYPES)})")


# --- run ----------------------------------------------------------------------------------------------------------------------------------
PROGRAMS: dict[str, tuple[str, str]] = {  # the text of a program, and the arguments it is given
    "what a program sees of itself": (
        "import sys\\nprint(__name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, sys.path[0])\\n"
        "print(sys.modules['__main__'].A)\\n1 / 0",
        "a b",
    ),
    "options, input, warnings, and an exit code of its own": (
        "import atexit, inspect, pickle, sys, warnings\n"
        "if __name__ == '__main__': print('main', sys.argv)\n"
        "print(input()[::-1], sys.stdin.read())\n"
        "atexit.register(lambda: print('at exit', __name__, A))\n"
        "warnings.warn('so')\n"
        "class B: pass\n"
        "print(type(pickle.loads(pickle.dumps(B()))) is B)\n"
        "def f(): pass\n"
        "print(inspect.getsource(f))\n"
        "sys.exit(7)",
        "--help -h --size 3 -m module run -- -",
    ),
    "exit with a message": ("raise SystemExit('so')", ""),
    "exit without a code": ("import sys; sys.exit()", ""),
    "traceback with a cause": (
        "def divide(x):\n    return x / 0\n\n"
        "try:\n    divide(1)\nexcept ZeroDivisionError as error:\n    raise ValueError('so') from error",
        "",
    ),
    "syntax error": ("x = (", ""),
    "interrupt": ("raise KeyboardInterrupt", ""),
    "hook of its own": (
        "import sys, traceback\nsys.excepthook = lambda kind, error, trace: print(kind, error, len(traceback.extract_tb(trace)))\n[][1]",
        "",
    ),
    "spawned process": (
        "import multiprocessing\n"
        "def f(x): return x + 1, __name__\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(f, [1]))",
        "",
    ),
}
PLACES = {  # a file, and how Python is told to run it
    "script": ("program.py", "program.py"),
    "script in a folder": ("folder/program.py", "folder/program.py"),
    "folder": ("folder/__main__.py", "folder"),
    "module": ("program.py", "-m program"),
    "package": ("package/__main__.py", "-m package"),
    "module of a package": ("package/program.py", "-m package.program"),
}


def run_both(folder: Path, *command: str) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """A program by Python, and by `python -m fastops run`."""
    environment = {**os.environ, "PYTHONPATH": str(Path(fastops.__file__).parents[1])}
    options: dict[str, Any] = {"cwd": folder, "env": environment, "input": "first\nsecond\n", "text": True, "timeout": 300}
    plain = subprocess.run([sys.executable, *command], capture_output=True, **options)
    patched = subprocess.run([sys.executable, "-m", "fastops", "run", *command], capture_output=True, **options)
    return plain, patched


@pytest.mark.parametrize(
    ("program", "place"),
    [*((program, "script") for program in PROGRAMS), *(("what a program sees of itself", place) for place in list(PLACES)[1:])],
)
def test_run_as_python_does(program: str, place: str, tmp_path: Path):
    text, arguments = PROGRAMS[program]
    file, command = PLACES[place]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(f"A = 1\n{text}\n")
    plain, patched = run_both(tmp_path, *command.split(), *arguments.split())
    assert (patched.returncode, patched.stdout) == (plain.returncode, plain.stdout)
    assert patched.stderr == re.sub(r'  File "<frozen runpy>", line \d+, in \w+\n', "", plain.stderr)


def test_run_patches_the_program_and_its_forks(tmp_path: Path):
    """But no process that is started otherwise."""
    (tmp_path / "program.py").write_text(
        "import fastops, multiprocessing\n"
        "def f(x): return fastops.is_patched()\n"
        "if __name__ == '__main__':\n"
        "    print('program', fastops.is_patched())\n"
        "    for method in multiprocessing.get_all_start_methods():\n"
        "        with multiprocessing.get_context(method).Pool(1) as pool: print(method, *pool.map(f, [0]))\n"
    )
    plain, patched = run_both(tmp_path, "program.py")
    methods = multiprocessing.get_all_start_methods()
    assert plain.stdout.splitlines() == [f"{place} False" for place in ("program", *methods)], plain.stderr
    assert patched.stdout.splitlines() == [f"{place} {place in ('program', 'fork')}" for place in ("program", *methods)], patched.stderr
    assert patched.stderr == ""


PANDAS = """
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
rows = 50_000
frame = pd.DataFrame({
    "user": rng.integers(-(10**6), 10**6, rows, np.int32),
    "bucket": rng.integers(0, 60, rows, np.int32),
    "stamp": rng.integers(0, 2**62, rows),
    "code": rng.integers(0, 255, rows, np.uint8),
    "angle": rng.normal(0, 1000, rows),
    "step": rng.normal(0, 3, rows).astype(np.float32),
    "half": rng.normal(0, 3, rows).astype(np.float16),
})
frame.loc[::1000, "angle"] = np.nan
results = pd.DataFrame({
    "array by array": frame.user % frame.bucket,
    "by a scalar": frame.user % 7,
    "reversed": 1_000_003 % frame.bucket,
    "hour": frame.stamp % 86_400 // 3_600,
    "small": frame.code % np.uint8(10),
    "turns": frame.angle % 360,
    "by another column": frame.angle % frame.step,
    "fmod": np.fmod(frame.angle, 360),
    "fmod by a column": np.fmod(frame.user, frame.bucket + 1),
    "single": np.fmod(frame.step, np.float32(0.25)),
    "half": frame.half % np.float16(0.5),
    "method": frame.angle.mod(frame.bucket, fill_value=1),
})
frame["user"] %= 24
print(results.dtypes, results.describe(), results.groupby(frame.user).sum(), sep="\\n")
print(pd.util.hash_pandas_object(results.astype("f8")).sum(), results.tail(20).to_csv())
print((frame[["user", "code"]] % 5).value_counts(), divmod(frame.angle, 360)[1].sum(), frame.half.astype("f4") % 3)
"""


def test_run_an_unchanged_program_of_pandas(tmp_path: Path):
    (tmp_path / "program.py").write_text(PANDAS)
    plain, patched = run_both(tmp_path, "program.py")
    assert plain.returncode == 0, plain.stderr
    assert (patched.returncode, patched.stdout, patched.stderr) == (0, plain.stdout, plain.stderr)


NOT_THERE = {  # what is asked for, the exit code, and what is said
    "nothing.py": (2, r"can't open file '.*nothing\.py': \[Errno \d+\] .+"),
    "-m nothing": (1, "No module named 'nothing', or it is a package without a '__main__'"),
    "-m nothing.more": (1, "No module named 'nothing.more', or it is a package without a '__main__'"),
    "-m json.decoder.more": (1, r"No module named 'json\.decoder\.more', or it is a package without a '__main__'"),
    "-m email": (1, "No module named 'email', or it is a package without a '__main__'"),
    "-m sys": (1, "there is no code in 'sys'"),
    "-m .x": (1, "relative module names are not supported"),
    "-m __main__": (1, "there is no module specification of '__main__'"),
    ".": (1, r"can't find '__main__' module in '.*'"),
}
RUN_EACH = """
import sys
from fastops.__main__ import main
for arguments in sys.argv[1:]:
    try:
        code = main(["run", *arguments.split()])
    except SystemExit as error:
        code = error.code
    print(code)
"""


def test_run_what_is_not_there(tmp_path: Path):
    """One process looks for all of it."""
    environment = {**os.environ, "PYTHONPATH": str(Path(fastops.__file__).parents[1])}
    command = [sys.executable, "-W", "error", "-c", RUN_EACH, *NOT_THERE]
    patched = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert patched.stdout.split() == [str(code) for code, _ in NOT_THERE.values()], patched.stderr
    for line, (arguments, (code, said)) in zip(patched.stderr.splitlines(), NOT_THERE.items(), strict=True):
        assert re.fullmatch(f"python -m fastops run: {said}", line)
        plain = subprocess.run([sys.executable, *arguments.split()], cwd=tmp_path, env=environment, capture_output=True, timeout=300)
        assert plain.returncode == code


def test_run_without_numba(tmp_path: Path):
    done = run("-c", "import sys; sys.modules['numba'] = None\n" + RUN, "run", str(tmp_path / "nothing.py"))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch("python -m fastops run: fastops cannot patch NumPy: ModuleNotFoundError: .*\n", done.stderr)


def test_run_a_package_that_cannot_be_imported(tmp_path: Path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import nothing")
    _, patched = run_both(tmp_path, "-m", "package")
    assert patched.returncode == 1
    assert patched.stderr.endswith("    import nothing\nModuleNotFoundError: No module named 'nothing'\n")


# --- for programs ----------------------------------------------------------------------------------------------------------------------
JSON = {  # commands, and what their object must have
    f"--json {' '.join(QUICK)}": {"machine", "jobs", "equal"},
    f"jobs --json {' '.join(QUICK)}": {"machine", "jobs", "equal"},
    "info --json": {
        "fastops",
        "python",
        "platform",
        "packages",
        "processor",
        "features",
        "threads",
        "cache",
        "cached",
        "compiled",
        "problem",
    },
    "--json info": {"fastops"},
    "warmup --json uint8": {"functions", "compiled", "loaded", "seconds", "left_out", "cache"},
    "bench --json uint8 --sizes 100": {"machine", "results", "equal"},
    "explain --json mod uint8[10] 7": {"call", "elements", "dtype", "first", "later"},
}


@pytest.mark.parametrize("arguments", JSON)
def test_one_json_object(arguments: str, run_here: Run):
    done = run_here(*arguments.split())
    assert done.returncode == 0, done.stderr
    assert JSON[arguments] <= set(json.loads(done.stdout))
    assert not set(done.stdout + done.stderr) & set("\r\x1b")


@pytest.mark.usefixtures("two_faults")
def test_json_of_a_wrong_result(run_here: Run):
    done = run_here("--json", *QUICK)
    told = json.loads(done.stdout)
    assert (done.returncode, told["equal"]) == (1, False)
    assert [job["job"] for job in told["jobs"] if not job["equal"]] == [job.name for job in jobs.JOBS[3:5]]
    assert all(job["numpy_seconds"] > 0 and job["fastops_seconds"] > 0 for job in told["jobs"])


@pytest.mark.parametrize("command", ["warmup", "bench"])
def test_json_without_numba(command: str):
    done = run("-c", "import sys; sys.modules['numba'] = None\n" + RUN, command, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"].endswith("'numba'") or "numba" in json.loads(done.stdout)["error"]


def test_explain_without_numba():
    code = "import sys, warnings; warnings.simplefilter('default'); sys.modules['numba'] = None\n"
    for call in (("mod", "float32[100000]", "7"), ("scatter_div", "float32[9]", "int64[20000]", "float32[20000]")):
        done = run("-c", code + RUN, "explain", "--json", *call)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["first"] == told["later"]
        assert told["first"]["way"] == "NumPy"
        assert "Numba cannot be used here" in told["first"]["why"][0]


# --- where the output goes ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["info", "explain mod int8[3] 7"])
def test_nobody_reads_on(command: str):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fastops", *command.split()], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_closed_output(stream: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Python has None for it then."""
    monkeypatch.setattr(sys, stream, None)
    assert main(["info"]) == 0
    assert list(jobs.progress("abc", "counting", 3)) == ["a", "b", "c"]
    assert ("fastops" in capsys.readouterr().out) == (stream == "stderr")


def test_interrupt():
    interrupted = "import signal\nfrom fastops import jobs\njobs.run = lambda size: signal.raise_signal(signal.SIGINT)\n"
    done = run("-c", interrupted + RUN)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_bars_are_for_terminals(is_terminal: bool, monkeypatch: pytest.MonkeyPatch):
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    monkeypatch.setattr(sys, "stderr", Stream())
    assert list(jobs.progress("abc", "counting", 3)) == ["a", "b", "c"]
    assert ("\r" in sys.stderr.getvalue()) == is_terminal
    assert (sys.stderr.getvalue() == "counting: 3 …\n") == (not is_terminal)


# --- usage --------------------------------------------------------------------------------------------------------------------------------
AS_SCRIPT = "import sys; sys.argv[0] = {!r}; from fastops.__main__ import main; sys.exit(main())"


@pytest.mark.parametrize("path", ["/usr/bin/fastops", "fastops.exe"])
def test_console_script(path: str, tmp_path: Path):
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert EntryPoint("fastops", project["scripts"]["fastops"], "console_scripts").load() is main
    for arguments, said in (
        (["info", "--nonsense"], "usage: fastops "),
        (["explain", "mod"], "usage: fastops explain "),
        (["run", str(tmp_path / "nothing.py")], "fastops run: can't open file"),
    ):
        done = run("-c", AS_SCRIPT.format(path), *arguments)
        assert (done.returncode, done.stderr[: len(said)]) == (2, said)
    assert "\n  fastops info  " in run("-c", AS_SCRIPT.format(path), "--help").stdout


def test_console_script_runs_a_module_that_lies_here(tmp_path: Path):
    """And not beside the script."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "fastops").write_text("from fastops.__main__ import main\nimport sys\nsys.exit(main())")
    (tmp_path / "program.py").write_text("print('here')")
    environment = {**os.environ, "PYTHONPATH": str(Path(fastops.__file__).parents[1])}
    command = [sys.executable, str(tmp_path / "bin" / "fastops"), "run", "-m", "program"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "here\n", "")


@pytest.mark.parametrize(
    "arguments",
    ["nonsense", "info more", "int8", "warmup --size 1", "--nonsense", "--size",
     "--size 0", "--size -1", "--size nan", "--size inf", "--size big", "info --size 1", "--size 1 info", "jobs more", "jobs --size 0",
     "run", "run -m", "run --nonsense", "run -m -m", "--size 1 run x", "--json run x",
     "bench int8,int16", "bench --sizes 0", "bench --sizes many", "bench --plot speed.pdf", "bench --plot /nowhere/at/all.png",
     "explain", "explain mod", "explain nonsense int8[3] 7", "explain mod int8[3] int8[4]", "explain mod int8[3] 7 7",
     "explain mod int8[3] 7 --out x3", "explain mod int8[3] x1"],
)  # fmt: skip
def test_wrong_usage(arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", [__main__.__file__])
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    said = capsys.readouterr()
    assert said.err.startswith("usage: python -m fastops")
    assert said.out == ""


def test_wrong_usage_ends_the_process():
    done = run("nonsense")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "examples"),
    [
        ("--help", ["", " --size 0.05", " info", " COMMAND --help"]),
        ("-h", [""]),
        ("jobs --help", [" jobs", " jobs --size 0.05", " jobs --json"]),
        ("info --help", [" info --json"]),
        ("warmup --help", [" warmup float32 int64"]),
        ("bench --help", [" bench uint8 --sizes 1000,1000000", " bench --plot speed.png"]),
        ("explain --help", [" explain mod 'float32[1000,1000]' float32"]),
    ],
)
def test_help_has_examples(arguments: str, examples: list[str]):
    done = run(*arguments.split())
    assert done.returncode == 0
    for promised in (*(f"\n  python -m fastops{example}  " for example in examples), "\nexit codes:\n  0 "):
        assert promised in done.stdout


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_of_run(option: str, capsys: pytest.CaptureFixture[str]):
    """Whose exit codes are others."""
    with pytest.raises(SystemExit, match="0"):
        main(["run", option])
    said = capsys.readouterr().out
    assert "Python's (2: no such file, 1: no such module)" in said
    assert "exit codes:" not in said
    assert all(f" run {example} -x 3  " in said for example in ("script.py", "-m module"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--size x", "F is a positive number, got 'x'"),
        ("--size 0", "F is a positive number, got '0'"),
        ("bench --sizes 0", "sizes are positive integers, separated by commas, got '0'"),
        ("bench --sizes 5,many", "sizes are positive integers, separated by commas, got '5,many'"),
        ("--size 1e12", "--size 1e+12 takes more memory than there is: arrays of 2.6e+19 elements"),
        ("--size 1e308", "--size 1e+308 takes more memory than there is"),
        ("bench int8 --sizes 5,9999999999999999999", "--sizes 5,9999999999999999999 takes more memory than there is"),
    ],
)
def test_what_wrong_usage_says(arguments: str, said: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "module"), [("--size 7", jobs), ("bench --sizes 700", comparison)])
def test_what_needs_too_much_memory(arguments: str, module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def fail(*_: Any) -> None:
        raise MemoryError("Unable to allocate 90.9 TiB")

    monkeypatch.setattr(module, "run", fail)
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    assert f"{arguments.removeprefix('bench ')} takes more memory than there is: Unable to allocate 90.9 TiB" in capsys.readouterr().err


def test_the_examples_of_explain(run_here: Run):
    for line in __main__.EXAMPLES["explain"].splitlines():
        if line.startswith("  {prog} "):
            done = run_here(*shlex.split(line.removeprefix("  {prog} ").partition("  ")[0]))
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("call        fastops.")
