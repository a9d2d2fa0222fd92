"""What mypy infers of the functions is what `typed.py` says."""

from pathlib import Path

from mypy import api

ROOT = Path(__file__).parent.parent


def test_mypy_infers_the_types_of_typed_py(monkeypatch):
    monkeypatch.chdir(ROOT)
    output, errors, _ = api.run(["--strict", "tests/typed.py"])
    assert "1 source file" in output
    assert [line for line in output.splitlines() if "typed.py" in line] == []  # NumPy's older stubs find faults elsewhere
    assert errors == ""
