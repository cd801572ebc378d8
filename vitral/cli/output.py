"""Writes results: JSON to a file or stdout, tables for people."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["print_table", "write_compact_json", "write_json"]


def write_json(value: Any, place: str) -> None:
    """As indented JSON to a file, or to stdout when `place` is "-"."""
    text = json.dumps(value, indent=2) + "\n"
    if place == "-":
        sys.stdout.write(text)
    else:
        Path(place).write_text(text)


def write_compact_json(value: Any, path: str) -> None:
    """To a file, without spaces: for traces of many events."""
    with Path(path).open("w") as file:
        json.dump(value, file, separators=(",", ":"))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """A table on stdout: drawn by rich on a terminal that has it, plain text otherwise.

    Numbers are set to the right; floats are shares, written in per cent.
    """
    cells = [list(row) for row in rows]
    if sys.stdout.isatty() and _print_rich(header, cells, title):
        return
    if title:
        print(title)
    texts = [list(header), *([_text(cell) for cell in row] for row in cells)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
    right = [_is_numeric(cells, column) for column in range(len(header))]
    for row in texts:
        parts = [
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, right, strict=True)
        ]
        print("  ".join(parts).rstrip())


def _print_rich(header: Sequence[str], cells: list[list[object]], title: str) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
    except ModuleNotFoundError:
        return False
    table = Table(title=title or None)
    for column, name in enumerate(header):
        table.add_column(name, justify="right" if _is_numeric(cells, column) else "left")
    for row in cells:
        table.add_row(*(_text(cell) for cell in row))
    Console().print(table)
    return True


def _is_numeric(cells: list[list[object]], column: int) -> bool:
    values = [row[column] for row in cells if row[column] is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _text(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.1%}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
