"""An ONNX model with the operator Mod, made, saved, loaded, and evaluated by ONNX's reference evaluator with fastops' Mod.

    python examples/onnx_model.py
    python examples/onnx_model.py --rows 1000000

The model hashes identifiers into buckets, as the input of an embedding does, and folds angles. It needs onnx,
`pip install 'fastops-numba[onnx]'`.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import fastops.onnx

MODEL = """
<ir_version: 8, opset_import: ["": 13]>
features (int64[rows, columns] ids, float[rows] angles) => (int64[rows, columns] bucket, float[rows] folded)
{
    factor = Constant <value = int64 {2654435761}> ()
    buckets = Constant <value = int64 {100003}> ()
    turn = Constant <value = float {6.2831855}> ()
    hashed = Mul (ids, factor)
    bucket = Mod (hashed, buckets)
    folded = Mod <fmod = 1> (angles, turn)
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="number of rows (1000000)")
    rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    feeds = {"ids": rng.integers(-(2**40), 2**40, (rows, 4)), "angles": rng.normal(0, 1000, rows).astype(np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "features.onnx"
        onnx.save(onnx.parser.parse_model(MODEL), file)
        model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)

    own, fast = ReferenceEvaluator(model), ReferenceEvaluator(model, new_ops=[fastops.onnx.Mod])
    fast.run(None, feeds)  # compiles, or loads what an earlier run has compiled
    start = time.perf_counter()
    got = fast.run(None, feeds)
    middle = time.perf_counter()
    want = own.run(None, feeds)
    end = time.perf_counter()
    for name, x, y in zip(fast.output_names, got, want, strict=True):
        assert x.dtype == y.dtype
        assert x.tobytes() == y.tobytes(), name
    assert got[0].tobytes() == np.mod(feeds["ids"] * 2654435761, 100003).tobytes()
    print(f"with fastops.onnx.Mod {1e3 * (middle - start):8.1f} ms   ONNX's own {1e3 * (end - middle):8.1f} ms")
    print("OK")


if __name__ == "__main__":
    main()
