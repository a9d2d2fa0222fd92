"""`fastops explain` tells what happens: for each call of a table, what it says is compared with what the call then does."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import BFLOAT16, DTYPES
from scatter_oracle import load_kernels

import fastops
from fastops import explaining, info, real_ufuncs, scatter, scatter_compiled, ufuncs
from fastops.engine import driving, threads
from fastops.explaining import explain
from fastops.operand_texts import Wrong, operand
from fastops.rehearsal import DRIVER, KERNEL, NATIVE, NUMPY, UFUNC

# --- operands -----------------------------------------------------------------------------------------------------------------------------
OPERANDS = {  # texts, and the arrays that they are like
    "float32[10,20]": np.zeros((10, 20), "f4"),
    "int64[7]": np.zeros(7, "i8"),
    "uint8[]": np.zeros((), "u1"),
    "i2[0,3]": np.zeros((0, 3), "i2"),
    ">f8[5]": np.zeros(5, ">f8"),
    "bfloat16[2]": np.zeros(2, BFLOAT16),
    "float32[10,20].T": np.zeros((10, 20), "f4").T,
    "int8[100][::2]": np.zeros(100, "i1")[::2],
    "int8[100][5:50:3]": np.zeros(100, "i1")[5:50:3],
    "int32[10, 20][::-1, 3]": np.zeros((10, 20), "i4")[::-1, 3],
    "int32[10,20][...,:5].T[None]": np.zeros((10, 20), "i4")[..., :5].T[None],
}


@pytest.mark.parametrize("text", OPERANDS)
def test_an_operand_is_written_as_numpy_has_it(text):
    x, want = operand(text), OPERANDS[text]
    assert (x.dtype, x.shape, x.strides) == (want.dtype, want.shape, want.strides)


@pytest.mark.parametrize(
    ("text", "want"), [("7", 7), ("-3", -3), ("2.5", 2.5), ("float32", np.float32(1)), ("bfloat16", BFLOAT16.type(1)), ("int8", np.int8(1))]
)
def test_a_scalar(text, want):
    assert (type(operand(text)), operand(text)) == (type(want), want)


WRONG = {  # calls that are none, and what must be said of them
    "no dtype": (("mod", "float33[10]", "7"), "float33"),
    "no shape": (("mod", "int8[a]", "7"), "'int8[a]' is no operand such as"),
    "no bracket": (("mod", "int8[3", "7"), "'int8[3' is no operand such as"),
    "nothing": (("mod", "", "7"), "'' is no operand such as"),
    "slices of a scalar": (("mod", "int8.T", "7"), "'int8.T' is no operand such as"),
    "no slice": (("mod", "int8[3][x]", "7"), "'int8[3][x]': "),
    "index beyond": (("mod", "int8[3][5]", "7"), "'int8[3][5]': index 5 is out of bounds"),
    "shapes": (("mod", "int8[3]", "int8[4]"), "broadcast"),
    "index of an element": (("mod", "object[5][0].T", "7"), "'object[5][0].T': 'int' object has no attribute 'T'"),
    "unknown": (("mod", "foo", "7"), f"'foo' is no dtype, such as {', '.join(info.DTYPES)}"),
    "no loop": (("mod", "complex64[3]", "7"), "there is no remainder of complex64 and int; fastops has loops for int8, "),
    "no loop, two arrays": (("fmod", "M8[3]", "int8[3]"), "there is no fmod of datetime64 and int8; fastops has loops for int8, "),
    "integer beyond": (("mod", "int8[3]", "300"), "the integer 300 is out of bounds for int8, which has -128 to 127"),
    "integer below": (("mod", "-1", "uint8[3]"), "the integer -1 is out of bounds for uint8, which has 0 to 255"),
    "integer beyond int64": (("mod", "7", "9" * 26), "is out of bounds for int64, which has -9223372036854775808 to 9223372036854775807"),
    "integer beyond floats": (("mod", "float16[3]", "9" * 400), "is out of bounds for float16"),
    "index of scatter_div": (("scatter_div", "float32[5]", "99", "1.0"), "indices is 99, outside of the valid range [0, 5)"),
    "negative index": (("scatter_div", "float32[5]", "-1", "1.0"), "indices is -1, outside of the valid range [0, 5)"),
    "no rows": (("scatter_div", "float32[0,5]", "int64[2]", "float32[2,5]"), "input_x has no rows that indices could name"),
    "by zero": (("scatter_div", "int8[5]", "3", "0"), "int8 is to be divided by zero"),
    "one operand": (("fmod", "int8[3]"), "fmod takes two operands"),
    "two operands": (("scatter_div", "int8[3]", "int64[3]"), "scatter_div takes input_x, indices and updates"),
    "shapes of scatter_div": (("scatter_div", "int8[3]", "int64[3]", "int8[4]"), "updates must have shape"),
    "dtypes of scatter_div": (("scatter_div", "int8[3]", "int64[3]", "float32[3]"), "do not convert to int8"),
    "too much memory": (("mod", "float64[1000000000,1000000]", "7"), "Unable to allocate"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_call(name):
    call, said = WRONG[name]
    with pytest.raises(Wrong) as error:
        explain(*call)
    assert said in str(error.value)


@pytest.mark.parametrize(("out", "said"), [("int8[10]", "Cannot cast"), ("float32[11]", "broadcast"), ("float32[1]", "has shape (1,)")])
def test_what_is_no_output(out, said):
    with pytest.raises(Wrong, match=f".*{said.replace('(', '.').replace(')', '.')}"):
        explain("mod", "float32[10]", "float32[10]", out=out)


@pytest.mark.parametrize(
    ("x1", "x2", "out"), [("3", "2.5", "x1"), ("3", "int8", "7"), ("int8", "3", "x2"), ("int8", "int8", "x1"), ("int8[3]", "3", "2.5")]
)
def test_an_output_is_an_array(x1, x2, out):
    with pytest.raises(Wrong, match="the output must be an array"):
        explain("mod", x1, x2, out=out)


@pytest.mark.parametrize("call", [name for name in WRONG if set(WRONG[name][0][1:]) & {"300", "-1", "99", "0", "9" * 26, "9" * 400}])
def test_numbers_that_are_wrong_are_so_for_the_call(call):
    operation, *texts = WRONG[call][0]
    with pytest.raises((OverflowError, IndexError, ZeroDivisionError)):
        getattr(fastops, operation)(*map(operand, texts))


@pytest.mark.parametrize(("x", "number"), [("int8[3]", "-128"), ("uint64[3]", str(2**64 - 1)), ("float16[3]", "70000"), ("bool[3]", "300")])
def test_numbers_that_fit(x, number):
    assert explain("mod", x, number)["elements"] == 3


# --- what happens -------------------------------------------------------------------------------------------------------------------------
def spying(seen: list[Any], name: Any, function: Any) -> Any:
    def spy(*args: Any, **kwargs: Any) -> Any:
        seen.append(name(*args) if callable(name) else name)
        return function(*args, **kwargs)

    return spy


@contextlib.contextmanager
def spied(seen: list[Any], *places: tuple[Any, str, Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for thing, attribute, name in places:
            patch.setattr(thing, attribute, spying(seen, name, getattr(thing, attribute)))
        yield


def filled(text: str) -> Any:
    """The operand, with numbers that raise no flag."""
    x = operand(text)
    if isinstance(x, np.ndarray):
        x[...] = 1
    return x


def happens(operation: Any, *operands: Any) -> tuple[str, int, bool]:
    """The way that the call takes, on how many threads, and whether past Python."""
    seen: list[Any] = []
    gate = operation._gate
    places = [
        (driving, "drive", lambda plan, loop, workers: (DRIVER, workers)),
        (operation, "_real", UFUNC),
        (operation, "_by_numpy", NUMPY),
    ]
    if gate is not None:
        places += [(gate, "plain", UFUNC), (gate, "other", "Python")]
    with spied(seen, *places), np.errstate(all="ignore"):
        result = operation(*operands)
    by_python = gate is None or "Python" in seen
    way, workers = ([entry if isinstance(entry, tuple) else (entry, 1) for entry in seen if entry != "Python"] or [(NATIVE, 1)])[0]
    made = real_ufuncs.is_made(operation.__name__, result.dtype) and result.dtype.num in operation._compiled
    return NUMPY if way == UFUNC and not made else way, workers, not by_python


def scatters(*operands: Any) -> tuple[str, int, bool, str]:
    """The same of `scatter_div`, and how the threads share it."""
    seen: list[Any] = []
    work, gate = scatter_compiled._Work, scatter.scatter_div._gate
    with (
        spied(
            seen,
            (gate, "other", "Python"),
            (scatter, "_divide_plainly", NUMPY),
            (work, "_alone", "alone"),
            (work, "_by_columns", lambda plan, workers: ("columns", workers)),
        ),
        pytest.MonkeyPatch.context() as patch,
    ):
        blocks = work._by_blocks
        patch.setattr(work, "_by_blocks", lambda plan, block, workers, sort: (
            seen.append(("sorted blocks" if sort else "blocks", workers)) or blocks(plan, block, workers, sort=sort)))  # fmt: skip
        scatter.scatter_div(*operands)
    done = [entry for entry in seen if entry != "Python"]
    if not done or done[0] == NUMPY:
        return done[0] if done else NATIVE, 1, "Python" not in seen, "alone"
    way, workers = done[0] if isinstance(done[0], tuple) else ("alone", 1)
    return KERNEL, workers, False, way


def assert_is_told(story: explaining.Story) -> None:
    """To people, too."""
    call, first, *_ = explaining.lines(story)
    assert story["call"] in call
    assert (": 1 element," in call) == (story["elements"] == 1)
    told = story["first"]
    by = f" by {told['threads_by']}" if told.get("threads_by") else ""
    assert first.startswith(f"first call  {explaining.WAYS[told['way']]}")
    assert ("past Python" in first) == told["past_python"]
    assert first.endswith(f", on {told['threads']} thread{'s' * (told['threads'] > 1)}{by}")


@pytest.fixture
def three_threads(monkeypatch):
    """That pay soon, and whose start is known."""
    load_kernels()
    monkeypatch.setattr(threads, "_start", 5_000.0)
    monkeypatch.setattr(threads, "_measured", threads.MEASUREMENTS)
    monkeypatch.setattr(threads, "WORTHWHILE", 1.0)
    monkeypatch.setattr(threads, "limit", lambda: 3)
    monkeypatch.setattr(threads, "processors", lambda: 3)
    everything = [ufuncs.floored, ufuncs.truncated, scatter.scatter_div]
    for operation in everything:
        operation._limit()
    yield
    monkeypatch.undo()
    for operation in everything:
        operation._limit()


CALLS = {  # of remainders: operands, and perhaps an output; and the way, where it depends on nothing that is measured
    "one element": ("{0}[1] {0}[1]", NATIVE),
    "small": ("{0}[10] {0}[10]", NATIVE),
    "small, by a number": ("{0}[10] 7", NATIVE),
    "small, by a scalar": ("{0}[10] {0}", NATIVE),
    "small, two axes": ("{0}[10,20] {0}[10,20]", NATIVE),
    "small, with output": ("{0}[10] {0}[10] {0}[10]", NATIVE),
    "small, in place": ("{0}[10] {0}[10] x1", UFUNC),
    "small, strided": ("{0}[20][::2] {0}[10]", UFUNC),
    "small, broadcast": ("{0}[10,20] {0}[20]", UFUNC),
    "small, other byte order": (">{0}[10] {0}[10]", UFUNC),
    "a line, strided": ("{0}[24000][::2] {0}[12000]", None),
    "scalars": ("{0} 7", UFUNC),
    "10 000": ("{0}[10000] {0}[10000]", None),
    "100 000": ("{0}[100000] {0}[100000]", None),
    "a million": ("{0}[1000000] {0}[1000000]", DRIVER),
    "a million by a scalar": ("{0}[1000000] {0}", DRIVER),
    "a million in place": ("{0}[1000000] {0}[1000000] x2", DRIVER),
    "a million, overlapping": ("{0}[1000,1000] {0}[1000,1000] x1", DRIVER),
    "a million, other byte order": ("{0}[1000000] >{0}[1000000]", UFUNC),
    "a million, two dtypes": ("{0}[1000,1000] bool[1000]", UFUNC),
    "short axes": ("{0}[10,10,10,10,10] {0}[10,10,10,10,1]", None),
    "transposed": ("{0}[300,300].T {0}[300,300]", None),
    "short rows": ("{0}[30000,4] {0}[4]", DRIVER),
    "outer": ("{0}[1000,1] {0}[1000]", DRIVER),
    "empty": ("{0}[0] {0}[0]", None),
    "0-d": ("{0}[] {0}[]", None),
    "no loop": ("longdouble[10] {0}[10]", NUMPY),
    "no loop, large": ("longdouble[20000] {0}[20000]", NUMPY),
}


@pytest.mark.parametrize("name", ["mod", "fmod"])
@pytest.mark.parametrize("dtype", ["i4", "f8"])
@pytest.mark.parametrize("call", CALLS)
def test_remainders_go_as_it_says(call, dtype, name, three_threads):
    text, want = CALLS[call]
    x1, x2, *out = text.format(dtype).split()
    story = explain(name, x1, x2, out=out[0] if out else None)
    told = story["later"]
    operands = [filled(x1), filled(x2)]
    operands += [operands[int(x[1:]) - 1] if x in ("x1", "x2") else filled(x) for x in out]
    assert happens(getattr(ufuncs, name), *operands) == (told["way"], told["threads"], told["past_python"])
    assert told["way"] == (want or told["way"])
    assert told["threads"] == (3 if want == DRIVER and call.startswith("a million") else told["threads"])
    assert told["why"]
    assert_is_told(story)


def test_each_dtype_goes_as_it_says(three_threads):
    for dtype in DTYPES:
        for x1, x2 in ((f"{dtype}[9]", f"{dtype}[9]"), (f"{dtype}[9]", "2"), (f"{dtype}[50000]", "2"), (f"{dtype}[300000]", f"{dtype}")):
            told = explain("mod", x1, x2)["later"]
            assert happens(ufuncs.mod, filled(x1), filled(x2)) == (told["way"], told["threads"], told["past_python"])


SCATTERED = {  # input_x, indices and updates; how it goes on three threads, and what must be said of it
    "small": ("f4[10,8] i8[5] f4[5,8]", (NATIVE, 1, True), "plain arrays"),
    "lying elsewhere": ("f4[10,8] i4[5] f4[8,5].T", (NATIVE, 1, True), "plain arrays"),
    "small, another dtype": ("f4[10,8] i8[5] f2[5,8]", (NATIVE, 1, False), "made plain first"),
    "small, strided indices": ("f4[10,8] i8[5,2].T f4[2,5,8]", (NATIVE, 1, False), "made plain first"),
    "small, other byte order": (">f4[10,8] i8[5] f4[5,8]", (NATIVE, 1, True), "plain arrays"),
    "small, all in the other byte order": (">f4[10,8] >i8[5] >f4[5,8]", (NATIVE, 1, False), "made plain first"),
    "in the other byte order": (">f4[9,1500] i8[8] f4[8,1500]", (KERNEL, 1, False), "through a copy of input_x: "),
    "empty": ("f4[10,8] i8[0] f4[0,8]", (NUMPY, 1, False), "nothing to divide"),
    "columns": ("f4[10,20000] i8[50] f4[50,20000]", (KERNEL, 3, False, "columns"), "wide rows"),
    "blocks": (
        "f4[10000,128] i8[2000] f4[2000,128]",
        (KERNEL, 3, False, "blocks"),
        "many rows of a cache line and more, if indices come in no order",
    ),
    "sorted blocks": ("f4[400000,3] i8[40000] f4[40000,3]", (KERNEL, 3, False, "sorted blocks"), "beyond the nearer caches"),
    "one element a row": ("f4[1000] i8[40000] f4[40000]", (NATIVE, 1, True), "only for many indices that ascend or descend"),
    "narrow and near": ("i2[1000,3] i8[40000] i2[40000,3]", (KERNEL, 1, False), "one thread divides as fast"),
    "few rows": ("f8[50,128] i8[500] f8[500,128]", (KERNEL, 1, False), "too few for blocks, and rows of less than"),
    "converted": (
        "f4[10000,128] i8[9000] f2[9000,128]",
        (KERNEL, 3, False, "blocks"),
        "in pieces of up to 2,048 updates, of which there are 5",
    ),
    "strided indices": ("f4[10000,16] i8[100,120].T f4[120,100,16]", (KERNEL, 3, False, "blocks"), "there is 1: the axes of indices"),
    "few strided indices": ("f4[10000,128] i8[40,50].T f4[50,40,128]", (KERNEL, 3, False, "blocks"), "made plain first"),
    "strided updates": ("f4[10000,128] i8[50,40] f4[50,60,128][:,:40]", (KERNEL, 3, False, "blocks"), "that updates share with indices"),
}


@pytest.mark.parametrize("call", SCATTERED)
def test_scatter_div_goes_as_it_says(call, three_threads):
    text, want, said = SCATTERED[call]
    story = explain("scatter_div", *text.split())
    told = story["later"]
    x, indices, updates = map(filled, text.split())
    indices[...] = np.random.default_rng(0).integers(0, len(x), indices.shape)  # in no order, as it is told
    way, workers, past_python, shared = scatters(x, indices, updates)
    assert (way, workers, past_python) == (told["way"], told["threads"], told["past_python"]) == want[:3]
    assert told.get("threads_by") == (shared if workers > 1 else None) == (want[3] if want[3:] else None)
    assert said in " ".join(told["why"])
    assert (x == 1).all()
    assert_is_told(story)


# --- the first call -----------------------------------------------------------------------------------------------------------------------
SMALL, LARGE, BFLOAT = "f4[10] f4[10]", "f8[100,300][:,::2] f8[100,150]", "bfloat16[10] bfloat16[10]"
FIRST_CALLS = [SMALL, "f4[10] 7", BFLOAT, BFLOAT, LARGE, "f8[10] f8[10]", SMALL, "f4[9999] f4", "g[3] 2"]
IN_A_PROCESS = f"""
import sys
import ml_dtypes
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_explain import FIRST_CALLS, filled, happens
from fastops import rehearsal, ufuncs
for call in FIRST_CALLS:
    operands = [filled(text) for text in call.split()]
    if sys.argv[1] == "told":
        told = rehearsal.of_remainder(ufuncs.truncated, *operands)
        print(told.way, not told.by_python, sep=";")
    else:
        print(*happens(ufuncs.truncated, *operands)[::2], sep=";")
"""


def test_the_first_calls_of_a_process():
    """Before anything was compiled, and while one loop after another is."""
    lines = {}
    for what in ("told", "happens"):
        done = subprocess.run([sys.executable, "-W", "error", "-c", IN_A_PROCESS, what], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        lines[what] = [line.split(";") for line in done.stdout.splitlines()]
    ways = [way for way, _ in lines["happens"]]
    assert ways == [NUMPY, NUMPY, UFUNC, NATIVE, UFUNC, NATIVE, NUMPY, NUMPY, NUMPY]
    for (told, told_past_python), (happened, past_python) in zip(lines["told"], lines["happens"], strict=True):
        assert told == happened or (told, happened) == (UFUNC, NUMPY)  # the machine is NumPy's, and so may the loop be
        assert told_past_python == past_python
