"""The C interface of a built simulator library, as Python sees it."""

import ctypes
import weakref
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.program import Dram, MemoryModel

__all__ = ["End", "Harness"]

STALL_STEPS = 4096


class End(IntEnum):
    """Why `Harness.run` came back; same values as in harness.cpp."""

    DONE = 0
    LIMIT = 1
    QUIET = 2
    PROTOCOL = 3
    NO_ANSWER = 4


class _Settings(ctypes.Structure):
    """Same layout as `Settings` in memory.h."""

    _fields_ = (
        ("latency", c_uint64),
        ("write_latency", c_uint64),
        ("seed", c_uint64),
        ("outstanding", c_uint32),
        ("stall_threshold", c_uint32),
        ("burst_beats", c_uint32),
        ("reserved", c_uint32),
    )


class _Range(ctypes.Structure):
    _fields_ = (("low", c_uint64), ("high", c_uint64))


_SIGNATURES = {
    "create": (c_void_p, ()),
    "destroy": (None, (c_void_p,)),
    "reset": (None, (c_void_p,)),
    "beat_bytes": (c_uint, ()),
    "attach": (None, (c_void_p, c_void_p, c_uint64, c_uint64)),
    "configure": (None, (c_void_p, POINTER(_Settings))),
    "fail": (
        None,
        (
            c_void_p,
            POINTER(_Range),
            c_uint64,
            POINTER(c_uint64),
            c_uint64,
            POINTER(c_uint64),
            c_uint64,
        ),
    ),
    "write": (c_int, (c_void_p, c_uint32, c_uint32)),
    "read": (c_int, (c_void_p, c_uint32, POINTER(c_uint32))),
    "run": (c_int, (c_void_p, c_uint64, c_uint64)),
    "cycle": (c_uint64, (c_void_p,)),
    "reads_open": (c_uint, (c_void_p,)),
    "writes_open": (c_uint, (c_void_p,)),
    "read_beats": (c_uint64, (c_void_p,)),
    "write_beats": (c_uint64, (c_void_p,)),
    "error": (c_char_p, (c_void_p,)),
    "array_count": (c_uint64, (c_void_p,)),
    "array": (
        c_char_p,
        (c_void_p, c_uint64, POINTER(c_void_p), POINTER(c_uint64), POINTER(c_uint64)),
    ),
    "timeline_start": (c_int, (c_void_p, c_void_p, c_uint64, c_int)),
    "timeline_stop": (None, (c_void_p,)),
    "timeline_marks": (c_void_p, (c_void_p, POINTER(c_uint64))),
    "timeline_changes": (c_void_p, (c_void_p, POINTER(c_uint64))),
    "timeline_traffic": (c_void_p, (c_void_p, POINTER(c_uint64))),
    "watch": (None, (c_void_p,)),
    "signature": (c_uint64, (c_void_p,)),
    "trace_open": (c_int, (c_void_p, c_char_p)),
    "trace_close": (None, (c_void_p,)),
}


