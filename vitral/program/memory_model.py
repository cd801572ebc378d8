"""Settings of the simulated memory behind the core's memory port."""

from dataclasses import dataclass

from vitral.errors import DeviceError

__all__ = ["MemoryModel"]

MAX_LATENCY = 1 << 20
"""Cycles; a slower memory would only make a simulation look as if it hung."""


@dataclass(frozen=True, kw_only=True)
class MemoryModel:
    """A memory with one read and one write channel, one beat per cycle each, in order.

    The defaults are the yardstick memory of all published cycle counts. The width of a beat is
    the core's `data_bits`.

    Parameters
    ----------
    latency : int
        Cycles from an AR handshake to the first R beat of that burst; 0 is answered like 1, in the
        next cycle. At most 2^20.
    write_latency : int
        Cycles from the handshake of WLAST to B; 0 is answered like 1. At most 2^20.
    outstanding : int
        Read bursts, and likewise write bursts, that the memory holds at most.
    stall_probability : float
        Chance, in each cycle and on each channel, that the memory does not answer: ARREADY,
        AWREADY or WREADY low, R or B not yet valid. Once R or B is valid it stays so.
    stall_seed : int or None
        Seed of these stalls; None means none.
    error_ranges : tuple of (low, high)
        Beats that touch a byte address ``low <= address < high`` answer SLVERR.
    fail_reads, fail_writes : tuple of int
        Numbers of bursts since the model was set, from 0, that answer SLVERR on every beat.
    limit_cycles : int
        A run that takes more cycles is ended with a time-out.
    """

    latency: int = 64
    write_latency: int = 64
    outstanding: int = 8
    stall_probability: float = 0.5
    stall_seed: int | None = None
    error_ranges: tuple[tuple[int, int], ...] = ()
    fail_reads: tuple[int, ...] = ()
    fail_writes: tuple[int, ...] = ()
    limit_cycles: int = 1 << 32

    def __post_init__(self) -> None:
        for name, least in (
            ("latency", 0),
            ("write_latency", 0),
            ("outstanding", 1),
            ("limit_cycles", 1),
        ):
            if getattr(self, name) < least:
                raise DeviceError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name, most in (("latency", MAX_LATENCY), ("write_latency", MAX_LATENCY)):
            if getattr(self, name) > most:
                raise DeviceError(f"{name} must be at most {most}, got {getattr(self, name)}")
        if self.outstanding > 64:
            raise DeviceError(f"outstanding must be 1..64, got {self.outstanding}")
        if not 0 <= self.stall_probability < 1:
            raise DeviceError(
                f"stall_probability must be 0 <= p < 1, got {self.stall_probability};"
                " a channel that always stalls would never answer"
            )
