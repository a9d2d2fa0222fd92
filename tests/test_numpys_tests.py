"""NumPy's own tests end the same way with NumPy patched: the quick part of `numpys_tests.py`, and that it would see a difference."""

from __future__ import annotations

from pathlib import Path

import numpys_tests
import pytest


def test_numpys_tests_end_as_unpatched(tmp_path: Path):
    suite = numpys_tests.SUITES["numpy-quick"]
    unpatched, patched = numpys_tests.run(suite, tmp_path)
    assert numpys_tests.differences(unpatched, patched) == []
    assert set(map(str, unpatched.values())) == {"['passed in call']"}
    for path in suite.paths:
        assert any(test.startswith(f"numpy/{path}") for test in unpatched), f"nothing of {path} was run"


# What a suite may contain, and what is said of it.
USES_FASTOPS = "import fastops, warnings, pytest, os\n"
DIFFERENT = {
    "fails": ("def test(): assert not fastops.is_patched()", "['passed in call'] unpatched, ['failed in call'] patched"),
    "skipped": (
        "def test():\n    if fastops.is_patched(): pytest.skip()",
        "['passed in call'] unpatched, ['skipped in call'] patched",
    ),
    "expected to fail": (
        "def test():\n    if fastops.is_patched(): pytest.xfail()",
        "['passed in call'] unpatched, ['expected to fail, skipped in call'] patched",
    ),
    "warns": (
        "def test():\n    if fastops.is_patched(): warnings.warn('so')",
        "['passed in call'] unpatched, ['passed in call', 'warned: UserWarning: so'] patched",
    ),
    "fails after": (
        "@pytest.fixture\ndef after():\n    yield\n    assert not fastops.is_patched()\ndef test(after): pass",
        "['passed in call'] unpatched, ['passed in call', 'failed in teardown'] patched",
    ),
    "is not there": (
        "def test_(): pass\nif not fastops.is_patched():\n    def test(): pass",
        "['passed in call'] unpatched, not run patched",
    ),
}
INVALID = {
    "unpatches": ("def test(): fastops.unpatch_numpy()", "NumPy should have been in the state"),
    "patches": ("def test(): fastops.patch_numpy()", "NumPy should have been in the state"),
    "ends the process": ("def test(): os._exit(fastops.is_patched())", "not run to the end, exit code 0"),
    "has no tests": ("", "not run to the end, exit code 5"),
    "cannot be collected": ("1 / 0", "not run to the end, exit code 2"),
}


def suite_of(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> numpys_tests.Suite:
    package = folder / "some_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "test_it.py").write_text(USES_FASTOPS + text)
    monkeypatch.syspath_prepend(folder)
    return numpys_tests.Suite("some_package", ("test_it.py",))


@pytest.mark.parametrize(("text", "said"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_difference_is_seen(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    unpatched, patched = numpys_tests.run(suite_of(text, tmp_path, monkeypatch), tmp_path)
    assert numpys_tests.differences(unpatched, patched) == [f"some_package/test_it.py::test: {said}"]


@pytest.mark.parametrize(("text", "said"), INVALID.values(), ids=INVALID)
def test_a_run_that_proves_nothing_is_an_error(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(RuntimeError, match=said):
        numpys_tests.run(suite_of(text, tmp_path, monkeypatch), tmp_path)
