"""Fills in the texts under `templates/`: every hole is filled, and every value is used."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from vitral.errors import ConfigError

__all__ = ["render"]

_HOLE = re.compile(r"@\{(\w+)\}")
"""``@{name}``: the dollar of `string.Template` is Tcl's."""


@cache
def _read(name: str) -> str:
    return files("vitral.bitstream").joinpath("templates", name).read_text(encoding="utf-8")


def render(name: str, values: Mapping[str, object]) -> str:
    """The template's text with these values.

    Raises
    ------
    ConfigError
        When a hole has no value, or a value no hole: a setting that nothing uses is a mistake.
    """
    text = _read(name)
    holes = set(_HOLE.findall(text))
    if holes != set(values):
        missing, unused = sorted(holes - set(values)), sorted(set(values) - holes)
        raise ConfigError(f"template {name}: no value for {missing}, no hole for {unused}")
    return _HOLE.sub(lambda hole: str(values[hole[1]]), text)
