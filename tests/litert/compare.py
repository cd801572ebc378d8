"""Runs one model through Vitral and through LiteRT and compares the bytes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import vitral
from litert.interpreter import run_litert
from vitral.compiler.frontends.tflite import TfliteRounding
from vitral.runtime.module import Module

__all__ = ["assert_same_bytes", "random_feeds", "run_module"]


def assert_same_bytes(
    model: bytes,
    *,
    rounding: TfliteRounding = "reference",
    device: str = "fsim",
    seed: int = 0,
    feeds: Sequence[npt.NDArray] | None = None,
    telling: bool = True,
) -> Module:
    """Every output byte equals LiteRT's with the kernels of that name; gives the module.

    The inputs are `feeds`, or random ones of `seed`. Outputs that hold next to nothing fail too, if
    they have to be `telling`.
    """
    module = vitral.compile(model, tflite_rounding=rounding)
    feeds = random_feeds(module, seed) if feeds is None else feeds
    expected = run_litert(model, feeds, rounding)
    actual = run_module(module, feeds, device)
    names = [info.name for info in module.outputs]
    for name, theirs, ours in zip(names, expected, actual, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), name
        wrong = np.flatnonzero(ours.reshape(-1) != theirs.reshape(-1))
        assert not wrong.size, (
            f"seed {seed}, output {name}: {wrong.size} of {theirs.size} bytes differ, the first at"
            f" {wrong[0]}: {ours.reshape(-1)[wrong[0]]}, LiteRT {theirs.reshape(-1)[wrong[0]]}"
        )
        assert not telling or theirs.size < 100 or np.unique(theirs).size > 3, (
            f"output {name} says nothing"
        )
    return module


def random_feeds(module: Module, seed: int) -> list[npt.NDArray]:
    """Codes, or reals around 0, for every input."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=info.shape).astype(np.float32)
        if info.dtype == "float32"
        else rng.integers(
            np.iinfo(info.dtype).min, np.iinfo(info.dtype).max + 1, info.shape
        ).astype(info.dtype)
        for info in module.inputs
    ]


def run_module(
    module: Module, feeds: Sequence[npt.NDArray], device: str = "fsim"
) -> list[npt.NDArray]:
    """The outputs on a device, in the model's order."""
    named = {info.name: array for info, array in zip(module.inputs, feeds, strict=True)}
    with vitral.Session(module, device=device) as session:
        return session.run(None, named)
