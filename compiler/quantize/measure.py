"""Compares a quantized model with the float one: noise, saturation, agreement, accuracy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from vitral.compiler.quantize.collect import Step, open_session, run_tensors
from vitral.compiler.quantize.ranges import Range
from vitral.compiler.quantize.samples import Samples
from vitral.errors import QuantizeError

__all__ = ["Noise", "Outcome", "check_labels", "compare_models", "decibels", "score"]

Array = npt.NDArray[Any]


@dataclass
class Noise:
    """Sums over samples: power of a float tensor, of its difference, and values out of range."""

    signal: float = 0.0
    noise: float = 0.0
    outside: int = 0
    count: int = 0

    def add(self, wanted: Array, got: Array, span: Range | None = None) -> None:
        exact = wanted.astype(np.float64)
        self.signal += float((exact**2).sum())
        self.noise += float(((exact - got) ** 2).sum())
        self.count += exact.size
        if span is not None:
            self.outside += int(((exact < span[0]) | (exact > span[1])).sum())

    @property
    def sqnr_db(self) -> float | None:
        return decibels(self.signal, self.noise)

    @property
    def saturated(self) -> float:
        """Share of values beyond the range of codes."""
        return self.outside / self.count if self.count else 0.0


def decibels(signal: float, noise: float) -> float | None:
    """10 log10(signal / noise); None where one of them is 0."""
    return 10 * float(np.log10(signal / noise)) if signal > 0 and noise > 0 else None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Largest outputs compared: `agreement` of both models, `float_top1` and `int8_top1` of each
    with the labels, as shares of `rows`; accuracies are None without labels."""

    rows: int
    agreement: float
    float_top1: float | None = None
    int8_top1: float | None = None


def compare_models(
    model: onnx.ModelProto,
    quantized: onnx.ModelProto,
    pairs: Mapping[str, str],
    spans: Mapping[str, Range],
    samples: Samples,
    step: Step | None = None,
) -> dict[str, Noise]:
    """Noise of each tensor of `pairs`: its name in the float model to the one in the quantized.

    Both run in onnxruntime, the quantized model without fused kernels.
    """
    ours, theirs = list(pairs), list(pairs.values())
    exact = run_tensors(open_session(model, ours), samples, ours, step)
    rounded = run_tensors(open_session(quantized, theirs, plain=True), samples, theirs)
    found = {name: Noise() for name in pairs}
    for wanted, got in zip(exact, rounded, strict=True):
        for name, other in pairs.items():
            found[name].add(wanted[name], got[other], spans.get(name))
    return found


def score(
    model: onnx.ModelProto,
    quantized: onnx.ModelProto,
    samples: Samples,
    labels: Array | None = None,
    step: Step | None = None,
) -> Outcome:
    """Top-1 of the first output, along its last axis.

    Parameters
    ----------
    labels : int array (samples,), optional
        The right index of each sample.

    Raises
    ------
    QuantizeError
        When labels do not fit.
    """
    names = [model.graph.output[0].name]
    if labels is not None:
        check_labels(labels, samples.count)
    picks: tuple[list[Array], list[Array]] = ([], [])
    sessions = (open_session(model), open_session(quantized, plain=True))
    for batches in zip(
        run_tensors(sessions[0], samples, names, step),
        run_tensors(sessions[1], samples, names),
        strict=True,
    ):
        for found, tensors in zip(picks, batches, strict=True):
            found.append(np.argmax(tensors[names[0]], axis=-1).reshape(-1))
    wanted, got = (np.concatenate(found) for found in picks)
    agreement = float((wanted == got).mean())
    if labels is None:
        return Outcome(rows=len(wanted), agreement=agreement)
    if len(wanted) != len(labels):
        raise QuantizeError(
            f"labels: needs one top-1 for each sample, got {len(wanted)} for {len(labels)}"
        )
    return Outcome(
        rows=len(wanted),
        agreement=agreement,
        float_top1=float((wanted == labels).mean()),
        int8_top1=float((got == labels).mean()),
    )


def check_labels(labels: Array, samples: int) -> None:
    """One whole number for each sample."""
    if labels.dtype.kind not in "iu" or labels.shape != (samples,):
        raise QuantizeError(
            f"labels: needs integers of shape [{samples}], got {labels.dtype} {list(labels.shape)}"
        )
