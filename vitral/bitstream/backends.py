"""Which tool builds which target's bitstream; tools are imported when they are used."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

from vitral.bitstream.manifest import Manifest
from vitral.bitstream.plan import Plan
from vitral.errors import ConfigError
from vitral.targets import TARGETS, Target, find_target

__all__ = ["BACKENDS", "Backend", "backend_of", "buildable", "core_verilog"]

_VIVADO = "vitral.bitstream.vivado"
_QUARTUS = "vitral.bitstream.quartus"

BACKENDS: dict[str, str] = {
    "pynq-z1": _VIVADO,
    "pynq-z2": _VIVADO,
    "ultra96": _VIVADO,
    "zcu104": _VIVADO,
    "de10-nano": _QUARTUS,
    "ulx3s-85f": "vitral.bitstream.ecp5",
}
"""Module with the functions of `Backend`, by target."""


class Backend(Protocol):
    """What a module of the table has.

    `TOOL` and `VERSION` are the tool's name and the oldest version that will do. A module may also
    have `check_tool(target)`, which raises BitstreamError when the tool is absent, and is asked
    before the core is emitted.
    """

    TOOL: str
    VERSION: str

    def plan(self, target: Target, verilog: str) -> Plan:
        """A complete project for the core whose Verilog is given."""
        ...

    def build(self, plan: Plan, folder: Path) -> Manifest:
        """Run the tool in a folder that has the plan's files; what came out is there then.

        Writes the manifest beside the bitstream, same name with ``.json``. DeviceError, one line,
        when the tool is absent or fails.
        """
        ...


def buildable() -> Sequence[Target]:
    """The targets that have bitstreams."""
    return [target for target in TARGETS if target.name in BACKENDS]


def backend_of(name: str) -> Backend:
    """The tool of the target of that name.

    Raises
    ------
    ConfigError
        When there is no such target, or it has no bitstream.
    """
    target = find_target(name)
    if target.name not in BACKENDS:
        names = ", ".join(BACKENDS)
        raise ConfigError(f"target {name} has no bitstream; targets that have one: {names}")
    return import_module(BACKENDS[name])  # pyright: ignore[reportReturnType]  # a module of the table


def core_verilog(target: Target) -> str:
    """Verilog of the target's core, emitted once and kept while its sources are the same."""
    from vitral.sim.rtl.emit import emit_verilog

    return emit_verilog(target.config)
