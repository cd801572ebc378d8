"""Rewrites a core's netlist as C++ that simulates fast: nothing is computed in vain.

The way of a core from Amaranth to a simulation::

    RTLIL ─ rtlil ─► modules ─ flatten ─► netlist ─ dots, edge, place, units ─► units ─ cpp ─► C++
"""
