"""One convolution (row V2) written in every form an exporter may choose, and forms to refuse.

Each accepted form takes int8 `x` and gives int8 `y` with the bytes of row V2.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper

from cases.conv import Array, ConvCase, conv_rows
from cases.models import ModelBuilder, build_qdq, build_qoperator, conv_attributes

__all__ = [
    "CLIP_FORMS",
    "Form",
    "accepted_forms",
    "build_form",
    "clip_in_form",
    "refused_forms",
    "unsigned_output_form",
]

CLIP_FORMS = ("Constant", "initializer", "only max", "attributes")
"""Where the bounds of a Clip may come from."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How the QDQ form is written down; the defaults are those of common exporters."""

    opset: int = 13
    ir_version: int | None = None
    weights: Literal["initializer", "constant", "requantized", "int32"] = "initializer"
    bias: Literal["int32", "float"] = "int32"
    scale_shape: tuple[int, ...] = ()
    zero_points: bool = True
    geometry: bool = True
    constants_as_inputs: bool = False


def accepted_forms() -> dict[str, onnx.ModelProto]:
    """Name of the form -> model."""
    case = _v2()
    forms = {f"qoperator opset {n}": build_qoperator(case, opset=n) for n in (10, 11, 13, 19, 21)}
    forms |= {f"qdq opset {n}": build_form(Form(opset=n)) for n in (13, 19, 21)}
    forms |= {f"ir version {n}": build_form(Form(ir_version=n)) for n in range(4, 11)}
    forms["ir version 3"] = build_form(Form(ir_version=3, constants_as_inputs=True))
    forms["weights in a Constant"] = build_form(Form(weights="constant"))
    forms["weights through DQ, Q, DQ"] = build_form(Form(weights="requantized"))
    forms["weights as int32"] = build_form(Form(weights="int32"))
    forms["scales of shape [1]"] = build_form(Form(scale_shape=(1,)))
    forms["no zero points"] = build_form(Form(zero_points=False))
    forms["no pads, no kernel_shape"] = build_form(Form(geometry=False))
    forms["initializers are graph inputs"] = build_form(Form(constants_as_inputs=True))
    forms["float bias"] = build_form(Form(bias="float"))
    return forms


def clip_in_form(case: ConvCase, form: str) -> onnx.ModelProto:
    """The QDQ model of a case with a Clip at (0, 6), its bounds in one of the `CLIP_FORMS`."""
    model = build_qdq(case, opset=13)
    clip = next(n for n in model.graph.node if n.op_type == "Clip")
    if form == "attributes":
        clip.CopyFrom(helper.make_node("Clip", ["sum"], ["clipped"], min=0.0, max=6.0))
        model.opset_import[0].version = 10
    elif form == "only max":
        clip.input[1] = ""  # the output's zero point of -128 is real 0 and clamps alone
    elif form == "Constant":
        low = next(t for t in model.graph.initializer if t.name == "low")
        model.graph.node.insert(0, helper.make_node("Constant", [], ["low"], value=low))
        model.graph.initializer.remove(low)
    return model


def unsigned_output_form() -> onnx.ModelProto:
    """QuantizeLinear without zero point: the output is uint8, by the standard."""
    model = build_form(Form())
    quantizer = model.graph.node[-1]
    del quantizer.input[2]
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    return model


def refused_forms() -> dict[str, onnx.ModelProto]:
    """Name of the fault -> model that an importer must refuse in one line, naming the node."""
    faults = {
        "scale zero": _with_constant("y_scale", np.zeros((), np.float32)),
        "scale negative": _with_constant("x_real_scale", np.array(-0.5, np.float32)),
        "scale NaN": _with_constant("y_scale", np.array(np.nan, np.float32)),
        "scale empty": _with_constant("w_real_scale", np.zeros(0, np.float32)),
        "scale length": _with_constant("w_real_scale", np.full(7, 0.5, np.float32)),
        "group": _with_attribute("Conv", "group", 2),
        "blocked scales": _with_attribute("DequantizeLinear", "block_size", 4),
        "int16 activations": _with_output_type(TensorProto.INT16),
        "float8 activations": _with_output_type(TensorProto.FLOAT8E4M3FN),
        "int4 weights": _with_weight_type(TensorProto.INT4),
        "weight scales on the wrong axis": _wrong_axis(),
    }
    return faults


