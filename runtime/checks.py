"""What a caller gives to `Session.run`, checked against what the model takes."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.runtime.module import TensorInfo

__all__ = ["check_inputs", "check_output_names"]


def check_inputs(
    infos: Sequence[TensorInfo], given: Mapping[str, npt.ArrayLike]
) -> dict[str, npt.NDArray]:
    """The arrays by name, in the model's order.

    Raises
    ------
    DeviceError
        Naming the input that is missing, unknown, or of another dtype or shape.
    """
    known = [info.name for info in infos]
    for name in given:
        if name not in known:
            raise DeviceError(f"the model has no input {name!r}; it takes {_list(known)}")
    return {info.name: _checked(info, given) for info in infos}


def check_output_names(infos: Sequence[TensorInfo], wanted: Sequence[str] | None) -> list[str]:
    """The names to return: all when `wanted` is None; DeviceError for an unknown one."""
    known = [info.name for info in infos]
    for name in wanted or ():
        if name not in known:
            raise DeviceError(f"the model has no output {name!r}; it gives {_list(known)}")
    return known if wanted is None else list(wanted)


def _checked(info: TensorInfo, given: Mapping[str, npt.ArrayLike]) -> npt.NDArray:
    needed = f"input {info.name!r} must be {info.dtype} {info.shape}"
    if info.name not in given:
        raise DeviceError(f"{needed}, it is missing")
    array = np.asarray(given[info.name])
    if array.dtype != np.dtype(info.dtype) or array.shape != info.shape:
        raise DeviceError(f"{needed}, got {array.dtype} {array.shape}")
    return array


def _list(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
