"""The options of each operator: tables of the TFLite schema and the fields that are read."""

from collections.abc import Mapping

__all__ = ["OPTIONS"]

_ACTIVATION = ("FusedActivationFunction",)
_STRIDES = ("Padding", "StrideH", "StrideW")
_DILATIONS = ("DilationHFactor", "DilationWFactor")
_POOL = ("Pool2DOptions", (*_STRIDES, "FilterHeight", "FilterWidth", *_ACTIVATION))
_MASKS = ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset")

OPTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "CONV_2D": ("Conv2DOptions", (*_STRIDES, *_DILATIONS, *_ACTIVATION)),
    "DEPTHWISE_CONV_2D": (
        "DepthwiseConv2DOptions",
        (*_STRIDES, *_DILATIONS, "DepthMultiplier", *_ACTIVATION),
    ),
    "FULLY_CONNECTED": (
        "FullyConnectedOptions",
        ("WeightsFormat", "KeepNumDims", *_ACTIVATION),
    ),
    "ADD": ("AddOptions", _ACTIVATION),
    "SUB": ("SubOptions", _ACTIVATION),
    "MUL": ("MulOptions", _ACTIVATION),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "MEAN": ("ReducerOptions", ("KeepDims",)),
    "CONCATENATION": ("ConcatenationOptions", ("Axis", *_ACTIVATION)),
    "SOFTMAX": ("SoftmaxOptions", ("Beta",)),
    "LEAKY_RELU": ("LeakyReluOptions", ("Alpha",)),
    "STRIDED_SLICE": ("StridedSliceOptions", _MASKS),
    "SPLIT": ("SplitOptions", ("NumSplits",)),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "RESIZE_NEAREST_NEIGHBOR": (
        "ResizeNearestNeighborOptions",
        ("AlignCorners", "HalfPixelCenters"),
    ),
    "VAR_HANDLE": ("VarHandleOptions", ("SharedName",)),
    "RESHAPE": ("ReshapeOptions", ("NewShapeAsNumpy",)),
    "SQUEEZE": ("SqueezeOptions", ("SqueezeDimsAsNumpy",)),
}
"""Operator to the name of its options' table and the accessors of the fields that are read.

A field that a file leaves out has the schema's default. Lists end in AsNumpy."""
