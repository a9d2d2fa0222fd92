"""ONNX's Mod by its strict rules, in the reference evaluator, and under ONNX's official tests."""

import doctest
import re
import subprocess
import sys
import unittest
import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from conftest import BFLOAT16, DTYPES, EDGE_VALUES, FLOATS, INTEGERS, assert_same_bits, each_dtype, in_parallel, message, oracle, outcome
from onnx import TensorProto, helper
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

import fastops.onnx
from fastops.onnx import Backend, Mod, mod

NEWEST = onnx.defs.onnx_opset_version()
IN_FORCE = {10: 10, 11: 10, 12: 10, 13: 13, 20: 13, 27: 13, 28: 28, 29: 28, 1000: 28}
each_opset = pytest.mark.parametrize("opset", list(IN_FORCE))
each_version = pytest.mark.parametrize("opset", [version for version in (10, 13, 28) if version <= NEWEST])
each_fmod = pytest.mark.parametrize("fmod", [0, 1])
NAMES = ("remainder", "fmod")  # by the attribute


def refusal(dtype, fmod, opset):
    """The table of the rules: the error that a call must raise, or None."""
    if dtype == BFLOAT16 and IN_FORCE[opset] == 10:
        return TypeError, "A has dtype bfloat16, which is not one of Mod-10's: int8, "
    if dtype not in INTEGERS.values() and fmod == 0 and IN_FORCE[opset] < 28:
        return ValueError, f"fmod must be 1 for floating-point tensors before opset 28, got fmod=0, {dtype} and opset {opset}"
    return None


def warning_of(name, dtype):
    return [(RuntimeWarning, message(name, dtype))]


# --- the table of the rules ---------------------------------------------------------------------------------------------------------------
@each_opset
@each_fmod
@each_dtype
def test_rules(dtype, fmod, opset):
    a, b = EDGE_VALUES[str(dtype)][:, None], EDGE_VALUES[str(dtype)]  # all pairs, with zero divisors
    got = outcome(mod, a, b, fmod=fmod, opset=opset)
    if error := refusal(dtype, fmod, opset):
        assert got.error[0] is error[0]
        assert got.error[1].startswith(error[1])
        assert not got.warnings
    else:
        assert got.error is None
        assert got.warnings == warning_of(NAMES[fmod], dtype)
        assert type(got.result) is np.ndarray
        assert_same_bits(got.result, oracle(NAMES[fmod], a, b), a, b)


@each_fmod
@each_dtype
def test_many_in_parallel(dtype, fmod):
    a, b = EDGE_VALUES[str(dtype)][:, None], EDGE_VALUES[str(dtype)]
    with in_parallel():
        got = outcome(mod, a, b, fmod=fmod, opset=28)
    assert got.warnings == warning_of(NAMES[fmod], dtype)
    assert_same_bits(got.result, oracle(NAMES[fmod], a, b), a, b)


@each_fmod
@each_dtype
def test_no_warning_without_cause(dtype, fmod):
    a, b = np.array([7, 0, 5, 1], dtype), np.array([3, 2, 5, 4], dtype)
    assert_same_bits(mod(a, b, fmod=fmod, opset=28), np.array([1, 0, 0, 1], dtype))


def test_defaults():
    a, b = np.array([-7, 7]), np.array([3, -3])
    assert_same_bits(mod(a, b), np.array([2, -2]))
    assert_same_bits(mod(B=b, A=a), np.array([2, -2]))
    with pytest.raises(ValueError, match="got fmod=0, float64 and opset 13"):
        mod(a.astype("f8"), b.astype("f8"))


@pytest.mark.parametrize("dtype", list(FLOATS.values()), ids=list(FLOATS))
def test_zero_signs_and_nan(dtype):
    a = np.array([0.0, -0.0, 6.0, -6.0, 0.0, -0.0, 1.0, np.inf, np.nan], dtype)
    b = np.array([-2.0, 2.0, -3.0, 3.0, -np.inf, np.inf, 0.0, 2.0, 1.0], dtype)
    with np.errstate(invalid="ignore"):
        floored, truncated = mod(a, b, opset=28), mod(a, b, fmod=1, opset=28)
    assert np.signbit(floored[:6].astype("f4")).tolist() == [True, False, True, False, True, False]
    assert np.signbit(truncated[:6].astype("f4")).tolist() == [False, True, False, True, False, True]
    for result in (floored, truncated):
        assert np.array_equal(result[:6], np.zeros(6, dtype))
        assert np.isnan(result[6:].astype("f4")).all()


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS.values() if dtype.kind == "i"], ids=str)
def test_signed_integers(dtype):
    lowest = np.iinfo(dtype).min
    a, b = np.array([lowest, -4, 4, -4, -6, 6, 5], dtype), np.array([-1, 10, -10, -10, 3, -3, 0], dtype)
    with np.errstate(divide="ignore"):
        assert_same_bits(mod(a, b), np.array([0, 6, -6, -4, 0, 0, 0], dtype))
        assert_same_bits(mod(a, b, fmod=1), np.array([0, -4, 4, -4, 0, 0, 0], dtype))


