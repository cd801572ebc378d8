"""Which operator runs where: what the user asks for, and what costs least."""

from vitral.compiler.placement.copies import place_calls
from vitral.compiler.placement.rules import DEVICES, Rules, annotate

__all__ = ["DEVICES", "Rules", "annotate", "place_calls"]
