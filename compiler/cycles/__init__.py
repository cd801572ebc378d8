"""Predicts the cycles of a program from its instructions, without the RTL."""

from vitral.compiler.cycles.model import Prediction, predict

__all__ = ["Prediction", "predict"]
