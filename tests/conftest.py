"""Settings for every test: one BLAS thread per process; notes of passed tests at the end.

Small matrix products on several spinning threads take five times as long when the machine is busy,
as it is under pytest-xdist. It must be set before numpy is imported.
"""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what tests a row of the cases from the field."""
    from cases.rows import ROWS

    here = Path(__file__).parent
    files = {here / file for row in ROWS.values() for file in row}
    for item in items:
        if item.path in files:
            item.add_marker(pytest.mark.cases)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded with ``record_property("note", text)``."""
    for report in terminalreporter.stats.get("passed", []):
        for name, text in report.user_properties:
            if name == "note":
                terminalreporter.write_line(f"note: {text}")
