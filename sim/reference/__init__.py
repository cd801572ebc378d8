"""The definition of what a program means, as a short numpy interpreter; slow is fine.

`docs/architecture.md` is its text form. The functional simulator and the RTL agree with it byte
for byte. Requantisation is defined in `vitral.arithmetic`.
"""

from vitral.sim.reference.machine import Reference

__all__ = ["Reference"]
