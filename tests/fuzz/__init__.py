"""Differential fuzzing: random quantized graphs against the oracle and onnxruntime.

    cd tests && python -m fuzz --n 5000                 # on fsim; also --device tsim
    cd tests && python -m fuzz --replay FILE.onnx       # a graph that failed
    cd tests && python -m fuzz --malformed --n 1000     # broken models: one line each, no hang

`generate` draws graphs, `check` judges one, `minimise` cuts a failing one down, `malformed` breaks
models. Everything follows from a seed.
"""

from fuzz.generate import Sample, random_sample

__all__ = ["Sample", "random_sample"]
