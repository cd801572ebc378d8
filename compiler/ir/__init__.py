"""The intermediate representation: a small, typed, immutable graph."""

from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.infer import infer
from vitral.compiler.ir.printer import print_graph
from vitral.compiler.ir.types import QUANTIZED, Quant, TensorType
from vitral.compiler.ir.verify import verify

__all__ = ["QUANTIZED", "Graph", "Quant", "TensorType", "infer", "print_graph", "verify"]
