"""Programs as folders of raw files: instructions, data, addresses, and the expected result."""

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Memory, Profile
from vitral.program.dram import GUARD, PAGE, Dram
from vitral.program.launch import ADDRESS_END, Launch

__all__ = ["ProgramFolder", "Region"]

ADDRESSES = "memory_addresses.csv"
EXPECTED = "expected_out.bin"
EXPECTED_FULL = "expected_out_sram.bin"
SETTINGS = "program.json"
OUT = "OUT"
INSN = "INSN"
FILES = {
    "INP": "input.bin",
    "WGT": "weight.bin",
    "ACC": "accumulator.bin",
    "ACC_BIS": "add_accumulator.bin",
    "UOP": "uop.bin",
    "PARAM": "parameters.bin",
    INSN: "instructions.bin",
}
"""File of each region that the address list can name; OUT has none."""


@dataclass(frozen=True)
class Region:
    """Bytes at a byte address; `name` is a key of the address list."""

    name: str
    address: int
    data: bytes

    @property
    def end(self) -> int:
        return self.address + len(self.data)


@dataclass(frozen=True)
class ProgramFolder:
    """A program, its data and its expected result.

    Folders hold raw little-endian files; `memory_addresses.csv` gives each region's byte address
    (``NAME, byte address, element address``), `expected_out_sram.bin` has the size of the OUT
    region, `expected_out.bin`, where there is one, what it holds from its first byte on
    afterwards. The optional `program.json` has ``profile``, ``config``, ``bases``, ``limit_low``
    and ``limit_high``; without it the program is a VTA one in the default configuration.

    Parameters
    ----------
    name : str
        For messages.
    config : CoreConfig
        The core that the program needs.
    launch : Launch
        How to start it.
    regions : tuple of Region
        What memory holds before the run; OUT is all zeros.
    expected_out : bytes
        First bytes of OUT after the run; none when nothing is expected.
    """

    name: str
    config: CoreConfig
    launch: Launch
    regions: tuple[Region, ...]
    expected_out: bytes

    def __post_init__(self) -> None:
        if len(self.expected_out) > len(self.out.data):
            raise DeviceError(
                f"{self.name}: {len(self.expected_out)} bytes expected of {len(self.out.data)}"
                f" in OUT; {EXPECTED_FULL} must be as long as the region"
            )
        placed = sorted(self.regions, key=lambda region: region.address)
        for low, high in pairwise(placed):
            if low.end > high.address:
                raise DeviceError(
                    f"{self.name}: {low.name} {low.address:#x}..{low.end:#x} overlaps"
                    f" {high.name} at {high.address:#x}; move one of them"
                )

    def region(self, name: str) -> Region:
        """The region of that name; DeviceError when the program has none."""
        for region in self.regions:
            if region.name == name:
                return region
        raise DeviceError(f"{self.name}: no {name} region; add it to {ADDRESSES}")

    @property
    def out(self) -> Region:
        return self.region(OUT)

    def dram(self) -> Dram:
        """A fresh memory with all regions, and guard bytes in a page around and between them."""
        low = min(region.address for region in self.regions) // PAGE * PAGE
        high = max(region.end for region in self.regions)
        low = max(0, low - PAGE)
        dram = Dram.filled(low, high + PAGE - low, GUARD)
        for region in self.regions:
            dram.write(region.address, region.data)
        return dram

    def differences(self, dram: Dram, limit: int = 4) -> list[str]:
        """What is wrong with a memory after the run: OUT, or any byte outside OUT that changed."""
        start = self.out.address - dram.base
        wanted = self.dram().data
        got = dram.data.copy()
        wanted[start : start + len(self.expected_out)] = np.frombuffer(self.expected_out, np.uint8)
        free = slice(start + len(self.expected_out), start + len(self.out.data))
        got[free] = wanted[free]
        wrong = np.flatnonzero(wanted != got)
        lines = [
            f"{dram.base + int(n):#x} ({self._owner(dram.base + int(n))}):"
            f" {got[n]:#04x}, expected {wanted[n]:#04x}"
            for n in wrong[:limit]
        ]
        return [f"{self.name}: {wrong.size} bytes differ", *lines] if lines else []

    def _owner(self, address: int) -> str:
        for region in self.regions:
            if region.address <= address < region.end:
                return f"{region.name} + {address - region.address}"
        return "guard"

    @classmethod
    def load(cls, path: "str | Path") -> "ProgramFolder":
        """Read a folder.

        Raises
        ------
        DeviceError
            Naming the file that is missing or malformed, or the regions that overlap.
        """
        folder = Path(path)
        addresses = _read_addresses(folder / ADDRESSES)
        for name in (INSN, OUT):
            if name not in addresses:
                raise DeviceError(f"{folder / ADDRESSES}: needs a line for {name}")
        regions = [
            Region(name, address, _read(folder / FILES[name]))
            for name, address in addresses.items()
            if name != OUT
        ]
        out_size = len(_read(folder / EXPECTED_FULL))
        regions.append(Region(OUT, addresses[OUT], bytes(out_size)))
        _refuse_homeless(folder, addresses)
        size = len(next(region.data for region in regions if region.name == INSN))
        if size % INSN_BYTES:
            raise DeviceError(
                f"{folder / FILES[INSN]}: {size} bytes, needs a multiple of {INSN_BYTES}"
            )
        config, launch = _read_settings(folder / SETTINGS, addresses[INSN], size // INSN_BYTES)
        expected = _read(folder / EXPECTED) if (folder / EXPECTED).exists() else b""
        return cls(folder.name, config, launch, tuple(regions), expected)

    def save(self, path: "str | Path") -> None:
        """Write the folder; :meth:`load` gives the same program back."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for region in self.regions:
            lines.append(f"{region.name},{region.address:#x},{self._element(region):#x}\n")
            name = EXPECTED_FULL if region.name == OUT else FILES[region.name]
            (folder / name).write_bytes(region.data)
        (folder / ADDRESSES).write_text("".join(lines))
        (folder / EXPECTED).write_bytes(self.expected_out)
        settings: dict[str, Any] = {
            "profile": self.launch.profile.name.lower(),
            "config": self.config.to_dict(),
            "bases": {m.name.lower(): base for m, base in self.launch.bases.items()},
            "limit_low": self.launch.limit_low,
            "limit_high": self.launch.limit_high,
        }
        (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")

    def _element(self, region: Region) -> int:
        layout = self.config.layout
        sizes = {"INP": layout.inp_bytes, "WGT": layout.wgt_bytes, "ACC": layout.acc_bytes}
        sizes |= {"ACC_BIS": layout.acc_bytes, OUT: layout.out_bytes, "UOP": layout.uop_bytes}
        return region.address // sizes.get(region.name, INSN_BYTES)

    def with_data(self, name: str, data: "bytes | npt.NDArray[np.generic]") -> "ProgramFolder":
        """The same program with other bytes in one region."""
        self.region(name)
        raw = data if isinstance(data, bytes) else data.tobytes()
        regions = tuple(
            replace(region, data=raw) if region.name == name else region for region in self.regions
        )
        return replace(self, regions=regions)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DeviceError(f"{path}: cannot read a program's file: {error.strerror}") from None


def _read_addresses(path: Path) -> dict[str, int]:
    addresses: dict[str, int] = {}
    for number, line in enumerate(_read(path).decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(",")]
        where = f"{path}:{number}"
        if len(parts) != 3:
            raise DeviceError(f"{where}: needs NAME,byte address,element address; got {line!r}")
        if parts[0] not in FILES and parts[0] != OUT:
            raise DeviceError(f"{where}: no region is called {parts[0]!r}; known: {_known()}")
        if parts[0] in addresses:
            raise DeviceError(f"{where}: a second line for {parts[0]}")
        try:
            addresses[parts[0]] = int(parts[1], 16)
        except ValueError:
            raise DeviceError(f"{where}: {parts[1]!r} is not a hexadecimal address") from None
    return addresses


def _known() -> str:
    return ", ".join([*FILES, OUT])


def _refuse_homeless(folder: Path, addresses: dict[str, int]) -> None:
    for name, file in FILES.items():
        path = folder / file
        if name not in addresses and path.exists() and path.stat().st_size:
            raise DeviceError(f"{path}: has data, but {ADDRESSES} gives {name} no address")


def _read_settings(path: Path, insn_base: int, insn_count: int) -> tuple[CoreConfig, Launch]:
    """The core and how to start it; what VTA programs assume when there is no such file."""
    text = _read(path) if path.exists() else b'{"profile": "vta"}'
    try:
        settings: dict[str, Any] = json.loads(text)
        config = CoreConfig(**settings.get("config", {}))
        launch = Launch(
            insn_base=insn_base,
            insn_count=insn_count,
            profile=Profile[settings.get("profile", "vitral").upper()],
            bases={Memory[k.upper()]: int(v) for k, v in settings.get("bases", {}).items()},
            limit_low=int(settings.get("limit_low", 0)),
            limit_high=int(settings.get("limit_high", ADDRESS_END)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, DeviceError) as error:
        raise DeviceError(f"{path}: not a program's settings: {error}") from None
    return config, launch
