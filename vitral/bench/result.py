"""What a benchmark measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vitral.config import CoreConfig
from vitral.program import MemoryModel
from vitral.runtime.profile import LayerProfile

__all__ = ["BenchLayer", "BenchResult", "CompileCost"]


@dataclass(frozen=True)
class BenchLayer:
    """One layer's cost in its last run.

    `match` says whether all runs gave the exact bytes, `seconds` is the time that these runs took
    on this host, `times` how often the layer occurs in its network, `predicted` what the
    compiler's cycle model says about it.
    """

    profile: LayerProfile
    match: bool
    seconds: float
    times: int = 1
    predicted: int | None = None


@dataclass(frozen=True)
class CompileCost:
    """Processor seconds of compiling, and of `numpy_workload` just after it on the same host."""

    compile_s: float
    numpy_s: float


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """Result of a benchmark; cycles are None on devices that count none.

    Parameters
    ----------
    network, device : str
        What ran, and where.
    layers : tuple of BenchLayer
        Layers on the accelerator.
    host : tuple of LayerProfile
        Operators on the CPU.
    repeat : int
        Runs of each layer.
    checked_by : str
        Whose bytes the result was compared with.
    compiling : CompileCost or None
        None where layers were made without the compiler's front end.
    """

    network: str
    device: str
    layers: tuple[BenchLayer, ...]
    config: CoreConfig
    memory: MemoryModel
    repeat: int
    checked_by: str
    host: tuple[LayerProfile, ...] = ()
    compiling: CompileCost | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def match(self) -> bool:
        return all(layer.match for layer in self.layers)

    @property
    def total_cycles(self) -> int | None:
        """Each layer once."""
        cycles = [layer.profile.cycles for layer in self.layers]
        return sum(c for c in cycles if c is not None) if None not in cycles else None

    @property
    def weighted_cycles(self) -> int | None:
        """Each layer as often as its network has it; None when none occurs twice."""
        if self.total_cycles is None or all(layer.times == 1 for layer in self.layers):
            return None
        return sum(layer.times * (layer.profile.cycles or 0) for layer in self.layers)

    @property
    def seconds(self) -> float:
        """Time on this host of one run of all layers, the mean over the runs."""
        return sum(layer.seconds for layer in self.layers) / self.repeat

    @property
    def cycles_per_s(self) -> float | None:
        """Simulated cycles per second on this host."""
        return None if self.total_cycles is None else self.total_cycles / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        record = {
            "network": self.network,
            "device": self.device,
            "match": self.match,
            "checked_by": self.checked_by,
            "layers": [_layer_record(layer) for layer in self.layers],
            "host": [{"name": p.name, "op": p.op, "seconds": p.seconds} for p in self.host],
            "total_cycles": self.total_cycles,
            "weighted_cycles": self.weighted_cycles,
            "seconds": self.seconds,
            "cycles_per_s": self.cycles_per_s,
            "config": self.config.to_dict(),
            "memory": {
                "data_bits": self.config.data_bits,
                "latency": self.memory.latency,
                "write_latency": self.memory.write_latency,
                "outstanding": self.memory.outstanding,
                "stall_seed": self.memory.stall_seed,
            },
        }
        if self.compiling:
            record["compile"] = {
                "cpu_s": self.compiling.compile_s,
                "numpy_workload_s": self.compiling.numpy_s,
            }
        return record | dict(self.notes)


def _layer_record(layer: BenchLayer) -> dict[str, Any]:
    profile = layer.profile
    return {
        "name": profile.name,
        "macs": profile.macs,
        "cycles": profile.cycles,
        "roofline_cycles": profile.roofline_cycles,
        "predicted_cycles": layer.predicted,
        "utilisation": profile.utilisation,
        "stalls": dict(profile.stalls),
        "read_bytes": profile.read_bytes,
        "write_bytes": profile.write_bytes,
        "times": layer.times,
        "match": layer.match,
    }
