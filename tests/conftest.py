"""Settings for every test: one BLAS thread per process; notes of passed tests at the end.

Small matrix products on several spinning threads take five times as long when the machine is busy,
as it is under pytest-xdist. It must be set before numpy is imported.
"""

import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded with ``record_property("note", text)``."""
    for report in terminalreporter.stats.get("passed", []):
        for name, text in report.user_properties:
            if name == "note":
                terminalreporter.write_line(f"note: {text}")
