"""fsim: the functional simulator in native code."""

from vitral.sim.functional.simulator import FunctionalSimulator

__all__ = ["FunctionalSimulator"]
