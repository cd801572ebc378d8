"""tsim: the emitted Verilog, compiled by Verilator, with a memory model around it."""

from vitral.sim.rtl.simulator import RtlSimulator

__all__ = ["RtlSimulator"]
