"""Vitral: an int8 tensor accelerator, its compiler, and the runtime that runs it anywhere."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitral.compiler.pipeline import compile
    from vitral.runtime.module import Module
    from vitral.runtime.session import Session

__all__ = ["Module", "Session", "compile"]

__version__ = "0.1.0"

_HOMES = {
    "Module": "vitral.runtime.module",
    "Session": "vitral.runtime.session",
    "compile": "vitral.compiler.pipeline",
}


def __getattr__(name: str) -> Any:
    """Load what users import on first use, so that `import vitral` needs numpy only."""
    if name == "ir":
        return import_module("vitral.ir")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
