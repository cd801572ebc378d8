"""What runs on a board's processor: the core's driver and the ways to reach registers and memory.

Needs Python 3.10 and numpy; what is one board's own lies in `vitral.runtime.devices`.
"""
