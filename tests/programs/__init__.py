"""Programs for the tests: written by hand as text, or random and legal by construction."""

from programs.assembled import Case, assembled

__all__ = ["Case", "assembled"]
