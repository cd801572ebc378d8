"""Vivado's scripts, command by command, on a stand-in that knows the blocks they use."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vitral.bitstream.backends import backend_of
from vitral.bitstream.plan import Plan
from vitral.errors import ConfigError
from vitral.registers import ADDRESS_BITS
from vitral.runtime.boards.bitfile import read_handoff
from vitral.targets import Target, find_target

pytest.importorskip("tkinter", reason="Python was built without Tcl")
from vendors.tcl import Refused
from vendors.vivado import Vivado

pytestmark = pytest.mark.board
NAMES = ["pynq-z1", "pynq-z2", "ultra96", "zcu104"]
FREQUENCY = {
    "xc7z": "PCW_FPGA0_PERIPHERAL_FREQMHZ",
    "xczu": "PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ",
}
WIDTH = {"xc7z": "PCW_S_AXI_HP0_DATA_WIDTH", "xczu": "PSU__SAXIGP2__DATA_WIDTH"}
MakeProject = Callable[[str], tuple[Plan, Path]]


def run(folder: Path, script: str | None = None) -> Vivado:
    if script is not None:
        (folder / "build.tcl").write_text(script)
    vivado = Vivado()
    vivado.source(folder / "build.tcl")
    return vivado


@pytest.mark.parametrize("name", NAMES)
def test_the_design_is_the_target_s(name: str, make_project: MakeProject) -> None:
    plan, folder = make_project(name)
    target = find_target(name)
    vivado = run(folder)
    assert vivado.part == plan.part == target.part
    values = vivado.cells["ps"].values
    assert float(values[FREQUENCY[target.part[:4]]]) == target.clock_mhz
    assert int(values[WIDTH[target.part[:4]]]) == target.port.data_bits
    assert target.dram is not None
    places = {segment.split("/")[0]: place for (_, segment), place in vivado.addresses.items()}
    assert places["core"] == (target.registers, 1 << ADDRESS_BITS)
    assert places["ps"] == (0, target.dram.nbytes)
    assert vivado.buses[-1] == ("memory/M00_AXI", f"ps/{target.port.name}")
    assert ["core/irq", "intc/intr"] in vivado.nets
    for product in plan.products:
        assert (folder / product).stat().st_size > 0


@pytest.mark.parametrize("name", ["pynq-z1", "zcu104"])
def test_the_runtime_finds_the_core_in_the_handoff(name: str, make_project: MakeProject) -> None:
    _, folder = make_project(name)
    run(folder)
    core = read_handoff(folder / "vitral.hwh")
    assert (core.address, core.nbytes) == (find_target(name).registers, 1 << ADDRESS_BITS)


MUTANTS = [
    ("-part xc7z020clg400-1", "-part xc7z020clg484-9", "no part"),
    ("here ip]]", "here ips]]", "no folder"),
    ("[ip axi_intc]", "[ip axi_interupts]", "no IP axi_interupts"),
    ("vitral_core:1.0 core", "vitral_core:1.1 core", "no block vitral.dev:vitral:vitral_core:1.1"),
    ("PCW_USE_S_AXI_HP0 1", "PCW_USE_S_AXI_HP9 1", "no parameter PCW_USE_S_AXI_HP9"),
    ("PCW_USE_S_AXI_HP0 1", "PCW_USE_S_AXI_HP1 1", "no pin ps/S_AXI_HP0_ACLK"),
    ("HP0_DATA_WIDTH 64", "HP0_DATA_WIDTH 128", "cannot be '128'"),
    ("FREQMHZ 100", "FREQMHZ 1000", "cannot be '1000'"),
    ("PCW_IRQ_F2P_INTR 1", "PCW_IRQ_F2P_INTR 0", "no pin ps/IRQ_F2P"),
    ("make_bd_intf_pins_external [get_bd_intf_pins ps/DDR]", "", "nothing is connected to ps/DDR"),
    ("C_IRQ_CONNECTION 1", "C_IRQ_CONNECTION 0", "no pin intc/irq"),
    ("NUM_MI 2", "NUM_MI 1", "no pin registers/M01_ACLK"),
    ("NUM_MI 2", "NUM_MI 3", "nothing drives registers/M02_ACLK"),
    ("core/aclk", "core/clk", "no pin core/clk"),
    ("core/aclk", "", "nothing drives core/aclk"),
    ("pins ps/FCLK_CLK0 ", "pins ", "not one driver"),
    ("core/aresetn", "core/aclk", "different kinds"),
    ("reset/peripheral_aresetn core", "reset/peripheral_reset core", "different kinds"),
    ("join_buses registers/M00_AXI core/s_axi", "", "does not reach core/s_axi/reg0"),
    ("core/m_axi memory", "core/m_axi registers", "connected twice"),
    ("memory/M00_AXI ps/S_AXI_HP0", "memory/M00_AXI ps/S_AXI_HP1", "no interface ps/S_AXI_HP1"),
    ("pins core/irq intc/intr", "pins core/interrupt intc/intr", "no pin core/interrupt"),
    ("connect_bd_net {*}[pins core/irq intc/intr]", "", "nothing drives intc/intr"),
    ("0x43C00000", "0x41800000", "overlap"),
    ("0x43C00000", "0x43C00800", "cannot be decoded"),
    ("-range 4096", "-range 8192", "has 4096 bytes, not 8192"),
    ("core/s_axi/reg0", "core/S_AXI/reg0", "no segment core/S_AXI/reg0"),
    ("spaces core/m_axi", "spaces core/Data", "no address space core/Data"),
    ("HP0_DDR_LOWOCM", "HP0_DDR_LOW", "no segment"),
    ("-range 536870912", "-range 536870911", "cannot be decoded"),
    ("validate_bd_design", "", "validate_bd_design has to come first"),
    ("set_property top system_wrapper", "set_property top system", "no module system"),
    ("write_bitstream", "write_bitstreams", "launch_runs"),
    ("wait_on_run impl_1", "", "wait_on_run has to come first"),
    ("open_run impl_1", "", "open_run has to come first"),
    ("impl_1 system_wrapper.bit", "impl_1 system.bit", "error copying"),
    ("sources_1/bd/system", "sources_1/bd/design_1", "no files matched"),
    ("version -short", "version -s", "version -s"),
    ("create_bd_design", "create_block_design", "invalid command name"),
]


@pytest.mark.parametrize(
    ("old", "new", "problem"), MUTANTS, ids=[f"{o}>{n}" for o, n, _ in MUTANTS]
)
def test_a_mistake_in_the_script_is_found(
    old: str, new: str, problem: str, make_project: MakeProject
) -> None:
    plan, folder = make_project("pynq-z1")
    script = plan.files["build.tcl"]
    assert old in script
    with pytest.raises(Refused, match=re.escape(problem)):
        run(folder, script.replace(old, new))


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        ("pynq-z1", {"name": "S_AXI_HP7"}, "no memory port 'S_AXI_HP7'; processing_system7 has"),
        ("ultra96", {"name": "S_AXI_HP0"}, "no memory port 'S_AXI_HP0'; zynq_ultra_ps_e has"),
        ("pynq-z1", {"data_bits": 128}, "S_AXI_HP0 of 128 bits"),
    ],
)
def test_a_port_that_the_processor_does_not_have(
    name: str, changes: dict[str, object], problem: str
) -> None:
    target = find_target(name)
    other = replace(target, port=replace(target.port, **changes))  # pyright: ignore
    with pytest.raises(ConfigError, match=problem):
        backend_of(name).plan(other, "")


@pytest.mark.parametrize(
    ("name", "port"),
    [("pynq-z1", "S_AXI_HP3"), ("pynq-z1", "S_AXI_ACP"), ("zcu104", "S_AXI_HPC1_FPD")],
)
def test_every_port_that_the_processor_has(
    name: str, port: str, tmp_path: Path, planned: Callable[[Target], Plan]
) -> None:
    target = find_target(name)
    planned(replace(target, port=replace(target.port, name=port))).write(tmp_path)
    vivado = run(tmp_path)
    assert vivado.buses[-1] == ("memory/M00_AXI", f"ps/{port}")


def test_a_part_of_another_family() -> None:
    other = replace(find_target("pynq-z1"), part="xc7a35t")
    with pytest.raises(ConfigError, match="part 'xc7a35t' of pynq-z1: needs a Zynq"):
        backend_of("pynq-z1").plan(other, "")
