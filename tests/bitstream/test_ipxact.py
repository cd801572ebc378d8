"""The packaged core: its component.xml against the rules of IP-XACT, AXI and the register map."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from vitral.bitstream.interfaces import core_ports
from vitral.bitstream.plan import Plan
from vitral.hw.verilog import TOP_NAME
from vitral.registers import ADDRESS_BITS, REGISTERS
from vitral.runtime.boards.bitfile import VLNV
from vitral.targets import find_target

pytest.importorskip("tkinter", reason="Python was built without Tcl")
from vendors.ipxact import read_component
from vendors.tcl import Refused

pytestmark = pytest.mark.board

MakeProject = Callable[[str], tuple[Plan, Path]]
FILE = "ip/vitral_core/component.xml"


@pytest.mark.parametrize("name", ["pynq-z1", "ultra96"])
def test_ports_and_interfaces(name: str, make_project: MakeProject) -> None:
    _, folder = make_project(name)
    config = find_target(name).config
    found = read_component(folder / FILE)
    assert found.vlnv == VLNV
    ports = {
        port.name: ({"input": "in", "output": "out"}[port.direction], port.width)
        for port in core_ports(config)
    }
    assert found.ports == ports
    assert set(found.interfaces) == {"s_axi", "m_axi", "aclk", "aresetn", "irq"}
    memory = found.interfaces["m_axi"].parameters
    assert int(memory["DATA_WIDTH"]) == config.data_bits
    assert int(memory["ADDR_WIDTH"]) == config.addr_bits
    assert int(memory["MAX_BURST_LENGTH"]) == config.burst_beats
    assert found.interfaces["aclk"].parameters["ASSOCIATED_BUSIF"] == "s_axi:m_axi"
    assert found.spaces == {"m_axi": 1 << config.addr_bits}


def test_the_register_map_is_complete(make_project: MakeProject) -> None:
    _, folder = make_project("pynq-z1")
    found = read_component(folder / FILE)
    assert found.segments == {"s_axi/reg0": 1 << ADDRESS_BITS}
    words = {}
    for entry in REGISTERS:
        names = [entry.name] if entry.words == 1 else [f"{entry.name}_low", f"{entry.name}_high"]
        words |= {entry.offset + 4 * n: name for n, name in enumerate(names)}
    assert found.registers == words


def test_the_block_s_name_is_the_module_s() -> None:
    assert VLNV.split(":")[2] == TOP_NAME


MUTANTS = [
    (">s_axi_awaddr</spirit:name>", ">s_axi_address</spirit:name>", "no port s_axi_address"),
    ("<spirit:name>WSTRB</spirit:name>", "<spirit:name>WSTROBE</spirit:name>", "has no wstrb"),
    ('memoryMapRef="s_axi"', 'memoryMapRef="regs"', "refers to 'regs'"),
    ('addressSpaceRef="m_axi"', 'addressSpaceRef="mem"', "refers to 'mem'"),
    ('name="aximm_rtl"', 'name="aximm"', "do not match"),
    ("<spirit:left>63</spirit:left>", "<spirit:left>31</spirit:left>", "data of 32, 64 bits"),
    (">aresetn</spirit:value>", ">resetn</spirit:value>", "no reset resetn"),
    ("s_axi:m_axi<", "s_axi:memory<", "for memory, which is not there"),
    ("0x10</spirit:addressOffset>", "0xC</spirit:addressOffset>", "out of place"),
    ("<spirit:range>4096", "<spirit:range>128", "out of place"),
    ("<spirit:bitOffset>24<", "<spirit:bitOffset>23<", "field wait of load_state"),
    (">src/vitral_core.v<", ">vitral_core.v<", "no such file"),
    (">rtl</spirit:localName>", ">hdl</spirit:localName>", "no file set hdl"),
    ("vivado.xilinx.com:simulation", "vivado.xilinx.com:sim", "needs views for"),
    (
        ">xilinx_verilogsynthesis</spirit:viewNameRef>",
        ">synth</spirit:viewNameRef>",
        "no view synth",
    ),
    ("<spirit:direction>in<", "<spirit:direction>inout<", "goes inout"),
    ("spirit:usage", "spirit:use", "addressBlock cannot have use"),
]


@pytest.mark.parametrize(
    ("old", "new", "problem"), MUTANTS, ids=[f"{o}>{n}" for o, n, _ in MUTANTS]
)
def test_a_mistake_is_found(old: str, new: str, problem: str, make_project: MakeProject) -> None:
    from vendors.blocks import of_component

    plan, folder = make_project("pynq-z1")
    text = plan.files[FILE]
    assert old in text
    count = -1 if old == "spirit:usage" else 1
    (folder / FILE).write_text(text.replace(old, new, count))
    with pytest.raises(Refused, match=re.escape(problem)):
        of_component(read_component(folder / FILE))


def test_order_counts(make_project: MakeProject) -> None:
    plan, folder = make_project("pynq-z1")
    name, version = (f"<spirit:{key}>" for key in ("name", "version"))
    text = plan.files[FILE]
    first = text.index(f"  {name}vitral_core")
    second = text.index(f"  {version}1.0")
    end = text.index("\n", second) + 1
    swapped = text[:first] + text[second:end] + text[first:second] + text[end:]
    (folder / FILE).write_text(swapped)
    with pytest.raises(Refused, match="children of component in the wrong order"):
        read_component(folder / FILE)