class Harness:
    """One simulated core with its memory; calls release Python's lock.

    Parameters
    ----------
    path : Path
        A library that `build_library` made.

    Raises
    ------
    DeviceError
        When it cannot be loaded.
    """

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise DeviceError(f"cannot load {path}: {error}; delete it to build it anew") from None
        self._call = {}
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, f"vitral_{name}")
            function.restype = result
            function.argtypes = arguments
            self._call[name] = function
        self._handle = self._call["create"]()
        self._dram: Dram | None = None
        self._destroy = weakref.finalize(self, self._call["destroy"], self._handle)
        self.arrays = self._find_arrays()

    def close(self) -> None:
        """Free the model, and with it `arrays`; every later call raises DeviceError."""
        self.arrays = {}
        self._destroy()

    def _ask(self, name: str, *arguments: Any) -> Any:
        if not self._destroy.alive:
            raise DeviceError("the simulator is closed; make a new one")
        return self._call[name](self._handle, *arguments)

    def _find_arrays(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Every memory of the model by hierarchical name, uint8 (depth, bytes per entry)."""
        arrays = {}
        for number in range(self._ask("array_count")):
            data, entry, depth = c_void_p(), c_uint64(), c_uint64()
            name = self._ask("array", number, byref(data), byref(entry), byref(depth))
            kind = ctypes.c_uint8 * (entry.value * depth.value)
            flat = np.ctypeslib.as_array(kind.from_address(data.value or 0))
            arrays[name.decode()] = flat.reshape(depth.value, entry.value)
        return arrays

    @property
    def beat_bytes(self) -> int:
        return self._call["beat_bytes"]()

    @property
    def cycle(self) -> int:
        """Clock cycles since the model was made."""
        return self._ask("cycle")

    @property
    def error(self) -> str:
        """The first broken rule of a bus since the last reset, or ""."""
        return self._ask("error").decode()

    @property
    def bursts_open(self) -> tuple[int, int]:
        """Read and write bursts that the memory has not finished."""
        return self._ask("reads_open"), self._ask("writes_open")

    @property
    def beats(self) -> tuple[int, int]:
        """Data beats read and written since the model was made."""
        return self._ask("read_beats"), self._ask("write_beats")

    def watch(self) -> None:
        """Start a new `signature`."""
        self._ask("watch")

    @property
    def signature(self) -> int:
        """A hash of all outputs in every cycle since `watch`; 0 without it."""
        return self._ask("signature")

    def reset(self) -> None:
        """Eight cycles of `aresetn` low; the memory forgets its bursts."""
        self._ask("reset")

    def attach(self, dram: Dram) -> None:
        """Connect the memory port to host memory, in place."""
        self._dram = dram
        self._ask("attach", dram.data.ctypes.data, dram.base, dram.data.size)

    def configure(self, model: MemoryModel, burst_beats: int) -> None:
        """Set the memory's timing and errors; burst numbers and stalls start anew."""
        stalls = model.stall_seed is not None
        settings = _Settings(
            latency=max(model.latency, 1),
            write_latency=max(model.write_latency, 1),
            seed=(model.stall_seed or 0) & (1 << 64) - 1,
            outstanding=model.outstanding,
            stall_threshold=round(model.stall_probability * STALL_STEPS) if stalls else 0,
            burst_beats=burst_beats,
        )
        self._ask("configure", byref(settings))
        ranges = (_Range * len(model.error_ranges))(*model.error_ranges)
        self._ask(
            "fail",
            ranges,
            len(ranges),
            *_numbers(model.fail_reads),
            *_numbers(model.fail_writes),
        )

    def write(self, offset: int, value: int) -> None:
        """One 32-bit write on the register port; DeviceError when it is not answered."""
        if self._ask("write", offset, value):
            raise DeviceError(self.error)

    def read(self, offset: int) -> int:
        """One 32-bit read on the register port; DeviceError when it is not answered."""
        value = c_uint32()
        if self._ask("read", offset, byref(value)):
            raise DeviceError(self.error)
        return value.value

    def run(self, cycles: int, quiet: int) -> End:
        """Clock until the interrupt, for `cycles` at most, or `quiet` cycles without traffic."""
        return End(self._ask("run", cycles, quiet))

    def start_timeline(self, marks: npt.NDArray[np.uint64], *, keep: bool) -> bool:
        """Look at the stages from now on; `Timeline` of `timeline.h`.

        `marks` are rows of 64-bit words as `Mark` there; `keep` asks for every change and the
        traffic. False when the library does not show its stages.
        """
        data = np.ascontiguousarray(marks, np.uint64)
        return bool(self._ask("timeline_start", data.ctypes.data, len(data), keep))

    def stop_timeline(self) -> None:
        self._ask("timeline_stop")

    def timeline(self, part: str, dtype: npt.DTypeLike) -> npt.NDArray:
        """A copy of the recorded "marks", "changes" or "traffic"; `dtype` is one item's."""
        count = c_uint64()
        address = self._ask(f"timeline_{part}", byref(count))
        kind = np.dtype(dtype)
        size = count.value * kind.itemsize
        data = ctypes.string_at(address, size) if size else b""
        return np.frombuffer(data, kind).copy()

    def open_trace(self, path: Path) -> bool:
        """Write a waveform from now on; False when the library has none or cannot write it."""
        return bool(self._ask("trace_open", str(path).encode()))

    def close_trace(self) -> None:
        self._ask("trace_close")


def _numbers(values: Sequence[int]) -> "tuple[ctypes.Array[c_uint64], int]":
    return (c_uint64 * len(values))(*values), len(values)
