"""Programs for the tests: written by hand as text, or random and legal by construction."""

from programs.assembled import Case, assembled
from programs.configs import CONFIGS
from programs.generate import Program, generate

__all__ = ["CONFIGS", "Case", "Program", "assembled", "generate"]
