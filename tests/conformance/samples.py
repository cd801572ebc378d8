"""One small model per operator and situation, to see where the compiler runs it."""

from typing import Any

import numpy as np
import onnx
from cases import ModelBuilder
from onnx import helper

__all__ = ["CODES_ONLY", "float_sample", "quantized_sample"]

CONTRIB = "com.microsoft"
_CHANNELS = 16
_SHAPE = (1, _CHANNELS, 8, 8)
_OPSET = 21
_OLD = {"Upsample": 9}
_SCALE, _ZERO = 0.05, np.array(3, np.int8)
CODES_ONLY = ("ConvInteger", "MatMulInteger", "QuantizeLinear", "DequantizeLinear", "QGemm")
"""Operators without a float form; QLinear ones come beside them."""

_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "MaxPool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "AveragePool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "QLinearAveragePool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "Concat": {"axis": 1},
    "QLinearConcat": {"axis": 1},
    "Transpose": {"perm": [0, 1, 3, 2]},
    "DepthToSpace": {"blocksize": 2},
    "SpaceToDepth": {"blocksize": 2},
    "Cast": {"to": onnx.TensorProto.INT32},
    "Upsample": {"mode": "nearest"},
    "Resize": {"mode": "nearest"},
    "Split": {"axis": 1, "num_outputs": 2},
    "Softmax": {"axis": 1},
    "ArgMax": {"axis": 1},
    "LogSoftmax": {"axis": 1},
    "ReduceMean": {"keepdims": 1},
    "ArgMin": {"axis": 1},
    "Gather": {"axis": 1},
}
_INTEGERS = {
    "Reshape": [[1, -1]],
    "Unsqueeze": [[2]],
    "Expand": [[2, _CHANNELS, 8, 8]],
    "Tile": [[1, 1, 2, 2]],
    "Pad": [[0, 0, 1, 1, 0, 0, 1, 1]],
    "Slice": [[1], [5], [3], [1]],
    "Gather": [[0, 2]],
    "ReduceMean": [[2, 3]],
    "ReduceSum": [[2, 3]],
    "ReduceMax": [[2, 3]],
    "ReduceMin": [[2, 3]],
}
"""Further inputs that are lists of integers."""
_POSITIVE = ("Sqrt", "Log", "Reciprocal")
_PAIRS = ("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean", "Concat")
_CODE_PAIRS = ("QLinearAdd", "QLinearMul")


def quantized_sample(op: str, domain: str, *, behind: bool) -> onnx.ModelProto:
    """A model with the operator on int8 codes.

    `behind` puts a convolution before it; else it reads the model's input.
    """
    b = ModelBuilder(opset=_OLD.get(op, _OPSET), contrib=True)
    shape: tuple[int, ...] = (1, _CHANNELS) if _is_dense(op) and not behind else _SHAPE
    codes = _convolved(b, "before") if behind else "x"
    if behind and _is_dense(op):
        codes = b.node("Flatten", [codes], "flat")
    width = _CHANNELS if not behind else _CHANNELS * 64
    if op in ("QuantizeLinear", "DequantizeLinear"):
        kept = b.dequantize(codes, "y", _SCALE, _ZERO)
        result = (np.float32, None)
        if op == "QuantizeLinear":
            b.quantize(kept, "z", 0.07, _ZERO)
            return _model(b, {"x": (np.int8, shape)}, {"z": (np.int8, None)})
        return _model(b, {"x": (np.int8, shape)}, {"y": result})
    if op.startswith(("QLinear", "QGemm")) or op.endswith("Integer"):
        return _on_codes(b, op, domain, codes, shape, width, behind)
    zero = np.array(-128, np.int8) if op in _POSITIVE else _ZERO
    real = b.dequantize(codes, "real", _SCALE, zero)
    names = [real, *_operands(b, op, width)]
    if op in _PAIRS:
        names.append(b.dequantize(_second(b, behind), "second", _SCALE, _ZERO))
    outputs = ["y", "other"] if op == "Split" else ["y"]
    b._nodes.append(
        helper.make_node(
            op, names, outputs, name=f"y_{op}", domain=domain, **_ATTRIBUTES.get(op, {})
        )
    )
    if op in ("ArgMax", "ArgMin", "Shape", "Size", "Cast"):
        kind = np.int32 if op == "Cast" else np.int64
        return _model(b, {"x": (np.int8, shape)}, {"y": (kind, None)})
    results = {f"{name}_codes": (np.int8, None) for name in outputs}
    for name in outputs:
        same = op in _MOVES
        b.quantize(name, f"{name}_codes", _SCALE if same else 0.07, _ZERO)
    return _model(b, {"x": (np.int8, shape)}, results)


def float_sample(op: str, domain: str = "") -> onnx.ModelProto:
    """A model with the operator on float32."""
    b = ModelBuilder(opset=_OLD.get(op, _OPSET), contrib=True)
    shape: tuple[int, ...] = (1, _CHANNELS) if _is_dense(op) else _SHAPE
    names = ["x", *_operands(b, op, _CHANNELS, real=True), *(["x2"] if op in _PAIRS else [])]
    outputs = ["y", "other"] if op == "Split" else ["y"]
    b._nodes.append(
        helper.make_node(
            op, names, outputs, name=f"y_{op}", domain=domain, **_ATTRIBUTES.get(op, {})
        )
    )
    kind = {
        "ArgMax": np.int64,
        "ArgMin": np.int64,
        "Shape": np.int64,
        "Size": np.int64,
        "Cast": np.int32,
    }
    return _model(
        b, {"x": (np.float32, shape)}, {o: (kind.get(op, np.float32), None) for o in outputs}
    )


