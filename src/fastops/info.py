"""What this installation is made of and what it may use: versions, processor, threads, and where compiled code is kept."""

from __future__ import annotations

import importlib
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__, real_ufuncs
from .engine import compiler, threads

PACKAGES = ("numpy", "numba", "llvmlite", "tbb", "ml_dtypes", "onnx", "tqdm")
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")
Rows = Iterator[tuple[str, str]]


def version(package: str) -> str | None:
    """Without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def load_bfloat16() -> bool:
    """Whether NumPy knows bfloat16 by now: ml_dtypes tells it, if that is installed."""
    try:
        return bool(importlib.import_module("ml_dtypes"))
    except ImportError:
        return False


def why_unavailable() -> str:
    """What keeps Numba from compiling here; nothing, if it can."""
    try:
        compiler.numba()
    except compiler.Unavailable as reason:
        return str(reason)
    return ""


def processor_name() -> str:
    """As its maker calls it, where the system says so."""
    name = ""
    try:
        if sys.platform == "linux":
            found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
            name = found.group(1).strip() if found else ""
        elif sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pass
    return f"{name or platform.processor() or 'unknown'} ({platform.machine()})"


def summary() -> str:
    """Machine, versions and threads in one line."""
    parts = [processor_name(), platform.system(), f"Python {platform.python_version()}", f"NumPy {np.__version__}"]
    try:
        numba = compiler.numba()
        parts += [f"Numba {numba.__version__}", f"fastops {__version__}"]
        layer = threads.launch()
        parts.append(f"{threads.limit()} thread{'s' * (threads.limit() != 1)} by {layer or 'no layer'}")
    except compiler.Unavailable as reason:
        parts += [f"fastops {__version__}", f"NO NUMBA, fastops runs NumPy's own loops ({reason})"]
    return "; ".join(parts)


def cache_place() -> Path | None:
    """The folder where Numba keeps fastops' compiled code: in NUMBA_CACHE_DIR if that is set, else beside the sources, else in the user's
    cache; None if it can keep it nowhere."""
    compiler.numba()
    from .kernels import loops

    return compiler.cache_folder(loops.inner_loop)


def cache_text(place: Path | None) -> str:
    if place is None:
        return "none: neither the sources' folder nor a cache folder is writable; every process compiles anew"
    asked = compiler.numba().config.CACHE_DIR
    outside = "NUMBA_CACHE_DIR" if asked and place.is_relative_to(asked) else "the user's"
    return f"{place} ({'beside the sources' if place.name == '__pycache__' else outside})"


def cached(place: Path) -> list[str]:
    """The names of the compiled functions in that folder which this process would load: of these sources, versions and processor."""
    tag = f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    ours = re.compile(rf"\w+\.(\w+)_{compiler.stamp()}-\d+\.{tag}\.nbi")
    return sorted(found.group(1) for file in place.glob("*.nbi") if (found := ours.fullmatch(file.name)))


def size_of(files: list[Path]) -> str:
    return f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


def lines() -> Iterator[str]:
    """For people to read, and to quote in a report."""
    for label, text in rows():
        yield f"{label:12}{text}".rstrip()


def rows() -> Rows:
    yield "fastops", __version__
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"
    for package in PACKAGES:
        yield package, version(package) or "not installed"
    if real_ufuncs.problem:
        yield "ufuncs", f"NumPy's own, with its loops, for all but large arrays: {real_ufuncs.problem}"
    if reason := why_unavailable():
        yield "processor", processor_name()
        yield "compiling", f"NOT AVAILABLE, fastops runs NumPy's own loops: {reason}"
    else:
        yield from rows_of_processor()
        yield from rows_of_threads()
        yield from rows_of_cache()


def rows_of_processor() -> Rows:
    features = compiler.features()
    yield "processor", f"{processor_name()}; Numba compiles for {compiler.target()[1]}"
    yield "", f"fused multiply-add: {'used' if features['fused'] else 'not there'}"
    yield "", f"half-precision conversions: {'used' if features['half'] else 'not there'}"
    yield "", f"64-bit integers to double precision in SIMD lanes: {'used' if features['wide'] else 'not there'}"


def rows_of_threads() -> Rows:
    layer = threads.launch()
    yield "threads", f"up to {threads.limit()}, by the layer {layer or 'none'}"
    yield "", f"processors that this process may run on: {threads.processors()}"
    yield "", f"quota of its control group: {threads.cpu_quota() or 'none'}"
    yield "", f"Numba's own limit: {compiler.numba().get_num_threads()}"


def rows_of_cache() -> Rows:
    place = cache_place()
    names: list[str] = []
    yield "cache", cache_text(place)
    if place is not None:
        files = [file for file in place.iterdir() if file.suffix in (".nbi", ".nbc")]
        fresh = [file for file in files if f"_{compiler.stamp()}-" in file.name]
        names = cached(place)
        yield "", f"{size_of(files)}; of these sources, versions and processor: {size_of(fresh)}"
    yield from rows_of_functions("loops", "in the cache", names)
    yield from rows_of_functions("", "in this process", [made.name for made in compiler.compiled()])


def data() -> dict[str, Any]:
    """The same for programs; what only a Numba that works can tell is left out where there is none."""
    told = {
        "fastops": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {package: version(package) for package in PACKAGES},
        "processor": processor_name(),
        "problem": real_ufuncs.problem or why_unavailable() or None,
    }
    if why_unavailable():
        return told
    place, layer = cache_place(), threads.launch()
    return {
        **told,
        "target": compiler.target()[1],
        "features": compiler.features(),
        "threads": {
            "limit": threads.limit(),
            "layer": layer or None,
            "processors": threads.processors(),
            "quota": threads.cpu_quota(),
            "numba_limit": int(compiler.numba().get_num_threads()),
        },
        "cache": place and str(place),
        "cached": cached(place) if place else [],
        "compiled": [made.name for made in compiler.compiled()],
    }


def rows_of_functions(label: str, where: str, names: list[str]) -> Rows:
    """A row for each operation with its dtypes in their usual order, and one for whatever else was compiled."""
    yield label, f"compiled, {where}:{'' if names else ' none'}"
    others = list(names)
    for operation in ("remainder", "fmod", "scatter_div"):
        dtypes = [dtype for dtype in DTYPES if f"{operation}_{dtype}" in names]
        others = [name for name in others if name not in {f"{operation}_{dtype}" for dtype in dtypes}]
        if dtypes:
            yield "", f"  {operation}: {' '.join(dtypes)}"
    if others:
        yield "", f"  others: {' '.join(others)}"
