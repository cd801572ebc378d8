"""Comparison with onnxruntime, each group of a graph on its own, within a band per value.

The graph is taken in QDQ form and run without rewriting, in float32. Every quantized tensor is fed
with the oracle's codes, so that one group's deviation does not reach the next. A code may differ by
one, and only where the value before rounding lies so near the middle between two codes that the
error of float32 arithmetic on these very operands can carry it across.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from fuzz.magnitude import Magnitudes
from fuzz.network import Array

__all__ = ["deviation"]

_UNIT = 2.0**-24


@cache
def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return options


def deviation(
    model: onnx.ModelProto,
    codes: Mapping[str, Array],
    unrounded: Mapping[str, Array],
    slack: Mapping[str, float],
) -> str | None:
    """The first tensor outside its band in a few words, or None.

    `codes` are the oracle's tensors, `unrounded` what each rounding started from, in steps.
    """
    graph = model.graph
    rounded = {n.output[0]: n.input[1] for n in graph.node if n.op_type == "QuantizeLinear"}
    scales = {c.name: onnx.numpy_helper.to_array(c) for c in graph.initializer}
    magnitudes = Magnitudes(graph, {name: array.shape for name, array in codes.items()})
    results = _run(model, codes, rounded, magnitudes)
    for name, got in results.items():
        if name not in codes:
            continue
        band: Array = np.zeros(got.shape)
        if name in magnitudes.names:
            steps = results[magnitudes.names[name]].astype(np.float64) / scales[rounded[name]]
            band = steps * (magnitudes.terms[name] + 8) * _UNIT + slack.get(name, 0.0)
        outside = _outside(codes[name], got, unrounded.get(name), band)
        if outside is not None:
            return f"{name!r}: {outside}"
    return None


def _outside(want: Array, got: Array, unrounded: Array | None, band: Array) -> str | None:
    apart = np.abs(want.astype(np.int64) - got.astype(np.int64))
    if not apart.any():
        return None
    if unrounded is None:
        return f"{np.count_nonzero(apart)} of {want.size} elements differ, without a rounding"
    steps = np.broadcast_to(unrounded, want.shape)
    to_tie = np.abs(steps - np.floor(steps) - 0.5)
    bad = (apart > 1) | ((apart == 1) & (to_tie > band))
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return (
        f"{np.count_nonzero(bad)} of {want.size} elements outside the band; at {list(at)}"
        f" {want[at]} for onnxruntime's {got[at]}, {steps[at]:.7g} steps before rounding,"
        f" band {np.broadcast_to(band, want.shape)[at]:.2g}"
    )


def _run(
    model: onnx.ModelProto,
    codes: Mapping[str, Array],
    rounded: Mapping[str, str],
    magnitudes: Magnitudes,
) -> dict[str, Array]:
    """onnxruntime's integer tensors, and the magnitudes, with every rounded tensor fed."""
    fed = {name: f"{name}.fed" for name in rounded}
    nodes = []
    for node in (*model.graph.node, *magnitudes.nodes):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [fed.get(name, name) for name in node.input]
        nodes.append(copy)
    inputs = [
        *model.graph.input,
        *(_info(fed[name], codes[name]) for name in rounded),
    ]
    made = {name for node in model.graph.node for name in node.output}
    names = [name for name in codes if name in made and codes[name].dtype.kind in "iu"]
    outputs = [_info(name, codes[name]) for name in names]
    outputs += [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in dict.fromkeys(magnitudes.names.values())
    ]
    graph = helper.make_graph(
        nodes, "groups", inputs, outputs, [*model.graph.initializer, *magnitudes.constants]
    )
    whole = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    session = onnxruntime.InferenceSession(
        whole.SerializeToString(), _options(), providers=["CPUExecutionProvider"]
    )
    feeds = {i.name: codes[i.name.removesuffix(".fed")] for i in inputs}
    wanted = [info.name for info in outputs]
    return dict(zip(wanted, map(np.asarray, session.run(wanted, feeds)), strict=True))


def _info(name: str, array: Array) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)
