"""A module as a record of JSON values, with its arrays numbered: what the file's header holds."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.config import ISA_VERSION, CoreConfig
from vitral.errors import ModuleError
from vitral.isa import Profile
from vitral.runtime.module import (
    ArenaTensor,
    CpuStep,
    Layer,
    Module,
    Segment,
    Step,
    TensorInfo,
)

__all__ = ["from_record", "to_record"]

Record = dict[str, Any]

_PROFILES = tuple(profile.name.lower() for profile in Profile)


def to_record(module: Module, keep: Callable[[npt.NDArray], int]) -> Record:
    """The record of a module; `keep` stores an array and gives its number."""
    return {
        "isa": ISA_VERSION,
        "digest": module.config.digest,
        "config": module.config.to_dict(),
        "inputs": [asdict(info) for info in module.inputs],
        "outputs": [asdict(info) for info in module.outputs],
        "steps": [_step_record(step) for step in module.steps],
        "arrays": {name: keep(module.arrays[name]) for name in sorted(module.arrays)},
        "arena_bytes": module.arena_bytes,
        "image": [[offset, keep(_image_chunk(module, offset))] for offset in sorted(module.image)],
        "macs": module.macs,
        "notices": list(module.notices),
    }


def from_record(record: Record, arrays: Sequence[npt.NDArray]) -> Module:
    """The module of a record.

    Raises
    ------
    ModuleError
        When it was compiled for another instruction set, or an image chunk is outside the arena.
    KeyError, TypeError, ValueError, IndexError, AttributeError
        When the record has another form.
    """
    if record["isa"] != ISA_VERSION:
        raise ModuleError(
            f"compiled for instruction set {record['isa']}, this Vitral has {ISA_VERSION};"
            " compile the model again"
        )
    config = CoreConfig(**record["config"])
    if config.digest != record["digest"]:
        raise ModuleError("the configuration does not give the digest beside it")
    image = {int(offset): arrays[number] for offset, number in record["image"]}
    _check_image(image, record["arena_bytes"])
    return Module(
        config=config,
        inputs=tuple(TensorInfo(**_tuples(info)) for info in record["inputs"]),
        outputs=tuple(TensorInfo(**_tuples(info)) for info in record["outputs"]),
        steps=tuple(_step(step) for step in record["steps"]),
        arrays={name: arrays[number] for name, number in record["arrays"].items()},
        arena_bytes=record["arena_bytes"],
        image=image,
        macs=record["macs"],
        notices=tuple(record["notices"]),
    )


def _image_chunk(module: Module, offset: int) -> npt.NDArray[np.uint8]:
    chunk = module.image[offset]
    if chunk.dtype != np.uint8 or chunk.ndim != 1:
        raise ModuleError(f"image at {offset:#x} must be uint8 (n,), got {chunk.dtype}")
    return chunk


def _check_image(image: dict[int, npt.NDArray], arena_bytes: int) -> None:
    for offset, chunk in image.items():
        if chunk.dtype != np.uint8 or offset < 0 or offset + chunk.size > arena_bytes:
            raise ModuleError(
                f"image at {offset:#x}: {chunk.size} elements of {chunk.dtype} do not fit an"
                f" arena of {arena_bytes} bytes"
            )


def _step_record(step: Step) -> Record:
    if isinstance(step, Segment):
        return {"kind": "segment"} | asdict(step)
    plain = replace(step, attributes={})
    return {"kind": "cpu"} | asdict(plain) | {"attributes": dict(step.attributes)}


def _step(record: Record) -> Step:
    values = {name: value for name, value in record.items() if name != "kind"}
    if record["kind"] == "cpu":
        names = [field.name for field in fields(CpuStep)]
        return CpuStep(**{name: _tuples(values[name]) for name in names})
    tensors = {
        name: tuple(ArenaTensor(**_tuples(tensor)) for tensor in values[name])
        for name in ("inputs", "outputs")
    }
    layers = tuple(Layer(**_tuples(layer)) for layer in values["layers"])
    if values.get("profile", "vitral") not in _PROFILES:
        raise ModuleError(f"profile must be {' or '.join(_PROFILES)}, got {values['profile']!r}")
    return Segment(**{**values, **tensors, "layers": layers})


def _tuples(value: Any) -> Any:
    """JSON has lists only; a module has tuples only."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return value
