"""What nextpnr's report says: fmax, resources, and the slowest path that ends in each block."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vitral.errors import BitstreamError

__all__ = ["Path", "Summary", "summary"]

_KINDS = {
    "lut4": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "dp16kd": "DP16KD",
    "mult18x18d": "MULT18X18D",
    "pll": "EHXPLLL",
}
"""nextpnr's names of what there is on the FPGA by ours."""


@dataclass(frozen=True, kw_only=True)
class Path:
    """A path between registers: where it ends, and its nanoseconds, routing included."""

    block: str
    end: str
    delay_ns: float


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a placed and routed design takes and reaches.

    Parameters
    ----------
    fmax_mhz, constraint_mhz : float
        Of the slowest clock.
    resources, available : mapping
        Used and all there are, by kind.
    critical : tuple of str
        The cells of the slowest path, with the nanoseconds at each.
    blocks : tuple of Path
        The slowest path that ends in each block, slowest first.
    """

    fmax_mhz: float
    constraint_mhz: float
    resources: Mapping[str, int]
    available: Mapping[str, int]
    critical: tuple[str, ...]
    blocks: tuple[Path, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self)


def summary(report: Mapping[str, Any]) -> Summary:
    """Of the JSON that ``nextpnr-ecp5 --report --detailed-timing-report`` writes.

    Raises
    ------
    BitstreamError
        When it is something else.
    """
    try:
        clock = min(report["fmax"].values(), key=lambda entry: entry["achieved"])
        used = report["utilization"]
        return Summary(
            fmax_mhz=round(float(clock["achieved"]), 2),
            constraint_mhz=float(clock["constraint"]),
            resources={name: int(used[kind]["used"]) for name, kind in _KINDS.items()},
            available={name: int(used[kind]["available"]) for name, kind in _KINDS.items()},
            critical=tuple(_critical(report["critical_paths"])),
            blocks=tuple(_blocks(report["detailed_net_timings"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BitstreamError(f"no report of nextpnr-ecp5: {error!r}") from None


def _critical(paths: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """The slowest path within one clock, one line per step."""
    within = [entry["path"] for entry in paths if entry["from"] == entry["to"]]
    steps = max(within, key=lambda path: sum(step["delay"] for step in path), default=[])
    at = 0.0
    for step in steps:
        at += step["delay"]
        yield f"{at:.2f} ns {step['type']}: {step['to']['cell']}.{step['to']['port']}"


def _blocks(nets: Iterable[Mapping[str, Any]]) -> Iterable[Path]:
    slowest: dict[str, Path] = {}
    for net in nets:
        for sink in net["endpoints"]:
            if sink["event"] != net["event"]:  # from and to what has no clock, or another one
                continue
            cell, delay = sink["cell"], round(float(max(sink["delay"])), 2)
            block = _block(cell)
            if block not in slowest or delay > slowest[block].delay_ns:
                slowest[block] = Path(block=block, end=f"{cell}.{sink['port']}", delay_ns=delay)
    return sorted(slowest.values(), key=lambda path: -path.delay_ns)


def _block(cell: str) -> str:
    """``core.fetch`` for a cell of the core's part `fetch`, ``bridge`` for one of the bridge."""
    parts = cell.removeprefix("system.").split(".")[:-1]
    return ".".join(parts[: 2 if parts[:1] == ["core"] else 1]) or "top"