# --- what is refused ----------------------------------------------------------------------------------------------------------------------
@each_opset
@pytest.mark.parametrize("fmod", [2, -1, 0.0, 1.0, "1", None, np.float32(1), [1], np.array([0, 1])], ids=repr)
def test_fmod_is_0_or_1(fmod, opset):
    for dtype in ("i4", "f4"):
        with pytest.raises(ValueError, match=re.escape(f"fmod must be 0 or 1, got {fmod!r}")):
            mod(np.ones(2, dtype), np.ones(2, dtype), fmod=fmod, opset=opset)


@pytest.mark.parametrize("fmod", [True, np.True_, np.int64(1), np.uint8(1)], ids=repr)
def test_other_ones(fmod):
    assert_same_bits(mod(np.array([-4.5]), np.array([2.0]), fmod=fmod), np.array([-0.5]))
    assert_same_bits(mod(np.array([-4]), np.array([3]), fmod=type(fmod)(0)), np.array([2]))


@pytest.mark.parametrize("opset", [9, 1, 0, -13, 13.0, "13", None, True, [13], np.float64(28), np.bool_(True)], ids=repr)
def test_opset_is_an_integer_of_10_or_more(opset):
    with pytest.raises(ValueError, match=re.escape(f"opset must be an integer of 10 or more, as Mod exists since opset 10, got {opset!r}")):
        mod(np.ones(2, int), np.ones(2, int), opset=opset)


def test_opset_of_numpy():
    assert_same_bits(mod(np.array([-4.5]), np.array([2.0]), opset=np.int32(28)), np.array([1.5]))


@each_version
@each_fmod
@each_dtype
def test_one_dtype(dtype, fmod, opset):
    for other in DTYPES.values():
        if other == dtype:
            continue
        for a, b in ((np.ones(2, dtype), np.ones(2, other)), (np.ones((), dtype), np.ones(2, other)), (np.ones(2, dtype), other.type(1))):
            with pytest.raises(TypeError) as caught:
                mod(a, b, fmod=fmod, opset=opset)
            if opset == 10 and BFLOAT16 in (dtype, other):
                name = "A" if dtype == BFLOAT16 else "B"
                assert str(caught.value).startswith(f"{name} has dtype bfloat16, which is not one of Mod-10's: ")
            else:
                assert str(caught.value) == f"A and B must have the same dtype, got {dtype} and {other}"


@pytest.mark.parametrize("b", [3, 3.0, True, [3, 3]], ids=repr)
def test_no_weak_scalars(b):
    with pytest.raises(TypeError, match="dtype"):
        mod(np.ones(2, "i4"), b)


OTHERS = {
    "bool": np.ones(2, bool),
    "complex": np.ones(2, "c8"),
    "longdouble": np.ones(2, "g"),
    "object": np.ones(2, object),
    "None": None,
    "str": np.array(["1", "2"]),
    "bytes": np.array([b"1", b"2"]),
    "timedelta64": np.ones(2, "m8[s]"),
    "datetime64": np.ones(2, "M8[s]"),
    "record": np.ones(2, "i4,i4"),
    "uint16 with a field": np.ones(2, np.dtype((np.uint16, {"bfloat16": (np.uint16, 0)}))),  # how onnx kept bfloat16 before 1.19
    "float8_e4m3fn": np.ones(2, ml_dtypes.float8_e4m3fn),
    "int4": np.ones(2, ml_dtypes.int4),
}
if np.dtype("g").itemsize == 8:  # longdouble is float64 there
    del OTHERS["longdouble"]


