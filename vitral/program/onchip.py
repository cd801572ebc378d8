"""Contents of the core's on-chip memories."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.config import PARAM_LANE_BYTES, CoreConfig
from vitral.errors import DeviceError

__all__ = ["OnChip"]


def _forms(config: CoreConfig) -> dict[str, tuple[type[np.generic], tuple[int, ...]]]:
    layout, batch, block = config.layout, config.batch, config.block
    return {
        "uop": (np.uint32, (layout.uop_depth,)),
        "inp": (np.int8, (layout.inp_depth, batch, block)),
        "wgt": (np.int8, (layout.wgt_depth, block, block)),
        "acc": (np.int32, (layout.acc_depth, batch, block)),
        "param": (np.uint8, (layout.param_depth, block, PARAM_LANE_BYTES)),
    }


@dataclass(frozen=True)
class OnChip:
    """One array per memory; `depth` counts elements.

    Parameters
    ----------
    uop : uint32 (depth,)
    inp : int8 (depth, batch, block)
    wgt : int8 (depth, block out, block in)
    acc : int32 (depth, batch, block)
    param : uint8 (depth, block, 16), lanes as `vitral.isa.PARAM_FIELDS` lays them out
    """

    uop: npt.NDArray[np.uint32]
    inp: npt.NDArray[np.int8]
    wgt: npt.NDArray[np.int8]
    acc: npt.NDArray[np.int32]
    param: npt.NDArray[np.uint8]

    @classmethod
    def zeros(cls, config: CoreConfig) -> "OnChip":
        forms = _forms(config).items()
        arrays: Any = {name: np.zeros(shape, kind) for name, (kind, shape) in forms}
        return cls(**arrays)

    @classmethod
    def random(cls, config: CoreConfig, rng: np.random.Generator) -> "OnChip":
        """Every byte random, as after power-up."""
        arrays: Any = {}
        for name, (kind, shape) in _forms(config).items():
            size = int(np.prod(shape)) * np.dtype(kind).itemsize
            arrays[name] = np.frombuffer(bytearray(rng.bytes(size)), kind).reshape(shape)
        return cls(**arrays)

    def copy(self) -> "OnChip":
        return OnChip(**{item.name: getattr(self, item.name).copy() for item in fields(self)})

    def check(self, config: CoreConfig) -> None:
        """DeviceError, with the numbers, when an array is not the one `config` needs."""
        for name, (kind, shape) in _forms(config).items():
            array = getattr(self, name)
            if array.dtype != kind or array.shape != shape:
                raise DeviceError(
                    f"on-chip {name} must be {np.dtype(kind)} {shape},"
                    f" got {array.dtype} {array.shape}"
                )

    def differences(self, other: "OnChip", limit: int = 4) -> list[str]:
        """One line per memory that differs, with its first `limit` differing elements."""
        lines = []
        for item in fields(self):
            mine, its = getattr(self, item.name), getattr(other, item.name)
            if mine.shape != its.shape:
                lines.append(f"{item.name}: shape {mine.shape} and {its.shape}")
                continue
            wrong = np.flatnonzero((mine != its).reshape(mine.shape[0], -1).any(axis=1))
            if wrong.size:
                shown = ", ".join(
                    f"[{n}] {mine[n].ravel()[:8].tolist()} != {its[n].ravel()[:8].tolist()}"
                    if mine.ndim > 1
                    else f"[{n}] {mine[n]:#x} != {its[n]:#x}"
                    for n in wrong[:limit]
                )
                lines.append(f"{item.name}: {wrong.size} elements differ: {shown}")
        return lines
