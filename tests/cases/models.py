"""ONNX models of the cases, in QOperator and in QDQ form; input `x`, output `y`.

Both forms take and return integers unless `float_edges` is set: then the graph input `x_float` is
quantized to `x`, and `y` is dequantized to the graph output `y_float`.
"""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cases.conv import Array, ConvCase

__all__ = ["ModelBuilder", "build_qdq", "build_qoperator", "conv_attributes"]

_IR_VERSION = {10: 5, 11: 6, 12: 7, 13: 7, 19: 9, 21: 10}


class ModelBuilder:
    """Collects nodes and constants and makes a checked model of them."""

    def __init__(self, *, opset: int = 13, contrib: bool = False) -> None:
        self._opset = opset
        self._contrib = contrib
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: Any, dtype: Any = None) -> str:
        """An initializer; `dtype` defaults to that of `value`."""
        self._constants[name] = numpy_helper.from_array(np.asarray(value, dtype=dtype), name)
        return name

    def scale(self, name: str, value: Any) -> str:
        """A float32 scale."""
        return self.constant(name, value, np.float32)

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """One operator named after its output; returns the output's name."""
        node = helper.make_node(op, inputs, [output], name=f"{output}_{op}", **attributes)
        self._nodes.append(node)
        return output

    def quantize(self, source: str, output: str, scale: Any, zero: Array) -> str:
        """QuantizeLinear with its constants."""
        names = [self.scale(f"{output}_scale", scale), self.constant(f"{output}_zero", zero)]
        return self.node("QuantizeLinear", [source, *names], output)

    def dequantize(
        self, source: str, output: str, scale: Any, zero: Array | None, axis: int | None = None
    ) -> str:
        """DequantizeLinear with its constants; a zero point None is left out."""
        names = [self.scale(f"{output}_scale", scale)]
        if zero is not None:
            names.append(self.constant(f"{output}_zero", zero))
        attributes = {} if axis is None else {"axis": axis}
        return self.node("DequantizeLinear", [source, *names], output, **attributes)

    def model(
        self,
        inputs: dict[str, tuple[Any, tuple[int | str, ...]]],
        outputs: dict[str, tuple[Any, tuple[int | str, ...]]],
        *,
        ir_version: int | None = None,
        constants_as_inputs: bool = False,
    ) -> onnx.ModelProto:
        """The model; inputs and outputs map a name to (dtype, shape)."""
        infos = [_info(name, *what) for name, what in inputs.items()]
        if constants_as_inputs:
            infos += [
                helper.make_tensor_value_info(t.name, t.data_type, t.dims)
                for t in self._constants.values()
            ]
        results = [_info(name, *what) for name, what in outputs.items()]
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, "case", infos, results, constants)
        opsets = [helper.make_opsetid("", self._opset)]
        if self._contrib:
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = ir_version or _IR_VERSION.get(self._opset, 8)
        return model


def conv_attributes(case: ConvCase) -> dict[str, Any]:
    """Attributes of the Conv or QLinearConv node of a case."""
    return {
        "kernel_shape": list(case.w.shape[2:]),
        "strides": list(case.strides),
        "pads": list(case.pads),
        "dilations": list(case.dilations),
        "group": case.group,
    }


def build_qoperator(case: ConvCase, *, opset: int = 13) -> onnx.ModelProto:
    """One QLinearConv; ValueError for a case with a Clip, which this form cannot hold."""
    if case.clip is not None:
        raise ValueError(f"{case.name}: needs a case without clip, got {case.clip}")
    b = ModelBuilder(opset=opset)
    names = [
        "x",
        b.scale("x_scale", case.x_scale),
        b.constant("x_zero", case.x_zero, case.x.dtype),
        b.constant("w", case.w),
        b.scale("w_scale", case.w_scale),
        b.constant("w_zero", _w_zero(case)),
        b.scale("y_scale", case.y_scale),
        b.constant("y_zero", case.y_zero, case.y_dtype),
    ]
    if case.bias is not None:
        names.append(b.constant("bias", case.bias))
    b.node("QLinearConv", names, "y", **conv_attributes(case))
    return b.model({"x": (case.x.dtype, case.x.shape)}, {"y": (case.y_dtype, case.expected.shape)})


def build_qdq(case: ConvCase, *, opset: int = 13, float_edges: bool = False) -> onnx.ModelProto:
    """DQ -> Conv -> [Relu | Clip] -> Q; per-channel weight scales need opset 13."""
    b = ModelBuilder(opset=opset)
    x_zero = np.array(case.x_zero, dtype=case.x.dtype)
    y_zero = np.array(case.y_zero, dtype=case.y_dtype)
    if float_edges:
        b.quantize("x_float", "x", case.x_scale, x_zero)
    axis = 0 if case.w_scale.ndim and opset >= 13 else None
    names = [
        b.dequantize("x", "x_real", case.x_scale, x_zero),
        b.dequantize(b.constant("w", case.w), "w_real", case.w_scale, _w_zero(case), axis),
    ]
    if case.bias is not None:
        scale = np.float32(case.x_scale) * case.w_scale
        bias = b.constant("bias", case.bias)
        names.append(b.dequantize(bias, "bias_real", scale, None, axis))
    last = b.node("Conv", names, "sum", **conv_attributes(case))
    if case.clip is not None:
        last = _clip(b, last, case.clip)
    b.quantize(last, "y", case.y_scale, y_zero)
    if not float_edges:
        return b.model(
            {"x": (case.x.dtype, case.x.shape)}, {"y": (case.y_dtype, case.expected.shape)}
        )
    b.dequantize("y", "y_float", case.y_scale, y_zero)
    return b.model(
        {"x_float": (np.float32, case.x.shape)}, {"y_float": (np.float32, case.expected.shape)}
    )


def _clip(b: ModelBuilder, source: str, clip: tuple[float | None, float | None]) -> str:
    low, high = clip
    if (low, high) == (0.0, None):
        return b.node("Relu", [source], "clipped")
    names = ["" if v is None else b.scale(n, v) for n, v in (("low", low), ("high", high))]
    return b.node("Clip", [source, *names], "clipped")


def _w_zero(case: ConvCase) -> Array:
    return np.full(case.w_scale.shape, case.w_zero, dtype=case.w.dtype)


def _info(name: str, dtype: Any, shape: tuple[int | str, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _element_type(dtype), shape)


def _element_type(dtype: Any) -> TensorProto.DataType.ValueType:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
