"""Predicts the cycles of a program from its instructions, without the RTL."""

from vitral.compiler.cycles.model import Prediction, predict
from vitral.compiler.cycles.segment import layer_cycles, predict_segment

__all__ = ["Prediction", "layer_cycles", "predict", "predict_segment"]