@each_version
@each_fmod
@pytest.mark.parametrize("kind", list(OTHERS))
def test_other_dtypes(kind, fmod, opset):
    x = OTHERS[kind]
    text = re.escape(f" has dtype {np.asarray(x).dtype}, which is not one of Mod-{opset}'s: int8, int16, ")
    for name, operands in (("A", (x, x)), ("A", (x, np.ones(2))), ("B", (np.ones(2, "i4"), x))):
        with pytest.raises(TypeError, match=f"^{name}{text}"):
            mod(*operands, fmod=fmod, opset=opset)


@pytest.mark.parametrize("name", ["A", "B"])
def test_masked_arrays(name):
    operands = {"A": np.ones(2), "B": np.ones(2), name: np.ma.masked_array([1.0, 2.0], [False, True])}
    with pytest.raises(TypeError, match=f"^{name} must be a tensor, got a masked array of dtype float64$"):
        mod(**operands, opset=28)


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match=re.escape("operands could not be broadcast together with shapes (2,) (3,)")):
        mod(np.ones(2, int), np.ones(3, int))


# --- tensors ------------------------------------------------------------------------------------------------------------------------------
SHAPES = [((), ()), ((), (3,)), ((3,), ()), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((1, 1), ())]
EMPTY = [((0,), (1,)), ((2, 0), ()), ((3, 1), (0,)), ((2, 0, 3), (1, 3))]


@pytest.mark.parametrize("shapes", SHAPES + EMPTY, ids=str)
@each_dtype
def test_shapes(dtype, shapes):
    a, b = ((np.arange(np.prod(shape)) + start).reshape(shape).astype(dtype) for shape, start in zip(shapes, (5, 2), strict=True))
    got = mod(a, b, opset=28)
    assert type(got) is np.ndarray
    assert_same_bits(got, np.asarray(np.remainder(a.astype("f8"), b.astype("f8"))).astype(dtype))


@each_dtype
def test_scalars_give_tensors(dtype):
    got = mod(dtype.type(7), dtype.type(4), opset=28)
    assert type(got) is np.ndarray
    assert_same_bits(got, np.array(3, dtype))


def test_lists_and_python_numbers():
    assert_same_bits(mod([[7, 8], [9, 10]], [4, 3]), np.array([[3, 2], [1, 1]]))
    assert_same_bits(mod([7.5], 2.0, fmod=1), np.array([1.5]))


def test_objects_with_an_array():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.array([7, 8], "i4")

    assert_same_bits(mod(Tensor(), np.array([4], "i4")), np.array([3, 0], "i4"))


@each_fmod
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES.values() if dtype != BFLOAT16], ids=str)
def test_byte_order_is_no_part_of_the_type(dtype, fmod):
    a, b, swapped = np.arange(5, 25).astype(dtype), np.arange(1, 21).astype(dtype), dtype.newbyteorder()
    for x, y in ((a.astype(swapped), b.astype(swapped)), (a.astype(swapped), b), (a, b.astype(swapped))):
        got = mod(x, y, fmod=fmod, opset=28)
        assert got.dtype.isnative
        assert_same_bits(got, oracle(NAMES[fmod], a, b))


def test_inputs_unmodified():
    a, b = np.arange(-10, 10), np.full(20, 3)
    a.flags.writeable = b.flags.writeable = False
    got = mod(a, b)
    assert not np.shares_memory(got, a)
    assert not np.shares_memory(mod(a, np.full(20, 100), fmod=1), a)
    assert np.array_equal(a, np.arange(-10, 10))


# --- warnings -----------------------------------------------------------------------------------------------------------------------------
@each_fmod
@pytest.mark.parametrize("dtype", ["i4", "f4"])
def test_errstate(dtype, fmod):
    a, b = np.ones(3, dtype), np.zeros(3, dtype)
    text = message(NAMES[fmod], a.dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mod(a, b, fmod=fmod, opset=28)
    assert [(entry.category, str(entry.message), entry.filename) for entry in caught] == [(RuntimeWarning, text, __file__)]
    with np.errstate(all="ignore"):
        mod(a, b, fmod=fmod, opset=28)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=f"^{text}$"):
        mod(a, b, fmod=fmod, opset=28)


