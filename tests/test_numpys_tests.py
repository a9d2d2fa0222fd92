"""NumPy's own tests end the same way with NumPy patched: the quick parts of `numpys_tests.py`, and that it would see a difference."""

from __future__ import annotations

from pathlib import Path

import numpys_tests
import pytest

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.mark.parametrize("name", ["numpy-few", pytest.param("numpy-quick", marks=pytest.mark.slow)])
def test_numpys_tests_end_as_unpatched(name: str, tmp_path: Path):
    suite = numpys_tests.SUITES[name]
    unpatched, patched = numpys_tests.run(suite, tmp_path)
    assert numpys_tests.differences(unpatched, patched) == []
    passed = [test for test, outcome in unpatched.items() if outcome == ["passed in call"]]
    for path in suite.paths:
        assert any(test.startswith(f"numpy/{path}") for test in passed), f"nothing of {path} passed"


# Files that a suite may have, how their test ends without the patch and with it, and what is said of suites that prove nothing.
USES = "import os, warnings, fastops, pytest\n"
DIFFERENT = {
    "fails": ("def test(): assert not fastops.is_patched()", "['passed in call']", "['failed in call']"),
    "skips": ("def test():\n    if fastops.is_patched(): pytest.skip()", "['passed in call']", "['skipped in call']"),
    "xfails": ("def test():\n    if fastops.is_patched(): pytest.xfail()", "['passed in call']", "['expected to fail, skipped in call']"),
    "warns": (
        "def test():\n    if fastops.is_patched(): warnings.warn('so')",
        "['passed in call']",
        "['passed in call', 'warned: UserWarning: so']",
    ),
    "fails_afterwards": (
        "@pytest.fixture\ndef after():\n    yield\n    assert not fastops.is_patched()\ndef test(after): pass",
        "['passed in call']",
        "['passed in call', 'failed in teardown']",
    ),
    "is_not_there": ("def test_it(): pass\nif not fastops.is_patched():\n    def test(): pass", "['passed in call']", "not run"),
}
EQUAL = {
    "passes": "def test(): pass",
    "fails_anyway": "def test(): assert False",
    "skips_anyway": "@pytest.mark.skip\ndef test(): pass",
}
PROVES_NOTHING = {
    "unpatches": ("def test(): fastops.unpatch_numpy()", "NumPy should have been in the state"),
    "patches": ("def test(): fastops.patch_numpy()", "NumPy should have been in the state"),
    "ends_the_process": ("def test(): os._exit(fastops.is_patched())", "not run to the end, exit code 0"),
    "is_empty": ("", "not run to the end, exit code 5"),
    "cannot_be_collected": ("1 / 0", "not run to the end, exit code 2"),
}


QUICK = {"unpatches", "ends_the_process"}
CASES = [pytest.param(name, *case, marks=[] if name in QUICK else pytest.mark.slow) for name, case in PROVES_NOTHING.items()]


def suite_of(files: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> numpys_tests.Suite:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    for name, text in files.items():
        (folder / "package" / f"test_{name}.py").write_text(USES + text)
    monkeypatch.syspath_prepend(folder)
    return numpys_tests.Suite("package", tuple(f"test_{name}.py" for name in files))


def test_differences_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = EQUAL | {name: text for name, (text, _, _) in DIFFERENT.items()}
    unpatched, patched = numpys_tests.run(suite_of(files, tmp_path, monkeypatch), tmp_path)
    assert numpys_tests.differences(unpatched, patched) == sorted(
        f"package/test_{name}.py::test: {before} unpatched, {after} patched" for name, (_, before, after) in DIFFERENT.items()
    )
    assert len(unpatched) == len(files) + 1


@pytest.mark.parametrize(("name", "text", "said"), CASES, ids=PROVES_NOTHING)
def test_a_run_that_proves_nothing_is_an_error(name: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(RuntimeError, match=said):
        numpys_tests.run(suite_of({name: text}, tmp_path, monkeypatch), tmp_path)
