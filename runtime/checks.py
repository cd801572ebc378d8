"""What a caller gives to `Session.run`, checked against what the model takes."""

import threading
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.runtime.module import TensorInfo

__all__ = ["check_inputs", "check_output_names", "check_timeout"]


def check_inputs(
    infos: Sequence[TensorInfo], given: Mapping[str, npt.ArrayLike]
) -> dict[str, npt.NDArray]:
    """The arrays by name, in the model's order.

    Raises
    ------
    DeviceError
        Naming the input that is missing, unknown, or of another dtype or shape.
    """
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise DeviceError(f"inputs must be arrays by name, like {{'x': array}}, got {kind}")
    known = [info.name for info in infos]
    for name in given:
        if name not in known:
            raise DeviceError(f"the model has no input {name!r}; it takes {_list(known)}")
    return {info.name: _checked(info, given) for info in infos}


def check_output_names(infos: Sequence[TensorInfo], wanted: Sequence[str] | None) -> list[str]:
    """The names to return: all when `wanted` is None; DeviceError for an unknown one."""
    if isinstance(wanted, str):
        raise DeviceError(f"output names must be a list, like [{wanted!r}], got {wanted!r} alone")
    known = [info.name for info in infos]
    for name in wanted or ():
        if name not in known:
            raise DeviceError(f"the model has no output {name!r}; it gives {_list(known)}")
    return known if wanted is None else list(wanted)


def check_timeout(seconds: float | None) -> float | None:
    """The time-out itself; DeviceError unless it is None or a time that a thread can wait."""
    if seconds is None:
        return None
    number = isinstance(seconds, int | float)
    if not number or not 0 < seconds <= threading.TIMEOUT_MAX:
        raise DeviceError(f"timeout must be more than 0 seconds, or None for ever, got {seconds!r}")
    return seconds


def _checked(info: TensorInfo, given: Mapping[str, npt.ArrayLike]) -> npt.NDArray:
    needed = f"input {info.name!r} must be {info.dtype} {info.shape}"
    if info.name not in given:
        raise DeviceError(f"{needed}, it is missing")
    try:
        array = np.asarray(given[info.name])
    except ValueError:
        raise DeviceError(f"{needed}, got nested lists of unequal lengths") from None
    if array.dtype != np.dtype(info.dtype) or array.shape != info.shape:
        raise DeviceError(f"{needed}, got {array.dtype} {array.shape}")
    return array


def _list(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