# --- in the reference evaluator -----------------------------------------------------------------------------------------------------------
def model(opset, dtype, nodes=None, functions=(), shape=(None,), **attributes):
    """z = Mod(x, y), or other nodes."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = nodes or [helper.make_node("Mod", ["x", "y"], ["z"], **attributes)]
    x, y, z = (helper.make_tensor_value_info(name, kind, shape) for name in "xyz")
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in {function.domain for function in functions})]
    return helper.make_model(helper.make_graph(nodes, "graph", [x, y], [z]), opset_imports=imports, functions=functions, ir_version=8)


def run(proto, a, b):
    return ReferenceEvaluator(proto, new_ops=[Mod]).run(None, {"x": a, "y": b})[0]


@pytest.fixture
def runs(monkeypatch):
    """The dtypes that fastops' functions were called with: that it is they which ran."""
    counted = []
    for name in NAMES:
        function = getattr(fastops.onnx.ufuncs, name)
        monkeypatch.setattr(fastops.onnx.ufuncs, name, lambda a, b, function=function: (counted.append(a.dtype.name), function(a, b))[1])
    return counted


@each_version
@each_fmod
@each_dtype
def test_evaluator(dtype, fmod, opset, runs):
    a, b = (np.resize(EDGE_VALUES[str(dtype)], (3, 50)) for _ in range(2))
    b = b[::-1, ::-1]
    got = outcome(run, model(opset, dtype, shape=(None, None), fmod=fmod), a, b)
    if error := refusal(dtype, fmod, opset):
        assert got.error[0] is error[0]
        assert not runs
        if error[0] is ValueError:  # the evaluator words a TypeError anew
            assert got.error[1] == error[1]
    else:
        assert got.error is None
        assert runs == [str(dtype)]
        assert got.warnings == warning_of(NAMES[fmod], dtype)
        assert_same_bits(got.result, oracle(NAMES[fmod], a, b), a, b)


@pytest.mark.parametrize("opset", [version for version in (10, 11, 12, 13, 20, 27, 28) if version <= NEWEST])
def test_opset_is_that_of_the_model(opset):
    got = outcome(run, model(opset, "f4"), np.ones(1, "f4"), np.ones(1, "f4"))
    assert got.error == refusal(np.dtype("f4"), 0, opset)


@each_version
def test_fmod_is_0_by_default(opset):
    assert_same_bits(run(model(opset, "i8"), np.array([-7, 7]), np.array([3, -3])), np.array([2, -2]))


def test_evaluator_of_0d():
    got = run(model(13, "i4", shape=()), np.array(-7, "i4"), np.array(3, "i4"))
    assert type(got) is np.ndarray
    assert_same_bits(got, np.array(2, "i4"))


def test_errors_in_the_evaluator():
    ints, floats = np.ones(2, "i4"), np.ones(2, "f4")
    with pytest.raises(TypeError) as caught:
        run(model(13, "i4"), ints, floats)
    assert str(caught.value.__cause__) == "A and B must have the same dtype, got int32 and float32"
    with pytest.raises(ValueError, match="fmod must be 0 or 1, got 2"):
        run(model(13, "i4", fmod=2), ints, ints)
    with pytest.raises(ValueError, match="got fmod=0, float32 and opset 13"):
        run(model(13, "f4"), floats, floats)
    with pytest.raises(ValueError, match="broadcast"):
        run(model(13, "i4"), ints, np.ones(3, "i4"))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in remainder"):
        run(model(13, "i4"), ints, ints - 1)


def test_only_new_ops_replace_the_operator(runs):
    a, b = np.array([-7, 7]), np.array([3, -3])
    assert_same_bits(ReferenceEvaluator(model(13, "i8")).run(None, {"x": a, "y": b})[0], np.array([2, -2]))
    assert not runs
    run(model(13, "i8"), a, b)
    assert runs == ["int64"]


def _branches():
    """if x[0] < y[0] then Mod(x, y), else Mod(y, x)"""
    z = helper.make_tensor_value_info("result", TensorProto.FLOAT, [None])
    then, otherwise = (
        helper.make_graph([helper.make_node("Mod", inputs, ["result"])], "branch", [], [z]) for inputs in (["x", "y"], ["y", "x"])
    )
    return [
        helper.make_node("ReduceMax", ["x"], ["a"], keepdims=0),
        helper.make_node("ReduceMax", ["y"], ["b"], keepdims=0),
        helper.make_node("Less", ["a", "b"], ["chosen"]),
        helper.make_node("If", ["chosen"], ["z"], then_branch=then, else_branch=otherwise),
    ]


