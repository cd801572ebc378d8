"""A FuseSoC core file (CAPI2), for those who build the core into something of their own."""

from vitral.bitstream.render import render
from vitral.runtime.boards.bitfile import VLNV
from vitral.targets import Target

__all__ = ["core_file"]


def core_file(source: str, target: Target) -> str:
    """YAML text of a core with the Verilog file `source`, a path relative to the core file."""
    vendor, library, name, version = VLNV.split(":")
    values = {
        "vlnv": f"{vendor}:{library}:{name}:{version}",
        "description": f"Vitral int8 tensor accelerator, core of target {target.name}",
        "source": source,
        "top": name,
        "part": target.part,
    }
    kind = "quartus" if target.part.startswith("5C") else "vivado"
    return render(f"{kind}/fusesoc.core", values)
