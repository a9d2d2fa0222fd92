"""All operations on several processors: whether they give the same bits, and call nothing that the process lacks.

python tests/processors.py               all dtypes, on all processors: some minutes
python tests/processors.py int8 float32  these dtypes on this processor (or the one that NUMBA_CPU_NAME names): their digests
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator

import llvmlite.binding as llvm
import numpy as np
from conftest import DTYPES, EDGE_VALUES, INTEGERS, OPERATIONS, assert_same_bits, oracle, pairs, random_bits
from scatter_oracle import divisors, sequential

from fastops import scatter
from fastops.engine import compiler
from fastops.kernels.flags import X86

OTHERS = ("generic", "x86-64-v2", "x86-64-v3") if X86 else ("generic",)  # than the host
NAMES = (*OPERATIONS, "scatter_div")
SECTION = np.dtype({"names": ["kind", "start", "size", "names"], "formats": ["u4", "u8", "u8", "u4"], "offsets": [4, 24, 32, 40]})
SYMBOL = np.dtype({"names": ["name", "section"], "formats": ["u4", "u2"], "offsets": [0, 6], "itemsize": 24})


# --- the bits -----------------------------------------------------------------------------------------------------------------------------
def results(operation: str, label: str) -> Iterator[bytes]:
    """What the operation gives for random bits and all pairs of edge values, after it was found to be right."""
    dtype, edges = DTYPES[label], EDGE_VALUES[label]
    if operation == "scatter_div":
        assert scatter.make_kernel(dtype)
        by = np.r_[edges[edges != 0] if dtype in INTEGERS.values() else edges, divisors(dtype, (500,))]
        for shape in ((400,), (30, 3), (30, 150)):
            x, rows = np.resize(np.r_[edges, random_bits(dtype, 1_000)], shape), np.random.default_rng(3).integers(0, shape[0], 700)
            updates = np.resize(by, (700, *shape[1:]))
            want = sequential(x, rows, updates)
            for table in (x.copy(), np.asfortranarray(x)):
                assert_same_bits(scatter.scatter_div(table, rows, updates), want)
                yield table.tobytes()
        return
    function, _ = OPERATIONS[operation]
    assert function.loop(dtype)
    random = [random_bits(dtype, 50_000, seed) for seed in range(4)]
    for x1, x2 in (pairs(dtype), random[:2], random[2:]):
        result = function(x1, x2)
        assert_same_bits(result, oracle(operation, x1, x2))
        yield result.tobytes()
    for edge in edges:
        yield function(edges, edge).tobytes() + function(edge, edges).tobytes()


def digest(operation: str, label: str) -> str:
    return hashlib.sha256(b"".join(results(operation, label))).hexdigest()[:16]


# --- the code -----------------------------------------------------------------------------------------------------------------------------
def compiled_objects() -> list[bytes | None]:
    """The objects that Numba compiles or loads from now on, in a list that grows. It has compiled nothing yet."""
    from numba.core.codegen import CPUCodeLibrary

    objects: list[bytes | None] = []
    compiled, loaded = CPUCodeLibrary._object_compiled_hook, CPUCodeLibrary._object_getbuffer_hook
    CPUCodeLibrary._object_compiled_hook = lambda module, code: objects.append(bytes(code)) or compiled(module, code)
    CPUCodeLibrary._object_getbuffer_hook = lambda module: objects.append(loaded(module)) or objects[-1]
    return objects


def undefined_symbols(code: bytes) -> set[str]:
    """The functions and variables of others that an object names. (64-bit ELF only, as Linux and BSD have; of others, none.)"""
    if code[:5] != b"\x7fELF\x02":
        return set()
    place, count = int.from_bytes(code[0x28:0x30], "little"), int.from_bytes(code[0x3C:0x3E], "little")
    sections = np.ndarray(count, SECTION, code, place, 64)
    (table,) = sections[sections["kind"] == 2]
    names = code[int(sections[table["names"]]["start"]) :]
    symbols = np.frombuffer(code, SYMBOL, table["size"] // SYMBOL.itemsize, table["start"])
    wanted = symbols[(symbols["section"] == 0) & (symbols["name"] != 0)]["name"]
    return {names[start : names.index(b"\0", start)].decode() for start in wanted}


def missing_symbols(objects: list[bytes | None]) -> list[str]:
    """What objects name, and LLVM does not find in the process."""
    wanted = set[str]().union(*(undefined_symbols(code) for code in objects if code))
    return sorted(name for name in wanted if not llvm.address_of_symbol(name))


# --- commands -----------------------------------------------------------------------------------------------------------------------------
def report(labels: list[str]) -> None:
    """A line for each operation and dtype, one for what is missing, and one for the processor."""
    compiler.numba()
    objects = compiled_objects()
    with np.errstate(all="ignore"):
        for operation in NAMES:
            for label in labels:
                print(operation, label, digest(operation, label))
    assert len(objects) > len(NAMES) * len(labels)
    print("missing:", *missing_symbols(objects))
    print(*(name for name, has in compiler.features().items() if has))


def on(processor: str, *labels: str) -> list[str]:
    """The lines of a report on that processor; "" is the host."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    if processor:
        environment |= {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, __file__, *labels]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=900, check=True)
    return done.stdout.splitlines()


def main() -> None:
    if sys.argv[1:]:
        report(sys.argv[1:])
        return
    host, wrong = on("", *DTYPES), 0
    print(f"this processor: {len(host) - 2} digests; {host[-2]}; has {host[-1]}")
    for processor in OTHERS:
        other = on(processor, *DTYPES)
        different = [line for line, expected in zip(other[:-1], host[:-1], strict=True) if line != expected]
        wrong += len(different)
        print(f"{processor}: {len(different)} differ; has {other[-1]}", *different, sep="\n  ")
    sys.exit(bool(wrong) or host[-2] != "missing:")


if __name__ == "__main__":
    main()
