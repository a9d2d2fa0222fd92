"""Which models with ONNX's Mod the engines allow."""

from __future__ import annotations

import numpy as np
from edge_cases import Rule
from remainders import onnx_model, onnx_session
from values import Array, differences, right_remainder

ENGINES = {"fastops.onnx": "fastops", "ONNX Runtime": "onnxruntime", "onnx.reference": "onnx"}  # and the packages that they need


def run(engine: str, rule: Rule, x: Array, y: Array) -> Array:
    out = np.empty_like(x)
    if engine == "ONNX Runtime":
        return onnx_session(rule.fmod, rule.opset, x, y, out, 1).result()
    if engine == "onnx.reference":
        from onnx.reference import ReferenceEvaluator

        (result,) = ReferenceEvaluator(onnx_model(rule.fmod, rule.opset, x, y, out)).run(None, {"x": x, "y": y})
        return np.asarray(result)
    import fastops.onnx

    return np.asarray(fastops.onnx.mod(x, y, fmod=rule.fmod, opset=rule.opset))


def judged_rule(engine: str, rule: Rule) -> tuple[str, str]:
    x, y = (np.array(numbers).astype(name) for numbers, name in zip(([-7, 7, -7], [3, -3, -3]), rule.dtypes, strict=True))
    try:
        result = run(engine, rule, x, y)
    except Exception as error:
        return "refused" if rule.allowed else "right", type(error).__name__
    if not rule.allowed:
        return "wrong", f"no error, but {result.tolist()}"
    expected = right_remainder("fmod" if rule.fmod else "remainder", x, y)
    if result.dtype != expected.dtype or differences(result, expected)[0]:
        return "wrong", f"{result.dtype} {result.tolist()}, not {expected.dtype} {expected.tolist()}"
    return "right", ""
