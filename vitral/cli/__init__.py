"""The `vitral` command: one word per task.

Exit status: 0 when everything asked for was done and matched, 1 for a mismatch, 2 for bad input,
with one line on stderr.
"""

from vitral.cli.main import main

__all__ = ["main"]
