"""Quantization of float models: calibrated, to ONNX in QDQ form."""

from vitral.compiler.quantize.config import ACTIVATIONS, METHODS, QuantizeConfig
from vitral.compiler.quantize.quantize import quantize_model

__all__ = ["ACTIVATIONS", "METHODS", "QuantizeConfig", "quantize_model"]
