"""Rewrites a core's netlist as Verilog that simulates fast: one process, nothing computed in vain.

The way of a core from Amaranth to a simulation::

    RTLIL ─ rtlil ─► modules ─ flatten ─► nodes, registers ─ place ─► blocks ─ write ─► Verilog
"""
