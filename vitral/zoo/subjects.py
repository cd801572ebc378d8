"""Networks that `vitral zoo run` takes: the zoo's own, and trained ones that packages carry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vitral.errors import VitralError
from vitral.zoo.catalogue import NETWORKS, build, sample_input

if TYPE_CHECKING:
    import onnx

__all__ = ["MissingPackageError", "Subject", "subject", "subjects"]

Array = npt.NDArray[Any]


class MissingPackageError(VitralError):
    """A network of a package that is not installed, or drawn data that a package draws."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A network: `build` gives a quantized model for a seed, `inputs` data of its kind.

    `source` says where it comes from, with the licence of what is not the zoo's own.
    """

    name: str
    source: str
    build: Callable[[int], "onnx.ModelProto"]
    inputs: Callable[["onnx.ModelProto", int], Mapping[str, Array]]


def subjects() -> tuple[Subject, ...]:
    """All whole networks; those of packages are named whether installed or not."""
    from vitral.zoo.packages import PACKAGED

    whole = [name for name in NETWORKS if not _is_layer(name)]
    return (*(_own(name) for name in whole), *PACKAGED)


def subject(name: str) -> Subject:
    """One network, or a layer c1 to c11.

    Raises
    ------
    VitralError
        When there is none of this name.
    """
    if name in NETWORKS:
        return _own(name)
    known = {candidate.name: candidate for candidate in subjects()}
    if name not in known:
        raise VitralError(f"the zoo has no {name!r}; it has {', '.join(known)}, c1 ... c11")
    return known[name]


def _own(name: str) -> Subject:
    return Subject(
        name=name,
        source="vitral.zoo",
        build=lambda seed: build(name, seed),
        inputs=_images,
    )


def _images(model: "onnx.ModelProto", seed: int) -> dict[str, Array]:
    (source,) = model.graph.input
    n, c, h, w = (d.dim_value for d in source.type.tensor_type.shape.dim)
    return {source.name: sample_input((n, c, h, w), seed).astype(np.float32, copy=False)}


def _is_layer(name: str) -> bool:
    return name[0] == "c" and name[1:].isdigit()