_MOVES = (
    *("MaxPool", "Concat", "Split", "Slice", "Pad", "Transpose", "Reshape", "Flatten", "Squeeze"),
    *("Unsqueeze", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "Gather", "Tile"),
    *("Expand", "Identity", "Dropout"),
)
"""Operators that move codes; their results keep the scale."""


def _is_dense(op: str) -> bool:
    return op in ("Gemm", "MatMul", "QLinearMatMul", "QGemm", "MatMulInteger", "Squeeze")


def _convolved(b: ModelBuilder, stem: str) -> str:
    real = b.dequantize("x", f"{stem}_x", 0.04, _ZERO)
    weight = _weights(b, stem, (_CHANNELS, _CHANNELS, 1, 1))
    b.quantize(b.node("Conv", [real, weight], stem), f"{stem}_codes", _SCALE, _ZERO)
    return f"{stem}_codes"


def _second(b: ModelBuilder, behind: bool) -> str:
    """Codes for the second operand: of another layer, or another input."""
    return _convolved(b, "also") if behind else "x2"


def _weights(b: ModelBuilder, stem: str, shape: tuple[int, ...], *, real: bool = False) -> str:
    codes = (np.arange(np.prod(shape)) * 37 % 255 - 127).astype(np.int8).reshape(shape)
    if real:
        return b.constant(f"{stem}_w", codes.astype(np.float32) / 127)
    return b.dequantize(b.constant(f"{stem}_w", codes), f"{stem}_real", 0.004, None)


def _operands(b: ModelBuilder, op: str, width: int, *, real: bool = False) -> list[str]:
    """Names of the constant inputs after the first."""
    if op in _INTEGERS:
        return [b.constant(f"{op}{i}", np.array(v)) for i, v in enumerate(_INTEGERS[op])]
    if op in ("Div", "Pow"):
        return [b.scale("number", 2.0)]
    if op == "Clip":
        return [b.scale("low", -1.0), b.scale("high", 1.5)]
    if op == "PRelu":
        return [b.scale("slope", np.linspace(-0.2, 0.4, _CHANNELS).reshape(-1, 1, 1))]
    if op == "BatchNormalization":
        parts = np.linspace(0.5, 1.5, _CHANNELS)
        return [b.scale(f"bn{i}", parts + i / 4) for i in range(4)]
    if op in ("Upsample", "Resize"):
        scales = b.scale("scales", [1, 1, 2, 2])
        return [scales] if op == "Upsample" else ["", scales]
    if op in ("Conv", "ConvTranspose"):
        return [_weights(b, "w", (_CHANNELS, _CHANNELS, 3, 3), real=real)]
    if op in ("Gemm", "MatMul"):
        return [_weights(b, "w", (width, 10), real=real)]
    return []


def _on_codes(
    b: ModelBuilder,
    op: str,
    domain: str,
    codes: str,
    shape: tuple[int, ...],
    width: int,
    behind: bool,
) -> onnx.ModelProto:
    """An operator that reads codes with their scales."""
    wide = op in ("QLinearConv", "ConvInteger")
    w_shape = (_CHANNELS, _CHANNELS, 1, 1) if wide else (width, 10)
    w = (np.arange(np.prod(w_shape)) * 37 % 255 - 127).astype(np.int8).reshape(w_shape)
    weight, zero = b.constant("w", w), b.constant("zero", _ZERO)
    none, scale = b.constant("none", np.array(0, np.int8)), b.scale("scale", _SCALE)
    out, triple = [b.scale("y_scale", 0.07), zero], [codes, scale, zero]
    attributes = _ATTRIBUTES.get(op, {})
    result: tuple[Any, Any] = (np.int8, None)
    if op.endswith("Integer"):
        names, result = [codes, weight, zero, none], (np.int32, None)
    elif op in ("QLinearConv", "QLinearMatMul"):
        names = [*triple, weight, scale, none, *out]
    elif op == "QGemm":
        names = [*triple, weight, scale, none, "", *out]
    elif op == "QLinearConcat":
        names = [*out, *triple, _second(b, behind), scale, zero]
    elif op in _CODE_PAIRS:
        names = [*triple, _second(b, behind), scale, zero, *out]
    else:
        names = [*triple, *out]
    b.node(op, names, "y", domain=domain, **attributes)
    return _model(b, {"x": (np.int8, shape)}, {"y": result})


def _model(b: ModelBuilder, inputs: dict[str, Any], outputs: dict[str, Any]) -> onnx.ModelProto:
    """The model; outputs of shape None have none declared."""
    if any("x2" in node.input for node in b._nodes):
        inputs = {**inputs, "x2": inputs["x"]}
    model = b.model(inputs, {name: (kind, ()) for name, (kind, _) in outputs.items()})
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    return model
