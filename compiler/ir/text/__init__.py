"""The text form of a graph: printing and parsing."""

from vitral.compiler.ir.text.parser import parse_text
from vitral.compiler.ir.text.printer import to_text

__all__ = ["parse_text", "to_text"]
