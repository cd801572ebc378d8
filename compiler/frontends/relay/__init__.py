"""The text form's operators: from ONNX models, and back to them."""

from vitral.compiler.frontends.relay.exporter import export_calls, has_onnx_form
from vitral.compiler.frontends.relay.importer import import_calls
from vitral.compiler.frontends.relay.read import import_graph, is_text_file, read_text

__all__ = [
    "export_calls",
    "has_onnx_form",
    "import_calls",
    "import_graph",
    "is_text_file",
    "read_text",
]
