"""What a target is: a board or simulator, and the core that is made for it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from vitral.config import CoreConfig
from vitral.errors import ConfigError

__all__ = ["Dram", "MemoryPort", "Target"]

_BURSTS = {"AXI3": 16, "AXI4": 256}


@dataclass(frozen=True, kw_only=True)
class MemoryPort:
    """Where the core's memory port goes.

    Parameters
    ----------
    name : str
        The port's in the vendor's tools.
    protocol : str
        "AXI3" or "AXI4".
    data_bits, addr_bits : int
        Its widths.
    burst_beats : int
        Longest burst it takes well; at most 16 with AXI3, 256 with AXI4.
    coherent : bool
        Whether it sees the processor's caches, so that nothing need be flushed or invalidated.
    offset : int
        Added to a physical address to give the core's.
    """

    name: str
    protocol: str
    data_bits: int
    addr_bits: int
    burst_beats: int
    coherent: bool = False
    offset: int = 0

    def __post_init__(self) -> None:
        limit = _BURSTS.get(self.protocol)
        if limit is None:
            raise ConfigError(f"protocol must be AXI3 or AXI4, got {self.protocol!r}")
        if self.burst_beats > limit:
            raise ConfigError(
                f"{self.protocol} has bursts of {limit} beats, got {self.burst_beats}"
            )


@dataclass(frozen=True, kw_only=True)
class Dram:
    """A board's memory: `nbytes` of it, `bits` wide, at `rate` million transfers per second."""

    kind: str
    nbytes: int
    bits: int
    rate: int

    @property
    def mb_per_s(self) -> int:
        """Million bytes per second at most, both directions together."""
        return self.bits * self.rate // 8


@dataclass(frozen=True, kw_only=True)
class Target:
    """A board or simulator, and the core that is made for it.

    Parameters
    ----------
    name : str
        What users write.
    meaning : str
        A few words for a table.
    board : str
        Its maker's name for it, "" for none.
    part : str
        The FPGA, as the vendor's tool wants it, "" for none.
    device : str
        How the runtime reaches it: a device's name, "" when it has none yet.
    port : MemoryPort
        The core's way to memory, which sets the core's bus.
    dram : Dram or None
        What is behind it; None for the FPGA's own memory, or a simulator's.
    clock_mhz : int or None
        Clock that the core is built for; None for simulators, which count cycles only.
    oscillator_mhz : float or None
        What clocks are made from: the processor's reference clock, or the FPGA's; None where
        that is the usual one of its family.
    registers : int or None
        Byte address of the register window for the processor; None where there is none.
    core : mapping
        Parameters of `CoreConfig` that are not the defaults, beside those of the bus.
    """

    name: str
    meaning: str
    port: MemoryPort
    board: str = ""
    part: str = ""
    device: str = ""
    dram: Dram | None = None
    clock_mhz: int | None = None
    oscillator_mhz: float | None = None
    registers: int | None = None
    core: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def config(self) -> CoreConfig:
        """The core."""
        return CoreConfig(
            data_bits=self.port.data_bits,
            addr_bits=self.port.addr_bits,
            burst_beats=self.port.burst_beats,
            **self.core,
        )

    @property
    def peak_gops(self) -> float | None:
        """Billion operations per second at most, a product and its addition counted as two."""
        if self.clock_mhz is None:
            return None
        return 2 * self.config.layout.macs_per_cycle * self.clock_mhz / 1000

    @property
    def port_mb_per_s(self) -> int | None:
        """Million bytes per second that the port moves at most, in each direction."""
        return None if self.clock_mhz is None else self.port.data_bits * self.clock_mhz // 8

    @property
    def memory_mb_per_s(self) -> int | None:
        """Million bytes per second at most, both directions together, of port and DRAM."""
        if self.port_mb_per_s is None:
            return None
        both = 2 * self.port_mb_per_s
        return both if self.dram is None else min(both, self.dram.mb_per_s)

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON; `config` in place of `core`."""
        record = {**asdict(self), "config": self.config.to_dict(), "digest": self.config.digest}
        del record["core"]
        return {
            **record,
            "peak_gops": self.peak_gops,
            "port_mb_per_s": self.port_mb_per_s,
            "memory_mb_per_s": self.memory_mb_per_s,
        }
