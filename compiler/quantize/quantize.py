"""From a float ONNX model to an int8 one in QDQ form."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import onnx

from vitral.compiler.frontends.onnx.model import Source
from vitral.compiler.progress import Doing, Tell
from vitral.compiler.quantize.codes import Affine, activation_codes
from vitral.compiler.quantize.collect import Step, measure_ranges
from vitral.compiler.quantize.config import QuantizeConfig
from vitral.compiler.quantize.correct import correct_biases
from vitral.compiler.quantize.emit import emit
from vitral.compiler.quantize.equalize import equalize
from vitral.compiler.quantize.float_graph import FloatGraph
from vitral.compiler.quantize.fold_scales import fold_scales
from vitral.compiler.quantize.prepare import prepare
from vitral.compiler.quantize.ranges import Range
from vitral.compiler.quantize.samples import Calibration, Samples, load_samples
from vitral.compiler.quantize.select import Selection, select

__all__ = ["Quantized", "quantize", "quantize_model", "requantize"]


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """A quantized model and what it was made from.

    Parameters
    ----------
    model : onnx.ModelProto
        int8, QDQ form.
    graph : FloatGraph
        The float model as it was rounded: scales folded, channels equalised; biases before their
        correction.
    codes : dict
        Scale and zero point of each rounded tensor.
    seen : dict
        Least and largest value of each on the samples.
    """

    model: onnx.ModelProto
    graph: FloatGraph
    selection: Selection
    codes: dict[str, Affine]
    seen: dict[str, Range]
    samples: Samples
    config: QuantizeConfig
    equalized_pairs: int
    corrected_biases: int


def quantize_model(
    model: Source,
    calibration: Calibration,
    config: QuantizeConfig | None = None,
    *,
    shapes: Mapping[str, tuple[int, ...] | int] | None = None,
    progress: Tell | None = None,
) -> onnx.ModelProto:
    """Quantize a float ONNX model on calibration data.

    Parameters
    ----------
    model : ModelProto, bytes or path
        float32, opset 7 or later.
    calibration : mapping of input name to array, an array, or the path of an .npz or .npy file
        Samples along the first axis, as the model takes them: a few hundred are enough.
    config : QuantizeConfig, optional
    shapes : mapping, optional
        Sizes of symbolic dimensions, as `vitral.compile` takes them.
    progress : callable, optional
        Told what is done next.

    Returns
    -------
    onnx.ModelProto
        Standard QDQ form: int8 activations per tensor, symmetric int8 weights, int32 biases;
        names of inputs and outputs are the float model's. `vitral.compile` takes it, and so do
        onnxruntime and others.

    Raises
    ------
    QuantizeError, CompileError
        For a model, data or choices that do not fit, in one line.
    """
    return quantize(model, calibration, config, shapes=shapes, progress=progress).model


def quantize(
    model: Source,
    calibration: Calibration,
    config: QuantizeConfig | None = None,
    *,
    shapes: Mapping[str, tuple[int, ...] | int] | None = None,
    progress: Tell | None = None,
) -> Quantized:
    """`quantize_model` with all that a report needs."""
    chosen = config or QuantizeConfig()
    tell = progress or (lambda doing: None)
    tell(Doing("reading the model", 0.0))
    graph = prepare(model, shapes)
    samples = load_samples(graph, calibration, chosen.batch)
    fold_scales(graph)
    pairs = equalize(graph) if chosen.equalize else 0
    selection = select(graph, chosen.exclude)
    share = 0.6 if chosen.bias_correction else 0.9
    spans, seen = measure_ranges(
        graph, selection, samples, chosen, _step(tell, "calibrating", 0.05, share)
    )
    codes = {name: activation_codes(span, chosen) for name, span in spans.items()}
    corrected, target = 0, graph
    if chosen.bias_correction:
        target = FloatGraph(graph.to_model())
        step = _step(tell, "correcting biases", share, 0.9)
        corrected = correct_biases(target, selection, codes, samples, chosen, step)
    tell(Doing("writing codes", 0.95))
    return Quantized(
        model=emit(target, selection, codes, chosen),
        graph=graph,
        selection=selection,
        codes=codes,
        seen=seen,
        samples=samples,
        config=chosen,
        equalized_pairs=pairs,
        corrected_biases=corrected,
    )


def requantize(quantized: Quantized, exclude: tuple[str, ...]) -> Quantized:
    """The same model with these nodes float, without bias correction."""
    config = replace(quantized.config, exclude=exclude, bias_correction=False)
    graph = quantized.graph
    selection = select(graph, exclude)
    codes, seen = quantized.codes, quantized.seen
    if not codes.keys() >= set(selection.tensors):
        spans, seen = measure_ranges(graph, selection, quantized.samples, config)
        codes = {name: activation_codes(span, config) for name, span in spans.items()}
    return replace(
        quantized,
        model=emit(graph, selection, codes, config),
        selection=selection,
        codes=codes,
        seen=seen,
        config=config,
        corrected_biases=0,
    )


def _step(tell: Tell, text: str, low: float, high: float) -> Step:
    return lambda share: tell(Doing(text, low + share * (high - low)))