@each_version
@pytest.mark.parametrize("runner", [run, lambda proto, a, b: Backend.run_model(proto, [a, b])[0]], ids=["new_ops", "Backend"])
def test_subgraphs(runner, opset, runs):
    a, b = np.array([-7.5], "f4"), np.array([2.0], "f4")
    got = outcome(runner, model(opset, "f4", _branches()), a, b)
    if error := refusal(a.dtype, 0, opset):
        assert got.error == error
    else:
        assert runs == ["float32"]
        assert_same_bits(got.result, np.array([0.5], "f4"))


def _function(opset):
    """A function of a model has an operator set of its own; this one hands its attribute on to Mod."""
    node = helper.make_node("Mod", ["p", "q"], ["r"])
    node.attribute.append(onnx.AttributeProto(name="fmod", type=onnx.AttributeProto.INT, ref_attr_name="how"))
    return helper.make_function("own", "Remainder", ["p", "q"], ["r"], [node], [helper.make_opsetid("", opset)], ["how"])


@each_version
@each_fmod
def test_functions(fmod, opset, runs):
    """An evaluator does not give `new_ops` to the functions of a model; the Backend sees to it."""
    a, b = np.array([-7.5, 7.5], "f4"), np.array([2.0, -2.0], "f4")
    call = helper.make_node("Remainder", ["x", "y"], ["z"], domain="own", how=fmod)
    proto = model(opset, "f4", [call], [_function(opset)])
    run(proto, a, b)
    assert not runs

    got = outcome(Backend.run_model, proto, [a, b])
    alone = outcome(ReferenceEvaluator(_function(opset), new_ops=[Mod]).run, None, {"p": a, "q": b}, attributes={"how": fmod})
    if error := refusal(a.dtype, fmod, opset):
        assert got.error == alone.error == error
    else:
        assert runs == ["float32"] * 2
        for (result,) in (got.result, alone.result):
            assert_same_bits(result, np.array([-1.5, 1.5] if fmod else [0.5, -0.5], "f4"))


def test_single_node(runs):
    assert_same_bits(Mod.eval(np.array([-7, 7]), np.array([3, -3]), fmod=1), np.array([-1, 1]))
    assert runs == ["int64"]


# --- the backend --------------------------------------------------------------------------------------------------------------------------
def test_backend_takes_inputs_by_place_and_by_name(runs):
    a, b = np.array([-7, 7]), np.array([3, -3])
    prepared = Backend.prepare(model(13, "i8"))
    for inputs in ([a, b], (a, b), {"y": b, "x": a}):
        (got,) = prepared.run(inputs)
        assert_same_bits(got, np.array([2, -2]))
    assert runs == ["int64"] * 3
    with pytest.raises(ValueError, match=r"^expected 2 inputs \(x, y\), got 1$"):
        prepared.run([a])


def test_backend_with_initializers():
    proto = model(13, "i8")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([3, -3]), "y"))
    prepared = Backend.prepare(proto)
    assert_same_bits(prepared.run([np.array([-7, 7])])[0], np.array([2, -2]))
    assert_same_bits(prepared.run([np.array([-7, 7]), np.array([5])])[0], np.array([3, 2]))


def test_backend_runs_a_node(runs):
    node = helper.make_node("Mod", ["x", "y"], ["z"], fmod=0)
    inputs = [np.array([-7.5], "f4"), np.array([2.0], "f4")]
    for opset in (10, 13):
        with pytest.raises(ValueError, match=f"got fmod=0, float32 and opset {opset}"):
            Backend.run_node(node, inputs, opset_version=opset)
    if NEWEST >= 28:
        assert_same_bits(Backend.run_node(node, inputs)[0], np.array([0.5], "f4"))
        assert runs == ["float32"]
    with pytest.raises(ValueError, match=r"^expected 2 inputs \(x, y\), got 3$"):
        Backend.run_node(node, [*inputs, inputs[0]])
    with pytest.raises(onnx.checker.ValidationError):
        Backend.run_node(node, inputs, opset_version=9)


def test_backend_checks_the_model():
    proto = model(13, "i8")
    proto.graph.node[0].input.append("y")
    with pytest.raises(onnx.checker.ValidationError):
        Backend.prepare(proto)


