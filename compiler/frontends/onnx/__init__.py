"""The ONNX frontend."""

from vitral.compiler.frontends.onnx.importer import OPERATORS, import_onnx
from vitral.compiler.frontends.onnx.islands import island_operators

__all__ = ["OPERATORS", "import_onnx", "island_operators"]
