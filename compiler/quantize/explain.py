"""Measures a quantized model against its float one and writes the report."""

from collections.abc import Iterator

import onnx

from vitral.compiler.progress import Doing, Tell
from vitral.compiler.quantize.emit import restored_name
from vitral.compiler.quantize.float_graph import Array
from vitral.compiler.quantize.measure import Noise, compare_models, score
from vitral.compiler.quantize.quantize import Quantized, requantize
from vitral.compiler.quantize.report import LayerReport, Report, Suggestion
from vitral.compiler.quantize.samples import Samples
from vitral.errors import QuantizeError

__all__ = ["explain"]

SAMPLES = 64
"""Samples that noise is measured on, and that layers are tried as float on."""
LEAST_GAIN_DB = 0.5


def explain(
    quantized: Quantized,
    *,
    test: Samples | None = None,
    labels: Array | None = None,
    tries: int = 0,
    progress: Tell | None = None,
) -> Report:
    """Noise of every rounded tensor, top-1, and layers to keep float.

    Parameters
    ----------
    quantized : Quantized
    test : Samples, optional
        What top-1 is taken on; the calibration samples by default.
    labels : int array (samples,), optional
        The right class of each of them.
    tries : int
        How many layers, those that add most noise first, are tried as float one after the other;
        those that gain less than 0.5 dB at the first output are not suggested.

    Raises
    ------
    QuantizeError
        When labels do not fit.
    """
    tell = progress or (lambda doing: None)
    few = quantized.samples.first(SAMPLES)
    tell(Doing("comparing tensors", 0.0))
    noises = _noises(quantized, few)
    tell(Doing("comparing top-1", 0.3))
    data = test or quantized.samples
    outcome = score(quantized.graph.to_model(), quantized.model, data, labels)
    suggestions: list[Suggestion] = []
    for number, suggestion in enumerate(_suggest(quantized, noises, few, tries)):
        tell(Doing("trying layers as float", 0.5 + 0.5 * number / max(tries, 1)))
        suggestions += [suggestion] if suggestion is not None else []
    return Report(
        method=quantized.config.method,
        samples=quantized.samples.count,
        layers=tuple(_layer(quantized, name, noises[name]) for name in quantized.selection.tensors),
        float_nodes=tuple(
            (node.name, node.op_type)
            for node in quantized.graph.nodes
            if node.name not in quantized.selection.nodes
        ),
        equalized_pairs=quantized.equalized_pairs,
        corrected_biases=quantized.corrected_biases,
        sqnr_db=noises[_first_output(quantized)].sqnr_db,
        outcome=outcome,
        suggestions=tuple(suggestions),
    )


def _noises(quantized: Quantized, samples: Samples) -> dict[str, Noise]:
    """Noise of every rounded tensor and of the first output."""
    outputs = quantized.graph.output_names
    names = dict.fromkeys((*quantized.selection.tensors, outputs[0]))
    pairs = {name: _counterpart(quantized, name) for name in names}
    spans = {name: affine.ends for name, affine in quantized.codes.items()}
    return compare_models(quantized.graph.to_model(), quantized.model, pairs, spans, samples)


def _counterpart(quantized: Quantized, name: str) -> str:
    rounded = name in quantized.selection.tensors
    return restored_name(name, quantized.graph.output_names) if rounded else name


def _first_output(quantized: Quantized) -> str:
    return quantized.graph.output_names[0]


def _layer(quantized: Quantized, name: str, noise: Noise) -> LayerReport:
    maker = quantized.graph.producers().get(name)
    codes = quantized.codes[name]
    low, high = codes.ends
    least, most = quantized.seen[name]
    return LayerReport(
        tensor=name,
        node=maker.name if maker else "",
        op=maker.op_type if maker else "input",
        scale=float(codes.scale),
        zero_point=int(codes.zero_point),
        low=low,
        high=high,
        least=least,
        most=most,
        sqnr_db=noise.sqnr_db,
        saturated=noise.saturated,
    )


def _suggest(
    quantized: Quantized, noises: dict[str, Noise], samples: Samples, tries: int
) -> Iterator[Suggestion | None]:
    """One after the other; None for a layer that gains too little. Those that gain stay float."""
    if not tries:
        return
    exclude = quantized.config.exclude
    best = _output_sqnr(requantize(quantized, exclude), samples)
    for name in _noisiest(quantized, noises)[:tries]:
        try:
            other = _output_sqnr(requantize(quantized, (*exclude, name)), samples)
        except QuantizeError:  # nothing would be left to quantize
            continue
        if best is None or other is None or other - best < LEAST_GAIN_DB:
            yield None
            continue
        yield Suggestion(
            node=name,
            op=quantized.graph.find(name).op_type,
            sqnr_db=best,
            sqnr_db_if_float=other,
            gain_db=other - best,
        )
        exclude, best = (*exclude, name), other


def _output_sqnr(quantized: Quantized, samples: Samples) -> float | None:
    name = _first_output(quantized)
    pairs = {name: name}
    found = compare_models(quantized.graph.to_model(), quantized.model, pairs, {}, samples)
    return found[name].sqnr_db


def _noisiest(quantized: Quantized, noises: dict[str, Noise]) -> list[str]:
    """Nodes that make rounded tensors, by the share of noise that they add, the largest first."""
    shares = {
        name: noise.noise / noise.signal if noise.signal > 0 else 0.0
        for name, noise in noises.items()
    }
    added: dict[str, float] = {}
    for node in quantized.graph.nodes:
        if node.name not in quantized.selection.nodes:
            continue
        result = _rounded_result(quantized, node)
        if result is None or result in quantized.selection.followers:
            continue
        before = max((shares.get(name, 0.0) for name in node.input), default=0.0)
        added[node.name] = shares[result] - before
    return sorted(added, key=lambda name: -added[name])


def _rounded_result(quantized: Quantized, node: onnx.NodeProto) -> str | None:
    """The tensor that a node's result is rounded as: its own, or that of the clamp behind it."""
    name = node.output[0]
    while name not in quantized.codes:
        reader = quantized.graph.only_reader(name)
        if reader is None or reader.op_type not in ("Relu", "Clip"):
            return None
        name = reader.output[0]
    return name if node.op_type not in ("Relu", "Clip") else None
