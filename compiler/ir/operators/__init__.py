"""Operators of the text form: attributes, types and what they compute."""

from vitral.compiler.ir.operators.operator import Attribute, Misfit, Operator
from vitral.compiler.ir.operators.registry import OPERATORS, attributes_of, evaluate_call, operator

__all__ = [
    "OPERATORS",
    "Attribute",
    "Misfit",
    "Operator",
    "attributes_of",
    "evaluate_call",
    "operator",
]
