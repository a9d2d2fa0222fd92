"""`fastops bench`: that a wrong bit is found, that times are compared turn by turn, and the chart."""

from __future__ import annotations

import json
import sys
import types
from importlib.machinery import ModuleSpec
from itertools import accumulate, cycle
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from conftest import DTYPES

import fastops
from fastops import comparison
from fastops.__main__ import main

each_operation = pytest.mark.parametrize("operation", comparison.OPERATIONS)


@each_operation
def test_all_dtypes_give_the_same_bits(operation):
    for dtype in DTYPES:
        for n in (1, 300):
            assert comparison.measure((operation, dtype, n), 0).equal


@each_operation
def test_one_wrong_bit_is_found(operation, monkeypatch):
    name = operation.partition(",")[0]
    function = getattr(fastops, name)

    def wrong(*args):
        result = function(*args)
        result.reshape(-1).view("u1")[-1] ^= 1
        return result

    monkeypatch.setattr(fastops, name, wrong)
    assert not comparison.measure((operation, "float32", 300), 0).equal


def test_times_are_compared_turn_by_turn(monkeypatch):
    """A machine that is slower from turn to turn; the first turn does not count."""
    took = [900, 9, 9, 8, 4, 1, 80, 20, 5, 800, 100, 25]
    looks = [0.0, *(step for seconds in took for step in (1.0, float(seconds)))]
    monkeypatch.setattr(comparison, "perf_counter", accumulate(cycle(looks)).__next__)
    outcome = comparison.measure(("scatter_div, rows of 128", "int8", 1), 0)
    assert (outcome.numpy_seconds, outcome.one_thread_speed_up, outcome.all_threads_speed_up) == (80, 4, 16)


def test_threads_are_as_before(monkeypatch):
    """Also where a call on one thread raises."""
    numba = comparison.compiler.numba()
    before, limits, limit = numba.get_num_threads(), [], numba.set_num_threads

    def fail(*_):
        raise FloatingPointError

    monkeypatch.setattr(numba, "set_num_threads", lambda n: (limits.append(n), limit(n)))
    monkeypatch.setattr(fastops, "mod", fail)
    with pytest.raises(FloatingPointError):
        comparison.measure(("mod, by a scalar", "int8", 10), 0)
    assert (limits, numba.get_num_threads()) == ([before, 1, before], before)


OUTCOMES = [
    comparison.Outcome("mod, by a scalar", "int8", 10, 0.5, 2.0, 8.0, True),
    comparison.Outcome("fmod", "int8", 10, 0.5, 8.0, 2.0, True),
]


def test_the_table():
    *said, _, _, row, other, means, _, verdict = comparison.table(OUTCOMES)
    assert all(promised in " ".join(said) for promised in ("up to 10,000", "from 1 to 100", "given by out="))
    assert row.split()[-6:] == ["int8", "10", "500.000", "2.0x", "8.0x", "yes"]
    assert other.split()[-3:] == ["8.0x", "2.0x", "yes"]
    assert means.split() == ["geometric", "mean", "4.0x", "4.0x"]
    assert verdict == "All 2 results equal NumPy's, bit for bit."
    *_, verdict = comparison.table([OUTCOMES[0], OUTCOMES[1]._replace(equal=False)])
    assert verdict == "DIFFERENT from NumPy's: fmod int8."


def test_the_fields_of_json_have_units(monkeypatch, capsys):
    monkeypatch.setattr(comparison, "run", lambda *_: OUTCOMES)
    assert main(["bench", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["results"][0]
    assert {key: result[key] for key in result if key.endswith(("_seconds", "_speed_up"))} == {
        "numpy_seconds": 0.5, "one_thread_speed_up": 2.0, "all_threads_speed_up": 8.0}  # fmt: skip


def test_the_exit_code_of_a_difference(monkeypatch, capsys):
    monkeypatch.setattr(comparison, "run", lambda *_: [OUTCOMES[0]._replace(equal=False)])
    assert main(["bench"]) == 1
    assert "NO" in capsys.readouterr().out


# --- the chart ----------------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def figure(monkeypatch):
    """Of a matplotlib that only takes notes."""
    package, module, figure = types.ModuleType("matplotlib"), types.ModuleType("matplotlib.figure"), MagicMock()
    package.__spec__, module.Figure = ModuleSpec("matplotlib", None), lambda *_, **__: figure
    monkeypatch.setitem(sys.modules, "matplotlib", package)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    return figure


def test_a_chart_is_drawn(figure, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(comparison, "run", lambda *_: OUTCOMES)
    file = tmp_path / "speed.png"
    assert main(["bench", "--plot", str(file)]) == 0
    figure.savefig.assert_called_once_with(file)
    bars = figure.subplots().barh.call_args_list
    assert [call.args[1] for call in bars] == [(2, 8), (8, 2)]
    capsys.readouterr()


@pytest.mark.parametrize(("file", "said"), [("speed.pdf", "ends in .png"), (str(Path("no", "folder.png")), "there is no folder")])
def test_where_no_chart_can_be(file, said, figure, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["bench", "--plot", file])
    assert said in capsys.readouterr().err


def test_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit, match="2"):
        main(["bench", "--plot", "speed.png"])
    assert "--plot needs the package matplotlib, which is not installed" in capsys.readouterr().err
