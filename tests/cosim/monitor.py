"""cocotb: watches the memory port for broken rules of AXI, independent of any memory model."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from vitral.config import CoreConfig

__all__ = ["watch_bus"]

PAGE = 4096
INCR = 1


class _Channel:
    """One channel driven by the core: VALID, once up, stays with its payload until READY."""

    def __init__(self, dut: Any, prefix: str, payload: tuple[str, ...]) -> None:
        self.name = prefix.upper()
        self.valid = getattr(dut, f"m_axi_{prefix}valid")
        self.ready = getattr(dut, f"m_axi_{prefix}ready")
        self.payload = {name: getattr(dut, f"m_axi_{prefix}{name}") for name in payload}
        self.held: dict[str, int] | None = None

    def sample(self) -> "tuple[dict[str, int] | None, str]":
        """The payload that is handed over in this cycle, and what rule broke, if one did."""
        if not int(self.valid.value):
            dropped, self.held = self.held, None
            return None, f"{self.name}VALID dropped before READY" if dropped else ""
        now = {name: int(signal.value) for name, signal in self.payload.items()}
        broken = ""
        if self.held is not None and now != self.held:
            broken = f"{self.name} changed before READY: {self.held} to {now}"
        taken = bool(int(self.ready.value))
        self.held = None if taken else now
        return (now if taken else None), broken


def watch_bus(dut: Any, config: CoreConfig) -> list[str]:
    """Start to watch; broken rules are appended to the list that comes back."""
    broken: list[str] = []
    cocotb.start_soon(_watch(dut, config, broken))
    return broken


async def _watch(dut: Any, config: CoreConfig, broken: list[str]) -> None:
    address = ("addr", "len", "size", "burst", "cache", "prot", "qos")
    reads = _Channel(dut, "ar", address)
    writes = _Channel(dut, "aw", address)
    data = _Channel(dut, "w", ("data", "strb", "last"))
    wanted: deque[int] = deque()
    moved: deque[int] = deque()
    beats = 0
    while True:
        await RisingEdge(dut.aclk)
        await ReadOnly()
        if not int(dut.aresetn.value):
            continue
        for channel in (reads, writes):
            burst, text = channel.sample()
            broken += [text] if text else []
            if burst is not None:
                broken += _address_rules(channel.name, burst, config)
                wanted += [burst["len"] + 1] if channel is writes else []
        beat, text = data.sample()
        broken += [text] if text else []
        if beat is not None:
            beats += 1
            if beat["last"]:
                moved.append(beats)
                beats = 0
        while wanted and moved:
            length, count = wanted.popleft(), moved.popleft()
            if length != count:
                broken.append(f"WLAST after {count} beats of a burst of {length}")


def _address_rules(name: str, burst: dict[str, int], config: CoreConfig) -> list[str]:
    beat = config.layout.beat_bytes
    beats = burst["len"] + 1
    rules = {
        "does not move whole beats": 1 << burst["size"] == beat,
        "is not INCR": burst["burst"] == INCR,
        "is longer than the limit": beats <= config.burst_beats,
        "does not start at a beat": burst["addr"] % beat == 0,
        "crosses a page": burst["addr"] % PAGE + beats * beat <= PAGE,
    }
    return [f"{name} {burst} {rule}" for rule, kept in rules.items() if not kept]
