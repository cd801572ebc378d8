"""What the tests of boards share: small programs, simulated boards, checks of a session."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hand_made import double_instructions, double_module

from vitral.bitstream.manifest import Manifest
from vitral.config import CoreConfig
from vitral.isa import Finish, Instruction
from vitral.runtime.module import Module
from vitral.runtime.session import Session

__all__ = ["CONFIG", "SHAPE", "broken", "check_doubles", "doubled", "image", "write_manifest"]

CONFIG = CoreConfig()
SHAPE = (1, 16, 2, 3)


def image(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> npt.NDArray[np.int8]:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def doubled(x: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    return (2 * x.astype(np.int64)).astype(np.int8)


def check_doubles(session: Session, runs: int = 3, shape: tuple[int, ...] = SHAPE) -> None:
    """Several runs, each with other inputs, so that stale bytes show."""
    for seed in range(runs):
        x = image(seed, shape)
        (y,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(y, doubled(x), err_msg=f"seed {seed}")


def broken(index: int, insn: Instruction | None = None) -> Module:
    """The doubling module with one instruction replaced, by an early FINISH when None."""
    program = list(double_instructions(CONFIG, 6))
    program[index] = insn or Finish()
    return double_module(instructions=tuple(program))


def write_manifest(bitstream: Path, /, **changes: Any) -> None:
    """The manifest that a build leaves beside a bitstream, with some of its entries changed."""
    entries: dict[str, Any] = {
        "target": "pynq-z1",
        "core": CONFIG.digest,
        "config": CONFIG.to_dict(),
        "tool": "vivado",
        "tool_version": "2022.1",
        "part": "xc7z020clg400-1",
        "clock_mhz": 100,
        "build": "vitral bitstream build --target pynq-z1",
        "bitstream": bitstream.name,
        "sha256": "0" * 64,
    }
    Manifest(**entries | changes).write(bitstream.with_suffix(".json"))
