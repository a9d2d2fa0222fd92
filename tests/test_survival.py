"""What the long commands do, in short: the fuzzer, and what calls leave behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from in_processes import unix

pytestmark = pytest.mark.usefixtures("kernels")
TESTS = Path(__file__).parent


def output(*command):
    done = subprocess.run([sys.executable, *command], cwd=TESTS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@unix
@pytest.mark.parametrize("examples", [100, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_fuzzer_finds_nothing(seed, examples):
    """On one thread, by two, and while another thread changes the operands. (`python tests/fuzz.py` goes on for 20 minutes.)"""
    assert output("fuzz.py", "--seed", str(seed), "--examples", str(examples)) == f"1 processes of {examples} calls: 0 failed\n"


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_is_left_behind(times):
    """(`python tests/leaks.py` makes 100 000 calls of each form.)"""
    assert output("leaks.py", str(times)).endswith("0 leave something behind\n")


LEAK = """
import sys
import leaks
kept = []
leaks.FORMS = {"kept": lambda: kept.append(leaks.x), "new": lambda: kept.append([])}
leaks.SLOW = {}
leaks.main(1000)
"""


def test_a_leak_is_seen():
    done = subprocess.run([sys.executable, "-c", LEAK], cwd=TESTS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert re.search(r"kept: \d+ blocks, 100\d references", done.stdout)
    assert done.stdout.endswith("2 leave something behind\n")


WILD = """
import fuzz
def wild(*args, **kwargs):
    fuzz.np.ndarray.fill(fuzz.np.lib.stride_tricks.as_strided(args[0], (1 << 20,), (1,)), 0)
fuzz.fastops.scatter_div = wild
fuzz.child(0, 400, sys.argv[1])
"""


@unix
def test_a_write_outside_of_the_arrays_is_seen(tmp_path):
    """It ends the process, and the call has been noted."""
    place = tmp_path / "call"
    done = subprocess.run([sys.executable, "-c", "import sys" + WILD, place], cwd=TESTS, capture_output=True, text=True, timeout=300)
    assert done.returncode < 0
    assert place.read_text().startswith("scatter_div (")
