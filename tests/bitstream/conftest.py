"""Projects to try tools on: real plans, around a core that has ports and nothing else."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from vitral.bitstream.backends import backend_of
from vitral.bitstream.interfaces import core_ports
from vitral.bitstream.plan import Plan
from vitral.config import CoreConfig
from vitral.targets import Target, find_target


def hollow_core(config: CoreConfig) -> str:
    """Verilog with the core's ports; emitting the real one takes half a minute."""
    lines = ["module vitral_core("]
    lines.append(",\n".join(f"  {port.name}" for port in core_ports(config)))
    lines.append(");")
    for port in core_ports(config):
        vector = f"[{port.width - 1}:0] " if port.width > 1 else ""
        lines.append(f"  {port.direction} {vector}{port.name};")
    return "\n".join([*lines, "endmodule\n"])


@cache
def make_plan(name: str) -> Plan:
    return plan_of(find_target(name))


def plan_of(target: Target) -> Plan:
    return backend_of(target.name).plan(target, hollow_core(target.config))


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[[str], tuple[Plan, Path]]:
    """Makes the plan of a target, and a folder with its files."""

    def make(name: str) -> tuple[Plan, Path]:
        plan = make_plan(name)
        folder = tmp_path / name
        plan.write(folder)
        return plan, folder

    return make


@pytest.fixture
def planned() -> Callable[[Target], Plan]:
    """Makes the plan of a target that need not be one of the table."""
    return plan_of
