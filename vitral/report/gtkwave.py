"""A GTKWave save file beside a waveform of tsim: which signals to show, in groups with names."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from vitral.config import CoreConfig
from vitral.isa import Stage

if TYPE_CHECKING:
    from vcd.gtkw import GTKWSave

__all__ = ["save_file", "write_gtkwave"]

TOP = "core.vitral_core"
"""How Verilator names the core in its waveforms."""
REGISTERS = f"{TOP}.core.registers"
STATE_HELP = "23:0 instruction; 27:24: 0 busy, 1 idle, 2 and 3 pop, 4 and 5 push, 6 memory"


def write_gtkwave(waveform: Path, config: CoreConfig) -> Path:
    """Write the save file of `waveform`; the same name, ending in .gtkw.

    Raises
    ------
    ModuleNotFoundError
        Without pyvcd.
    """
    path = waveform.with_suffix(".gtkw")
    with path.open("w") as file:
        save_file(file, waveform, config)
    return path


def save_file(file: TextIO, waveform: Path, config: CoreConfig) -> None:
    """The same into an open file."""
    from vcd.gtkw import GTKWSave

    save = GTKWSave(file)
    save.dumpfile(str(waveform.resolve()))
    save.dumpfile_size(waveform.stat().st_size)
    save.timestart(0)
    save.size(1600, 900)
    save.treeopen(f"{TOP}.core.")
    save.zoom_markers(zoom=-8.0)
    save.trace(f"{TOP}.aclk")
    save.trace(f"{TOP}.irq")
    with save.group("stages"):
        save.comment(STATE_HELP)
        for stage in Stage:
            save.trace(f"{REGISTERS}.{stage.name.lower()}_state[31:0]")
        save.trace(f"{REGISTERS}.status[31:0]")
    with save.group("memory reads"):
        _channels(save, config, {"ar": ("addr", "len"), "r": ("data", "last")})
    with save.group("memory writes"):
        _channels(save, config, {"aw": ("addr", "len"), "w": ("data", "strb", "last"), "b": ()})
    with save.group("register port", closed=True):
        for name in ("awvalid", "awready", "awaddr[11:0]", "wdata[31:0]", "arvalid", "rvalid"):
            save.trace(f"{TOP}.s_axi_{name}")


def _channels(save: "GTKWSave", config: CoreConfig, channels: dict[str, tuple[str, ...]]) -> None:
    widths = {
        "addr": config.addr_bits,
        "len": 8,
        "data": config.data_bits,
        "strb": config.data_bits // 8,
    }
    for channel, signals in channels.items():
        for name in ("valid", "ready", *signals):
            bits = widths.get(name, 1)
            place = f"[{bits - 1}:0]" if bits > 1 else ""
            save.trace(f"{TOP}.m_axi_{channel}{name}{place}")
