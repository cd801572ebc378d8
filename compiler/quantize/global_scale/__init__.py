"""Quantization with one scale for all activations and powers of two for weights, as in TVM 0.5."""

from vitral.compiler.quantize.global_scale.annotate import annotate
from vitral.compiler.quantize.global_scale.calibrate import calibrate
from vitral.compiler.quantize.global_scale.prerequisite import prerequisite
from vitral.compiler.quantize.global_scale.qconfig import QConfig
from vitral.compiler.quantize.global_scale.quantize import PASSES, quantize
from vitral.compiler.quantize.global_scale.realize import realize

__all__ = ["PASSES", "QConfig", "annotate", "calibrate", "prerequisite", "quantize", "realize"]
