"""TUL PYNQ-Z2: for the core the same as a PYNQ-Z1."""

from dataclasses import replace

from vitral.targets.pynq_z1 import PYNQ_Z1

__all__ = ["PYNQ_Z2"]

PYNQ_Z2 = replace(PYNQ_Z1, name="pynq-z2", board="TUL PYNQ-Z2")
