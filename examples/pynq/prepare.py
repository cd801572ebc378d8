"""Write what the notebook takes to the board: the compiled network, images, and the right bytes.

    python examples/pynq/prepare.py --target pynq-z2 -o first_run

makes `digits.vitral` and `digits.npz` (images float32 (N, 1, 28, 28), labels, and logits as the
functional simulator computes them), and puts the notebook beside them.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np

import vitral

FOLDER = Path(__file__).resolve().parent
DIGITS = FOLDER.parent / "digits"
NOTEBOOK = FOLDER / "first_run.ipynb"


def prepare(folder: Path, target: str, count: int) -> None:
    """Fill a folder for a board: `count` images, at most 100."""
    folder.mkdir(parents=True, exist_ok=True)
    module = vitral.compile(DIGITS / "digits_int8.onnx", target=target)
    module.save(folder / "digits.vitral")
    with np.load(DIGITS / "digits_images.npz") as archive:
        images = (archive["demo_images"][:count, None] / np.float32(255)).astype(np.float32)
        labels = archive["demo_labels"][:count]
    with vitral.Session(module, "fsim") as session:
        logits = [session.run(None, {"image": image[None]})[0] for image in images]
    np.savez(folder / "digits.npz", images=images, labels=labels, logits=np.concatenate(logits))
    shutil.copyfile(NOTEBOOK, folder / NOTEBOOK.name)


def main() -> None:
    arguments = argparse.ArgumentParser(description="Write what the notebook needs on a board.")
    arguments.add_argument("--target", default="pynq-z2", help="the board (default %(default)s)")
    arguments.add_argument("--images", type=int, default=20, metavar="N")
    arguments.add_argument("-o", "--output", type=Path, default=Path("first_run"), metavar="DIR")
    options = arguments.parse_args()
    prepare(options.output, options.target, options.images)
    print(f"copy to the board: {options.output}")


if __name__ == "__main__":
    main()
