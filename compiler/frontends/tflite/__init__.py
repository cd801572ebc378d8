"""The TFLite frontend."""

from vitral.compiler.frontends.tflite.file import is_tflite
from vitral.compiler.frontends.tflite.importer import OPERATORS, import_tflite
from vitral.compiler.frontends.tflite.scope import TfliteRounding

__all__ = ["OPERATORS", "TfliteRounding", "import_tflite", "is_tflite"]
