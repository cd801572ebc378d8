"""What is wrong with a graph's result: against the oracle, and the oracle against onnxruntime."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import oracle

import vitral
from fuzz.band import deviation
from fuzz.cut import cut
from fuzz.generate import Sample, random_sample
from fuzz.network import Array
from vitral.errors import VitralError

__all__ = ["Failure", "differs", "find_failure", "minimise"]


@dataclass(frozen=True, eq=False)
class Failure:
    """A graph, its inputs, and what went wrong with it in one line."""

    text: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]


def find_failure(seed: int, device: str = "fsim", *, judge: bool = True) -> Failure | None:
    """Draw a graph and judge it; with `judge`, the oracle too, by onnxruntime.

    A failing graph comes back as small as cutting makes it.
    """
    sample = random_sample(seed)
    text = differs(sample.model, sample.feeds, device)
    if text is not None:
        model, feeds = minimise(sample.model, sample.feeds, device)
        return Failure(f"seed {seed}: {text}", model, feeds)
    return _misjudged(sample) if judge else None


def differs(model: onnx.ModelProto, feeds: Mapping[str, Array], device: str) -> str | None:
    """How a device's result is not the oracle's, in one line; None when all bytes are equal."""
    expected = oracle.evaluate(model, feeds, outputs_only=True)
    try:
        module = vitral.compile(model)
        with vitral.Session(module, device) as session:
            got = dict(zip(expected, session.run(list(expected), feeds), strict=True))
    except VitralError as error:
        return f"refused: {error}"
    except Exception as error:  # whatever a bug raises is what is looked for
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    for name, want in expected.items():
        ours = got[name]
        if (ours.dtype, ours.shape) != (want.dtype, want.shape):
            return f"{name!r} is {ours.dtype}{ours.shape}, not {want.dtype}{want.shape}"
        count = np.count_nonzero(ours != want)
        if count:
            return f"{name!r}: {count} of {want.size} elements differ"
    return None


def minimise(
    model: onnx.ModelProto, feeds: Mapping[str, Array], device: str
) -> tuple[onnx.ModelProto, Mapping[str, Array]]:
    """A smaller part that fails too: one output, and inputs as near to it as can be."""
    values = {**oracle.evaluate(model, feeds), **feeds}
    codes = {n: v for n, v in values.items() if v.dtype.name in ("int8", "uint8")}
    wanted = [output.name for output in model.graph.output]
    best, best_feeds, given = model, feeds, dict(feeds)
    tries = [([name], given) for name in wanted]
    while tries:
        outputs, inside = tries.pop(0)
        part, part_feeds = cut(best, outputs, inside)
        if len(part.graph.node) >= len(best.graph.node):
            continue
        if differs(part, part_feeds, device) is None:
            continue
        best, best_feeds = part, part_feeds
        made = [name for node in part.graph.node for name in node.output]
        tries = [(outputs, {**part_feeds, n: codes[n]}) for n in reversed(made) if n in codes]
        tries = [(o, i) for o, i in tries if not set(outputs) & (i.keys() - part_feeds.keys())]
    return best, best_feeds


def _misjudged(sample: Sample) -> Failure | None:
    """Whether the oracle and onnxruntime differ by more than rounding errors explain."""
    unrounded: dict[str, Array] = {}
    values = oracle.evaluate(sample.model, sample.feeds, unrounded=unrounded)
    plain = random_sample(sample.seed, qdq_only=True)
    codes = {**values, **sample.feeds}
    text = deviation(plain.model, codes, unrounded, plain.slack)
    if text is None:
        return None
    return Failure(f"seed {sample.seed}: onnxruntime: {text}", plain.model, plain.feeds)
