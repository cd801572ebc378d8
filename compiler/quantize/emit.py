"""Writes the QDQ form: codes, scales and zero points around every operator that was chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from vitral.compiler.quantize.codes import Affine, layer_codes, tensor_codes
from vitral.compiler.quantize.config import QuantizeConfig
from vitral.compiler.quantize.float_graph import Array, FloatGraph
from vitral.compiler.quantize.products import as_product
from vitral.compiler.quantize.select import Selection
from vitral.errors import QuantizeError

__all__ = ["emit", "restored_name"]

IR_VERSION = 8
"""The oldest form that holds all that is written; the model's own when that is newer."""


def emit(
    graph: FloatGraph,
    selection: Selection,
    codes: Mapping[str, Affine],
    config: QuantizeConfig,
) -> onnx.ModelProto:
    """The model with QuantizeLinear and DequantizeLinear at each of the selection's tensors.

    Names of inputs and outputs stay; a tensor `t` becomes `t_quantized` in codes and
    `t_dequantized` behind them. Weights are int8 constants and biases int32 ones, each behind a
    DequantizeLinear.

    Raises
    ------
    QuantizeError
        When the result is no valid model: an error of ours.
    """
    return _Writer(graph, selection, codes, config).model()


def restored_name(name: str, outputs: Sequence[str]) -> str:
    """The float tensor behind the codes of tensor `name`."""
    return name if name in outputs else f"{name}_dequantized"


class _Writer:
    def __init__(
        self,
        graph: FloatGraph,
        selection: Selection,
        codes: Mapping[str, Affine],
        config: QuantizeConfig,
    ) -> None:
        self.graph, self.selection, self.codes, self.config = graph, selection, codes, config
        self.target = FloatGraph(graph.to_model())
        self.target.nodes = []
        self.makers = {name: node.name for node in graph.nodes for name in node.output}
        self._shared: dict[str, tuple[str, str]] = {}
        self._constants: dict[tuple[str, ...], str] = {}

    def model(self) -> onnx.ModelProto:
        rounded = set(self.selection.tensors)
        for name in self.graph.input_names:
            if name in rounded:
                self._round(name, name)
        for node in self.graph.nodes:
            self._node(node, rounded)
        self.target.sweep()
        self.target.ir_version = max(self.target.ir_version, IR_VERSION)
        model = self.target.to_model()
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception as error:  # onnx's checker and its shape inference raise their own
            text = " ".join(str(error).split())
            raise QuantizeError(f"the quantized model is not valid: {text}") from None
        return model

    def _node(self, node: onnx.NodeProto, rounded: set[str]) -> None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        reads = node.name in self.selection.nodes
        copy.input[:] = [self._source(name, reads, rounded) for name in node.input]
        if reads:
            self._layer(node, copy)
            self._operands(node, copy)
        outputs = list(node.output)
        copy.output[:] = [
            f"{n}_float" if n in rounded and n in self.graph.output_names else n for n in outputs
        ]
        self.target.nodes.append(copy)
        for name, made in zip(outputs, copy.output, strict=True):
            if name in rounded:
                self._round(name, made)

    def _source(self, name: str, reads: bool, rounded: set[str]) -> str:
        """What a node reads for tensor `name`; a float node between float ones, the tensor."""
        if name not in rounded:
            return name
        made_by_float = self.makers.get(name, "") not in self.selection.nodes
        if not reads and made_by_float and name not in self.graph.output_names:
            return name
        return restored_name(name, self.graph.output_names)

    def _round(self, name: str, source: str) -> None:
        scale, zero = self._pair(name)
        middle, last = f"{name}_quantized", restored_name(name, self.graph.output_names)
        self._append("QuantizeLinear", [source, scale, zero], middle)
        self._append("DequantizeLinear", [middle, scale, zero], last)

    def _pair(self, name: str) -> tuple[str, str]:
        """Scale and zero point, one pair for all tensors that share them."""
        head = self.selection.groups[name]
        if head not in self._shared:
            affine = self.codes[name]
            scale = self.target.constant(f"{head}_scale", np.array(affine.scale))
            zero = self.target.constant(f"{head}_zero_point", np.array(affine.zero_point))
            self._shared[head] = scale, zero
        return self._shared[head]

    def _layer(self, node: onnx.NodeProto, copy: onnx.NodeProto) -> None:
        product = as_product(self.graph, node)
        if product is None:
            return
        codes = layer_codes(product, self.codes[node.input[0]], self.config)
        axis = codes.axis if codes.scale.size > 1 else None
        copy.input[1] = self._constant(
            node.input[1], codes.weight, codes.scale, np.zeros_like(codes.scale, np.int8), axis
        )
        if codes.bias is not None and codes.bias_scale is not None:
            zero = np.zeros_like(codes.bias_scale, np.int32)
            axis = 0 if codes.bias_scale.size > 1 else None
            copy.input[2] = self._constant(node.input[2], codes.bias, codes.bias_scale, zero, axis)

    def _operands(self, node: onnx.NodeProto, copy: onnx.NodeProto) -> None:
        for index, name in enumerate(node.input):
            if name in self.selection.constants and as_product(self.graph, node) is None:
                if name not in self.graph.constants:
                    continue
                codes, scale = tensor_codes(self.graph.constants[name])
                copy.input[index] = self._constant(
                    name, codes, np.array([scale]), np.zeros(1, np.int8), None
                )

    def _constant(
        self, name: str, codes: Array, scale: Array, zero: Array, axis: int | None
    ) -> str:
        """Codes behind a DequantizeLinear; scales are a scalar where `axis` is None."""
        if axis is None:
            scale, zero = scale.reshape(-1)[0], zero.reshape(-1)[0]
        parts = (codes, np.asarray(scale), np.asarray(zero))
        key = (name, str(axis), *(part.tobytes().hex() for part in parts[1:]))
        if key not in self._constants:
            ends = ("quantized", "scale", "zero_point")
            inputs = [
                self.target.constant(f"{name}_{end}", part)
                for end, part in zip(ends, parts, strict=True)
            ]
            output = self.target.unique(f"{name}_dequantized")
            self._append("DequantizeLinear", inputs, output, axis)
            self._constants[key] = output
        return self._constants[key]

    def _append(self, op: str, inputs: Sequence[str], output: str, axis: int | None = None) -> None:
        extra: dict[str, Any] = {} if axis is None else {"axis": axis}
        self.target.nodes.append(
            helper.make_node(op, inputs, [output], name=f"{output}_{op}", **extra)
        )
