"""Boards without a processor, behind a serial line."""
