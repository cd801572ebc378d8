"""The FuseSoC core files, read by FuseSoC."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vitral.bitstream.plan import Plan
from vitral.runtime.boards.bitfile import VLNV
from vitral.targets import find_target

pytestmark = pytest.mark.board

MakeProject = Callable[[str], tuple[Plan, Path]]


@pytest.mark.parametrize(("name", "tool"), [("pynq-z1", "vivado"), ("de10-nano", "quartus")])
def test_fusesoc_reads_the_core(name: str, tool: str, make_project: MakeProject) -> None:
    pytest.importorskip("fusesoc", reason="FuseSoC is not installed")
    from fusesoc.capi2.coreparser import Core2Parser
    from fusesoc.core import Core

    _, folder = make_project(name)
    core = Core(Core2Parser(), str(folder / "vitral.core"))
    assert str(core.name).split("-")[0] == VLNV
    flags = {"is_toplevel": True, "target": "synth", **core.get_flags("synth")}
    assert flags["tool"] == tool
    files = core.get_files(flags)
    assert [file["file_type"] for file in files] == ["verilogSource"]
    assert [(folder / file["name"]).is_file() for file in files] == [True]
    assert core.get_toplevel(flags) == VLNV.split(":")[2]
    options = core.get_tool_options(flags)
    assert find_target(name).part in (options.get("part"), options.get("device"))
