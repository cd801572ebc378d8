"""Builds a core for cocotb in Verilator, once, and runs a module of cocotb tests on it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import cocotb_tools
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from vitral.hw.verilog import TOP_NAME
from vitral.sim.rtl.cache import cache_folder, digest_of, locked
from vitral.sim.rtl.toolchain import environment, find_toolchain

__all__ = ["run_cocotb"]

BUILD_ARGS = ["-Wno-fatal", "-Wno-lint", "-Wno-style", "--x-assign", "fast", "--noassert"]
MAKE_FLAGS = "OPT_FAST=-O1 OPT_SLOW=-O0"


def run_cocotb(
    verilog: str,
    module: str,
    folder: Path,
    *,
    settings: Mapping[str, str],
    testcase: str = "",
    top: str = TOP_NAME,
) -> None:
    """Run `module`'s cocotb tests on a Verilog design.

    Works with an empty environment too: PATH, VERILATOR_ROOT and make's flags are set here.

    Parameters
    ----------
    verilog : str
        The design.
    module : str
        Import name of the module with the tests.
    folder : Path
        Where the run leaves its files.
    settings : Mapping[str, str]
        Environment variables by which the tests get their parameters.
    testcase : str
        Name of the only test to run; all where empty.
    top : str
        Name of the design's top module.

    Raises
    ------
    AssertionError
        When a test failed, or none ran.
    """
    values = environment()
    values["MAKEFLAGS"] = f"{values['MAKEFLAGS']} {MAKE_FLAGS}"
    with patch.dict(os.environ, values):
        runner = get_runner("verilator")
        build = cache_folder() / "cocotb" / _key(verilog)
        with locked(build.with_suffix(".lock"), (build / "ready").exists) as needed:
            if needed:
                build.mkdir(parents=True, exist_ok=True)
                source = build / "core.v"
                source.write_text(verilog)
                runner.build(
                    sources=[source],
                    hdl_toplevel=top,
                    build_dir=build,
                    build_args=BUILD_ARGS,
                    timescale=("1ns", "1ps"),
                    log_file=build / "build.log",
                )
                (build / "ready").touch()
        with suppress(SystemExit):  # the runner's way to say that tests failed; see below
            runner.test(
                test_module=module,
                hdl_toplevel=top,
                hdl_toplevel_lang="verilog",
                build_dir=build,
                test_dir=folder,
                extra_env=settings,
                testcase=testcase or None,
                results_xml=str(folder.resolve() / "results.xml"),
                log_file=folder / "run.log",
            )
    ran, failed = get_results(folder / "results.xml")
    log = (folder / "run.log").read_text()
    assert ran, f"{module}: no test ran; {folder / 'run.log'}"
    assert not failed, f"{module}: {failed} of {ran} failed\n{log[-4000:]}"


def _key(verilog: str) -> str:
    """cocotb's folder is part of it: the built program looks for its libraries there."""
    cocotb = str(Path(cocotb_tools.__file__).parent)
    return digest_of(verilog, find_toolchain().digest, *BUILD_ARGS, MAKE_FLAGS, cocotb)
