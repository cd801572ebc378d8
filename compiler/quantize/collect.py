"""Runs a model on samples in onnxruntime and hands over what its tensors hold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx

from vitral.compiler.quantize.config import QuantizeConfig
from vitral.compiler.quantize.flat_ends import cut_flat_ends
from vitral.compiler.quantize.float_graph import FloatGraph
from vitral.compiler.quantize.histogram import Extent, Histogram
from vitral.compiler.quantize.ranges import Range, around_zero, choose_range
from vitral.compiler.quantize.samples import Samples
from vitral.compiler.quantize.select import Selection
from vitral.errors import QuantizeError

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["Step", "measure_ranges", "open_session", "run_tensors"]

Array = npt.NDArray[Any]
Step = Callable[[float], None]
"""Takes the part of the work, 0 to 1, that is done."""
_ERRORS_ONLY = 3


def open_session(
    model: onnx.ModelProto, outputs: Iterable[str] = (), *, plain: bool = False
) -> "onnxruntime.InferenceSession":
    """A session on the CPU that also gives the tensors `outputs`.

    Parameters
    ----------
    plain : bool
        Without fusing operators: quantized models then run in float between their codes. Fused
        int8 kernels of onnxruntime saturate on some processors.

    Raises
    ------
    QuantizeError
        When onnxruntime is missing or cannot run the model.
    """
    try:
        import onnxruntime as ort
    except ModuleNotFoundError:
        raise QuantizeError(
            "calibration runs in onnxruntime; pip install 'vitral[quantize]'"
        ) from None
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {output.name for output in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in outputs if n not in known)
    options = ort.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if plain:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(
            copy.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's exceptions share no class of their own
        text = " ".join(str(error).split())
        raise QuantizeError(f"onnxruntime cannot run the model: {text}") from None


def run_tensors(
    session: "onnxruntime.InferenceSession",
    samples: Samples,
    names: Sequence[str],
    step: Step | None = None,
) -> Iterator[dict[str, Array]]:
    """The tensors `names` of one batch after the other; model inputs may be among them."""
    wanted = [name for name in names if name not in samples.arrays]
    for done, feeds in enumerate(samples, 1):
        try:
            results = session.run(wanted, feeds) if wanted else []
        except Exception as error:
            text = " ".join(str(error).split())
            raise QuantizeError(f"onnxruntime cannot run the samples: {text}") from None
        found = dict(zip(wanted, map(np.asarray, results), strict=True))
        yield found | {name: feeds[name] for name in names if name in feeds}
        if step is not None:
            step(done / len(samples))


def measure_ranges(
    graph: FloatGraph,
    selection: Selection,
    samples: Samples,
    config: QuantizeConfig,
    step: Step | None = None,
) -> tuple[dict[str, Range], dict[str, Range]]:
    """Range of each of the selection's tensors, and the least and largest values seen.

    The first run finds extents; methods other than minmax run again for histograms, whose memory
    does not grow with the samples. Ends beyond which the functions behind a tensor are flat are
    cut off first. Tensors that share a scale get the union of their ranges.

    Raises
    ------
    QuantizeError
        When a tensor is not finite on the samples.
    """
    names = list(selection.tensors)
    session = open_session(graph.to_model(), names)
    passes = 1 if config.method == "minmax" else 2
    extents = {name: Extent() for name in names}
    for tensors in run_tensors(session, samples, names, _part(step, 0, passes)):
        for name, values in tensors.items():
            extents[name].add(values)
            if not np.isfinite([extents[name].low, extents[name].high]).all() and values.size:
                raise QuantizeError(f"tensor {name!r} is not finite on the calibration samples")
    seen = {n: (e.low, e.high) if e.high >= e.low else (0.0, 0.0) for n, e in extents.items()}
    ends = cut_flat_ends(graph, selection, seen)
    if config.method == "minmax":
        own = {name: around_zero(*ends[name], config.activations) for name in names}
    else:
        histograms = {name: Histogram(*ends[name]) for name in names}
        leaders = [name for name in names if name not in selection.followers]
        for tensors in run_tensors(session, samples, leaders, _part(step, 1, passes)):
            for name, values in tensors.items():
                histograms[name].add(values)
        own = {name: choose_range(histograms[name], config) for name in leaders}
    return _shared(own, selection), seen


def _shared(own: dict[str, Range], selection: Selection) -> dict[str, Range]:
    united: dict[str, Range] = {}
    for name, (low, high) in own.items():
        head = selection.groups[name]
        if name in selection.followers:
            continue
        least, most = united.get(head, (low, high))
        united[head] = min(least, low), max(most, high)
    return {name: united[selection.groups[name]] for name in selection.tensors}


def _part(step: Step | None, index: int, count: int) -> Step | None:
    return None if step is None else lambda share: step((index + share) / count)
