"""The ONNX frontend."""

from vitral.compiler.frontends.onnx.importer import OPERATORS, import_onnx

__all__ = ["OPERATORS", "import_onnx"]