def build_form(form: Form) -> onnx.ModelProto:
    """Row V2 as DQ -> Conv -> Q in the given form."""
    case = _v2()
    b = ModelBuilder(opset=form.opset)
    zero = np.zeros(form.scale_shape, np.int8) if form.zero_points else None
    x_scale = np.full(form.scale_shape, case.x_scale)
    names = [b.dequantize("x", "x_real", x_scale, zero), _weights(b, case, form)]
    names.append(_bias(b, case, form))
    attributes = conv_attributes(case) if form.geometry else {}
    b.node("Conv", names, "sum", **attributes)
    y_scale = np.full(form.scale_shape, case.y_scale)
    b.quantize("sum", "y", y_scale, np.zeros(form.scale_shape, np.int8))
    return b.model(
        {"x": (np.int8, case.x.shape)},
        {"y": (np.int8, case.expected.shape)},
        ir_version=form.ir_version,
        constants_as_inputs=form.constants_as_inputs,
    )


def _weights(b: ModelBuilder, case: ConvCase, form: Form) -> str:
    zero = np.zeros(case.w_scale.shape, np.int8) if form.zero_points else None
    if form.weights == "int32":
        source = b.constant("w", case.w.astype(np.int32))
        return b.dequantize(source, "w_real", case.w_scale, None, 0)
    if form.weights == "constant":
        source = _constant_node(b, "w", case.w)
        return b.dequantize(source, "w_real", case.w_scale, zero, 0)
    source = b.constant("w", case.w)
    if form.weights == "requantized":
        zeros = np.zeros(case.w_scale.shape, np.int8)
        source = b.dequantize(source, "w_first", case.w_scale, zeros, 0)
        names = [b.scale("w_again_scale", case.w_scale), b.constant("w_again_zero", zeros)]
        source = b.node("QuantizeLinear", [source, *names], "w_again", axis=0)
    return b.dequantize(source, "w_real", case.w_scale, zero, 0)


def _bias(b: ModelBuilder, case: ConvCase, form: Form) -> str:
    if case.bias is None:
        raise ValueError(f"{case.name}: needs a bias")
    scale = np.float32(case.x_scale) * case.w_scale
    if form.bias == "float":
        return b.constant("bias_real", case.bias.astype(np.float32) * scale)
    return b.dequantize(b.constant("bias", case.bias), "bias_real", scale, None, 0)


def _constant_node(b: ModelBuilder, name: str, value: Array) -> str:
    return b.node("Constant", [], name, value=onnx.numpy_helper.from_array(value, name))


def _v2() -> ConvCase:
    return next(case for case in conv_rows() if case.name == "V2")


def _with_constant(name: str, value: Array) -> onnx.ModelProto:
    model = build_form(Form())
    tensor = next(t for t in model.graph.initializer if t.name == name)
    tensor.CopyFrom(onnx.numpy_helper.from_array(value, name))
    return model


def _with_attribute(op: str, name: str, value: Any) -> onnx.ModelProto:
    model = build_form(Form(opset=21))
    node = next(n for n in model.graph.node if n.op_type == op)
    for attribute in [a for a in node.attribute if a.name == name]:
        node.attribute.remove(attribute)
    node.attribute.append(helper.make_attribute(name, value))
    return model


def _with_output_type(element: TensorProto.DataType.ValueType) -> onnx.ModelProto:
    """The QuantizeLinear's type changed through its zero point, as exporters do."""
    model = build_form(Form(opset=21))
    zero = next(t for t in model.graph.initializer if t.name == "y_zero")
    zero.CopyFrom(helper.make_tensor("y_zero", element, [], [0]))
    model.graph.output[0].type.tensor_type.elem_type = element
    return model


def _with_weight_type(element: TensorProto.DataType.ValueType) -> onnx.ModelProto:
    model = build_form(Form(opset=21, zero_points=False))
    weights = next(t for t in model.graph.initializer if t.name == "w")
    values = np.zeros(_v2().w.size, dtype=np.int8).tolist()
    weights.CopyFrom(helper.make_tensor("w", element, weights.dims, values))
    return model


def _wrong_axis() -> onnx.ModelProto:
    """Seventeen scales along the input channels of the weights."""
    model = build_form(Form(zero_points=False))
    node = next(n for n in model.graph.node if n.output[0] == "w_real")
    node.attribute[0].CopyFrom(helper.make_attribute("axis", 1))
    scale = next(t for t in model.graph.initializer if t.name == "w_real_scale")
    scales = np.full(_v2().w.shape[1], 0.5, np.float32)
    scale.CopyFrom(onnx.numpy_helper.from_array(scales, scale.name))
    return model
