"""Quartus' and Platform Designer's scripts, command by command, on stand-ins for both."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vitral.bitstream.backends import backend_of
from vitral.bitstream.plan import Plan
from vitral.errors import ConfigError
from vitral.targets import Target, find_target

pytest.importorskip("tkinter", reason="Python was built without Tcl")
from vendors.quartus import Quartus
from vendors.tcl import Refused

pytestmark = pytest.mark.board
NAME = "de10-nano"
LIGHTWEIGHT = 0xFF20_0000
MakeProject = Callable[[str], tuple[Plan, Path]]


def run(folder: Path) -> Quartus:
    quartus = Quartus()
    quartus.source(folder / "build.tcl")
    return quartus


def test_the_system_is_the_target_s(make_project: MakeProject) -> None:
    plan, folder = make_project(NAME)
    target = find_target(NAME)
    quartus = run(folder)
    system = quartus.system
    assert system is not None
    assert target.registers is not None
    assert target.dram is not None
    assert quartus.settings["DEVICE"] == plan.part == target.part
    assert float(system.values["pll"]["gui_output_clock_frequency0"]) == target.clock_mhz
    assert float(system.values["pll"]["gui_reference_clock_frequency"]) == target.oscillator_mhz
    assert quartus.clocks == {"clk_clk": 20.0}
    assert int(system.values["hps"]["F2SDRAM_Width"]) == target.port.data_bits
    assert int(system.values["hps"]["MEM_DQ_WIDTH"]) == target.dram.bits
    registers = system.connections["hps.h2f_lw_axi_master", "core.s_axi"]
    assert int(registers["baseAddress"], 0) + LIGHTWEIGHT == target.registers
    assert ("core.m_axi", f"hps.{target.port.name}_data") in system.connections
    assert ("hps.f2h_irq0", "core.irq") in system.connections
    for product in plan.products:
        assert (folder / product).stat().st_size > 0


def test_the_overlay_names_the_bitstream(make_project: MakeProject) -> None:
    plan, _ = make_project(NAME)
    names = re.findall(r'firmware-name = "(.*)"', plan.files["vitral.dts"])
    assert names == list(plan.products[:1])


MUTANTS = [
    ("build.tcl", "qsys-script]", "qsys-scripts]", "no program"),
    ("build.tcl", "--script=system.tcl", "--script=soc.tcl", "couldn't read file"),
    (
        "build.tcl",
        "--search-path=ip,$\nrun",
        "--search-path=ips,$\nrun",
        "no component vitral_core",
    ),
    ("build.tcl", "quartus_map] vitral", "quartus_map] core", "no project core.qpf"),
    ("build.tcl", "hps_sdram_p0", "hps_sdram_p1", "quartus_sta has to come first"),
    ("build.tcl", "run [file join $bin quartus_fit] vitral", "", "quartus_fit has to come first"),
    ("build.tcl", "output/vitral.sof", "vitral.sof", "quartus_cpf"),
    ("system.tcl", "5CSEBA6U23I7", "5CSEMA5F31C6", "system for"),
    ("system.tcl", "altera_pll", "altera_iopll", "no component altera_iopll"),
    ("system.tcl", "gui_number_of_clocks 1", "gui_number_of_clocks 0", "cannot be '0'"),
    ("system.tcl", "LWH2F_Enable true", "LWH2F_Enable false", "no interface hps.h2f_lw_axi"),
    ("system.tcl", "S2F_Width 0", "S2F_Width 2", "nothing is connected to hps.h2f_axi_clock"),
    ("system.tcl", "MPU_EVENTS_Enable 0", "", "nothing is connected to hps.h2f_mpu_events"),
    ("system.tcl", "F2SDRAM_Type {AXI-3}", "F2SDRAM_Type {AXI-4}", "no port to memory AXI-4"),
    ("system.tcl", "F2SDRAM_Width {64}", "F2SDRAM_Width {64 64}", "F2SDRAM: types"),
    ("system.tcl", "F2SINTERRUPT_Enable 1", "F2SINTERRUPT_Enable 0", "no interface hps.f2h_irq0"),
    ("system.tcl", "MEM_DQ_WIDTH 32", "MEM_DQ_BITS 32", "no parameter MEM_DQ_BITS"),
    ("system.tcl", "core.aclk hps", "core.clk hps", "no interface core.clk"),
    ("system.tcl", "core.aclk hps", "hps", "nothing is connected to core.aclk"),
    ("system.tcl", "hps.h2f_reset core.aresetn", "hps.h2f_reset core.aclk", "to core.aclk (clock"),
    ("system.tcl", "hps.f2h_irq0 core.irq", "hps.f2h_irq2 core.irq", "no interface hps.f2h_irq2"),
    ("system.tcl", "irqNumber 0", "baseAddress 0", "has no baseAddress"),
    ("system.tcl", "EXPORT_OF hps.memory", "EXPORT_OF hps.hps_io", "no interface hps.hps_io"),
    ("system.tcl", "save_system system.qsys", "", "the system is not saved"),
    ("vitral.qsf", "DEVICE 5CSEBA6U23I7", "DEVICE 5CSEBA5U23I7", "no part 5CSEBA5U23I7"),
    ("vitral.qsf", "TOP_LEVEL_ENTITY system", "TOP_LEVEL_ENTITY top", "no entity top"),
    ("vitral.qsf", "system.qip", "soc.qip", "no file"),
    ("vitral.qsf", "SDC_FILE vitral.sdc", "SDC_FILE core.sdc", "no file core.sdc"),
    ("vitral.qsf", "PIN_V11", "PIN_V12", "PIN_V12 is no clock"),
    ("vitral.qsf", "PIN_V11 -to clk_clk", "PIN_V11 -to clk", "no port clk;"),
    ("vitral.sdc", "get_ports clk_clk", "get_ports clock", "no port clock"),
    ("report.tcl", "project_open vitral", "project_open core", "no project core.qpf"),
    ("ip/vitral_core_hw.tcl", "PATH vitral_core.v", "PATH src/vitral_core.v", "file vitral_core.v"),
    ("ip/vitral_core_hw.tcl", "TOP_LEVEL vitral_core", "TOP_LEVEL core", "has no module core"),
    (
        "ip/vitral_core_hw.tcl",
        "s_axi_awaddr awaddr Input 12",
        "s_axi_awaddr awaddr Input 13",
        "Input 13 is ('in', 12)",
    ),
    ("ip/vitral_core_hw.tcl", "m_axi_rlast rlast", "m_axi_rlast last", "no rlast"),
    (
        "ip/vitral_core_hw.tcl",
        "m_axi_awready awready Input",
        "m_axi_awready awready Output",
        "Output 1 is ('in', 1)",
    ),
    ("ip/vitral_core_hw.tcl", "m_axi axi4 start", "m_axi axi4 end", "m_axi: awaddr goes out"),
    ("ip/vitral_core_hw.tcl", "s_axi axi4lite", "s_axi axi4", "s_axi has no"),
    ("ip/vitral_core_hw.tcl", "add_interface_port irq irq irq Output 1", "", "irq has ports []"),
    ("ip/vitral_core_hw.tcl", "Point s_axi", "Point registers", "which is not there"),
    ("ip/vitral_core_hw.tcl", "aresetn reset_n", "aresetn resetn", "has no resetn"),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"), MUTANTS, ids=[f"{f}:{o}>{n}" for f, o, n, _ in MUTANTS]
)
def test_a_mistake_in_a_script_is_found(
    file: str, old: str, new: str, problem: str, make_project: MakeProject
) -> None:
    plan, folder = make_project(NAME)
    text = plan.files[file]
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(Refused, match=re.escape(problem)):
        run(folder)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"part": "xc7z020"}, "part 'xc7z020' of de10-nano: needs a Cyclone V SoC"),
        ({"registers": 0x43C0_0000}, "registers at 0x43c00000; the lightweight bridge has"),
        ({"registers": 0xFF40_0000}, "registers at 0xff400000; the lightweight bridge has"),
        ({"oscillator_mhz": None}, "no clock, oscillator or memory"),
    ],
)
def test_targets_that_do_not_fit(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        backend_of(NAME).plan(replace(find_target(NAME), **changes), "")  # pyright: ignore


def test_a_port_that_the_processor_does_not_have() -> None:
    target = find_target(NAME)
    other = replace(target, port=replace(target.port, name="f2h_sdram7"))
    with pytest.raises(ConfigError, match="no memory port 'f2h_sdram7' with AXI3"):
        backend_of(NAME).plan(other, "")


def test_another_place_for_the_registers(tmp_path: Path, planned: Callable[[Target], Plan]) -> None:
    planned(replace(find_target(NAME), registers=LIGHTWEIGHT + 0x1_0000)).write(tmp_path)
    system = run(tmp_path).system
    assert system is not None
    registers = system.connections["hps.h2f_lw_axi_master", "core.s_axi"]
    assert registers == {"baseAddress": "0x00010000"}
