"""The digits example as test data: the int8 model and images it never saw in training."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["FLOAT_MODEL", "INT8_MODEL", "Images", "load_images", "model_input"]

_FOLDER = Path(__file__).parent.parent / "examples" / "digits"
INT8_MODEL = _FOLDER / "digits_int8.onnx"
FLOAT_MODEL = _FOLDER / "digits_float.onnx"


@dataclass(frozen=True, kw_only=True)
class Images:
    """Pixels uint8 (N, 28, 28) and labels uint8 (N,)."""

    pixels: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)


@lru_cache(maxsize=2)
def load_images(part: Literal["demo", "held_out"]) -> Images:
    """100 demo or 1,000 held-out images; neither was used to train or to calibrate."""
    with np.load(_FOLDER / "digits_images.npz") as archive:
        return Images(pixels=archive[f"{part}_images"], labels=archive[f"{part}_labels"])


def model_input(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Graph input `image` float32 (1, 1, 28, 28) of one image (28, 28): pixel / 255."""
    return (pixels.astype(np.float32) / np.float32(255)).reshape(1, 1, 28, 28)
