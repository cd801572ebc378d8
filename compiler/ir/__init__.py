"""The intermediate representation: a small, typed, immutable graph."""

from vitral.compiler.ir.build import GraphBuilder
from vitral.compiler.ir.call import Call
from vitral.compiler.ir.evaluate import evaluate, evaluate_all
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.infer import infer
from vitral.compiler.ir.text import parse_text, to_text
from vitral.compiler.ir.types import QUANTIZED, Quant, TensorType
from vitral.compiler.ir.verify import verify

__all__ = [
    "QUANTIZED",
    "Call",
    "Graph",
    "GraphBuilder",
    "Quant",
    "TensorType",
    "evaluate",
    "evaluate_all",
    "infer",
    "parse_text",
    "to_text",
    "verify",
]
