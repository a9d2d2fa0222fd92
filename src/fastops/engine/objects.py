# mypy: ignore-errors
"""The memory of objects and the functions of the C-API, as machine code reads and calls them: intrinsics from addresses to words."""

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

from ..kernels.primitives import INT32, WORD, emit_call, words_to_word
from .headers import Array, Dtype, Functions, Object, Tuple, Word
from .vectorcall import Gate, Served

word, void = ir.IntType(WORD.bitwidth), ir.VoidType()


def field(structure, name):
    """An intrinsic: that field of the structure at an address, as a word."""
    offset, bits = getattr(structure, name).offset, 8 * getattr(structure, name).size

    def generate(context, builder, signature, values):
        place = builder.add(values[0], ir.Constant(word, offset))
        return builder.sext(builder.load(builder.inttoptr(place, ir.IntType(bits).as_pointer())), word)

    return intrinsic(lambda typing, place: (WORD(WORD), generate))


def real(structure, name):
    """An intrinsic: that field of the structure at an address, a C double."""
    offset = getattr(structure, name).offset

    def generate(context, builder, signature, values):
        place = builder.add(values[0], ir.Constant(word, offset))
        return builder.load(builder.inttoptr(place, ir.DoubleType().as_pointer()))

    return intrinsic(lambda typing, place: (types.float64(WORD), generate))


def store(structure, name):
    """An intrinsic: write a word to that field of the structure at an address."""
    offset = getattr(structure, name).offset

    def generate(context, builder, signature, values):
        place = builder.add(values[0], ir.Constant(word, offset))
        builder.store(values[1], builder.inttoptr(place, word.as_pointer()))
        return context.get_dummy_value()

    return intrinsic(lambda typing, place, value: (types.none(WORD, WORD), generate))


def function(name, result, *parameters):
    """An intrinsic: call that function, of those that a gate has, with words, for a word."""
    offset = Gate.functions.offset + getattr(Functions, name).offset

    def generate(context, builder, signature, values):
        place = builder.inttoptr(builder.add(values[0], ir.Constant(word, offset)), word.as_pointer())
        return emit_call(builder, builder.load(place), result, parameters, values[1:])

    return words_to_word(len(parameters), generate)


word_at, type_of, value_of = field(Word, "word"), field(Object, "type"), field(Object, "value")
data_of, ndim_of, shape_of, strides_of, dtype_of, flags_of = (
    field(Array, name) for name in ("data", "ndim", "shape", "strides", "dtype", "flags")
)
scalar_of, order_of, number_of = (field(Dtype, name) for name in ("scalar", "order", "num"))
length_of, first_of = field(Tuple, "length"), field(Tuple, "first")
plain_of, other_of, small_limit, user_number, keyword_of = (field(Gate, name) for name in ("plain", "other", "large", "user_num", "out"))
none_of, ndarray_of, int_of, float_of = (field(Gate, name) for name in ("none", "ndarray", "int", "float"))
canonical, loop_of, limit_of, size_of = (field(Served, name) for name in ("dtype", "loop", "large", "size"))
low, high, smallest, largest = (field(Served, name) for name in ("low", "high", "smallest", "largest"))

vectorcall = function("PyObject_Vectorcall", word, word, word, word, word)
as_integer = function("PyLong_AsLongLongAndOverflow", word, word, word)
count_up, count_down = function("Py_IncRef", void, word), function("Py_DecRef", void, word)
forget_error = function("PyErr_Clear", void)
release_gil, take_gil = function("PyEval_SaveThread", word), function("PyEval_RestoreThread", void, word)
new_like = function("PyArray_NewLikeArray", word, word, INT32, word, INT32)
pack = function("PyArray_Pack", INT32, word, word, word)
product = function("PyArray_MultiplyList", word, word, INT32)
same_list = function("PyArray_CompareLists", INT32, word, word, INT32)
