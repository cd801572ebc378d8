"""Vitral: an int8 tensor accelerator, its compiler, and the runtime that runs it anywhere."""

__version__ = "0.1.0"
