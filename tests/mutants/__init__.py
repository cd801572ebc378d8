"""Broken cores: mistakes put into the hardware on purpose, which the random programs must find."""

from mutants.catalogue import MUTANTS
from mutants.hunt import Hunt
from mutants.mutant import Edit, Mutant
from mutants.weave import mutated_verilog

__all__ = ["MUTANTS", "Edit", "Hunt", "Mutant", "mutated_verilog"]
