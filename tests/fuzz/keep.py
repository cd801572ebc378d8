"""Judges the graph of a seed and keeps it, cut down, when it fails."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from fuzz.check import Failure, differs, find_failure
from fuzz.network import Array

__all__ = ["check_seed", "replay"]


def check_seed(seed: int, *, device: str, out: Path, judge: bool) -> str | None:
    """What is wrong with a graph, and how to see it again; None if all bytes are right."""
    failure = find_failure(seed, device, judge=judge)
    return None if failure is None else f"{failure.text}; {_kept(failure, seed, device, out)}"


def _kept(failure: Failure, seed: int, device: str, out: Path) -> str:
    """Writes the smallest graph that fails, with its inputs; the command that runs it again."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"seed{seed}.onnx"
    onnx.save(failure.model, path)
    np.savez(path.with_suffix(".npz"), allow_pickle=False, **failure.feeds)
    return f"python -m fuzz --device {device} --replay {path}"


def replay(path: Path, device: str) -> int:
    """Runs a kept graph again and says how it differs; 0 when it does not."""
    with np.load(path.with_suffix(".npz")) as stored:
        feeds: Mapping[str, Array] = dict(stored)
    text = differs(onnx.load(path), feeds, device)
    print(text or "no byte differs from the oracle's")
    return 0 if text is None else 1
