"""The operands that `fastops explain` is asked about, by the texts that name them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import info


class Wrong(Exception):
    """What was asked for is no call: the text says why."""


def operand(text: str) -> Any:
    """An operand without content, by a text as `float32[1000,500]`, `int64[100][::2]`, `float32[20,30].T`, `float32` (a scalar) or `7`."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    found = re.fullmatch(r"([<>=]?\w+)(?:\[([\d,\s]*)\])?((?:\.T|\[[^\[\]]+\])*)", text)
    if not found or (found[3] and found[2] is None):
        raise Wrong(f"{text!r} is no operand such as float32[1000,500], int64[100][::2], float32[20,30].T, float32 or 7")
    try:
        dtype = dtype_of(found[1])
        if found[2] is None:
            return np.ones((), dtype)[()]
        x = np.zeros([int(length) for length in found[2].split(",") if length.strip()], dtype)  # which touches no memory
        for step in re.findall(r"\.T|\[[^\]]+\]", found[3]):
            x = x.T if step == ".T" else x[tuple(map(_index, step[1:-1].split(",")))]
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise Wrong(f"{text!r}: {error}") from None
    return x


def dtype_of(name: str) -> np.dtype[Any]:
    if name == "bfloat16" and not info.load_bfloat16():
        raise Wrong("bfloat16 needs the package ml_dtypes, which is not installed")
    try:
        return np.dtype(name)
    except (TypeError, ValueError):
        raise Wrong(f"{name!r} is no dtype, such as {', '.join(info.DTYPES)}") from None


def _index(text: str) -> Any:
    """What stands between the commas of an index."""
    text = text.strip()
    if text in ("...", "None"):
        return {"...": ..., "None": None}[text]
    bounds = [int(bound) if bound.strip() else None for bound in text.split(":")]
    return slice(*bounds) if ":" in text else bounds[0]