def test_backend_is_on_the_cpu():
    assert Backend.supports_device("CPU")
    assert Backend.supports_device("CPU:0")
    assert not Backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="device must be 'CPU', got 'CUDA:1'"):
        Backend.prepare(model(13, "i8"), "CUDA:1")
    with pytest.raises(ValueError, match="device must be 'CPU', got 'TPU'"):
        Backend.run_node(helper.make_node("Mod", ["x", "y"], ["z"]), [], "TPU")


# --- ONNX's official tests ----------------------------------------------------------------------------------------------------------------
OFFICIAL = {"mod": r"^test_mod_.*_cpu$", "attention": r"^test_attention_.*_expanded_cpu$"}

# The cases are computed when they are loaded, those of all other operators too: some of these overflow in a cast or divide by zero, and one
# sets the shape of an array, which NumPy 2.5 deprecates.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", RuntimeWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    _runner = BackendTest(Backend, __name__)
    NODE_CASES = {case.name: case for case in load_model_tests(kind="node")}
for _pattern in OFFICIAL.values():
    _runner.include(_pattern)


def _official(pattern):
    """Those that match, alone: the runner marks all others as skipped."""
    everything = vars(_runner.test_cases["OnnxBackendNodeModelTest"])
    return {name: test for name, test in everything.items() if re.search(pattern, name)}


# Dividing by zero is what test_mod_float_edge_cases is about.
OfficialMod = pytest.mark.filterwarnings("ignore:invalid value encountered in remainder:RuntimeWarning")(
    type("OfficialMod", (unittest.TestCase,), _official(OFFICIAL["mod"]))
)
# Rows that are masked throughout are what others are about; onnx's own Softmax subtracts their infinities.
OfficialAttention = pytest.mark.filterwarnings("ignore:invalid value encountered in subtract:RuntimeWarning")(
    type("OfficialAttention", (unittest.TestCase,), _official(OFFICIAL["attention"]))
)


def _names(tests):
    return [name for name in vars(tests) if name.startswith("test_")]


def test_official_tests_are_all_there():
    counts = len(_names(OfficialMod)), len(_names(OfficialAttention))
    if onnx.__version__.startswith("1.23."):
        assert counts == (19, 93)
    else:
        assert min(counts) > 0


@pytest.mark.parametrize("name", [name.removesuffix("_cpu") for tests in (OfficialMod, OfficialAttention) for name in _names(tests)])
def test_official_cases_strictly(name, runs):
    """Each runs fastops' code, once; and the suite compares with tolerances and without zero signs, which is not enough for Mod."""
    case = NODE_CASES[name]
    for inputs, expected in case.data_sets:
        runs.clear()
        with np.errstate(invalid="ignore"):
            got = Backend.run_model(case.model, inputs)
        assert len(runs) == 1
        assert len(got) == len(expected)
        if name.startswith("test_mod_"):
            assert_same_bits(got[0], expected[0])


# --- imports and documentation ------------------------------------------------------------------------------------------------------------
def _python(code):
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_import_of_fastops_does_not_load_onnx():
    assert _python("import fastops, sys; print('onnx' in sys.modules, 'fastops.onnx' in sys.modules)") == ["False False"]


def test_without_onnx():
    assert _python("""
import sys
sys.modules["onnx"] = None  # as if it were not installed
import numpy as np
import fastops.onnx
print(fastops.onnx.mod(np.array([-7, 7]), np.array([3, -3])).tolist())
for name in ("Mod", "Backend"):
    try:
        getattr(fastops.onnx, name)
    except ImportError as error:
        print(error, "|", type(error.__cause__).__name__)
try:
    from fastops.onnx import Mod
except ImportError as error:
    print(error)
try:
    fastops.onnx.Moose
except AttributeError as error:
    print(error)
""") == [
        "[2, -2]",
        "fastops.onnx.Mod needs the package onnx: pip install 'fastops-numba[onnx]' | ModuleNotFoundError",
        "fastops.onnx.Backend needs the package onnx: pip install 'fastops-numba[onnx]' | ModuleNotFoundError",
        "fastops.onnx.Mod needs the package onnx: pip install 'fastops-numba[onnx]'",
        "module 'fastops.onnx' has no attribute 'Moose'",
    ]


def test_names():
    assert sorted(fastops.onnx.__all__) == ["Backend", "Mod", "mod"]
    assert (Mod.__name__, Mod.op_domain) == ("Mod", "")
    assert not hasattr(fastops.onnx, "Moose")


def test_examples():
    results = doctest.testmod(fastops.onnx)
    assert results.attempted > 10
    assert results.failed == 0
