"""A compiled network as data: steps on the CPU and programs for the accelerator.

Tensors between steps are numpy arrays known by name. Quantized tensors are int8 throughout; uint8
tensors of the model are held as value - 128 and converted by the edge steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import ModuleError
from vitral.isa import Memory, Profile
from vitral.program import Launch

__all__ = [
    "ArenaTensor",
    "CpuStep",
    "Layer",
    "Module",
    "TOGETHER",
    "Segment",
    "Step",
    "TensorInfo",
]


TOGETHER = " + "
"""Between the names of two layers that run together."""
_ONNX_NAMES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True, kw_only=True)
class TensorInfo:
    """An input or output of the model as callers see it.

    `scale` and `zero_point` describe the quantized form where there is one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int | None = None

    @property
    def type(self) -> str:
        """The dtype as onnxruntime writes it, such as "tensor(float)"."""
        return f"tensor({_ONNX_NAMES.get(self.dtype, self.dtype)})"


@dataclass(frozen=True, kw_only=True)
class CpuStep:
    """An operator of `vitral.runtime.cpu`.

    `attributes` are JSON values; `constants` are names in `Module.arrays`, passed after the
    tensors. `exact` is False for float islands, which are outside the byte promise. `kernel` is
    what the model's operator computes, as in `Layer`.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    macs: int = 0
    exact: bool = True
    kernel: str = ""


@dataclass(frozen=True, kw_only=True)
class ArenaTensor:
    """Where a segment's input or output lies in the arena.

    `shape` is (N, C, H, W) in real channels. In the arena it is int8
    (N / batch, ceil(C / block), H', W', batch, block) from byte `offset` on, where H', W' include
    `pads` (top, left, bottom, right) of value `pad_value`; missing channels are 0.
    """

    name: str
    offset: int
    shape: tuple[int, int, int, int]
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    pad_value: int = 0


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a segment for the profile.

    `first` and `last` number its instructions in the segment. `read_bytes` and `write_bytes` are
    what it must move at least (every needed input, weight, parameter and output byte once).
    `kernel` names what the model's operators compute: "nn_conv2d", "fused_nn_conv2d_nn_relu".
    """

    name: str
    op: str
    macs: int
    first: int
    last: int
    read_bytes: int
    write_bytes: int
    kernel: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the layers that the record is about: two that run together have one."""
        return tuple(self.name.split(TOGETHER))


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One program: its instructions start at arena byte `insn_offset`.

    The runtime writes `inputs` into the arena before it runs and reads `outputs` afterwards.
    `profile` of the instruction set is "vitral" or "vta".
    """

    name: str
    insn_offset: int
    insn_count: int
    inputs: tuple[ArenaTensor, ...]
    outputs: tuple[ArenaTensor, ...]
    layers: tuple[Layer, ...]
    profile: str = "vitral"

    def launch(self, base: int, arena_bytes: int) -> Launch:
        """How to start it when the arena lies at byte address `base`."""
        return Launch(
            insn_base=base + self.insn_offset,
            insn_count=self.insn_count,
            bases=dict.fromkeys(Memory, base),
            limit_low=base,
            limit_high=base + arena_bytes,
            profile=Profile[self.profile.upper()],
        )


Step = CpuStep | Segment


@dataclass(frozen=True, kw_only=True)
class Module:
    """A compiled network.

    Parameters
    ----------
    config : CoreConfig
        The core it is compiled for; `config.digest` is checked against the device's.
    inputs, outputs : tuple of TensorInfo
        What `Session.run` takes and gives, in the model's order.
    steps : tuple of Step
        In execution order.
    arrays : mapping
        Constants of CPU steps.
    arena_bytes : int
        Size of the one DRAM region that a device allocates; 4096-byte aligned.
    image : mapping from byte offset to uint8 array
        Initial contents: instructions, micro-ops, weights, parameters, constant padding.
    macs : int
        Of the float graph, all operators.
    notices : tuple of str
        What runs on the CPU and why, folded biases, and the like.
    """

    config: CoreConfig
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    steps: tuple[Step, ...]
    arrays: Mapping[str, npt.NDArray]
    arena_bytes: int
    image: Mapping[int, npt.NDArray[np.uint8]]
    macs: int
    notices: tuple[str, ...] = ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The steps that run on the accelerator, in order."""
        return tuple(step for step in self.steps if isinstance(step, Segment))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the `.vitral` file: self-contained, the same bytes for the same module.

        Raises
        ------
        ModuleError
            When the module holds something that a file cannot, or the file cannot be written.
        """
        from vitral.runtime.module_file import pack

        data = pack(self)  # pyright: ignore[reportArgumentType]  # this class by its other path
        try:
            Path(path).write_bytes(data)
        except OSError as error:
            raise ModuleError(f"{path}: cannot write the module: {error.strerror}") from None

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Module":
        """Read a `.vitral` file; its arrays are read-only.

        Raises
        ------
        ModuleError
            When it is missing, no module, truncated, corrupt, or of another version.
        """
        from vitral.runtime.module_file import unpack

        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ModuleError(f"{path}: cannot read the module: {error.strerror}") from None
        return unpack(data, str(path))  # pyright: ignore[reportReturnType]  # as above

    def describe(self) -> str:
        """Several lines for people: inputs, outputs, steps, sizes, notices."""
        from vitral.runtime.describe import describe

        return describe(self)  # pyright: ignore[reportArgumentType]  # as above
