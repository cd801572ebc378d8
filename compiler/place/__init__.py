"""Which operator runs where, in which order, and the CPU's share as steps."""

from vitral.compiler.place.cpu_steps import cpu_steps
from vitral.compiler.place.partition import Group, partition

__all__ = ["Group", "cpu_steps", "partition"]
