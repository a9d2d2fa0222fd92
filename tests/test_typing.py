"""What mypy infers of the functions is what `typed.py` says. (`stubtest`, which takes half a minute, is run by `.ci/run`.)"""

import ast
import inspect
from pathlib import Path

from mypy import api

import fastops

ROOT = Path(__file__).parent.parent
SIGNATURES = Path(fastops.__file__).with_name("signatures.pyi")


def test_mypy_infers_the_types_of_typed_py(monkeypatch):
    monkeypatch.chdir(ROOT)
    output, errors, _ = api.run(["--strict", "tests/typed.py"])
    assert "1 source file" in output
    assert [line for line in output.splitlines() if "typed.py" in line] == []  # NumPy's older stubs find faults elsewhere
    assert errors == ""


def test_type_checkers_know_the_keywords():
    """`stubtest` does not look into `**keywords`."""
    classes = {node.name: node for node in ast.parse(SIGNATURES.read_text()).body if isinstance(node, ast.ClassDef)}

    def keywords(name):
        own = {line.target.id for line in classes[name].body if isinstance(line, ast.AnnAssign)}
        return own.union(*(keywords(base.id) for base in classes[name].bases if base.id in classes))

    for function, name in ((fastops.mod, "_AllModKeywords"), (fastops.fmod, "_AllKeywords")):
        parameters = inspect.signature(function).parameters.values()
        assert keywords(name) == {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
